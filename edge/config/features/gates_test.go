package features

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	serverfeatures "k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"
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

// A version that is emulated has its own defaults, and does not know newer gates.
func TestEmulatedVersion(t *testing.T) {
	gates := New()
	if err := gates.SetEmulationVersion(version.MajorMinor(1, 34)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[featuregate.Feature]bool{
		"DRADeviceTaints": false, "NominatedNodeNameForExpectation": false, "PodLevelResources": true, "VolumeAttributesClass": true,
	} {
		if gates.Enabled(name) != want {
			t.Errorf("%s is %t in v1.34", name, !want)
		}
	}
	if err := gates.Set("DRANodeAllocatableResources=true"); err == nil {
		t.Error("a gate of v1.36 can be set in v1.34")
	}
}

// What Berth cannot do is refused with a sentence that names the gate; all else
// is taken.
func TestUnsupported(t *testing.T) {
	for flag, want := range map[string]string{
		"": "",
		"AllBeta=true,CoordinatedLeaderElection=false":                          "",
		"GenericWorkload=true,GangScheduling=true,WorkloadWithJob=true":         "",
		"GenericWorkload=true,TopologyAwareWorkloadScheduling=true":             "",
		"GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true": "",
		"GenericWorkload=true,DRAWorkloadResourceClaims=true":                   "DRAWorkloadResourceClaims=true",
		"DRADeviceTaintRules=true":                                              "",
		"DRANodeAllocatableResources=true":                                      "",
		"SchedulerAsyncPreemption=false":                                        "",
		"CoordinatedLeaderElection=true":                                        "",
		"InPlacePodLevelResourcesVerticalScaling=false":                         "",
		"PodLevelResources=false,InPlacePodLevelResourcesVerticalScaling=false": "",
		"NominatedNodeNameForExpectation=false,OpportunisticBatching=false":     "",
		"SchedulerAsyncAPICalls=true,SchedulerPopFromBackoffQ=false":            "",
	} {
		gates := New()
		if err := gates.Set(flag); err != nil {
			t.Fatalf("%s: %v", flag, err)
		}
		errs := Unsupported(gates)
		if want == "" && len(errs) > 0 || want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), want)) {
			t.Errorf("--feature-gates=%s: got %v, want %q", flag, errs, want)
		}
	}
}

// A gate that Berth does not read is refused too where an earlier version lets it be
// turned off.
func TestUnsupportedUnderEmulation(t *testing.T) {
	for _, tc := range []struct {
		minor uint
		flag  string
		want  []string
	}{
		{35, "", nil},
		{34, "", nil},
		{34, "InPlacePodVerticalScaling=false", nil},
		{34, "VolumeAttributesClass=false", nil},
		{33, "", nil},
		{33, "VolumeAttributesClass=true", nil},
		{33, "SchedulerQueueingHints=false", []string{"SchedulerQueueingHints=false"}},
	} {
		gates := New()
		if err := gates.SetEmulationVersion(version.MajorMinor(1, tc.minor)); err != nil {
			t.Fatal(err)
		}
		if err := gates.Set(tc.flag); err != nil {
			t.Fatalf("%s: %v", tc.flag, err)
		}
		errs := Unsupported(gates)
		if !slices.EqualFunc(errs, tc.want, func(err error, want string) bool { return strings.Contains(err.Error(), want) }) {
			t.Errorf("1.%d %s: got %v, want %v", tc.minor, tc.flag, errs, tc.want)
		}
	}
}

// The gates of libraries are the command line's.
func TestLibraries(t *testing.T) {
	client := clientGates{New()}
	must(clientfeatures.AddVersionedFeaturesToExistingFeatureGates(registry(func(f clientfeatures.Feature) { client.Enabled(f) })))
	gates := New()
	if err := gates.Set("WatchListClient=false,CBORServingAndStorage=true"); err != nil {
		t.Fatal(err)
	}
	defer Apply(New())
	Apply(gates)
	if clientfeatures.FeatureGates().Enabled(clientfeatures.WatchListClient) {
		t.Error("client-go did not hear of WatchListClient=false")
	}
	if !utilfeature.DefaultFeatureGate.Enabled(serverfeatures.CBORServingAndStorage) {
		t.Error("the API server's library did not hear of CBORServingAndStorage=true")
	}
}

// registry is told of each of client-go's gates; one that is not in the table
// would panic when it is asked for.
type registry func(clientfeatures.Feature)

func (r registry) AddVersioned(all map[clientfeatures.Feature]clientfeatures.VersionedSpecs) error {
	for f := range all {
		r(f)
	}
	return nil
}
