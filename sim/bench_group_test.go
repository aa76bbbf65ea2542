package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// BenchmarkGroupPreemption has a gang find its victims on 5,000 full nodes with 20,000 pods of
// lower priority: the whole cycle, which is one step.
func BenchmarkGroupPreemption(b *testing.B) {
	const nodes = 5000
	for _, size := range []int{8, 100, 512} {
		b.Run(fmt.Sprintf("%d-pods", size), func(b *testing.B) {
			gates := features.New()
			if err := gates.Set("GenericWorkload=true"); err != nil {
				b.Fatal(err)
			}
			o, err := OptionsUnder(config.With(gates).Default(), gates)
			if err != nil {
				b.Fatal(err)
			}
			o.Check, o.Seed, o.Workers = false, 1, 2
			for b.Loop() {
				b.StopTimer()
				now := time.Unix(0, 0)
				m := fullCluster(o, now, nodes)
				g := &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "default", Name: "g", UID: "g"}, Gang: true, MinCount: size, Priority: 10}
				m.Step(now, machine.ObjectSet{Object: g})
				for i := range size {
					p := *benchPod(1<<20+i, 3000, 1<<30)
					p.Priority, p.SchedulingGroup = 10, object.InPodGroup("g")
					m.Step(now, machine.PodSet{Pod: &p})
				}
				b.StartTimer()
				reportVictims(b, m.Step(now, machine.ScheduleOne{}))
			}
		})
	}
}

// reportVictims reports how many pods the cycle of a pod group preempts. It fails if these are none.
func reportVictims(b *testing.B, effects []machine.Effect) {
	victims := 0
	for _, e := range effects {
		if done, ok := e.(machine.PodGroupDone); ok {
			if victims = len(done.Victims); victims == 0 {
				b.Fatalf("%+v", done)
			}
		}
	}
	b.ReportMetric(float64(victims), "victims")
}

// BenchmarkFewestVictims has a gang from labels find its victims on 5,000 full nodes with four to
// eight pods of unequal sizes each: the whole cycle, which is one step.
func BenchmarkFewestVictims(b *testing.B) {
	const nodes, source = 5000, "pod-group.scheduling.sigs.k8s.io"
	c, err := config.Decode([]byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: Coscheduling}]}
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
  pluginConfig:
  - {name: CoschedulingLabels, args: {prefixes: [`+source+`]}}
`), "bench")
	if err != nil {
		b.Fatal(err)
	}
	o, err := Options(c)
	if err != nil {
		b.Fatal(err)
	}
	o.Check, o.Seed, o.Workers = false, 1, 2
	for _, size := range []int{8, 64, 512} {
		b.Run(fmt.Sprintf("%d-pods", size), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				now := time.Unix(0, 0)
				m := machine.New(o)
				drawn := rand.New(rand.NewPCG(1, 1))
				for i := range nodes {
					m.Step(now, machine.NodeSet{Node: benchNode(i)})
					for n, left := 4+drawn.IntN(5), int64(4000); n > 0; n-- {
						cpu := left
						if n > 1 {
							cpu = left * (1 + drawn.Int64N(2)) / int64(n+1)
						}
						p := *benchPod(i*8+n, cpu, 500<<20)
						p.NodeName, p.Priority = fmt.Sprint("node-", i), drawn.Int32N(3)
						m.Step(now, machine.PodSet{Pod: &p})
						left -= cpu
					}
				}
				for i := range size {
					p := *benchPod(1<<20+i, 1500, 1<<30)
					p.Priority, p.Labels = 10, map[string]string{source + "/name": "g", source + "/min-available": fmt.Sprint(size)}
					m.Step(now, machine.PodSet{Pod: &p})
				}
				b.StartTimer()
				reportVictims(b, m.Step(now, machine.ScheduleOne{}))
			}
		})
	}
}

// BenchmarkPreemptionBesideAGroup has a single pod find no victims on 5,000 full nodes while a
// pod of a group runs on one of them.
func BenchmarkPreemptionBesideAGroup(b *testing.B) {
	gates := features.New()
	if err := gates.Set("GenericWorkload=true"); err != nil {
		b.Fatal(err)
	}
	o, err := OptionsUnder(config.With(gates).Default(), gates)
	if err != nil {
		b.Fatal(err)
	}
	o.Check, o.Seed, o.Workers = false, 1, 2
	const nodes = 5000
	now := time.Unix(0, 0)
	m := fullCluster(o, now, nodes)
	for i := range nodes { // one pod of each node stays, and leaves no room for the preemptor
		p := *benchPod(i, 900, 500<<20)
		p.NodeName, p.Priority = fmt.Sprint("node-", i), 20
		m.Step(now, machine.PodSet{Pod: &p})
	}
	m.Step(now, machine.ObjectSet{Object: &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "default", Name: "g", UID: "g"}, Gang: true, MinCount: 1}})
	member := *benchPod(1<<20, 1, 1)
	member.NodeName, member.SchedulingGroup = "node-0", object.InPodGroup("g")
	m.Step(now, machine.PodSet{Pod: &member})
	next := 1 << 21
	for b.Loop() {
		b.StopTimer()
		p := *benchPod(next, 3500, 500<<20)
		next++
		p.Priority = 10
		m.Step(now, machine.PodSet{Pod: &p})
		b.StartTimer()
		for _, e := range m.Step(now, machine.ScheduleOne{}) {
			if _, evicts := e.(machine.Evict); evicts {
				b.Fatal("somebody is evicted")
			}
		}
		b.StopTimer()
		m.Step(now, machine.PodGone{UID: p.UID, Namespace: p.Namespace, Name: p.Name})
		b.StartTimer()
	}
}
