package table

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/group"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// Row is the dense id of a node. Rows of nodes that went are used again.
type Row int32

// Placed is a pod that takes room on a row: bound there, or assumed.
type Placed struct {
	Pod *object.Pod
	Row Row
	at  int // its place in the row's list

	terms       []*Term // its terms of pod affinity
	withLabels  *PodsWithLabels
	labelsIndex int32 // its index in withLabels
}

// Terms returns the pod's terms of pod affinity. Read only.
func (pl *Placed) Terms() []*Term { return pl.terms }

// WithLabels returns the placed pods with the same namespace and labels; nil before the
// first call of PodsByLabels.
func (pl *Placed) WithLabels() *PodsWithLabels { return pl.withLabels }

// Table holds nodes and placed pods. The zero value is not usable; see New.
type Table struct {
	rowOf map[string]Row
	names []string
	nodes []*object.Node // nil: a free row, or a row of pods whose node is unknown
	pods  [][]*Placed
	all   []Row
	// summaries are of the pods, in the same order.
	summaries [][]Summary
	placed    map[types.UID]*Placed
	free      []Row
	live      int

	allocatable [][]int64 // by Resource, then row
	used        [][]int64
	nonZero     [2][]int64 // CPU, memory
	podCount    []int64
	allowedPods []int64
	headroom    []Headroom
	evenness    []int8
	percents    []Percents
	scalars     scalars

	selectorOwners SelectorOwners
	namespaces     Namespaces
	objects        Objects
	terms          Terms
	podsByLabels   podsByLabels
	groups         *group.Groups // nil: groups do not count

	now         time.Time
	revision    uint64
	changes     changeList // rows by their last change of any kind
	nodeChanges changeList // rows by the last change of their node object
	shown       changeList // rows by when a pod there was last shown, and no row changed
	shownCount  uint64     // how often that was
	updates     uint64     // how often it was a pod that was bound already
	lasting     []uint64   // by row, the revision of the last change that was no try
	placements  placements
	undo        []undoEntry
	marks       int
	idle        []Row // emptied under a checkpoint; an undo may need them

	followers followers
}

// New returns an empty table.
func New() *Table {
	t := &Table{
		rowOf:   map[string]Row{},
		placed:  map[types.UID]*Placed{},
		scalars: scalars{ids: map[v1.ResourceName]Resource{}, limit: columnsKept},
	}
	t.selectorOwners.byName = map[selectorOwnerName]*object.SelectorOwner{}
	t.selectorOwners.services = map[namespacedLabel][]*object.SelectorOwner{}
	t.namespaces.labels = map[string]map[string]string{}
	t.objects.table = t
	t.terms = newTerms(&t.namespaces)
	t.allocatable = make([][]int64, firstScalar)
	t.used = make([][]int64, firstScalar)
	t.changes.init()
	t.nodeChanges.init()
	t.shown.init()
	t.follow()
	return t
}

// SetNow sets the time. The machine does so at each step.
func (t *Table) SetNow(now time.Time) { t.now = now }

// Now returns the time, for the few answers that depend on it.
func (t *Table) Now() time.Time { return t.now }

// Rows returns the number of rows, live or not: every column has this length.
func (t *Table) Rows() int { return len(t.nodes) }

// Live returns the number of nodes.
func (t *Table) Live() int { return t.live }

// All lists every row, live or not, in order. Read only.
func (t *Table) All() []Row { return t.all }

// Node returns the node at the row, nil where there is none.
func (t *Table) Node(r Row) *object.Node { return t.nodes[r] }

// Name returns the node name that the row stands for, also while only pods
// of an unknown node are there.
func (t *Table) Name(r Row) string { return t.names[r] }

// Find returns the row of a live node.
func (t *Table) Find(name string) (Row, bool) {
	r, ok := t.rowOf[name]
	return r, ok && t.nodes[r] != nil
}

// Pods returns the pods on the row, in no particular order. The slice is the
// table's own and valid until the next change.
func (t *Table) Pods(r Row) []*Placed { return t.pods[r] }

// Pod returns where the pod with this UID is placed, nil if nowhere.
func (t *Table) Pod(uid types.UID) *Placed { return t.placed[uid] }

// Placements returns the number of placed pods.
func (t *Table) Placements() int { return len(t.placed) }

// Allocatable returns the column of what nodes offer. Read only.
func (t *Table) Allocatable(id Resource) []int64 { return t.allocatable[id] }

// Used returns the column of what placed pods take (their Demand.Usage). Read only.
func (t *Table) Used(id Resource) []int64 { return t.used[id] }

