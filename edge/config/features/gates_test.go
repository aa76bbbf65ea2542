package features

import (
	"strings"
	"testing"
)

func TestSet(t *testing.T) {
	for _, tc := range []struct{ flag, want string }{
		{"", ""},
		{"GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true", ""},
		{"AllBeta=true", ""},
		{"DynamicResourceAllocation=true", ""},
		{"DRAPrioritizedList=false", ""},
		{"DynamicResourceAllocation=false", "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true"},
		{"SchedulerQueueingHints=false", "feature is locked to true"},
		{"Nonsense=true", "unrecognized feature gate: Nonsense"},
		{"GangScheduling", "missing bool value for GangScheduling"},
		{"GangScheduling=maybe", "invalid value of GangScheduling=maybe"},
		{"GangScheduling=true", "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]"},
		{"TopologyAwareWorkloadScheduling=true", "depends on features that are disabled: [GenericWorkload]"},
		{"GenericWorkload=true,WorkloadAwarePreemption=true", "depends on features that are disabled: [GangScheduling]"},
		{"WorkloadWithJob=true", "depends on features that are disabled: [GenericWorkload]"},
		{"DRAWorkloadResourceClaims=true", "depends on features that are disabled: [GenericWorkload]"},
		{"DRADeviceTaints=false,DRADeviceTaintRules=true", "depends on features that are disabled: [DRADeviceTaints]"},
		{"DRAResourceClaimDeviceStatus=false", "DRADeviceBindingConditions is enabled, but depends on features that are disabled: [DRAResourceClaimDeviceStatus]"},
		{"NodeDeclaredFeatures=false", "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that are disabled: [NodeDeclaredFeatures]"},
		{"PodLevelResources=false", "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that are disabled: [PodLevelResources]"},
	} {
		err := New().Set(tc.flag)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("--feature-gates=%s: got %v, want %q", tc.flag, err, tc.want)
		}
	}
}

func TestGatesAreIndependent(t *testing.T) {
	if err := New().Set("StorageCapacityScoring=true"); err != nil {
		t.Fatal(err)
	}
	if New().Enabled(StorageCapacityScoring) {
		t.Error("one gate's setting shows in another")
	}
}
