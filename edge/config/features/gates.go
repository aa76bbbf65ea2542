package features

import (
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	metricsfeatures "k8s.io/component-base/metrics/features"
)

// The gates that the scheduler itself asks for.
const (
	CoordinatedLeaderElection       featuregate.Feature = "CoordinatedLeaderElection"
	DRAConsumableCapacity           featuregate.Feature = "DRAConsumableCapacity"
	DRADeviceBindingConditions      featuregate.Feature = "DRADeviceBindingConditions"
	DRADeviceTaintRules             featuregate.Feature = "DRADeviceTaintRules"
	DRAExtendedResource             featuregate.Feature = "DRAExtendedResource"
	DRAResourceClaimDeviceStatus    featuregate.Feature = "DRAResourceClaimDeviceStatus"
	DRASchedulerFilterTimeout       featuregate.Feature = "DRASchedulerFilterTimeout"
	DynamicResourceAllocation       featuregate.Feature = "DynamicResourceAllocation"
	GenericWorkload                 featuregate.Feature = "GenericWorkload"
	NodeDeclaredFeatures            featuregate.Feature = "NodeDeclaredFeatures"
	NominatedNodeNameForExpectation featuregate.Feature = "NominatedNodeNameForExpectation"
	SchedulerAsyncPreemption        featuregate.Feature = "SchedulerAsyncPreemption"
	SchedulerPopFromBackoffQ        featuregate.Feature = "SchedulerPopFromBackoffQ"
	SchedulerPreQueueingHints       featuregate.Feature = "SchedulerPreQueueingHints"
	StorageCapacityScoring          featuregate.Feature = "StorageCapacityScoring"
	TopologyAwareWorkloadScheduling featuregate.Feature = "TopologyAwareWorkloadScheduling"
)

// New returns Kubernetes' gates at their defaults, those of the logging and metrics
// libraries with them, and at those of an earlier version when that is emulated. Add its
// flag to a flag set, or set it from a map, before a configuration is read under it.
func New() featuregate.MutableVersionedFeatureGate {
	gates := featuregate.NewFeatureGate()
	specs, needs := table()
	must(gates.AddVersioned(specs))
	must(logsapi.AddFeatureGates(gates))
	must(metricsfeatures.AddFeatureGates(gates))
	must(gates.AddDependencies(needs))
	return gates
}

// Changed returns the gates whose values are not their defaults.
func Changed(gates featuregate.MutableVersionedFeatureGate) map[string]bool {
	changed := map[string]bool{}
	for name, spec := range gates.GetAll() { // any order: fills a map
		if is := gates.Enabled(name); is != spec.Default {
			changed[string(name)] = is
		}
	}
	return changed
}

// must is for tables that contradict themselves.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
