package sim

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
)

func benchNode(i int) *object.Node {
	room := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("32Gi"), v1.ResourcePods: resource.MustParse("110"),
	}
	name := fmt.Sprint("node-", i)
	return decode.Node(&v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status:     v1.NodeStatus{Capacity: room, Allocatable: room},
	})
}

func benchPod(i int, milliCPU, memory int64) *object.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("pod-", i), UID: types.UID(fmt.Sprint("uid-", i))},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10.2", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
			v1.ResourceCPU:    *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
			v1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
		}}}}},
	}
	decode.DefaultPod(p)
	return decode.Pod(p)
}

// BenchmarkMachine takes whole decisions with the default plugins: pop,
// decide, record, assume, effects handed over. Bindings are answered 64 at a
// time, while the clock stands still; ns/decision is what counts.
func BenchmarkMachine(b *testing.B) {
	for _, nodes := range []int{5000, 100000} {
		for _, c := range []struct {
			name    string
			classes int
		}{{"one-class", 1}, {"150-classes", 150}, {"unique", 1 << 30}} {
			b.Run(fmt.Sprintf("%s/%d", c.name, nodes), func(b *testing.B) {
				o, err := Options(config.Default())
				if err != nil {
					b.Fatal(err)
				}
				o.Check, o.Seed, o.Workers = false, 1, 2
				m := machine.New(o)
				for i := range nodes {
					m.Step(time.Now(), machine.NodeSet{Node: benchNode(i)})
				}
				spent, decided, made := time.Duration(0), 0, 0
				warm := 3 * c.classes
				if c.classes > 1000 {
					warm = 0
				}
				for b.Loop() {
					for range 64 {
						k := int64(made % c.classes)
						m.Step(time.Now(), machine.PodSet{Pod: benchPod(made, 10+k%150, (64+k%1000)<<20+k<<10)})
						made++
					}
					var binds []machine.Bind
					start := time.Now()
					for m.Ready() {
						for _, e := range m.Step(time.Now(), machine.ScheduleOne{}) {
							if e, ok := e.(machine.Bind); ok {
								binds = append(binds, e)
							}
						}
					}
					if made > warm {
						spent += time.Since(start)
						decided += 64
					}
					for _, e := range binds {
						bound := *e.Pod
						bound.NodeName = e.Node
						m.Step(time.Now(), machine.BindReply{UID: e.Pod.UID, Result: machine.BindDone})
						m.Step(time.Now(), machine.PodSet{Pod: &bound})
					}
				}
				b.ReportMetric(float64(spent.Nanoseconds())/float64(max(1, decided)), "ns/decision")
			})
		}
	}
}

// fullCluster has four pods on each node, which leave little room.
func fullCluster(o machine.Options, now time.Time, nodes int) *machine.Machine {
	m := machine.New(o)
	for i := range nodes {
		m.Step(now, machine.NodeSet{Node: benchNode(i)})
	}
	for i := range 4 * nodes {
		p := *benchPod(i, 900, 500<<20)
		p.NodeName = fmt.Sprint("node-", i%nodes)
		m.Step(now, machine.PodSet{Pod: &p})
	}
	return m
}

// BenchmarkPreemption lets pods of one class preempt on full nodes: pop,
// decide, plan, evictions handed over, and the second decision once the victims
// are gone. Evictions are answered that many preemptions at a time, while the
// clock stands still; until then the pods are nominated.
func BenchmarkPreemption(b *testing.B) {
	const nodes = 5000
	for _, at := range []int{1, 64, nodes} {
		b.Run(fmt.Sprintf("%d-at-a-time", at), func(b *testing.B) {
			o, err := Options(config.Default())
			if err != nil {
				b.Fatal(err)
			}
			o.Check, o.Seed, o.Workers = false, 1, 2
			now := time.Unix(0, 0)
			m := fullCluster(o, now, nodes)
			spent, preempted := time.Duration(0), 0
			round := func(evictions []machine.Evict) []machine.Evict {
				start := time.Now()
				var binds []machine.Bind
				var patches []machine.PatchStatus
				for m.Ready() {
					for _, e := range m.Step(now, machine.ScheduleOne{}) {
						switch e := e.(type) {
						case machine.Bind:
							binds = append(binds, e)
						case machine.Evict:
							evictions = append(evictions, e)
						case machine.PatchStatus:
							patches = append(patches, e)
						}
					}
				}
				spent += time.Since(start)
				for _, e := range binds {
					bound := *e.Pod
					bound.NodeName = e.Node
					m.Step(now, machine.BindReply{UID: e.Pod.UID, Result: machine.BindDone})
					m.Step(now, machine.PodSet{Pod: &bound})
				}
				for _, e := range patches {
					if p := *e.Pod; e.Nominated != nil {
						p.NominatedNode = *e.Nominated
						m.Step(now, machine.PodSet{Pod: &p})
					}
				}
				return evictions
			}
			for b.Loop() {
				if preempted+at > nodes {
					b.Skip("every node is taken")
				}
				for range at {
					p := *benchPod(4*nodes+preempted, 3000, 500<<20)
					p.Priority = 10
					m.Step(now, machine.PodSet{Pod: &p})
					preempted++
				}
				for _, e := range round(nil) {
					m.Step(now, machine.EvictReply{Victim: e.Victim.UID, Preemptor: e.Preemptor.UID})
					m.Step(now, machine.PodGone{UID: e.Victim.UID, Namespace: e.Victim.Namespace, Name: e.Victim.Name})
				}
				now = now.Add(time.Minute)
				m.Step(now, machine.Tick{})
				if left := round(nil); len(left) > 0 {
					b.Fatalf("%d more were preempted", len(left))
				}
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(preempted), "ns/preemption")
		})
	}
}
