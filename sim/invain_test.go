package sim

import (
	"flag"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
)

var waitInVain = flag.Int("wait-in-vain", 50, "pods of TestPodsThatWaitInVain, and nodes; ten times as many others go")

// Pods that fit nowhere, each a class of its own, are tried three times at most on average
// while ten times as many of lower priority leave.
func TestPodsThatWaitInVain(t *testing.T) {
	o, err := Options(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	m, now, attempts := machine.New(o), Epoch, 0
	step := func(e machine.Event) {
		for _, effect := range m.Step(now, e) {
			if _, ok := effect.(machine.AttemptDone); ok {
				attempts++
			}
		}
	}
	pod := func(name, cpu, node string, priority int32) machine.Event {
		p := &v1.Pod{Spec: v1.PodSpec{SchedulerName: v1.DefaultSchedulerName, NodeName: node, Priority: &priority, Containers: []v1.Container{{}}}}
		p.Namespace, p.Name, p.UID = "default", name, types.UID(name)
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}
		return machine.PodSet{Pod: decode.Pod(p)}
	}
	waiting, going := *waitInVain, 10**waitInVain
	for i := range waiting {
		n := &v1.Node{}
		n.Name = fmt.Sprint("node-", i)
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourcePods: resource.MustParse("110")}
		step(machine.NodeSet{Node: decode.Node(n)})
	}
	for i := range going {
		step(pod(fmt.Sprint("goes-", i), "100m", fmt.Sprint("node-", i%waiting), 0))
	}
	for i := range waiting {
		step(pod(fmt.Sprint("waits-", i), fmt.Sprint(500+i), "", 10))
	}
	for i := range going {
		for m.Ready() {
			step(machine.ScheduleOne{})
		}
		now = now.Add(50 * time.Millisecond)
		step(machine.PodGone{UID: types.UID(fmt.Sprint("goes-", i))})
		step(machine.Tick{})
	}
	t.Logf("%d attempts for %d pods while %d left", attempts, waiting, going)
	if attempts < waiting || attempts > 3*waiting {
		t.Errorf("%d attempts for %d pods that fit nowhere", attempts, waiting)
	}
}

// BenchmarkPodLeavesWhileOthersWait is the event of a pod that leaves a node while 10,000
// others wait that fit nowhere still: replicas of one workload, of a hundred, or each of its own.
func BenchmarkPodLeavesWhileOthersWait(b *testing.B) {
	const nodes, waiting = 1000, 10000
	for _, workloads := range []int{1, 100, waiting} {
		b.Run(fmt.Sprintf("workloads=%d", workloads), func(b *testing.B) {
			o, err := Options(config.Default())
			if err != nil {
				b.Fatal(err)
			}
			o.Check = false
			m := machine.New(o)
			for i := range nodes {
				m.Step(Epoch, machine.NodeSet{Node: benchNode(i)})
			}
			for i := range b.N {
				p := *benchPod(i, 0, 0)
				p.NodeName = fmt.Sprint("node-", i%nodes)
				m.Step(Epoch, machine.PodSet{Pod: &p})
			}
			for i := range waiting {
				p := *benchPod(b.N+i, 100_000+int64(i%workloads), 0)
				p.Priority = 10
				m.Step(Epoch, machine.PodSet{Pod: &p})
			}
			for m.Ready() {
				m.Step(Epoch, machine.ScheduleOne{})
			}
			b.ResetTimer()
			for i := range b.N {
				m.Step(Epoch, machine.PodGone{UID: benchPod(i, 0, 0).UID})
			}
			if m.Ready() {
				b.Error("a pod is tried")
			}
		})
	}
}
