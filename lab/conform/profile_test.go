package conform

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/sim/generate"
)

// TestProfilesMerge: whatever a profile enables and disables, by MultiPoint and
// point by point, the plugins that both schedulers have at a point stand in the
// same order with the same weights; and both refuse the same profiles.
func TestProfilesMerge(t *testing.T) {
	refused := 0
	for seed := range uint64(400) {
		text := randomProfiles(rand.New(rand.NewPCG(seed, 1)))
		want, wantErr := upstreamProfiles(text)
		got, gotErr := berthProfiles(text)
		if (wantErr == nil) != (gotErr == nil) {
			t.Fatalf("seed %d: kube-scheduler says %v, Berth %v\n%s", seed, wantErr, gotErr, text)
		}
		if wantErr != nil {
			refused++
			continue
		}
		for _, p := range got {
			theirs := pointsOf(want.Profiles[p.Name].ListPlugins())
			for point, ours := range berthPoints(p) {
				a, b := common(theirs[point], ours), common(ours, theirs[point])
				if !slices.Equal(a, b) {
					t.Fatalf("seed %d: %s of %s: kube-scheduler %v, Berth %v\n%s", seed, point, p.Name, a, b, text)
				}
			}
		}
		want.Stop()
	}
	if refused == 0 || refused > 300 {
		t.Errorf("%d of 400 profiles are refused: the profiles are at fault", refused)
	}
}

// named are plugins that both have, with the points that they are listed at.
var named = map[string][]string{
	"filter":     {"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity"},
	"score":      {"TaintToleration", "NodeAffinity", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity", "NodeResourcesBalancedAllocation", "ImageLocality"},
	"preScore":   {"TaintToleration", "NodeAffinity", "PodTopologySpread", "InterPodAffinity"},
	"bind":       {"DefaultBinder"},
	"queueSort":  {"PrioritySort"},
	"postFilter": {"DefaultPreemption"},
	"multiPoint": {"TaintToleration", "NodeAffinity", "NodeResourcesFit", "PodTopologySpread", "ImageLocality", "DefaultBinder", "NodeName"},
}

func randomProfiles(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n")
	for i := range 1 + r.IntN(2) {
		fmt.Fprintf(&b, "- schedulerName: s%d\n  plugins:\n    preBind: {}\n", i)
		for _, point := range []string{"multiPoint", "filter", "preScore", "score", "postFilter", "bind", "queueSort"} {
			if r.IntN(3) > 0 {
				continue
			}
			fmt.Fprintf(&b, "    %s:\n", point)
			for _, list := range []string{"enabled", "disabled"} {
				var names []string
				for _, n := range r.Perm(len(named[point]))[:r.IntN(min(3, len(named[point]))+1)] {
					entry := "name: " + named[point][n]
					if list == "enabled" && (point == "score" || point == "multiPoint") && r.IntN(2) == 0 {
						entry += fmt.Sprintf(", weight: %d", 1+r.IntN(9))
					}
					names = append(names, "{"+entry+"}")
				}
				if list == "disabled" && r.IntN(4) == 0 {
					names = []string{`{name: "*"}`}
				}
				fmt.Fprintf(&b, "      %s: [%s]\n", list, strings.Join(names, ", "))
			}
		}
	}
	return b.String()
}

// upstreamProfiles checks the configuration as kube-scheduler does at its start,
// and makes one.
func upstreamProfiles(text string) (*oracle.Scheduler, error) {
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
	if err != nil {
		return nil, err
	}
	if err := validation.ValidateKubeSchedulerConfiguration(obj.(*schedconfig.KubeSchedulerConfiguration)); err != nil {
		return nil, err
	}
	return oracle.New(generate.World{Config: text})
}

func berthProfiles(text string) ([]*profile.Profile, error) {
	c, err := config.Decode([]byte(text), "configuration")
	if err != nil {
		return nil, err
	}
	return profile.BuildAll(config.Profiles(c), plugins.Registry(features.Plugins(features.New())))
}

func pointsOf(p *schedconfig.Plugins) map[string][]string {
	list := func(set schedconfig.PluginSet, weighted bool) (names []string) {
		for _, e := range set.Enabled {
			if weighted {
				e.Name = fmt.Sprintf("%s=%d", e.Name, e.Weight)
			}
			names = append(names, e.Name)
		}
		return names
	}
	return map[string][]string{
		"preFilter": list(p.PreFilter, false), "filter": list(p.Filter, false), "postFilter": list(p.PostFilter, false),
		"preScore": list(p.PreScore, false), "score": list(p.Score, true), "bind": list(p.Bind, false),
	}
}

func berthPoints(p *profile.Profile) map[string][]string {
	list := func(plugins []*framework.Plugin) (names []string) {
		for _, pl := range plugins {
			names = append(names, pl.Name)
		}
		return names
	}
	points := map[string][]string{"preFilter": list(p.PreFilter), "filter": list(p.Filter), "postFilter": list(p.PostFilter),
		"preScore": list(p.PreScore), "bind": list(p.Bind)}
	for _, s := range p.Score {
		points["score"] = append(points["score"], fmt.Sprintf("%s=%d", s.Name, s.Weight))
	}
	return points
}

// common is those of the names whose plugin is in the other list, too.
func common(names, others []string) []string {
	has := func(name string) bool {
		plugin, _, _ := strings.Cut(name, "=")
		return slices.ContainsFunc(others, func(o string) bool { return o == plugin || strings.HasPrefix(o, plugin+"=") })
	}
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !has(n) })
}
