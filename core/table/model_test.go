package table

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// model is the table in its simplest form, which remembers what it was.
type model struct {
	nodes map[string]*object.Node
	pods  map[types.UID]placement
	tries []try
	// history lists, op by op, the revision afterwards and what was touched.
	history []change
}

type placement struct {
	pod  *object.Pod
	node string
}

// try is an open checkpoint: how everything was, and the rows touched since,
// except for those of checkpoints within it.
type try struct {
	mark     Mark
	pods     map[types.UID]placement
	contents string
	touched  rowSet
}

type change struct {
	before uint64 // the revision that it came upon
	rows   rowSet
	nodes  rowSet
}

type rowSet map[Row]bool

// world drives a table and its model side by side.
type world struct {
	*Table
	m model
}

var (
	nodeNames   = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
	uids        = rapid.SampledFrom([]types.UID{"1", "2", "3", "4", "5", "6", "7", "8", "9"})
	amounts     = rapid.SampledFrom([]int64{0, 0, 1, 2, 3, 100, math.MaxInt64 / 2, math.MaxInt64 - 1, math.MaxInt64})
	scalarNames = []v1.ResourceName{"example.com/a", "example.com/b", "hugepages-2Mi"}
)

func drawVector(t *rapid.T, what string) resource.Vector {
	v := resource.Vector{
		MilliCPU:         amounts.Draw(t, what+" cpu"),
		Memory:           amounts.Draw(t, what+" memory"),
		EphemeralStorage: amounts.Draw(t, what+" storage"),
	}
	for _, name := range scalarNames {
		if n := amounts.Draw(t, what+" "+string(name)); n != 0 {
			v.Scalars = append(v.Scalars, resource.Scalar{Name: name, Value: n})
		}
	}
	return v
}

func drawNode(t *rapid.T) *object.Node {
	n := &object.Node{Name: nodeNames.Draw(t, "node"), Labels: drawLabels(t), Allocatable: drawVector(t, "offers"), AllowedPods: amounts.Draw(t, "pods")}
	return n
}

func drawPod(t *rapid.T) *object.Pod {
	namespace := namespaceNames.Draw(t, "namespace")
	return &object.Pod{
		UID:       uids.Draw(t, "pod"),
		Namespace: namespace,
		Labels:    drawLabels(t),
		Affinity:  drawAffinity(t, namespace),
		Demand:    resource.Demand{Usage: drawVector(t, "takes"), NonZero: drawVector(t, "at least")},

		Terminating: rapid.IntRange(0, 3).Draw(t, "goes") == 0,
	}
}

// apply runs one op and notes what it touched: rows lists, after the op, the
// rows of which it changed something, nodes those whose node object changed.
func (w *world) apply(op func() (rows, nodes rowSet)) {
	c := change{before: w.Revision()}
	c.rows, c.nodes = op()
	w.m.history = append(w.m.history, c)
	if n := len(w.m.tries); n > 0 {
		maps.Copy(w.m.tries[n-1].touched, c.rows)
	}
}

func (w *world) setNode(t *rapid.T) {
	if len(w.m.tries) > 0 {
		t.Skip("nodes may not change")
	}
	w.apply(func() (rowSet, rowSet) {
		n := drawNode(t)
		r := w.SetNode(n)
		w.m.nodes[n.Name] = n
		return rowSet{r: true}, rowSet{r: true}
	})
}

func (w *world) removeNode(t *rapid.T) {
	if len(w.m.tries) > 0 {
		t.Skip("nodes may not change")
	}
	w.apply(func() (rowSet, rowSet) {
		name := nodeNames.Draw(t, "node")
		r, ok := w.Find(name)
		w.RemoveNode(name)
		delete(w.m.nodes, name)
		if !ok {
			return nil, nil
		}
		return rowSet{r: true}, rowSet{r: true}
	})
}

func (w *world) place(t *rapid.T) {
	w.apply(func() (rowSet, rowSet) {
		p, node := drawPod(t), nodeNames.Draw(t, "on")
		rows := rowSet{}
		if old := w.Pod(p.UID); old != nil {
			rows[old.Row] = true
		}
		rows[w.AddPod(p, node).Row] = true
		w.m.pods[p.UID] = placement{p, node}
		return rows, nil
	})
}

