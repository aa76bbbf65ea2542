package features

import (
	"strings"

	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	metricsfeatures "k8s.io/component-base/metrics/features"
)

// The gates that the scheduler itself asks for.
const (
	DRADeviceBindingConditions      featuregate.Feature = "DRADeviceBindingConditions"
	DRAExtendedResource             featuregate.Feature = "DRAExtendedResource"
	DRAResourceClaimDeviceStatus    featuregate.Feature = "DRAResourceClaimDeviceStatus"
	DRASchedulerFilterTimeout       featuregate.Feature = "DRASchedulerFilterTimeout"
	DynamicResourceAllocation       featuregate.Feature = "DynamicResourceAllocation"
	GangScheduling                  featuregate.Feature = "GangScheduling"
	NodeDeclaredFeatures            featuregate.Feature = "NodeDeclaredFeatures"
	StorageCapacityScoring          featuregate.Feature = "StorageCapacityScoring"
	TopologyAwareWorkloadScheduling featuregate.Feature = "TopologyAwareWorkloadScheduling"
)

// New returns v1.36's gates at their defaults, those of the logging and metrics libraries with
// them. Add its flag to a flag set, or set it from a map, before a configuration is read under it.
func New() featuregate.MutableVersionedFeatureGate {
	gates := featuregate.NewFeatureGate()
	must(gates.Add(specs()))
	must(logsapi.AddFeatureGates(gates))
	must(metricsfeatures.AddFeatureGates(gates))
	must(gates.AddDependencies(dependencies()))
	return gates
}

// must is for tables that contradict themselves.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// specs spreads the table out.
func specs() map[featuregate.Feature]featuregate.FeatureSpec {
	specs := map[featuregate.Feature]featuregate.FeatureSpec{}
	for _, stage := range table {
		for _, name := range strings.Fields(stage.names) {
			specs[featuregate.Feature(name)] = stage.spec
		}
	}
	return specs
}

// dependencies says which gates must be on for a scheduler's gate to be on. DynamicResourceAllocation
// is left out: it is locked on.
func dependencies() map[featuregate.Feature][]featuregate.Feature {
	return map[featuregate.Feature][]featuregate.Feature{
		DRADeviceBindingConditions:                       {DRAResourceClaimDeviceStatus},
		"DRADeviceTaintRules":                            {"DRADeviceTaints"},
		"DRAResourceClaimGranularStatusAuthorization":    {DRAResourceClaimDeviceStatus},
		"DRAWorkloadResourceClaims":                      {"GenericWorkload"},
		GangScheduling:                                   {"GenericWorkload"},
		"InPlacePodLevelResourcesVerticalScaling":        {NodeDeclaredFeatures, "PodLevelResources"},
		"MatchLabelKeysInPodTopologySpreadSelectorMerge": {"MatchLabelKeysInPodTopologySpread"},
		TopologyAwareWorkloadScheduling:                  {"GenericWorkload"},
		"WorkloadAwarePreemption":                        {GangScheduling},
		"WorkloadWithJob":                                {"GenericWorkload"},
	}
}
