package features

import "k8s.io/component-base/featuregate"

// The gates that the scheduler itself asks for.
const (
	DRADeviceBindingConditions      featuregate.Feature = "DRADeviceBindingConditions"
	DRAResourceClaimDeviceStatus    featuregate.Feature = "DRAResourceClaimDeviceStatus"
	DRASchedulerFilterTimeout       featuregate.Feature = "DRASchedulerFilterTimeout"
	DynamicResourceAllocation       featuregate.Feature = "DynamicResourceAllocation"
	GangScheduling                  featuregate.Feature = "GangScheduling"
	NodeDeclaredFeatures            featuregate.Feature = "NodeDeclaredFeatures"
	StorageCapacityScoring          featuregate.Feature = "StorageCapacityScoring"
	TopologyAwareWorkloadScheduling featuregate.Feature = "TopologyAwareWorkloadScheduling"
)

// New returns a gate that holds v1.36's scheduler gates at their defaults. Add its flag to a flag
// set, or set it from a map, before a configuration is read under it.
func New() featuregate.MutableVersionedFeatureGate {
	gate := featuregate.NewFeatureGate()
	if err := gate.Add(specs()); err != nil {
		panic(err) // the table below contradicts itself
	}
	if err := gate.AddDependencies(dependencies()); err != nil {
		panic(err)
	}
	return gate
}

// specs is v1.36's table. A gate of stage GA that is locked can be named, but not turned off.
func specs() map[featuregate.Feature]featuregate.FeatureSpec {
	var (
		locked  = featuregate.FeatureSpec{Default: true, PreRelease: featuregate.GA, LockToDefault: true}
		ga      = featuregate.FeatureSpec{Default: true, PreRelease: featuregate.GA}
		beta    = featuregate.FeatureSpec{Default: true, PreRelease: featuregate.Beta}
		betaOff = featuregate.FeatureSpec{Default: false, PreRelease: featuregate.Beta}
		alpha   = featuregate.FeatureSpec{Default: false, PreRelease: featuregate.Alpha}
	)
	return map[featuregate.Feature]featuregate.FeatureSpec{
		"CoordinatedLeaderElection":                      betaOff,
		"DRAAdminAccess":                                 locked,
		"DRAConsumableCapacity":                          beta,
		DRADeviceBindingConditions:                       beta,
		"DRADeviceTaintRules":                            betaOff,
		"DRADeviceTaints":                                beta,
		"DRAExtendedResource":                            beta,
		"DRAListTypeAttributes":                          alpha,
		"DRANodeAllocatableResources":                    alpha,
		"DRAPartitionableDevices":                        beta,
		"DRAPrioritizedList":                             ga,
		DRAResourceClaimDeviceStatus:                     beta,
		"DRAResourceClaimGranularStatusAuthorization":    beta,
		"DRAResourcePoolStatus":                          alpha,
		DRASchedulerFilterTimeout:                        beta,
		"DRAWorkloadResourceClaims":                      alpha,
		DynamicResourceAllocation:                        locked,
		GangScheduling:                                   alpha,
		"GenericWorkload":                                alpha,
		"InPlacePodLevelResourcesVerticalScaling":        beta,
		"InPlacePodVerticalScaling":                      locked,
		"MatchLabelKeysInPodAffinity":                    locked,
		"MatchLabelKeysInPodTopologySpread":              beta,
		"MatchLabelKeysInPodTopologySpreadSelectorMerge": beta,
		"MutableCSINodeAllocatableCount":                 locked,
		NodeDeclaredFeatures:                             beta,
		"NodeInclusionPolicyInPodTopologySpread":         locked,
		"NominatedNodeNameForExpectation":                beta,
		"OpportunisticBatching":                          beta,
		"PodLevelResources":                              beta,
		"PodObservedGenerationTracking":                  locked,
		"PodSchedulingReadiness":                         locked,
		"SchedulerAsyncAPICalls":                         betaOff,
		"SchedulerAsyncPreemption":                       beta,
		"SchedulerPopFromBackoffQ":                       beta,
		"SchedulerQueueingHints":                         locked,
		"SidecarContainers":                              locked,
		StorageCapacityScoring:                           alpha,
		"TaintTolerationComparisonOperators":             alpha,
		TopologyAwareWorkloadScheduling:                  alpha,
		"VolumeAttributesClass":                          locked,
		"VolumeLimitScaling":                             alpha,
		"WorkloadAwarePreemption":                        alpha,
		"WorkloadWithJob":                                alpha,
	}
}

// dependencies says which gates must be on for a gate to be on. DynamicResourceAllocation is left
// out: it is locked on.
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