func (w *world) remove(t *rapid.T) {
	w.apply(func() (rowSet, rowSet) {
		uid := uids.Draw(t, "pod")
		_, known := w.m.pods[uid]
		rows := rowSet{}
		if old := w.Pod(uid); old != nil {
			rows[old.Row] = true
		}
		if w.RemovePod(uid) != known {
			t.Fatalf("Remove(%s) says %v", uid, !known)
		}
		delete(w.m.pods, uid)
		return rows, nil
	})
}

func (w *world) checkpoint(t *rapid.T) {
	if len(w.m.tries) == 3 {
		t.Skip("deep enough")
	}
	w.m.tries = append(w.m.tries, try{contents: w.contents(), mark: w.Checkpoint(), pods: maps.Clone(w.m.pods), touched: rowSet{}})
}

func (w *world) undo(t *rapid.T) {
	last := len(w.m.tries) - 1
	if last < 0 {
		t.Skip("nothing to undo")
	}
	tr := w.m.tries[last]
	w.apply(func() (rowSet, rowSet) {
		w.Undo(tr.mark)
		w.m.pods = tr.pods
		return tr.touched, nil
	})
	w.m.tries = w.m.tries[:last]
	if now := w.contents(); now != tr.contents {
		t.Fatalf("undone to\n%swas\n%s", now, tr.contents)
	}
}

func (w *world) rollback(t *rapid.T) {
	tries := w.m.tries
	w.m.tries = nil
	w.apply(func() (rowSet, rowSet) {
		w.Rollback()
		rows := rowSet{}
		for _, tr := range slices.Backward(tries) {
			maps.Copy(rows, tr.touched)
			w.m.pods = tr.pods
		}
		return rows, nil
	})
	if len(tries) > 0 && w.contents() != tries[0].contents {
		t.Fatalf("rolled back to\n%swas\n%s", w.contents(), tries[0].contents)
	}
}

