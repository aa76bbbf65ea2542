package features

import (
	"maps"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	serverfeatures "k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/component-base/featuregate"
)

// Gates are set, locked and refused with the messages of kube-scheduler.
func TestSet(t *testing.T) {
	for _, tc := range []struct{ flag, want string }{
		{"", ""},
		{"GenericWorkload=true,TopologyAwareWorkloadScheduling=true,DRAWorkloadResourceClaims=true", ""},
		{"AllBeta=true", ""},
		{"DynamicResourceAllocation=true", ""},
		{"DRADeviceTaints=false,DRADeviceTaintRules=false", ""},
		{"DRAPrioritizedList=false", "cannot set feature gate DRAPrioritizedList to false, feature is locked to true"},
		{"KubeletInUserNamespace=true,WatchListClient=false,LoggingBetaOptions=true,ComponentStatusz=false", ""}, // not the scheduler's
		{"DynamicResourceAllocation=false", "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true"},
		{"SchedulerQueueingHints=true", "unrecognized feature gate: SchedulerQueueingHints"}, // gone, as three others
		{"SidecarContainers=true", "unrecognized feature gate: SidecarContainers"},
		{"GenericWorkload=true,GangScheduling=true", "unrecognized feature gate: GangScheduling"},
		{"WorkloadAwarePreemption=true", "unrecognized feature gate: WorkloadAwarePreemption"},
		{"Nonsense=true", "unrecognized feature gate: Nonsense"},
		{"GenericWorkload", "missing bool value for GenericWorkload"},
		{"GenericWorkload=maybe", "invalid value of GenericWorkload=maybe"},
		{"TopologyAwareWorkloadScheduling=true", "depends on features that are disabled: [GenericWorkload]"},
		{"GenericWorkload=true,CompositePodGroup=true", "depends on features that are disabled: [TopologyAwareWorkloadScheduling]"},
		{"PodGroupPreemptionPolicy=true", "depends on features that are disabled: [GenericWorkload]"},
		{"WorkloadWithJob=true", "depends on features that are disabled: [GenericWorkload]"},
		{"DRAWorkloadResourceClaims=true", "depends on features that are disabled: [GenericWorkload]"},
		{"DRADeviceTaints=false", "DRADeviceTaintRules is enabled, but depends on features that are disabled: [DRADeviceTaints]"},
		{"DRADeviceTaints=false,DRADeviceTaintRules=true", "depends on features that are disabled: [DRADeviceTaints]"},
		{"DRAResourceClaimDeviceStatus=false", "feature is locked to true"},
		{"DRAExtendedResource=false", "feature is locked to true"},
		{"NodeDeclaredFeatures=false", "feature is locked to true"},
		{"DRAConsumableCapacity=false,DRAFractionalCapacityRange=true", "depends on features that are disabled: [DRAConsumableCapacity]"},
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
	if err := New().Set("StorageCapacityScoring=false"); err != nil {
		t.Fatal(err)
	}
	if !New().Enabled(StorageCapacityScoring) {
		t.Error("one gate's setting shows in another")
	}
}

// The gates that were set to another value than their default are named.
func TestChanged(t *testing.T) {
	gates := New()
	if changed := Changed(gates); len(changed) != 0 {
		t.Errorf("at their defaults: %v", changed)
	}
	if err := gates.Set("StorageCapacityScoring=false,SchedulerPopFromBackoffQ=true,SchedulerAsyncAPICalls=true"); err != nil {
		t.Fatal(err)
	}
	if changed := Changed(gates); !maps.Equal(changed, map[string]bool{"StorageCapacityScoring": false, "SchedulerAsyncAPICalls": true}) {
		t.Errorf("changed: %v", changed)
	}
}

// The table agrees with what is known of the scheduler's gates from elsewhere.
func TestDefaults(t *testing.T) {
	gates := New()
	all := gates.GetAll()
	for name, want := range map[featuregate.Feature]string{
		"SchedulerAsyncPreemption": "BETA on", "SchedulerPopFromBackoffQ": "BETA on", "SchedulerAsyncAPICalls": "BETA off",
		"SchedulerPreQueueingHints": "ALPHA off", "InterPodAffinityHostnameFastPath": "ALPHA off",
		"OpportunisticBatching": "BETA on", "NominatedNodeNameForExpectation": "BETA on", NodeDeclaredFeatures: " on locked",
		GenericWorkload: "BETA off", TopologyAwareWorkloadScheduling: "ALPHA off",
		"CompositePodGroup": "ALPHA off", "PodGroupPreemptionPolicy": "ALPHA off", "DRAWorkloadResourceClaims": "BETA off",
		StorageCapacityScoring: "BETA on", "VolumeLimitScaling": "BETA on", "TaintTolerationComparisonOperators": "ALPHA off",
		DynamicResourceAllocation: " on locked", "DRAPrioritizedList": " on locked", "DRAExtendedResource": " on locked",
		DRADeviceBindingConditions: "BETA on", DRASchedulerFilterTimeout: "BETA on", DRAResourceClaimDeviceStatus: " on locked",
		"DRADeviceTaints": " on", "DRADeviceTaintRules": " on", "DRAFractionalCapacityRange": "BETA off", "DRAOptionalNodeOperations": "ALPHA off",
		"CoordinatedLeaderElection": "BETA off", "PodLevelResources": "BETA on", "NativeHistograms": "BETA on",
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
		NodeDeclaredFeatures: false, StorageCapacityScoring: false, DRAExtendedResource: false,
	} {
		if gates.Enabled(name) != want {
			t.Errorf("%s is %t in v1.34", name, !want)
		}
	}
	if err := gates.Set("DRANodeAllocatableResources=true"); err == nil {
		t.Error("a gate of v1.36 can be set in v1.34")
	}
}

// A stage that needs all components to be of a version is reached by that
// --min-compatibility-version alone.
func TestMinCompatibilityVersion(t *testing.T) {
	for min, want := range map[uint]bool{36: false, 37: true} {
		gates := New()
		if err := gates.SetEmulationVersionAndMinCompatibilityVersion(version.MajorMinor(1, 37), version.MajorMinor(1, min)); err != nil {
			t.Fatal(err)
		}
		if got := gates.Enabled("DRAFractionalCapacityRange"); got != want {
			t.Errorf("--min-compatibility-version=1.%d: DRAFractionalCapacityRange is %t", min, got)
		}
	}
}

// Each gate that kube-scheduler reads has a meaning here: the code names it, it is
// refused with a reason, or it is idle. One that is locked in the oldest version that can
// be emulated has none.
func TestGatesThatAreRead(t *testing.T) {
	oldest := New()
	if err := oldest.SetEmulationVersion(oldest.EmulationVersion().SubtractMinor(3)); err != nil {
		t.Fatal(err)
	}
	known := oldest.GetAll()
	var source strings.Builder
	for _, name := range []string{"gates.go", "plugins.go", "podfields.go", "unsupported.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	read, err := os.ReadFile("../../../testdata/upstream/gates-read.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(read)), "\n")
	for _, line := range lines {
		name, where, _ := strings.Cut(line, ": ")
		if known[featuregate.Feature(name)].LockToDefault {
			continue
		}
		if !strings.Contains(source.String(), `"`+name+`"`) && !ofServer[name] {
			t.Errorf("kube-scheduler reads %s (%s), and nothing here does", name, where)
		}
	}
	if len(lines) < 30 {
		t.Errorf("kube-scheduler reads %d gates", len(lines))
	}
}

