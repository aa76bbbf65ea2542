package features

import (
	"k8s.io/component-base/featuregate"

	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/plugins/dynamicresources"
)

// Plugins is what the gates say to the plugins that come with Berth.
func Plugins(gates featuregate.FeatureGate) plugins.Features {
	return plugins.Features{
		TaintComparisons:     gates.Enabled("TaintTolerationComparisonOperators"),
		NodeDeclaredFeatures: gates.Enabled(NodeDeclaredFeatures),
		SpreadKeys:           gates.Enabled("MatchLabelKeysInPodTopologySpread"),
		StorageScoring:       gates.Enabled(StorageCapacityScoring),
		VolumeLimitScaling:   gates.Enabled("VolumeLimitScaling"),
		Devices: dynamicresources.Features{
			AdminAccess:          gates.Enabled("DRAAdminAccess"),
			PrioritizedList:      gates.Enabled("DRAPrioritizedList"),
			PartitionableDevices: gates.Enabled("DRAPartitionableDevices"),
			DeviceTaints:         gates.Enabled("DRADeviceTaints"),
			ConsumableCapacity:   gates.Enabled("DRAConsumableCapacity"),
			ListTypeAttributes:   gates.Enabled("DRAListTypeAttributes"),
			BindingConditions:    gates.Enabled(DRADeviceBindingConditions) && gates.Enabled(DRAResourceClaimDeviceStatus),
			FilterTimeout:        gates.Enabled(DRASchedulerFilterTimeout),
			ExtendedResource:     gates.Enabled(DRAExtendedResource),
		},
	}
}