// NonZero returns the columns of CPU and memory taken, with a default for
// each container that names none (Demand.NonZero). Read only.
func (t *Table) NonZero() (milliCPU, memory []int64) { return t.nonZero[0], t.nonZero[1] }

// PodCount returns the column of the number of pods placed. Read only.
func (t *Table) PodCount() []int64 { return t.podCount }

// AllowedPods returns the column of how many pods each node takes. Read only.
func (t *Table) AllowedPods() []int64 { return t.allowedPods }

// SetNode adds the node or replaces the one of the same name, and returns its row. Pods
// that were placed before the node came are on the row already. A state that is the same
// for scheduling (Node.Alike) changes no row.
func (t *Table) SetNode(n *object.Node) Row {
	t.noCheckpoint("SetNode")
	r := t.row(n.Name)
	old := t.nodes[r]
	if old != nil && old.Alike(n) {
		t.nodes[r] = n
		return r
	}
	if old == nil {
		t.live++
	}
	t.nodes[r] = n
	t.allowedPods[r] = n.AllowedPods
	t.setAllocatable(r, n.Allocatable)
	t.terms.relabel(t.pods[r], old, n)
	t.touch(r)
	t.nodeChanges.touch(r, t.revision)
	t.followers.nodeChanged(r, old, n)
	return r
}

// RemoveNode removes the node. Its pods stay counted on the row until they go, and are on
// the node again if one of that name returns.
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
	t.allowedPods[r] = 0
	t.setAllocatable(r, resource.Vector{})
	t.touch(r)
	t.nodeChanges.touch(r, t.revision)
	t.followers.nodeChanged(r, old, nil)
	t.release(r)
}

// AddPod counts the pod on the named node, whether that node is known or not.
// A pod of the same UID that is placed already is moved or replaced.
func (t *Table) AddPod(p *object.Pod, node string) *Placed {
	if old := t.placed[p.UID]; old != nil {
		if t.marks == 0 && t.names[old.Row] == node && old.Pod.Alike(p) {
			t.show(old, p)
			t.placedInGroup(p)
			return old
		}
		t.RemovePod(p.UID)
	}
	return t.Place(p, t.row(node))
}

// Place places a pod that is placed nowhere on the row, which must have a node.
func (t *Table) Place(p *object.Pod, r Row) *Placed {
	pl := &Placed{Pod: p, Row: r}
	t.put(pl)
	t.record(undoEntry{pl, true})
	return pl
}

// RemovePod stops counting the pod. It returns false if it was not placed.
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

func (t *Table) put(pl *Placed) {
	r := pl.Row
	if t.pods[r] == nil {
		t.pods[r], t.summaries[r] = make([]*Placed, 0, 4), make([]Summary, 0, 4) // few rows have fewer pods for long
	}
	pl.at = len(t.pods[r])
	t.pods[r] = append(t.pods[r], pl)
	t.placed[pl.Pod.UID] = pl
	t.charge(r, pl.Pod, 1)
	t.countTerms(pl, 1)
	t.summaries[r] = append(t.summaries[r], summaryOf(pl))
	t.podsByLabels.join(pl)
	t.placedInGroup(pl.Pod)
	t.placements.add(Placement{Pod: pl.Pod, Row: r, Came: true, Terms: pl.terms, Try: t.Trying()})
	t.touch(r)
	t.followers.came(pl)
}

func (t *Table) take(pl *Placed) {
	r, list := pl.Row, t.pods[pl.Row]
	last := list[len(list)-1]
	list[pl.at], last.at = last, pl.at
	list[len(list)-1] = nil
	t.pods[r] = list[:len(list)-1]
	t.summaries[r][pl.at] = t.summaries[r][len(list)-1]
	t.summaries[r] = t.summaries[r][:len(list)-1]
	delete(t.placed, pl.Pod.UID)
	t.charge(r, pl.Pod, -1)
	t.countTerms(pl, -1)
	t.podsByLabels.leave(pl)
	if pl.Pod.PodGroup() != "" {
		t.groups.Taken(pl.Pod)
	}
	t.placements.add(Placement{Pod: pl.Pod, Row: r, Terms: pl.terms, Try: t.Trying()})
	t.touch(r)
	t.followers.left(pl)
}

