package machine_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/sim"
)

// full returns a machine of the default configuration with 1,000 nodes of 4 CPUs, on each of
// which as many pods of one CPU run.
func full(b *testing.B, pods int) *machine.Machine {
	options, err := sim.Options(config.Default())
	if err != nil {
		b.Fatal(err)
	}
	options.Check = false
	m := machine.New(options)
	for i := range 1000 {
		m.Step(sim.Epoch, machine.NodeSet{Node: node(fmt.Sprint("node-", i), "4", false)})
		for k := range pods {
			m.Step(sim.Epoch, machine.PodSet{Pod: bound(pod(fmt.Sprint("runs-", i, "-", k), "1"), fmt.Sprint("node-", i))})
		}
	}
	return m
}

// BenchmarkDecision takes a pod from its watch event to its binding, on 1,000 nodes, and lets
// it go again: five steps.
func BenchmarkDecision(b *testing.B) {
	m := full(b, 1)
	for i := 0; b.Loop(); i++ {
		p := pod("web", "1")
		p.UID = types.UID(fmt.Sprint(i))
		m.Step(sim.Epoch, machine.PodSet{Pod: p})
		var node string
		for _, e := range m.Step(sim.Epoch, machine.ScheduleOne{}) {
			if e, is := e.(machine.Bind); is {
				node = e.Node
			}
		}
		m.Step(sim.Epoch, machine.BindReply{UID: p.UID, Result: machine.BindDone})
		m.Step(sim.Epoch, machine.PodSet{Pod: bound(p, node)})
		m.Step(sim.Epoch, machine.PodGone{UID: p.UID})
	}
}

// BenchmarkWakeUp is the event of a pod that leaves while 1,000 pods wait that fit nowhere, and
// another that takes its place: of one workload, or each of its own.
func BenchmarkWakeUp(b *testing.B) {
	for _, workloads := range []int{1, 1000} {
		b.Run(fmt.Sprint("workloads=", workloads), func(b *testing.B) {
			m := full(b, 4)
			for i := range 1000 {
				m.Step(sim.Epoch, machine.PodSet{Pod: pod(fmt.Sprint("waits-", i), fmt.Sprint(5+i%workloads))})
			}
			for m.Ready() {
				m.Step(sim.Epoch, machine.ScheduleOne{})
			}
			leaves := bound(pod("runs-7-0", "1"), "node-7")
			for now := sim.Epoch; b.Loop(); now = now.Add(time.Millisecond) {
				m.Step(now, machine.PodGone{UID: leaves.UID})
				m.Step(now, machine.PodSet{Pod: leaves})
			}
			if m.Ready() {
				b.Error("a pod is tried")
			}
		})
	}
}

// BenchmarkUnschedulable is an attempt of a pod that fits nowhere on 1,000 full nodes, where
// half of the pods has a lower priority, and whose victims would not free enough. Quotas are
// followed or not, there are none, or one of a namespace without pods, or one of half of the
// pods that run.
func BenchmarkUnschedulable(b *testing.B) {
	for _, c := range []struct {
		name, of string // the quota's namespace
		plugin   bool
	}{{"plain", "", false}, {"no quota", "", true}, {"quota of others", "idle", true}, {"quota of the half", "half", true}, {"its own quota", "default", true}} {
		b.Run(c.name, func(b *testing.B) {
			options, err := sim.Options(config.Default())
			if err != nil {
				b.Fatal(err)
			}
			options.Check = false
			m := machine.New(options)
			if c.plugin {
				m = quotaMachine(b, false)
			}
			for i := range 1000 {
				name := fmt.Sprint("node-", i)
				m.Step(sim.Epoch, machine.NodeSet{Node: node(name, "4", false)})
				for k := range 4 {
					p := pod(fmt.Sprint("runs-", i, "-", k), "1")
					if k < 2 {
						p = in("half", int32(k), p)
					}
					m.Step(sim.Epoch, machine.PodSet{Pod: bound(p, name)})
				}
			}
			if c.of != "" {
				m.Step(sim.Epoch, machine.ObjectSet{Object: elastic(c.of, 1_000_000, 0)})
			}
			changing := bound(pod("changes", "1"), "node-7")
			for i := 0; b.Loop(); i++ {
				m.Step(sim.Epoch, machine.PodSet{Pod: changing}) // one row is another
				m.Step(sim.Epoch, machine.PodGone{UID: changing.UID})
				p := pod("large", "4")
				p.UID, p.Priority = types.UID(fmt.Sprint("large-", i)), 1
				m.Step(sim.Epoch, machine.PodSet{Pod: p})
				m.Step(sim.Epoch, machine.ScheduleOne{})
				m.Step(sim.Epoch, machine.PodGone{UID: p.UID})
			}
		})
	}
}

