package deploy

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim"
)

// TestSpreadIsTheDefault: spread.yaml says what holds without a file.
func TestSpreadIsTheDefault(t *testing.T) {
	c, err := config.Load("spread.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := config.Profiles(c), config.Profiles(config.Default()); !sameProfiles(got[0].Args, want[0].Args) || !reflect.DeepEqual(got[0].MultiPoint, want[0].MultiPoint) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// sameProfiles compares arguments, whatever their order.
func sameProfiles[A any](a, b []A) bool {
	for _, x := range a {
		found := false
		for _, y := range b {
			found = found || reflect.DeepEqual(x, y)
		}
		if !found {
			return false
		}
	}
	return len(a) == len(b)
}

// TestPlacement: the same pod goes to the empty node, or to the half full one.
func TestPlacement(t *testing.T) {
	for file, want := range map[string]string{"spread.yaml": "empty", "pack.yaml": "half"} {
		c, err := config.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		options, err := sim.Options(c)
		if err != nil {
			t.Fatal(err)
		}
		result, err := sim.Run(sim.Input{Machine: options, Nodes: []*object.Node{node("empty"), node("half")},
			Pods: []*object.Pod{pod("there", "2", "half"), pod("new", "1", "")}})
		if err != nil {
			t.Fatal(err)
		}
		if got := result.Placed["default/new"]; got != want {
			t.Errorf("%s: goes to %q, want %q", file, got, want)
		}
	}
}

func amount(cpu string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(cpu + "Gi"), v1.ResourcePods: resource.MustParse("10")}
}

func node(name string) *object.Node {
	return decode.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Allocatable: amount("4")}})
}

func pod(name, cpu, on string) *object.Pod {
	requests := amount(cpu)
	delete(requests, v1.ResourcePods)
	return decode.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec: v1.PodSpec{SchedulerName: "default-scheduler", NodeName: on, Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: requests}}}}})
}
