package machine_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim"
)

// A node and a pod arrive, the machine decides, and the API's answer comes
// back as an event. The machine itself does no I/O: whoever owns it carries the
// effects out.
func Example() {
	options, err := sim.Options(config.Default())
	if err != nil {
		panic(err)
	}
	m := machine.New(options)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	n := &v1.Node{}
	n.Name = "a"
	n.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("10")}
	m.Step(now, machine.NodeSet{Node: decode.Node(n)})

	p := &v1.Pod{Spec: v1.PodSpec{SchedulerName: "default-scheduler", Containers: []v1.Container{{}}}}
	p.Namespace, p.Name, p.UID = "default", "web", "1"
	m.Step(now, machine.PodSet{Pod: decode.Pod(p)})

	for _, effect := range m.Step(now, machine.ScheduleOne{}) {
		if bind, ok := effect.(machine.Bind); ok {
			fmt.Println("bind", bind.Pod.Name, "to", bind.Node)
		}
	}
	fmt.Println("assumed pods:", m.Assumed())

	m.Step(now, machine.BindReply{UID: "1", Result: machine.BindDone})
	p.Spec.NodeName = "a" // the watch shows the binding
	m.Step(now, machine.PodSet{Pod: decode.Pod(p)})
	fmt.Println("assumed pods:", m.Assumed())
	// Output:
	// bind web to a
	// assumed pods: 1
	// assumed pods: 0
}
