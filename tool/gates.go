package tool

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/component-base/featuregate"

	"github.com/berth-scheduler/berth/core/object"
)

// uncounted says which objects do not count since gates are off: a sentence for the
// objects that lack the same gates.
func uncounted(objects []object.Object, gates featuregate.FeatureGate) (notices []string) {
	var order []string // the gates that are off, joined by "=true,"
	first, times := map[string]string{}, map[string]int{}
	for _, o := range objects {
		what, needs := needsGates(o)
		off := strings.Join(slices.DeleteFunc(needs, func(gate string) bool { return gates.Enabled(featuregate.Feature(gate)) }), "=true,")
		if off == "" {
			continue
		}
		if times[off]++; times[off] == 1 {
			first[off], order = what, append(order, off)
		}
	}
	for _, off := range order {
		what := first[off]
		if n := times[off] - 1; n > 0 {
			what += fmt.Sprintf(" (and %d more)", n)
		}
		notices = append(notices, fmt.Sprintf("%s does not count here, whatever the scheduler does with it: give the gates that the scheduler has, --feature-gates %s=true, or ask it with --daemon", what, off))
	}
	return notices
}

// needsGates names the object, and the gates without which the scheduler does not read it.
func needsGates(o object.Object) (what string, gates []string) {
	switch o := o.(type) {
	case *object.PodGroup:
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
