package sim

import (
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
)

// reclaims enables CapacityScheduling alone.
const reclaims = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: CapacityScheduling}]}
    postFilter: {disabled: [{name: DefaultPreemption}]}
`

// BenchmarkReclaim has a pod get back what its queue has lent to 20,000 pods on 5,000 full
// nodes: a pod that fits without one of them, and one that fits nowhere.
func BenchmarkReclaim(b *testing.B) {
	c, err := config.Decode([]byte(reclaims), "bench")
	if err != nil {
		b.Fatal(err)
	}
	o, err := Options(c)
	if err != nil {
		b.Fatal(err)
	}
	o.Check, o.Seed, o.Workers = false, 1, 2
	const nodes = 5000
	for name, cpu := range map[string]int64{"one victim": 900, "in vain": 9000} { // any order: benchmarks of their own
		b.Run(name, func(b *testing.B) {
			now := time.Unix(0, 0)
			m := fullCluster(o, now, nodes)
			quota := func(namespace string, least int64) {
				m.Step(now, machine.ObjectSet{Object: &object.ElasticQuota{Meta: object.Meta{Kind: object.ElasticQuotas, Namespace: namespace, Name: "q"},
					Min: object.Amounts{{Name: "cpu", Value: least}}}})
			}
			quota("default", 0)
			quota("b", 900*4*nodes)
			next := 1 << 20
			for b.Loop() {
				p := *benchPod(next, cpu, 1<<20)
				p.Namespace = "b"
				next++
				m.Step(now, machine.PodSet{Pod: &p})
				for _, e := range m.Step(now, machine.ScheduleOne{}) {
					if e, is := e.(machine.AttemptDone); is && len(e.Decision.Victims) != int(cpu/900)%10 {
						b.Fatalf("the victims are %v", e.Decision.Victims)
					}
				}
				m.Step(now, machine.PodGone{UID: p.UID})
			}
		})
	}
}