// contents prints all that a reader can see except for revisions, the order of
// pods, and rows on which nothing is.
func (w *world) contents() string {
	var lines []string
	for name, r := range w.rows.of {
		if w.nodes[r] == nil && len(w.pods[r]) == 0 {
			continue
		}
		line := fmt.Sprintf("%s row %d node %p pods %v count %d/%d", name, r, w.nodes[r],
			w.podsOn(r), w.columns.podCount[r], w.columns.allowedPods[r])
		ids := w.columns.ids()
		for _, res := range slices.Sorted(maps.Keys(ids)) {
			if id := ids[res]; w.columns.used[id][r] != 0 || w.columns.allocatable[id][r] != 0 {
				line += fmt.Sprintf(" %s %d/%d", res, w.columns.used[id][r], w.columns.allocatable[id][r])
			}
		}
		lines = append(lines, fmt.Sprintf("%s at least %d, %d\n", line, w.columns.nonZero[0][r], w.columns.nonZero[1][r]))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func (w *world) podsOn(r Row) []types.UID {
	var on []types.UID
	for _, pl := range w.Pods(r) {
		on = append(on, pl.Pod.UID)
	}
	slices.Sort(on)
	return on
}

// compare checks the table's invariants and every reading against the model.
func (w *world) compare(t *rapid.T) {
	if len(w.m.tries) == 0 { // under a checkpoint rows stay that a rebuild has not
		if err := w.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if w.Live() != len(w.m.nodes) || w.PlacedPods() != len(w.m.pods) {
		t.Fatalf("%d nodes, %d pods; want %d, %d", w.Live(), w.PlacedPods(), len(w.m.nodes), len(w.m.pods))
	}
	if w.Rows() > 6 || len(w.rows.free)+len(w.rows.of) != w.Rows() {
		t.Fatalf("%d rows for 6 names, %d free, %d named", w.Rows(), len(w.rows.free), len(w.rows.of))
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		w.compareNode(t, name)
	}
	w.compareChanges(t)
	w.compareTerms(t)
}

func (w *world) compareNode(t *rapid.T, name string) {
	node := w.m.nodes[name]
	r, ok := w.Find(name)
	if ok != (node != nil) || ok && (w.Node(r) != node || w.Name(r) != name) {
		t.Fatalf("node %s: found %v, want %v", name, ok, node)
	}
	var on []types.UID
	for uid, p := range w.m.pods {
		if p.node == name {
			on = append(on, uid)
			if r = w.Pod(uid).Row; w.Name(r) != name || w.Pod(uid).Pod != p.pod {
				t.Fatalf("pod %s is on row %d, %q; want %q", uid, r, w.Name(r), name)
			}
		}
	}
	if node == nil && len(on) == 0 {
		return
	}
	if slices.Sort(on); !slices.Equal(w.podsOn(r), on) || w.PodCount()[r] != int64(len(on)) {
		t.Fatalf("pods of %s: %v, %d; want %v", name, w.podsOn(r), w.PodCount()[r], on)
	}
	var offers resource.Vector
	var pods int64
	if node != nil {
		offers, pods = node.Allocatable, node.AllowedPods
	}
	if w.AllowedPods()[r] != pods {
		t.Fatalf("%s allows %d pods, want %d", name, w.AllowedPods()[r], pods)
	}
	usage := func(p *object.Pod) resource.Vector { return p.Demand.Usage }
	for _, res := range slices.Concat(scalarNames, []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage}) {
		want := w.m.sum(on, usage, res)
		if id, ok := w.Column(res); !ok && want == 0 && offers.Of(res) == 0 {
			continue
		} else if !ok || w.Used(id)[r] != want || w.Allocatable(id)[r] != offers.Of(res) {
			t.Fatalf("%s of %s: want %d of %d\n%s", res, name, want, offers.Of(res), w.contents())
		}
	}
	cpu, memory := w.NonZero()
	least := func(p *object.Pod) resource.Vector { return p.Demand.NonZero }
	if cpu[r] != w.m.sum(on, least, v1.ResourceCPU) || memory[r] != w.m.sum(on, least, v1.ResourceMemory) {
		t.Fatalf("at least %d, %d on %s", cpu[r], memory[r], name)
	}
}

// sum adds up in floats' place: at most the greatest int64.
func (m *model) sum(pods []types.UID, of func(*object.Pod) resource.Vector, res v1.ResourceName) int64 {
	var sum uint64
	for _, uid := range pods {
		sum = min(sum+uint64(of(m.pods[uid].pod).Of(res)), math.MaxInt64)
	}
	return int64(sum)
}

// compareChanges asks, for each moment in the past, what changed since.
func (w *world) compareChanges(t *rapid.T) {
	rows, nodes := rowSet{}, rowSet{}
	for _, c := range slices.Backward(w.m.history) {
		maps.Copy(rows, c.rows)
		maps.Copy(nodes, c.nodes)
		same(t, "AppendChanged", c.before, func(after uint64, visit func(Row) bool) {
			for _, r := range w.AppendChanged(nil, after, w.Rows()) {
				visit(r)
			}
		}, rows)
		same(t, "NodesChanged", c.before, w.NodesChanged, nodes)
	}
	if len(rows) > 1 {
		if n := len(w.AppendChanged(nil, 0, 1)); n != 1 {
			t.Fatalf("asked for one row, got %d", n)
		}
	}
}

func same(t *rapid.T, what string, after uint64, list func(uint64, func(Row) bool), want rowSet) {
	got := rowSet{}
	list(after, func(r Row) bool {
		if got[r] {
			t.Fatalf("%s(%d) visits row %d twice", what, after, r)
		}
		got[r] = true
		return true
	})
	if !maps.Equal(got, want) {
		t.Fatalf("%s(%d): %v, want %v", what, after, got, want)
	}
}

// After any changes, checkpoints and rollbacks the table equals a model that
// keeps objects only.
func TestTableIsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{Table: New(), m: model{nodes: map[string]*object.Node{}, pods: map[types.UID]placement{}}}
		t.Repeat(map[string]func(*rapid.T){
			"":            w.compare,
			"set node":    w.setNode,
			"remove node": w.removeNode,
			"place":       w.place,
			"place more":  w.place,
			"remove":      w.remove,
			"checkpoint":  w.checkpoint,
			"undo":        w.undo,
			"rollback":    w.rollback,
			"namespace":   w.setNamespace,
			"crowds":      w.compareCrowds,
		})
	})
}
