package noderesources

import (
	"encoding/binary"
	"strings"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/devices"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/index/devicepools"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// New returns the plugin; nil args stand for the defaults. With a counter
// (DRAExtendedResource), an extended resource that a DeviceClass provides is left to
// DynamicResources on nodes that do not have it; a nil counter means that no device
// provides any. The error names the wrong fields.
func New(args *configv1.NodeResourcesFitArgs, counter *devices.Counter) (framework.Plugin, error) {
	if err := ValidateArgs(nil, args).ToAggregate(); err != nil {
		return framework.Plugin{}, err
	}
	args = WithDefaults(args)
	ig := newIgnored(args)
	ig.classes = counter != nil
	s := newScorer(args.ScoringStrategy, counter)
	return framework.Plugin{
		Name: names.NodeResourcesFit,
		// Without device classes a node has what it says that it has.
		Reads:            framework.Reads{Kinds: s.reads(), Optional: true},
		EventsToRegister: eventsToRegister(ig),
		SignPlugin: framework.SignPlugin{
			Locality:     framework.NodeAndPods,
			SignRevision: devices.SignRevision,
			Sign: func(key []byte, t *table.Table, p *object.Pod) []byte {
				key = ig.appendKey(p.Demand.Requests.AppendKey(key), t, p)
				for _, r := range s.resources {
					key = binary.AppendVarint(key, p.Demand.Scoring.Of(r.name))
				}
				return s.appendKey(key, t, p)
			},
		},
		PreFilter:    ig.preFilter,
		FilterPlugin: framework.FilterPlugin{Filter: filter, Explain: explain},
		PreScore:     s.preScore,
		ScorePlugin:  framework.ScorePlugin{Score: s.score},

		PodGroup: scorePlacement(args.ScoringStrategy.Resources),
	}, nil
}

// ignored is the extended resources that the filter does not check.
type ignored struct {
	names, groups map[string]bool // whole names; parts of names before the slash
	// classes is set if resources that a DeviceClass provides are not checked either, on
	// nodes that do not have them.
	classes bool
}

// newIgnored returns the resources and groups that the arguments ignore. It does not set classes.
func newIgnored(args *configv1.NodeResourcesFitArgs) ignored {
	set := func(list []string) map[string]bool {
		m := map[string]bool{}
		for _, s := range list {
			m[s] = true
		}
		return m
	}
	return ignored{names: set(args.IgnoredResources), groups: set(args.IgnoredResourceGroups)}
}

// delegates reports whether a DeviceClass provides the resource, so that DynamicResources checks it
// on nodes that do not have it. It is false unless ig.classes is set.
func (ig ignored) delegates(t *table.Table, name v1.ResourceName) bool {
	return ig.classes && devicepools.Of(t).ClassFor(name) != nil && resource.ByDevices(name) // the dearest last
}

// appendKey appends to a signature which of the pod's requested resources a DeviceClass
// provides.
func (ig ignored) appendKey(key []byte, t *table.Table, p *object.Pod) []byte {
	for i, s := range p.Demand.Requests.Scalars {
		if ig.delegates(t, s.Name) {
			key = binary.AppendVarint(append(key, 'd'), int64(i))
		}
	}
	return key
}

// has reports whether the arguments ignore the resource. They can ignore extended resources only.
func (ig ignored) has(name v1.ResourceName) bool {
	if len(ig.names) == 0 && len(ig.groups) == 0 || !resource.IsExtended(name) {
		return false
	}
	group, _, _ := strings.Cut(string(name), "/")
	return ig.names[string(name)] || ig.groups[group]
}
