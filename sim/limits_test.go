package sim_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim"
)

// large are pods that list n things each, different ones in each pod.
var large = map[string]func(i, n int, p *v1.Pod){
	"anti-affinity terms": func(i, n int, p *v1.Pod) {
		away(p, n, func(j int, t *v1.PodAffinityTerm) { t.LabelSelector = selects("app", i, j) })
	},
	"anti-affinity terms about all pods": func(i, n int, p *v1.Pod) {
		p.Labels = map[string]string{"app": "x"}
		away(p, n, func(j int, t *v1.PodAffinityTerm) {
			t.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{unlike(i, j)}}}}
		})
	},
	"topology keys": func(i, n int, p *v1.Pod) {
		away(p, n, func(j int, t *v1.PodAffinityTerm) {
			t.TopologyKey, t.LabelSelector = unlike(i, j), selects(unlike(i, j), 0, 0)
		})
	},
	"namespaces": func(i, n int, p *v1.Pod) {
		away(p, 10, func(j int, t *v1.PodAffinityTerm) {
			t.LabelSelector = selects("app", i, j)
			for k := range n {
				t.Namespaces = append(t.Namespaces, unlike(i, k))
			}
		})
	},
	"terms of node affinity": func(i, n int, p *v1.Pod) {
		required := &v1.NodeSelector{}
		for j := range n {
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
				{Key: unlike(i, j), Operator: v1.NodeSelectorOpDoesNotExist}, {Key: "zone", Operator: v1.NodeSelectorOpNotIn, Values: []string{unlike(i, j)}}}})
		}
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	},
	"values": func(i, n int, p *v1.Pod) {
		e := v1.NodeSelectorRequirement{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpNotIn}
		for j := range n {
			e.Values = append(e.Values, unlike(i, j))
		}
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{e}}}}}}
	},
	"node selector": func(i, n int, p *v1.Pod) {
		p.Spec.NodeSelector = map[string]string{}
		for j := range n {
			p.Spec.NodeSelector[unlike(i, j)] = "x"
		}
	},
	"tolerations": func(i, n int, p *v1.Pod) {
		for j := range n {
			p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: unlike(i, j), Operator: v1.TolerationOpExists})
		}
	},
	"spread constraints": func(i, n int, p *v1.Pod) {
		for j := range n {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: unlike(i, j),
				WhenUnsatisfiable: v1.ScheduleAnyway, LabelSelector: selects("app", i, j)})
		}
	},
	"containers": func(i, n int, p *v1.Pod) {
		for j := range n {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: unlike(i, j), Image: unlike(i, j)})
		}
	},
	"host ports": func(i, n int, p *v1.Pod) {
		for j := range n {
			p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, v1.ContainerPort{HostPort: 80, HostIP: unlike(i, j), Protocol: v1.ProtocolTCP})
		}
	},
	"volumes": func(i, n int, p *v1.Pod) {
		for j := range n {
			p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: unlike(i, j), VolumeSource: v1.VolumeSource{
				PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: unlike(i, j)}}})
		}
	},
	"labels": func(i, n int, p *v1.Pod) {
		p.Labels = map[string]string{}
		for j := range n {
			p.Labels[unlike(i, j)] = "x"
		}
	},
}

// unlike is of one pod, and of one thing in it.
func unlike(i, j int) string { return fmt.Sprintf("x-%d-%d", i, j) }

func selects(key string, i, j int) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: unlike(i, j)}}
}

func away(p *v1.Pod, n int, fill func(j int, t *v1.PodAffinityTerm)) {
	terms := make([]v1.PodAffinityTerm, n)
	for j := range terms {
		terms[j].TopologyKey = v1.LabelHostname
		fill(j, &terms[j])
	}
	p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}

// cost is what large pods cost: the bytes of the objects, of the heap that they leave
// behind, and of all that the steps allocated, and the longest step.
type cost struct {
	object, heap, allocated int64
	longest                 time.Duration
}

// tryLarge tries pods that list n things each in a cluster of nodes, and binds those that
// fit.
func tryLarge(tb testing.TB, nodes, pods, n int, fill func(i, n int, p *v1.Pod)) (c cost) {
	options, err := sim.Options(config.Default())
	if err != nil {
		tb.Fatal(err)
	}
	options.Check = false // checks allocate, too
	m, now := machine.New(options), time.Unix(0, 0)
	step := func(e machine.Event) []machine.Effect {
		before, begin := memory().TotalAlloc, time.Now()
		effects := m.Step(now, e)
		c.longest = max(c.longest, time.Since(begin))
		c.allocated += int64(memory().TotalAlloc - before) // #nosec G115 -- of a test
		return effects
	}
	for i := range nodes {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), Labels: map[string]string{v1.LabelHostname: fmt.Sprint(i), "zone": fmt.Sprint(i % 3)}}}
		node.Status.Allocatable = v1.ResourceList{v1.ResourcePods: resource.MustParse("110")}
		step(machine.NodeSet{Node: decode.Node(node)})
	}
	before := heapInUse()
	c.allocated = 0
	for i := range pods {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), Namespace: "d", UID: types.UID(fmt.Sprint(i))}}
		p.Spec.SchedulerName = v1.DefaultSchedulerName
		p.Spec.Containers = []v1.Container{{Name: "c", Image: "i"}}
		fill(i, n, p)
		c.object += int64(p.Size())
		step(machine.PodSet{Pod: decode.Pod(p)})
	}
	for range pods {
		for _, e := range step(machine.ScheduleOne{}) {
			if bind, ok := e.(machine.Bind); ok {
				bound := *bind.Pod
				bound.NodeName = bind.Node
				step(machine.PodSet{Pod: &bound})
				step(machine.BindReply{UID: bind.Pod.UID})
			}
		}
	}
	c.heap = heapInUse() - before
	runtime.KeepAlive(m)
	return c
}

func heapInUse() int64 {
	runtime.GC()
	return int64(memory().HeapAlloc) // #nosec G115 -- of a test
}

func memory() (s runtime.MemStats) {
	runtime.ReadMemStats(&s)
	return s
}

// Large pods take memory in proportion to the bytes of their objects, however many the
// nodes, and different things the pods list: for each byte in protobuf at most 40 bytes
// while they are there, and 128 bytes in all attempts together.
func TestMemoryFollowsObjects(t *testing.T) {
	for name, fill := range large { // any order: each by itself
		c := tryLarge(t, 500, 4, 2000, fill)
		t.Logf("%s: a byte of an object takes %.1f bytes, and has %.1f allocated", name, float64(c.heap)/float64(c.object), float64(c.allocated)/float64(c.object))
		if c.heap > 40*c.object || c.allocated > 128*c.object {
			t.Errorf("%s: objects of %d bytes take %d bytes, and have %d allocated", name, c.object, c.heap, c.allocated)
		}
	}
}

// BenchmarkLargePods says how long the longest step takes among 40 pods that list 5,000
// things each, in a cluster of 1,000 nodes.
func BenchmarkLargePods(b *testing.B) {
	for name, fill := range large { // any order: each by itself
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c := tryLarge(b, 1000, 40, 5000, fill)
				b.ReportMetric(float64(c.longest.Microseconds())/1000, "ms/longest-step")
				b.ReportMetric(float64(c.heap)/float64(c.object), "heap-B/object-B")
			}
		})
	}
}
