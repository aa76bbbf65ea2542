package features

import (
	"fmt"

	"k8s.io/component-base/featuregate"
)

// lacks are the values of gates that Berth cannot take, and why.
var lacks = []struct {
	gate  featuregate.Feature
	value bool
	why   string
}{
	{"DRAWorkloadResourceClaims", true, "no claim is reserved for a pod group"},
	// This one can be turned off only where an earlier version is emulated.
	{"SchedulerQueueingHints", false, "queueing hints are always asked"},
}

// Refusal is the value of a gate that Berth cannot take.
type Refusal struct {
	Gate  featuregate.Feature
	Value bool
	why   string
}

// Error names the gate and the reason.
func (r *Refusal) Error() string {
	return fmt.Sprintf("feature gate %s=%t is not supported: %s", r.Gate, r.Value, r.why)
}

// Unsupported says which gates have a value that Berth does not implement. Gates
// that need one of these are not named again. Those that only switch how fast
// kube-scheduler decides are taken and change nothing (docs/deviations-daemon.md).
func Unsupported(gates featuregate.FeatureGate) []error {
	var errs []error
	for _, l := range lacks {
		if gates.Enabled(l.gate) == l.value {
			errs = append(errs, &Refusal{l.gate, l.value, l.why})
		}
	}
	return errs
}