// ofServer are gates that the libraries of endpoints read from the set itself.
var ofServer = map[string]bool{"ComponentFlagz": true, "ComponentStatusz": true}

// What Berth cannot do is refused with a sentence that names the gate; all else
// is taken.
func TestUnsupported(t *testing.T) {
	for flag, want := range map[string]string{
		"": "",
		"GenericWorkload=true,WorkloadWithJob=true":                                                                                  "",
		"GenericWorkload=true,TopologyAwareWorkloadScheduling=true":                                                                  "",
		"GenericWorkload=true,DRAWorkloadResourceClaims=true":                                                                        "DRAWorkloadResourceClaims=true",
		"GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true":                                           "CompositePodGroup=true",
		"GenericWorkload=true,PodGroupPreemptionPolicy=true":                                                                         "PodGroupPreemptionPolicy=true",
		"InPlacePodVerticalScalingSchedulerPreemption=true":                                                                          "InPlacePodVerticalScalingSchedulerPreemption=true",
		"DRADerivedAttributes=true,DRADeviceCompatibilityGroups=true,DRAFractionalCapacityRange=true,DRAOptionalNodeOperations=true": "",
		"DRADeviceTaintRules=false":                                                                                                  "",
		"DRADeviceTaintRules=false,DRADeviceTaints=false":                                                                            "",
		"DRANodeAllocatableResources=true":                                                                                           "",
		"SchedulerAsyncPreemption=false":                                                                                             "",
		"CoordinatedLeaderElection=true":                                                                                             "",
		"InPlacePodLevelResourcesVerticalScaling=false":                                                                              "",
		"NominatedNodeNameForExpectation=false,OpportunisticBatching=false":                                                          "",
		"SchedulerAsyncAPICalls=true,SchedulerPopFromBackoffQ=false":                                                                 "",
		"SchedulerPreQueueingHints=true,InterPodAffinityHostnameFastPath=true":                                                       "",
		"StorageCapacityScoring=false,VolumeLimitScaling=false,DRADeviceBindingConditions=false":                                     "",
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

// Under each version that can be emulated, the defaults and what can be turned off are taken.
func TestUnsupportedUnderEmulation(t *testing.T) {
	for _, tc := range []struct {
		minor uint
		flag  string
	}{
		{36, ""},
		{35, ""},
		{34, ""},
		{36, "NodeDeclaredFeatures=false,InPlacePodLevelResourcesVerticalScaling=false,InPlacePodVerticalScalingInitContainers=false,ExtendWebSocketsToKubelet=false,RestartAllContainersOnContainerExits=false"},
		{36, "DRAExtendedResource=false"},
		{34, "InPlacePodVerticalScaling=false"},
		{34, "VolumeAttributesClass=false"},
	} {
		gates := New()
		if err := gates.SetEmulationVersion(version.MajorMinor(1, tc.minor)); err != nil {
			t.Fatal(err)
		}
		if err := gates.Set(tc.flag); err != nil {
			t.Fatalf("1.%d %s: %v", tc.minor, tc.flag, err)
		}
		if errs := Unsupported(gates); len(errs) > 0 {
			t.Errorf("1.%d %s: %v", tc.minor, tc.flag, errs)
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