// BenchmarkGang takes a gang of three from its watch events through its cycle, on 5,000 nodes,
// and lets it go again: one that fits, and one of which each pod, or the last alone, is larger
// than any node.
func BenchmarkGang(b *testing.B) {
	for name, cpus := range map[string][3]string{"fits": {"1", "1", "1"}, "fits nowhere": {"5", "5", "5"}, "fits but for one": {"1", "1", "5"}} {
		b.Run(name, func(b *testing.B) {
			options := gangOptions(b)
			options.Check = false
			m := machine.New(options)
			for i := range 5000 {
				m.Step(sim.Epoch, machine.NodeSet{Node: node(fmt.Sprint("node-", i), "4", false)})
			}
			now := sim.Epoch
			for i := 0; b.Loop(); i++ {
				gang := &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "default", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint("g-", i))}, Gang: true, MinCount: 3}
				m.Step(now, machine.ObjectSet{Object: gang})
				var pods []*object.Pod
				for k, cpu := range cpus {
					p := pod(fmt.Sprint(i, "-", k), cpu)
					p.SchedulingGroup = object.InPodGroup(gang.Name)
					pods = append(pods, p)
					m.Step(now, machine.PodSet{Pod: p})
				}
				tries := 0
				for m.Ready() {
					m.Step(now, machine.ScheduleOne{})
					tries++
				}
				if tries != 1 {
					b.Fatalf("%d cycles", tries)
				}
				for _, p := range pods {
					m.Step(now, machine.PodGone{UID: p.UID})
				}
				m.Step(now, machine.ObjectGone{Kind: object.PodGroups, Namespace: "default", Name: gang.Name})
			}
		})
	}
}

// BenchmarkGangs places, or finds impossible, gangs that wait at once: all of their cycles. It
// reports the longest step.
func BenchmarkGangs(b *testing.B) {
	for _, c := range []struct {
		name                    string
		nodes, gangs, size, min int
		cpus                    []string // of the pods of a gang, in turn
		placed                  int      // number of gangs
	}{
		{"one of 512 pods on 512 nodes", 512, 1, 512, 512, []string{"4"}, 1},
		{"ten impossible", 500, 10, 501, 501, []string{"4"}, 0},
		{"20 of 500 pods", 5000, 20, 500, 500, []string{"1"}, 20},
		{"elastic, 100 of 500 fit", 100, 1, 500, 1, []string{"4"}, 1},
		{"unequal, impossible", 250, 1, 500, 500, []string{"1", "4"}, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			options := gangOptions(b)
			options.Check = false
			var longest time.Duration
			for b.Loop() {
				b.StopTimer()
				m := machine.New(options)
				for i := range c.nodes {
					m.Step(sim.Epoch, machine.NodeSet{Node: node(fmt.Sprint("node-", i), "4", false)})
				}
				for g := range c.gangs {
					name := fmt.Sprint("g-", g)
					m.Step(sim.Epoch, machine.ObjectSet{Object: &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "default", Name: name, UID: types.UID(name)}, Gang: true, MinCount: c.min}})
					for i := range c.size {
						p := pod(fmt.Sprint(g, "-", i), c.cpus[i%len(c.cpus)])
						p.SchedulingGroup = object.InPodGroup(name)
						m.Step(sim.Epoch, machine.PodSet{Pod: p})
					}
				}
				b.StartTimer()
				placed := 0
				for range c.gangs {
					began := time.Now()
					effects := m.Step(sim.Epoch, machine.ScheduleOne{})
					longest = max(longest, time.Since(began))
					for _, e := range effects {
						if done, is := e.(machine.PodGroupDone); is && done.Scheduled > 0 {
							placed++
						}
					}
				}
				if placed != c.placed {
					b.Fatalf("%d gangs are placed", placed)
				}
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest-step")
		})
	}
}
