package config

import (
	"fmt"
	"slices"
	"strings"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/plugins/names"
)

// states lists the plugins of kube-scheduler that return an error at one extension point where another
// has not made their state. NodeAffinity, VolumeZone and the scores of resources make it then.
var states = []struct {
	made, read string // names of points
	plugins    []string
}{
	{"preFilter", "filter", []string{names.NodePorts, names.NodeResourcesFit, names.VolumeRestrictions, names.VolumeBinding,
		names.PodTopologySpread, names.InterPodAffinity, names.DynamicResources, names.NodeDeclaredFeatures}},
	{"preFilter", "score", []string{names.DynamicResources}},
	{"preFilter", "reserve", []string{names.VolumeBinding, names.DynamicResources}},
	{"preScore", "score", []string{names.TaintToleration, names.PodTopologySpread, names.InterPodAffinity}},
}

// checkStates warns of plugins that are enabled where they read their state, but not where they
// make it. It names each once for the point that makes it.
func (c *checker) checkStates(config *Config) {
	for i := range config.Profiles {
		p := &config.Profiles[i]
		named := map[string]bool{} // plugin and point
		for _, s := range states {
			var without []string
			for _, name := range s.plugins {
				if enabledAt(p.Plugins, s.read, name) && !enabledAt(p.Plugins, s.made, name) && !named[name+s.made] {
					without, named[name+s.made] = append(without, name), true
				}
			}
			if len(without) == 0 {
				continue
			}
			c.warn(fmt.Sprintf("profiles[%d].plugins.%s", i, s.made),
				"profile %q enables plugins at %s, but not at %s: %s. kube-scheduler starts, and fails each attempt that comes to them at %[2]s; Berth runs them at %[3]s all the same",
				*p.SchedulerName, s.read, s.made, strings.Join(without, ", "))
		}
	}
}

// enabledAt reports whether a plugin that implements the point is enabled there.
func enabledAt(p *configv1.Plugins, at, name string) bool {
	has := func(list []configv1.Plugin, name string) bool {
		return slices.ContainsFunc(list, func(pl configv1.Plugin) bool { return pl.Name == name })
	}
	all := points(p)
	set := all[slices.IndexFunc(all, func(pt point) bool { return pt.name == at })].set
	return has(set.Enabled, name) || has(p.MultiPoint.Enabled, name) && !has(set.Disabled, name) && !has(set.Disabled, "*")
}
