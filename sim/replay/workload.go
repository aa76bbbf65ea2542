package replay

import (
	"cmp"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/edge/workload"
)

// workloadOf returns kind/namespace/name of what makes the pod, "" for a pod without
// controller.
func workloadOf(p *object.Pod) string {
	api, err := recording.PodOf(p)
	if err != nil {
		return ""
	}
	kind, name := workload.OfPod(api)
	if kind == "" {
		return ""
	}
	return strings.ToLower(kind) + "/" + p.Namespace + "/" + name
}

// Crowd counts the pods of a workload that have a node at the same time.
type Crowd struct {
	now, nodes, zones map[string]int // now by "" for all
	// Most are there at once, OnNode of them on one node and InZone in one zone.
	Most, OnNode, InZone int
}

// placed records that the pod has its node.
func (p *Player) placed(d *Pod, node string) {
	d.Node, d.Placed, d.there = node, p.world.Now, true
	if n := p.world.Cluster.Node(node); n != nil {
		d.zone = n.Labels[v1.LabelTopologyZone]
	}
	if d.Workload == "" {
		return
	}
	c := p.day.Crowds[d.Workload]
	if c == nil {
		c = &Crowd{now: map[string]int{}, nodes: map[string]int{}, zones: map[string]int{}}
		p.day.Crowds[d.Workload] = c
	}
	more := func(counts map[string]int, key string, most int) int {
		counts[key]++
		return max(most, counts[key])
	}
	c.Most, c.OnNode = more(c.now, "", c.Most), more(c.nodes, node, c.OnNode)
	if d.zone != "" {
		c.InZone = more(c.zones, d.zone, c.InZone)
	}
}

// left records that the pod is no longer on its node, if it was.
func (p *Player) left(d *Pod) {
	if c := p.day.Crowds[d.Workload]; c != nil && d.there {
		c.now[""]--
		c.nodes[d.Node]--
		c.zones[d.zone]--
	}
	d.there = false
}

// Workload is how the pods of a workload fared that arrived without a node.
type Workload struct {
	Workload  string       `json:"workload"` // kind/namespace/name
	Pods      int          `json:"pods"`
	Elsewhere int          `json:"elsewhere"` // with another first node under B
	A         WorkloadSide `json:"a"`
	B         WorkloadSide `json:"b"`
	// Verdict is how B is: better, worse or alike. Because says by what, "" if alike.
	Verdict string `json:"verdict"`
	Because string `json:"because,omitempty"`

	rank int     // of what it is by; the first weighs most
	by   float64 // how much A and B differ in it
}

// Verdicts.
const (
	better = "better"
	worse  = "worse"
	alike  = "alike"
)

// WorkloadSide is how the pods fared under one configuration.
type WorkloadSide struct {
	NoNode    int     `json:"noNode"` // pods that never got one
	Preempted int     `json:"preempted"`
	WaitMax   float64 `json:"waitMax"` // seconds, of those that got a node
	// OnNode and InZone are the most pods at the same time on one node and in one zone.
	OnNode int `json:"onNode"`
	InZone int `json:"inZone"`
}

// compareWorkloads compares two days by workload.
func compareWorkloads(a, b *Day) []Workload {
	byName := map[string]*Workload{}
	for uid, p := range a.Pods { // any order: counts, and sorted below
		q := b.Pods[uid]
		if q == nil || p.Given || p.Workload == "" {
			continue
		}
		w := byName[p.Workload]
		if w == nil {
			w = &Workload{Workload: p.Workload, A: sideOf(a, p.Workload), B: sideOf(b, p.Workload)}
			byName[p.Workload] = w
		}
		w.Pods++
		if p.Node != "" && q.Node != "" && p.Node != q.Node {
			w.Elsewhere++
		}
		w.A.add(p)
		w.B.add(q)
	}
	all := []Workload{}
	for name, w := range byName { // any order: sorted below
		w.judge(max(a.most(name), b.most(name)))
		all = append(all, *w)
	}
	order := []string{worse, better, alike}
	slices.SortFunc(all, func(x, y Workload) int {
		return cmp.Or(cmp.Compare(slices.Index(order, x.Verdict), slices.Index(order, y.Verdict)), cmp.Compare(x.rank, y.rank), cmp.Compare(y.by, x.by), cmp.Compare(x.Workload, y.Workload))
	})
	return all
}

func sideOf(d *Day, name string) WorkloadSide {
	if c := d.Crowds[name]; c != nil {
		return WorkloadSide{OnNode: c.OnNode, InZone: c.InZone}
	}
	return WorkloadSide{}
}

// most returns how many pods of the workload were there at once.
func (d *Day) most(name string) int {
	if c := d.Crowds[name]; c != nil {
		return c.Most
	}
	return 0
}

func (s *WorkloadSide) add(p *Pod) {
	if p.Node == "" {
		s.NoNode++
	} else {
		s.WaitMax = max(s.WaitMax, p.Placed.Sub(p.Arrived).Seconds())
	}
	if p.Evicted {
		s.Preempted++
	}
}

// judge says whether B is better, by what weighs most and differs: pods without a node,
// preempted pods, the longest wait by a second, and crowding in a zone and then on a node by a
// quarter of the most pods that are there at once.
func (w *Workload) judge(most int) {
	crowded := max(1, float64(most)/4)
	w.Verdict = alike
	for i, by := range []struct {
		what        string
		a, b, least float64
	}{
		{"pods without a node", float64(w.A.NoNode), float64(w.B.NoNode), 1},
		{"preempted pods", float64(w.A.Preempted), float64(w.B.Preempted), 1},
		{"wait", w.A.WaitMax, w.B.WaitMax, 1},
		{"pods in a zone", float64(w.A.InZone), float64(w.B.InZone), crowded},
		{"pods on a node", float64(w.A.OnNode), float64(w.B.OnNode), crowded},
	} {
		differ := math.Abs(by.a - by.b)
		if differ < by.least {
			continue
		}
		w.Verdict, w.Because, w.rank, w.by = better, by.what, i, differ
		if by.b > by.a {
			w.Verdict = worse
		}
		return
	}
}
