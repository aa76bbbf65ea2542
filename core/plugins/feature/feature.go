// Package feature holds the feature gates that decide what the in-tree plugins
// do. A gate is read once, when a plugin is made.
package feature

// Features holds the feature gates, each by its Kubernetes name.
type Features struct {
	DRAAdminAccess               bool
	DRAConsumableCapacity        bool
	DRADerivedAttributes         bool
	DRADeviceBindingConditions   bool
	DRADeviceCompatibilityGroups bool
	DRADeviceTaintRules          bool
	DRADeviceTaints              bool
	DRAExtendedResource          bool
	DRAFractionalCapacityRange   bool
	DRAListTypeAttributes        bool
	DRANodeAllocatableResources  bool
	DRAOptionalNodeOperations    bool
	DRAPartitionableDevices      bool
	DRAPrioritizedList           bool
	DRAResourceClaimDeviceStatus bool
	DRASchedulerFilterTimeout    bool

	GenericWorkload                    bool
	MatchLabelKeysInPodTopologySpread  bool
	NodeDeclaredFeatures               bool
	StorageCapacityScoring             bool
	TaintTolerationComparisonOperators bool
	TopologyAwareWorkloadScheduling    bool
	VolumeAttributesClass              bool
	VolumeLimitScaling                 bool
}

// DeviceBindingConditions reports whether a pod may wait for its devices before it is
// bound, for which two gates are needed.
func (f Features) DeviceBindingConditions() bool {
	return f.DRADeviceBindingConditions && f.DRAResourceClaimDeviceStatus
}
