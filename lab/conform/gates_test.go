package conform

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"

	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// flips are the gates that change a decision, each with the mix that shows it.
// Gates that depend on one another are flipped together.
var flips = []struct{ gates, mix string }{
	{"DRAConsumableCapacity=false", "devices"},
	{"DRADerivedAttributes=true", "devices"},
	{"DRADeviceBindingConditions=false", "devices"},
	{"DRADeviceCompatibilityGroups=true", "devices"},
	{"DRADeviceTaintRules=false", "devices"},
	{"DRADeviceTaints=false,DRADeviceTaintRules=false", "devices"},
	{"DRAExtendedResource=false", "devices"}, // as v1.36
	{"DRAFractionalCapacityRange=true", "devices"},
	{"DRAListTypeAttributes=true", "devices"},
	{"DRANodeAllocatableResources=true", "devices"},
	{"DRAOptionalNodeOperations=true", "devices"},
	{"DRAPartitionableDevices=false", "devices"},
	{"DRAPrioritizedList=false", "devices"}, // as v1.36
	{"DRAResourceClaimDeviceStatus=false,DRADeviceBindingConditions=false,DRAResourceClaimGranularStatusAuthorization=false", "devices"}, // as v1.36
	{"DRASchedulerFilterTimeout=false", "devices"},
	{"GenericWorkload=true", "all"}, // pods of no group
	{"GenericWorkload=true,TopologyAwareWorkloadScheduling=true", "all"},
	{"GenericWorkload=true", "preemption"},
	{"InPlacePodLevelResourcesVerticalScaling=false", "resources"},
	{"InPlacePodVerticalScaling=false", "resources"}, // as v1.34
	{"MatchLabelKeysInPodTopologySpread=false,MatchLabelKeysInPodTopologySpreadSelectorMerge=false", "spread"},
	{"NodeDeclaredFeatures=false,InPlacePodLevelResourcesVerticalScaling=false,InPlacePodVerticalScalingInitContainers=false," +
		"RestartAllContainersOnContainerExits=false,ExtendWebSocketsToKubelet=false", "features"}, // as v1.36
	{"NominatedNodeNameForExpectation=false", "preemption"},
	{"OpportunisticBatching=false", "all"},
	{"PodLevelResources=false,InPlacePodLevelResourcesVerticalScaling=false,PodLevelResourcesFixDefaulting=false,PodLevelResourcesFixKubeletQOSClass=false", "resources"},
	{"SchedulerAsyncAPICalls=true", "all"},
	{"SchedulerPopFromBackoffQ=false", "all"},
	{"StorageCapacityScoring=false", "volume-gates"},
	{"TaintTolerationComparisonOperators=true", "taints"},
	{"VolumeAttributesClass=false", "volumes"}, // as v1.35
	{"VolumeLimitScaling=false", "volume-gates"},
}

// Berth decides as kube-scheduler does under each gate that its plugins read, with the
// value that is not the default. A gate that is locked has no other value.
func TestEveryGate(t *testing.T) {
	tried := map[string]bool{}
	for _, f := range flips {
		t.Run(f.gates, func(t *testing.T) {
			gates, err := parseGates(f.gates)
			if err != nil {
				t.Fatal(err)
			}
			for name := range gates { // any order: a set
				tried[name] = true
			}
			counts, apart, err := playAll(f.mix, gates, 1, 25, Berth, func(int) {})
			if err != nil {
				t.Fatal(err)
			}
			if counts.Decisions == 0 {
				t.Error("nothing was decided")
			}
			for _, d := range apart {
				t.Errorf("%s, seed %d: %s", f.mix, d.World.Seed, strings.Join(d.Diffs, "; "))
			}
		})
	}
	all := features.New().GetAll()
	for field := range reflect.TypeFor[feature.Features]().Fields() {
		if !tried[field.Name] && !all[featuregate.Feature(field.Name)].LockToDefault {
			t.Errorf("no flip of %s is tried", field.Name)
		}
	}
}
