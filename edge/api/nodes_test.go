package api

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/shadow"
	"github.com/berth-scheduler/berth/edge/snapshot"
)

// pooled is a node of a zone and a pool.
func pooled(name, zone, pool string, taints ...v1.Taint) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{v1.LabelTopologyZone: zone, "pool": pool}}}
	n.Spec.Taints = taints
	n.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110"), "example.com/gpu": resource.MustParse("2")}
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	return n
}

// The columns say of each node what is on it and what it offers.
func TestNodes(t *testing.T) {
	f := newFixture(t)
	down := pooled("n2", "b", "web", v1.Taint{Key: "down", Effect: v1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: start}})
	down.Status.Conditions[0].Status = v1.ConditionUnknown
	down.Spec.Unschedulable = true
	other := pooled("n3", "a", "", v1.Taint{Key: "down", Effect: v1.TaintEffectNoSchedule})
	delete(other.Labels, "pool")
	for _, n := range []*v1.Node{other, down, pooled("n1", "a", "web")} {
		f.step(machine.NodeSet{Node: decode.Node(n)})
	}
	f.pod("cart", "1500m")
	f.step(machine.ScheduleOne{})
	var got NodeTable
	f.get("nodes?labels=pool,rack", &got)
	none := []int64{0, 0, 0}
	want := NodeTable{Head: head("NodeTable"), Revision: processOf(start) + "-1", Time: f.now,
		Names: []string{"n1", "n2", "n3"}, Ready: []bool{true, false, true}, Cordoned: []bool{false, true, false},
		Zones:  Values[string]{Values: []string{"a", "b"}, Of: []int{0, 1, 0}},
		Taints: Values[[]Taint]{Values: [][]Taint{{{Key: "down", Effect: v1.TaintEffectNoSchedule}}}, Of: []int{-1, 0, 0}},
		Labels: map[string]*Values[string]{"pool": {Values: []string{"web"}, Of: []int{0, 0, -1}}, "rack": {Values: []string{}, Of: []int{-1, -1, -1}}},
		Resources: map[v1.ResourceName]Amounts{
			"cpu":               {[]int64{4000, 4000, 4000}, []int64{1500, 0, 0}},
			"memory":            {[]int64{8 << 30, 8 << 30, 8 << 30}, none},
			"ephemeral-storage": {none, none},
			"example.com/gpu":   {[]int64{2, 2, 2}, none},
			"pods":              {[]int64{110, 110, 110}, []int64{1, 0, 0}},
		}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// nodesOf returns a table as one text a node.
func nodesOf(t *NodeTable) map[string]string {
	by := map[string]string{}
	for i, name := range t.Names {
		text := fmt.Sprint(t.Ready[i], t.Cordoned[i])
		if z := t.Zones.Of[i]; z >= 0 {
			text += " " + t.Zones.Values[z]
		}
		if s := t.Taints.Of[i]; s >= 0 {
			text += fmt.Sprint(t.Taints.Values[s])
		}
		if l := t.Labels["pool"]; l.Of[i] >= 0 {
			text += " " + l.Values[l.Of[i]]
		}
		for _, r := range slices.Sorted(maps.Keys(t.Resources)) {
			if a := t.Resources[r]; a.Allocatable[i] != 0 || a.Requested[i] != 0 {
				text += fmt.Sprintf(" %s %d/%d", r, a.Requested[i], a.Allocatable[i])
			}
		}
		by[name] = text
	}
	return by
}

// shaken is a cluster that changes at random.
type shaken struct {
	*fixture
	*rand.Rand
}

// change makes one change.
func (s *shaken) change() {
	name := fmt.Sprint("n", s.IntN(6))
	switch s.IntN(9) {
	case 0, 1:
		n := pooled(name, fmt.Sprint("zone", s.IntN(3)), fmt.Sprint("pool", s.IntN(2)))
		n.Spec.Unschedulable = s.IntN(4) == 0
		n.Status.Conditions[0].Status = []v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse}[s.IntN(2)]
		if s.IntN(3) == 0 {
			n.Spec.Taints = []v1.Taint{{Key: fmt.Sprint("t", s.IntN(2)), Effect: v1.TaintEffectNoSchedule}}
		}
		if s.IntN(3) == 0 {
			delete(n.Labels, v1.LabelTopologyZone)
			n.Status.Allocatable[v1.ResourceName(fmt.Sprint("example.com/r", s.IntN(100)))] = resource.MustParse("3")
		}
		s.step(machine.NodeSet{Node: decode.Node(n)})
	case 2, 3:
		s.step(machine.NodeGone{Name: name})
	case 4:
		pod := fmt.Sprint("p", s.IntN(20))
		s.step(machine.PodGone{UID: types.UID(pod), Namespace: "shop", Name: pod})
	case 5: // one that somebody else bound, to a node that may not be there
		p := s.pod(fmt.Sprint("q", s.IntN(20)), "100m")
		p.Spec.NodeName = name
		s.step(machine.PodSet{Pod: decode.Pod(p.DeepCopy())})
	default:
		s.pod(fmt.Sprint("p", s.IntN(20)), fmt.Sprint(1+s.IntN(3)))
		s.step(machine.ScheduleOne{})
	}
}

