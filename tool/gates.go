package tool

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/component-base/featuregate"

	"github.com/berth-scheduler/berth/core/object"
	pluginnames "github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/profile"
)

// uncounted says which objects do not count since gates or plugins are off: a sentence for the
// objects that lack the same ones.
func uncounted(objects []object.Object, gates featuregate.FeatureGate, profiles []*profile.Profile) (notices []string) {
	groups := slices.ContainsFunc(profiles, func(p *profile.Profile) bool { return p.Groups != nil })
	quotas := slices.ContainsFunc(profiles, func(p *profile.Profile) bool { return p.Quotas != nil })
	var order []string // what helps
	first, times := map[string]string{}, map[string]int{}
	for _, o := range objects {
		what, needs := needsGates(o)
		give := ""
		off := strings.Join(slices.DeleteFunc(needs, func(gate string) bool { return gates.Enabled(featuregate.Feature(gate)) }), "=true,")
		switch q, isQuota := o.(*object.ElasticQuota); {
		case off != "":
			give = "give the gates that the scheduler has, --feature-gates " + off + "=true"
		case isQuota && !quotas:
			what, give = "ElasticQuota "+q.Key(), givePlugin(pluginnames.CapacityScheduling)
		case o.Head().Kind == object.CoschedulingGroups && !groups:
			what, give = "PodGroup.scheduling.x-k8s.io "+o.Head().Key(), givePlugin(pluginnames.Coscheduling)
		default:
			continue
		}
		if times[give]++; times[give] == 1 {
			first[give], order = what, append(order, give)
		}
	}
	for _, give := range order {
		what := first[give]
		if n := times[give] - 1; n > 0 {
			what += fmt.Sprintf(" (and %d more)", n)
		}
		notices = append(notices, fmt.Sprintf("%s does not count here, whatever the scheduler does with it: %s, or ask it with --daemon", what, give))
	}
	return notices
}

func givePlugin(name string) string {
	return "give the scheduler's configuration, --config FILE; the one used here does not enable " + name
}

// needsGates names the object, and the gates without which the scheduler does not read it.
func needsGates(o object.Object) (what string, gates []string) {
	switch o := o.(type) {
	case *object.PodGroup:
		if o.Source != "" {
			return "", nil
		}
		what := "PodGroup " + o.Key()
		if o.Gang {
			what += fmt.Sprintf(" (minCount %d)", o.MinCount)
		}
		return what, []string{"GenericWorkload"}
	case *object.DeviceTaintRule:
		return "DeviceTaintRule " + o.Name, []string{"DRADeviceTaintRules"}
	}
	return "", nil
}
