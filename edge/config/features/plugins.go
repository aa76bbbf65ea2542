package features

import (
	"k8s.io/component-base/featuregate"

	"github.com/berth-scheduler/berth/core/plugins/feature"
)

// Plugins is what the gates say to the in-tree plugins.
func Plugins(gates featuregate.FeatureGate) feature.Features {
	return feature.Features{
		DRAAdminAccess:                     gates.Enabled("DRAAdminAccess"),
		DRAConsumableCapacity:              gates.Enabled(DRAConsumableCapacity),
		DRADerivedAttributes:               gates.Enabled("DRADerivedAttributes"),
		DRADeviceBindingConditions:         gates.Enabled(DRADeviceBindingConditions),
		DRADeviceCompatibilityGroups:       gates.Enabled("DRADeviceCompatibilityGroups"),
		DRADeviceTaintRules:                gates.Enabled(DRADeviceTaintRules),
		DRADeviceTaints:                    gates.Enabled("DRADeviceTaints"),
		DRAExtendedResource:                gates.Enabled(DRAExtendedResource),
		DRAFractionalCapacityRange:         gates.Enabled("DRAFractionalCapacityRange"),
		DRAListTypeAttributes:              gates.Enabled("DRAListTypeAttributes"),
		DRANodeAllocatableResources:        gates.Enabled("DRANodeAllocatableResources"),
		DRAOptionalNodeOperations:          gates.Enabled("DRAOptionalNodeOperations"),
		DRAPartitionableDevices:            gates.Enabled("DRAPartitionableDevices"),
		DRAPrioritizedList:                 gates.Enabled("DRAPrioritizedList"),
		DRAResourceClaimDeviceStatus:       gates.Enabled(DRAResourceClaimDeviceStatus),
		DRASchedulerFilterTimeout:          gates.Enabled(DRASchedulerFilterTimeout),
		GenericWorkload:                    gates.Enabled(GenericWorkload),
		TopologyAwareWorkloadScheduling:    gates.Enabled(TopologyAwareWorkloadScheduling),
		MatchLabelKeysInPodTopologySpread:  gates.Enabled("MatchLabelKeysInPodTopologySpread"),
		NodeDeclaredFeatures:               gates.Enabled(NodeDeclaredFeatures),
		StorageCapacityScoring:             gates.Enabled(StorageCapacityScoring),
		TaintTolerationComparisonOperators: gates.Enabled("TaintTolerationComparisonOperators"),
		VolumeAttributesClass:              gates.Enabled("VolumeAttributesClass"),
		VolumeLimitScaling:                 gates.Enabled("VolumeLimitScaling"),
	}
}
