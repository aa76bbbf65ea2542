// Package deferredpodscheduling holds a name that a configuration may enable. In v1.37 the
// plugin is about pods whose resize their node has deferred, with the feature gate
// InPlacePodVerticalScalingSchedulerPreemption, which Berth refuses. Without the gate it
// rejects no pod.
package deferredpodscheduling