// Whatever changes, the table is what a machine has that is told of the same objects anew, and
// whoever had any table before and is told what changed since comes to the same.
func TestNodesAreAsRebuilt(t *testing.T) {
	for seed := range uint64(20) {
		f := &shaken{newFixture(t), rand.New(rand.NewPCG(seed, 34))}
		h := newHandler(f.options)
		type had struct {
			revision uint64
			nodes    map[string]string
		}
		var before []had
		for range 60 {
			for range f.IntN(8) {
				f.change()
			}
			f.step(machine.Tick{}) // the next snapshot is a new one
			now, err := h.snapshots.Now(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := nodesOf(h.table(now, now.Rows, []string{"pool"}))
			anew := newFixture(t)
			for _, e := range f.m.Cluster() {
				anew.step(e)
			}
			other := newHandler(anew.options)
			fresh, err := other.snapshots.Now(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if want := nodesOf(other.table(fresh, fresh.Rows, []string{"pool"})); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: got\n%v\nwant\n%v", seed, got, want)
			}
			before = append(before, had{now.Revision, got})
			old := before[f.IntN(len(before))]
			if names := h.table(now, now.Rows, nil).Names; !slices.IsSorted(names) || len(names) != len(got) {
				t.Fatalf("seed %d: the nodes are %v", seed, names)
			}
			rows, gone, whole := now.Since(old.revision)
			nodes := maps.Clone(old.nodes)
			if whole {
				nodes = map[string]string{}
			}
			for _, name := range gone {
				if got[name] != "" {
					t.Fatalf("seed %d: %s is said to be gone and is there", seed, name)
				}
				delete(nodes, name)
			}
			maps.Copy(nodes, nodesOf(h.table(now, rows, []string{"pool"})))
			if !reflect.DeepEqual(nodes, got) {
				t.Fatalf("seed %d: from revision %d to %d by %d changes, %v gone, whole %t: got\n%v\nwant\n%v", seed, old.revision, now.Revision, len(rows), gone, whole, nodes, got)
			}
			if whole {
				t.Errorf("seed %d: revision %d of %d is not known any more", seed, old.revision, now.Revision)
			}
		}
	}
}

// Whoever has a revision from before more removals than are kept, or no revision, is told all.
func TestForgottenRemovals(t *testing.T) {
	f := newFixture(t)
	f.node("stays", "4")
	h := newHandler(f.options)
	var revisions []uint64
	for i := range 1100 {
		f.node(fmt.Sprint("n", i), "4")
		f.step(machine.NodeGone{Name: fmt.Sprint("n", i-1)})
		now, err := h.snapshots.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, now.Revision)
	}
	now, _ := h.snapshots.Now(t.Context())
	for i, revision := range append(revisions, 0, now.Revision+1) {
		rows, gone, whole := now.Since(revision)
		if want := i < 1100-1024-1 || i >= 1100; whole != want || whole && !slices.Equal(rows, now.Rows) || !whole && len(gone) != 1099-i {
			t.Fatalf("revision %d, taken at %d: %d rows, %d gone, whole %t", revision, i, len(rows), len(gone), whole)
		}
	}
}

// A stream begins with all nodes, or with those that changed since the table that its reader has;
// it goes on with what changes, and with the counts.
func TestWatchNodes(t *testing.T) {
	f := stuck(t)
	var have NodeTable
	f.get("nodes", &have)
	f.pod("small-2", "1")
	f.step(machine.ScheduleOne{})
	s := f.watch("watch?every=100ms&reason=nothing", "")
	var all, some NodeTable
	var counts Counts
	s.of("nodes", &all)
	s.of("counts", &counts)
	if want := (Counts{Queue: Queue{Unschedulable: 1, InFlight: counts.Queue.InFlight}, Nodes: 2, Pods: 2, Assumed: 2}); !all.Whole || !slices.Equal(all.Names, []string{"n1", "n2"}) || counts != want {
		t.Errorf("all: %+v, %+v", all, counts)
	}
	s = f.watch("watch?every=100ms&reason=nothing&labels=pool&revision="+have.Revision, "")
	if s.of("nodes", &some); some.Whole || len(some.Names) != 1 || some.Revision != all.Revision || some.Labels["pool"].Of[0] != -1 {
		t.Errorf("what changed: %+v", some)
	}
	f.step(machine.NodeGone{Name: "n2"})
	last := s.of("nodes", &some)
	if len(some.Names) != 0 || !slices.Equal(some.Gone, []string{"n2"}) {
		t.Errorf("what went: %+v", some)
	}
	if s.of("counts", &counts); counts.Nodes != 1 {
		t.Errorf("counts: %+v", counts)
	}
	s.body.Close()
	f.node("n3", "4")
	if f.watch("watch?every=100ms&reason=nothing&labels=pool", last.id).of("nodes", &some); some.Whole || !slices.Equal(some.Names, []string{"n3"}) {
		t.Errorf("behind %s: %+v", last.id, some)
	}
	if f.watch("watch?every=100ms&revision=x-"+fmt.Sprint(1<<40), "").of("nodes", &some); !some.Whole {
		t.Errorf("from another process: %+v", some)
	}
}

