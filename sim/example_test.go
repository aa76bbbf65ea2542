package sim_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim"
)

// A node with 4 CPUs has room for one of two pods that request 3 CPUs each.
func ExampleRun() {
	options, err := sim.Options(config.Default())
	if err != nil {
		panic(err)
	}
	result, err := sim.Run(sim.Input{
		Nodes:   []*object.Node{exampleNode("a", "4")},
		Pods:    []*object.Pod{examplePod("first", "3"), examplePod("second", "3")},
		Machine: options,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("first:", result.Placed["default/first"])
	fmt.Println("second:", result.Unplaced["default/second"])
	// Output:
	// first: a
	// second: 0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.
}

func exampleNode(name, cpu string) *object.Node {
	n := &v1.Node{}
	n.Name = name
	n.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse(cpu), "pods": resource.MustParse("10")}
	return decode.Node(n)
}

func examplePod(name, cpu string) *object.Pod {
	requests := v1.ResourceList{"cpu": resource.MustParse(cpu)}
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: requests}}}}}
	p.Namespace, p.Name, p.UID = "default", name, types.UID(name)
	decode.DefaultPod(p)
	return decode.Pod(p)
}
