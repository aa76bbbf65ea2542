package noderesources

import (
	"encoding/binary"
	"strings"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/resource"
)

// New returns the plugin; nil args stand for the defaults. The error names
// each field that no plugin can be built from.
func New(args *configv1.NodeResourcesFitArgs) (framework.Plugin, error) {
	args = withDefaults(args)
	if err := validate(args.ScoringStrategy); err != nil {
		return framework.Plugin{}, err
	}
	ig := newIgnored(args)
	s := newScorer(args.ScoringStrategy)
	return framework.Plugin{
		Name:     names.NodeResourcesFit,
		Locality: framework.NodeAndPods,
		Part: func(key []byte, p *object.Pod) []byte {
			key = p.Demand.Requests.AppendKey(key)
			for _, r := range s.resources {
				key = binary.AppendVarint(key, p.Demand.Scoring.Of(r.name))
			}
			return key
		},
		Wakes:     wakes(ig),
		PreFilter: ig.preFilter,
		Filter:    filter,
		Explain:   explain,
		PreScore:  s.preScore,
		Score:     s.score,
	}, nil
}

// ignored are the extended resources that the filter leaves alone.
type ignored struct {
	names, groups map[string]bool
}

func newIgnored(args *configv1.NodeResourcesFitArgs) ignored {
	set := func(list []string) map[string]bool {
		m := map[string]bool{}
		for _, s := range list {
			m[s] = true
		}
		return m
	}
	return ignored{set(args.IgnoredResources), set(args.IgnoredResourceGroups)}
}

func (ig ignored) has(name v1.ResourceName) bool {
	if len(ig.names) == 0 && len(ig.groups) == 0 || !resource.IsExtended(name) {
		return false
	}
	group, _, _ := strings.Cut(string(name), "/")
	return ig.names[string(name)] || ig.groups[group]
}