// charge adds the pod's demand to the row (sign 1) or takes it off (-1).
// Where a sum would saturate it is rebuilt from the row's pods, so that what
// was added can be taken off again exactly.
func (t *Table) charge(r Row, p *object.Pod, sign int64) {
	d := &p.Demand
	t.podCount[r] += sign
	exact := bump(&t.used[CPU][r], sign, d.Usage.MilliCPU)
	exact = bump(&t.used[Memory][r], sign, d.Usage.Memory) && exact
	exact = bump(&t.used[EphemeralStorage][r], sign, d.Usage.EphemeralStorage) && exact
	exact = bump(&t.nonZero[0][r], sign, d.NonZero.MilliCPU) && exact
	exact = bump(&t.nonZero[1][r], sign, d.NonZero.Memory) && exact
	for _, s := range d.Usage.Scalars {
		exact = bump(&t.used[t.column(s.Name)][r], sign, s.Value) && exact
	}
	if !exact {
		t.recount(r)
	}
	t.setHeadroom(r)
}

// bump adds sign*amount and reports whether the result is exact.
func bump(sum *int64, sign, amount int64) bool {
	if *sum == math.MaxInt64 || *sum == math.MinInt64 {
		return false
	}
	if sign < 0 {
		*sum = resource.Sub(*sum, amount)
	} else {
		*sum = resource.Add(*sum, amount)
	}
	return *sum != math.MaxInt64 && *sum != math.MinInt64
}

func (t *Table) recount(r Row) {
	for id := range t.used {
		t.used[id][r] = 0
	}
	t.nonZero[0][r], t.nonZero[1][r] = 0, 0
	for _, pl := range t.pods[r] {
		d := &pl.Pod.Demand
		add := func(sum *int64, amount int64) { *sum = resource.Add(*sum, amount) }
		add(&t.used[CPU][r], d.Usage.MilliCPU)
		add(&t.used[Memory][r], d.Usage.Memory)
		add(&t.used[EphemeralStorage][r], d.Usage.EphemeralStorage)
		add(&t.nonZero[0][r], d.NonZero.MilliCPU)
		add(&t.nonZero[1][r], d.NonZero.Memory)
		for _, s := range d.Usage.Scalars {
			add(&t.used[t.column(s.Name)][r], s.Value)
		}
	}
}

// row returns the row for the node name, making one where there is none.
func (t *Table) row(name string) Row {
	if r, ok := t.rowOf[name]; ok {
		return r
	}
	var r Row
	if n := len(t.free); n > 0 {
		r, t.free = t.free[n-1], t.free[:n-1]
	} else {
		r = Row(len(t.nodes))
		t.grow()
	}
	t.rowOf[name] = r
	t.names[r] = name
	return r
}

func (t *Table) grow() {
	t.all = append(t.all, Row(len(t.all)))
	t.names = append(t.names, "")
	t.nodes = append(t.nodes, nil)
	t.pods = append(t.pods, nil)
	t.summaries = append(t.summaries, nil)
	t.podCount = append(t.podCount, 0)
	t.allowedPods = append(t.allowedPods, 0)
	t.headroom = append(t.headroom, Headroom{})
	t.evenness = append(t.evenness, 0)
	t.percents = append(t.percents, Percents{})
	for i := range t.nonZero {
		t.nonZero[i] = append(t.nonZero[i], 0)
	}
	for id := range t.used {
		t.used[id] = append(t.used[id], 0)
		t.allocatable[id] = append(t.allocatable[id], 0)
	}
	t.changes.grow()
	t.nodeChanges.grow()
	t.shown.grow()
	t.lasting = append(t.lasting, 0)
	t.setHeadroom(Row(len(t.nodes) - 1))
	t.followers.nodeChanged(Row(len(t.nodes)-1), nil, nil)
}

// release frees the row if neither a node nor pods are left on it. Under a checkpoint it
// waits until the outermost ends, since an undo may need the row.
func (t *Table) release(r Row) {
	if t.nodes[r] != nil || len(t.pods[r]) > 0 {
		return
	}
	if t.marks > 0 {
		t.idle = append(t.idle, r)
		return
	}
	if cur, ok := t.rowOf[t.names[r]]; !ok || cur != r {
		return
	}
	delete(t.rowOf, t.names[r])
	t.names[r] = ""
	t.free = append(t.free, r)
}

func (t *Table) setAllocatable(r Row, v resource.Vector) {
	for id := range t.allocatable {
		t.allocatable[id][r] = 0
	}
	t.allocatable[CPU][r] = v.MilliCPU
	t.allocatable[Memory][r] = v.Memory
	t.allocatable[EphemeralStorage][r] = v.EphemeralStorage
	for _, s := range v.Scalars {
		t.allocatable[t.column(s.Name)][r] = s.Value
	}
	t.setHeadroom(r)
}
