package table

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/group"
	"github.com/berth-scheduler/berth/core/object"
)

// Row is the number of a node in the table, the index of all columns. Rows of removed nodes
// are used again.
type Row int32

// Placed is a pod that counts on a row: bound to the node, assumed there, or placed under a
// checkpoint. It belongs to the table.
type Placed struct {
	Pod *object.Pod
	Row Row
	at  int // index in the row's list of pods

	terms       []*Term         // its affinity terms; nil until counted
	withLabels  *PodsWithLabels // nil before the first call of PodsByLabels
	labelsIndex int32           // its index in withLabels
}

// Terms returns the pod's affinity terms: required and preferred, affinity and
// anti-affinity. Read only.
func (pl *Placed) Terms() []*Term { return pl.terms }

// WithLabels returns the placed pods with the same namespace and labels; nil before the
// first call of PodsByLabels.
func (pl *Placed) WithLabels() *PodsWithLabels { return pl.withLabels }

// Table holds nodes, the pods on them, and what is derived from them by row. The zero value
// is not usable; see New.
type Table struct {
	rows  rowNames
	nodes []*object.Node // nil: a free row, or a row of pods whose node is unknown
	live  int            // number of nodes
	pods  [][]*Placed    // by row
	// summaries are those of the pods, in the same order.
	summaries [][]Summary
	placed    map[types.UID]*Placed
	columns   columns

	terms          Terms
	podsByLabels   podsByLabels
	objects        Objects
	namespaces     Namespaces
	selectorOwners SelectorOwners
	groups         *group.Groups // nil: pods are not counted by group

	now        time.Time // see SetNow
	journal    journal
	shown      Shown
	podChanges podChanges
	tries      tries
	followers  followers
}

// rowNames maps node names to rows and back.
type rowNames struct {
	of    map[string]Row // row by node name
	names []string       // by row, "" for a free one
	all   []Row          // all rows, ascending
	free  []Row          // free rows; the last is used first
}

// New returns an empty table, with a follower of every kind.
func New() *Table {
	t := &Table{
		rows: rowNames{of: map[string]Row{}}, placed: map[types.UID]*Placed{}, columns: newColumns(),
		namespaces: Namespaces{labels: map[string]map[string]string{}},
		selectorOwners: SelectorOwners{
			byName: map[selectorOwnerName]*object.SelectorOwner{}, services: map[namespacedLabel][]*object.SelectorOwner{},
		},
		journal: journal{rows: newChangeList(), nodes: newChangeList()}, shown: Shown{rows: newChangeList()},
	}
	t.objects.table = t
	t.terms = newTerms(&t.namespaces)
	t.follow()
	return t
}

// SetNow sets the time that Now returns. The table's owner does so at each step.
func (t *Table) SetNow(now time.Time) { t.now = now }

// Now returns the time of the present step of the machine, for the few answers that depend
// on it.
func (t *Table) Now() time.Time { return t.now }

// Rows returns the number of rows, those without a node included: every column has this
// length.
func (t *Table) Rows() int { return len(t.nodes) }

// Live returns the number of rows that have a node.
func (t *Table) Live() int { return t.live }

// All returns every row, those without a node included, ascending. Read only.
func (t *Table) All() []Row { return t.rows.all }

// Node returns the node at the row, nil where there is none.
func (t *Table) Node(r Row) *object.Node { return t.nodes[r] }

// Name returns the node name of the row, even while only pods of an unknown node are there;
// "" for a free row.
func (t *Table) Name(r Row) string { return t.rows.names[r] }

// Find returns the row of the named node; false if there is no such node, even if pods are
// on a row of that name.
func (t *Table) Find(name string) (Row, bool) {
	r, ok := t.rows.of[name]
	return r, ok && t.nodes[r] != nil
}

// Pods returns the pods on the row, in no particular order. The slice is the table's own
// and valid until the next change.
func (t *Table) Pods(r Row) []*Placed { return t.pods[r] }

// Pod returns the placed pod with this UID, nil if it is not placed. A pod placed under a
// checkpoint counts.
func (t *Table) Pod(uid types.UID) *Placed { return t.placed[uid] }

// PlacedPods returns the number of placed pods.
func (t *Table) PlacedPods() int { return len(t.placed) }

// SetNode adds the node or replaces the one of the same name, and returns its row. Pods that
// were placed before the node was known are on the row already. A state that is equal for
// scheduling (Node.EqualForScheduling) replaces the object alone: no row changes. It panics
// under a checkpoint.
func (t *Table) SetNode(n *object.Node) Row {
	t.noCheckpoint("SetNode")
	r := t.row(n.Name)
	old := t.nodes[r]
	if old != nil && old.EqualForScheduling(n) {
		t.nodes[r] = n
		return r
	}
	if old == nil {
		t.live++
	}
	t.nodes[r] = n
	t.sweep()
	t.columns.offer(r, n)
	t.terms.relabel(t.pods[r], old, n)
	t.Touch(r)
	t.journal.touchNode(r)
	t.followers.nodeChanged(r, old, n)
	return r
}

// RemoveNode removes the node, if it is known. Its pods stay counted on the row until they are
// removed, and are on the node again if one of that name is added. It panics under a
// checkpoint.
func (t *Table) RemoveNode(name string) {
	t.noCheckpoint("RemoveNode")
	r, ok := t.Find(name)
	if !ok {
		return
	}
	old := t.nodes[r]
	t.terms.relabel(t.pods[r], old, nil)
	t.nodes[r] = nil
	t.live--
	t.columns.offer(r, nil)
	t.Touch(r)
	t.journal.touchNode(r)
	t.followers.nodeChanged(r, old, nil)
	t.release(r)
}

