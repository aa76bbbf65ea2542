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
	{"CompositePodGroup", true, "no group has groups"},
	{"DRAWorkloadResourceClaims", true, "no claim is reserved for a pod group"},
	{"InPlacePodVerticalScalingSchedulerPreemption", true, "no pod is preempted for one whose resize is deferred"},
	{"PodGroupPreemptionPolicy", true, "a pod group has the preemption policy of its pods"},
}

// Idle are the gates that only switch how fast kube-scheduler decides. Any value is taken
// and changes nothing.
var Idle = []featuregate.Feature{"InterPodAffinityHostnameFastPath", "OpportunisticBatching", "SchedulerAsyncAPICalls"}

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
// that need one of these are not named again.
func Unsupported(gates featuregate.FeatureGate) []error {
	var errs []error
	for _, l := range lacks {
		if gates.Enabled(l.gate) == l.value {
			errs = append(errs, &Refusal{l.gate, l.value, l.why})
		}
	}
	return errs
}