// largeNodes is a handler of a cluster of 5,000 nodes and 30,000 pods.
func largeNodes(b *testing.B) (*fixture, *handler) {
	f := newFixture(b)
	for i := range 5000 {
		f.step(machine.NodeSet{Node: decode.Node(pooled(fmt.Sprint("node-", i), fmt.Sprint("zone-", i%3), fmt.Sprint("pool-", i%20)))})
	}
	for i := range 30_000 {
		p := f.pod(fmt.Sprint("pod-", i), "100m")
		p.Spec.NodeName = fmt.Sprint("node-", i%5000)
		f.step(machine.PodSet{Pod: decode.Pod(p)})
	}
	return f, newHandler(f.options)
}

// BenchmarkNodes is one question about all nodes of a cluster of 5,000 nodes and 30,000 pods, of
// which 100 changed.
func BenchmarkNodes(b *testing.B) {
	f, h := largeNodes(b)
	var looks []time.Duration
	now, inspect := f.now, h.Inspect
	h.Now = func() time.Time { now = now.Add(time.Second); return now }
	h.Inspect = func(ctx context.Context, look func(*machine.Machine)) error {
		return inspect(ctx, func(m *machine.Machine) {
			began := time.Now()
			look(m)
			looks = append(looks, time.Since(began))
		})
	}
	h.snapshots = snapshot.NewSource(h.look, h.Now)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		for k := range 100 {
			p := f.m.Table().Pods(table.Row((100*i + k) % 5000))[0].Pod // #nosec G115 -- small
			f.m.Step(f.now, machine.PodGone{UID: p.UID, Namespace: p.Namespace, Name: p.Name})
			f.m.Step(f.now, machine.PodSet{Pod: p})
		}
		b.StartTimer()
		s, err := h.snapshots.Now(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		body, err := json.Marshal(h.table(s, s.Rows, []string{"pool"}))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(body)), "bytes")
	}
	b.ReportAllocs()
	slices.Sort(looks)
	b.ReportMetric(float64(looks[len(looks)/2].Microseconds()), "µs-of-the-loop/op") // the median
}

// A table says since when nodes are cordoned, where the taint of the cordon has its time.
func TestCordonedSince(t *testing.T) {
	f := newFixture(t)
	since := metav1.NewTime(start.Add(-time.Hour))
	for name, added := range map[string]*metav1.Time{"said": &since, "unsaid": nil} {
		n := pooled(name, "a", "web")
		n.Spec.Unschedulable = true
		n.Spec.Taints = []v1.Taint{{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule, TimeAdded: added}}
		f.step(machine.NodeSet{Node: decode.Node(n)})
	}
	var table NodeTable
	if code, body := f.get("nodes", &table); code != http.StatusOK || len(table.CordonedSince) != 1 || !table.CordonedSince["said"].Equal(since.Time) {
		t.Errorf("%d %s", code, body)
	}
}

// There is an answer about quotas where there are none, and about a shadow from a shadow alone.
func TestQuotasAndShadow(t *testing.T) {
	f := newFixture(t)
	var list QuotaList
	if code, body := f.get("quotas", &list); code != http.StatusOK || list.Total != 0 || list.Quotas == nil {
		t.Errorf("%d %s", code, body)
	}
	var p Problem
	if code, body := f.get("shadow", &p); code != http.StatusNotFound || !strings.Contains(p.Message, "is no shadow") {
		t.Errorf("%d %s", code, body)
	}
	f.options.Shadow = true
	found, differences, copies := ShadowStatus{Choices: []Choices{{Result: "lower", Pods: 1}}}, []shadow.Record{{Pod: "shop/cart", Node: "n1", BerthNode: "n2"}}, 0
	f.options.Status = func(context.Context) Status { of := found; return Status{Shadow: &of} }
	f.options.Differences = func() []shadow.Record { copies++; return differences }
	f.serve()
	var a ShadowAnswer
	if code, body := f.get("shadow", &a); code != http.StatusOK || !reflect.DeepEqual(a.ShadowStatus, found) || !reflect.DeepEqual(a.Differences, differences) {
		t.Errorf("%d %s", code, body)
	}
	var s Status
	if code, body := f.get("status", &s); code != http.StatusOK || s.Shadow == nil || len(s.Shadow.Choices) != 1 || copies != 1 {
		t.Errorf("%d %s, the differences were copied %d times", code, body, copies)
	}
}