// AddPod places the pod on the named node, whether that is known or not. A pod of the same UID
// is moved or replaced. If it is on that node already and Alike, only its Pod is replaced, and
// no row changes.
func (t *Table) AddPod(p *object.Pod, node string) *Placed {
	if old := t.placed[p.UID]; old != nil {
		if t.tries.open == 0 && t.rows.names[old.Row] == node && old.Pod.Alike(p) {
			t.shown.replace(old, p)
			t.placedInGroup(p)
			return old
		}
		t.RemovePod(p.UID)
	}
	return t.Place(p, t.row(node))
}

// Place places the pod on the row. The pod must not be placed anywhere, and the row must have a
// node or at least a node name.
func (t *Table) Place(p *object.Pod, r Row) *Placed {
	pl := &Placed{Pod: p, Row: r}
	t.put(pl)
	t.record(undoEntry{pl, true})
	return pl
}

// RemovePod removes the pod from its row. It returns false if it was not placed.
func (t *Table) RemovePod(uid types.UID) bool {
	pl := t.placed[uid]
	if pl == nil {
		return false
	}
	t.take(pl)
	t.record(undoEntry{pl, false})
	t.release(pl.Row)
	return true
}

// put counts the pod on its row: in all columns, journals, indexes and followers. It records
// nothing for Undo.
func (t *Table) put(pl *Placed) {
	r := pl.Row
	if t.pods[r] == nil {
		t.pods[r], t.summaries[r] = make([]*Placed, 0, 4), make([]Summary, 0, 4) // few rows have fewer pods for long
	}
	pl.at = len(t.pods[r])
	t.pods[r] = append(t.pods[r], pl)
	t.placed[pl.Pod.UID] = pl
	t.sweep()
	t.columns.charge(pl, 1, t.pods[r])
	t.terms.count(pl, t.nodes[r], 1)
	t.summaries[r] = append(t.summaries[r], summaryOf(pl))
	t.podsByLabels.join(pl)
	t.placedInGroup(pl.Pod)
	t.podChanges.add(PodChange{Pod: pl.Pod, Row: r, Came: true, Terms: pl.terms, Try: t.Trying()})
	t.Touch(r)
	t.followers.came(pl)
}

// take removes the pod from its row, and from all columns, indexes and followers. The row is
// not freed. It records nothing for Undo.
func (t *Table) take(pl *Placed) {
	r, list := pl.Row, t.pods[pl.Row]
	last := list[len(list)-1]
	list[pl.at], last.at = last, pl.at
	list[len(list)-1] = nil
	t.pods[r] = list[:len(list)-1]
	t.summaries[r][pl.at] = t.summaries[r][len(list)-1]
	t.summaries[r] = t.summaries[r][:len(list)-1]
	delete(t.placed, pl.Pod.UID)
	t.sweep()
	t.columns.charge(pl, -1, t.pods[r])
	t.terms.count(pl, t.nodes[r], -1)
	t.podsByLabels.leave(pl)
	if pl.Pod.PodGroup() != "" {
		t.groups.Taken(pl.Pod)
	}
	t.podChanges.add(PodChange{Pod: pl.Pod, Row: r, Terms: pl.terms, Try: t.Trying()})
	t.Touch(r)
	t.followers.left(pl)
}

// sweep removes columns and terms that nothing uses, if there are many. It does nothing
// under a checkpoint, as an undo may need them.
func (t *Table) sweep() {
	if t.tries.open == 0 {
		t.columns.sweep()
		t.terms.sweep()
	}
}

// row returns the row for the node name, a free or new one if there is none.
func (t *Table) row(name string) Row {
	if r, ok := t.rows.of[name]; ok {
		return r
	}
	var r Row
	if n := len(t.rows.free); n > 0 {
		r, t.rows.free = t.rows.free[n-1], t.rows.free[:n-1]
	} else {
		r = Row(len(t.nodes))
		t.grow()
	}
	t.rows.of[name] = r
	t.rows.names[r] = name
	return r
}

// grow adds one more row to everything that is kept by row. The row has no node, pods and
// name yet.
func (t *Table) grow() {
	t.rows.all = append(t.rows.all, Row(len(t.rows.all)))
	t.rows.names = append(t.rows.names, "")
	t.nodes = append(t.nodes, nil)
	t.pods = append(t.pods, nil)
	t.summaries = append(t.summaries, nil)
	t.columns.grow()
	t.journal.grow()
	t.shown.rows.grow()
	t.followers.nodeChanged(Row(len(t.nodes)-1), nil, nil)
}

// release frees the row if neither a node nor pods are left on it. Under a checkpoint it
// waits until the outermost ends, since an undo may need the row.
func (t *Table) release(r Row) {
	if t.nodes[r] != nil || len(t.pods[r]) > 0 {
		return
	}
	if t.tries.open > 0 {
		t.tries.idle = append(t.tries.idle, r)
		return
	}
	if cur, ok := t.rows.of[t.rows.names[r]]; !ok || cur != r {
		return
	}
	delete(t.rows.of, t.rows.names[r])
	t.rows.names[r] = ""
	t.rows.free = append(t.rows.free, r)
}
