package features

import (
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"
)

// Gates are set, locked and refused with the messages of v1.36.
func TestSet(t *testing.T) {
	for _, tc := range []struct{ flag, want string }{
		{"", ""},
		{"GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true", ""},
		{"AllBeta=true", ""},
		{"DynamicResourceAllocation=true", ""},
		{"DRAPrioritizedList=false", ""},
		{"KubeletInUserNamespace=true,WatchListClient=false,LoggingBetaOptions=true,ComponentStatusz=false", ""}, // not the scheduler's
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

// A gate that is set in one set does not show in another.
func TestGatesAreIndependent(t *testing.T) {
	if err := New().Set("StorageCapacityScoring=true"); err != nil {
		t.Fatal(err)
	}
	if New().Enabled(StorageCapacityScoring) {
		t.Error("one gate's setting shows in another")
	}
}

// The table agrees with what is known of the scheduler's gates from elsewhere.
func TestDefaults(t *testing.T) {
	gates := New()
	all := gates.GetAll()
	for name, want := range map[featuregate.Feature]string{
		"SchedulerAsyncPreemption": "BETA on", "SchedulerPopFromBackoffQ": "BETA on", "SchedulerAsyncAPICalls": "BETA off",
		"OpportunisticBatching": "BETA on", "NominatedNodeNameForExpectation": "BETA on", NodeDeclaredFeatures: "BETA on",
		"GenericWorkload": "ALPHA off", GangScheduling: "ALPHA off", TopologyAwareWorkloadScheduling: "ALPHA off",
		StorageCapacityScoring: "ALPHA off", "VolumeLimitScaling": "ALPHA off", "TaintTolerationComparisonOperators": "ALPHA off",
		DynamicResourceAllocation: " on locked", "SchedulerQueueingHints": " on locked", "DRAPrioritizedList": " on",
		DRADeviceBindingConditions: "BETA on", DRASchedulerFilterTimeout: "BETA on", DRAResourceClaimDeviceStatus: "BETA on",
		"DRADeviceTaintRules": "BETA off", "CoordinatedLeaderElection": "BETA off", "PodLevelResources": "BETA on",
		"MatchLabelKeysInPodTopologySpread": "BETA on", "VolumeAttributesClass": " on locked",
	} {
		got := string(all[name].PreRelease) + " off"
		if gates.Enabled(name) {
			got = string(all[name].PreRelease) + " on"
		}
		if all[name].LockToDefault {
			got += " locked"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// The table has each gate once.
func TestNoGateStandsTwice(t *testing.T) {
	n := 0
	for _, stage := range table {
		n += len(strings.Fields(stage.names))
	}
	if len(specs()) != n {
		t.Errorf("%d names, but %d gates", n, len(specs()))
	}
}
