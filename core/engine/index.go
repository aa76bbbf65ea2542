package engine

import "github.com/berth-scheduler/berth/core/table"

// index keeps the feasible rows of a view in the order of their totals, so
// that the best is read off without a walk. Rows whose raw scores agree form
// a group: whatever the extremes are, they get the same normalised scores, so
// within a group the order by final scores stands. A pick compares
// the groups' firsts.
type index struct {
	norms   []int // the scorers that are normalised, by their place in the view
	groups  []group
	byRaw   map[raws]int32
	groupOf []int32 // by row, -1: not feasible
	at      []int32 // by row: its place in the group's heap
	highest int64   // the most that a row's final score can be
}

// raws are the raw scores by which rows are grouped, in the order of norms.
type raws [maxNorms]int64

// maxNorms is how many normalised scorers an index can tell apart; views with
// more are scanned.
const maxNorms = 6

// maxFinal bounds the counters of a group.
const maxFinal = 1 << 14

type group struct {
	raws raws
	heap []entry
	// having counts the rows by final score.
	having []int32
}

// entry is a row in a group's heap, with its own copy of what it is ordered
// by, the highest first: rows that changed since are out of place only when it
// is their turn.
type entry struct {
	final int32
	row   table.Row
}

// newIndex builds the index of a view, nil where it cannot be told apart by
// groups or would have too many.
func newIndex(v *view) *index {
	x := &index{byRaw: map[raws]int32{}}
	for k := range v.scorers {
		if v.scorers[k].Normalize != nil {
			x.norms = append(x.norms, k)
		} else {
			x.highest += maxScore * v.scorers[k].weight
		}
	}
	if len(x.norms) > maxNorms || x.highest >= maxFinal || v.poisoned > 0 {
		return nil
	}
	x.groupOf, x.at = make([]int32, len(v.first)), make([]int32, len(v.first))
	for i, first := range v.first {
		x.groupOf[i] = -1
		if first == feasible {
			x.append(v, table.Row(i))
		}
		if x.scattered() {
			return nil
		}
	}
	for g := range x.groups {
		for i := len(x.groups[g].heap)/2 - 1; i >= 0; i-- {
			x.down(&x.groups[g], i)
		}
	}
	return x
}

// scattered tells that there are so many groups that a scan is as good.
func (x *index) scattered() bool { return len(x.groups) > 64+len(x.at)/16 }

// group finds or makes the group for the row's raw scores.
func (x *index) group(v *view, r table.Row) int32 {
	var key raws
	for i, k := range x.norms {
		key[i] = v.scorers[k].raw()[r]
	}
	if g, ok := x.byRaw[key]; ok {
		return g
	}
	g := int32(len(x.groups))
	x.byRaw[key] = g
	x.groups = append(x.groups, group{raws: key, having: make([]int32, x.highest+1)})
	return g
}

func (x *index) append(v *view, r table.Row) {
	id := x.group(v, r)
	g := &x.groups[id]
	x.groupOf[r], x.at[r] = id, int32(len(g.heap))
	g.heap = append(g.heap, entry{int32(v.final[r]), r})
	g.having[v.final[r]]++
}

// update puts the row where the view's columns say that it belongs.
func (x *index) update(v *view, r table.Row) {
	old := x.groupOf[r]
	if v.first[r] != feasible {
		if old >= 0 {
			x.remove(&x.groups[old], int(x.at[r]))
			x.groupOf[r] = -1
		}
		return
	}
	if old >= 0 && x.same(v, r, old) {
		g := &x.groups[old]
		i := int(x.at[r])
		g.having[g.heap[i].final]--
		g.having[v.final[r]]++
		g.heap[i].final = int32(v.final[r])
		x.fix(g, i)
		return
	}
	if old >= 0 {
		x.remove(&x.groups[old], int(x.at[r]))
	}
	x.append(v, r)
	g := &x.groups[x.groupOf[r]]
	x.up(g, len(g.heap)-1)
}

func (x *index) same(v *view, r table.Row, id int32) bool {
	for i, k := range x.norms {
		if v.scorers[k].raw()[r] != x.groups[id].raws[i] {
			return false
		}
	}
	return true
}

func (x *index) remove(g *group, i int) {
	g.having[g.heap[i].final]--
	last := len(g.heap) - 1
	if i != last {
		x.set(g, i, g.heap[last])
	}
	g.heap = g.heap[:last]
	if i < last {
		x.fix(g, i)
	}
}

func (x *index) set(g *group, i int, e entry) {
	g.heap[i] = e
	x.at[e.row] = int32(i)
}

func (x *index) fix(g *group, i int) {
	if !x.up(g, i) {
		x.down(g, i)
	}
}

func (x *index) up(g *group, i int) (moved bool) {
	e := g.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if e.final <= g.heap[parent].final {
			break
		}
		x.set(g, i, g.heap[parent])
		i, moved = parent, true
	}
	x.set(g, i, e)
	return moved
}

func (x *index) down(g *group, i int) {
	e, n := g.heap[i], len(g.heap)
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && g.heap[child+1].final > g.heap[child].final {
			child++
		}
		if g.heap[child].final <= e.final {
			break
		}
		x.set(g, i, g.heap[child])
		i = child
	}
	x.set(g, i, e)
}

// eachAtTop calls f with the rows at i of the heap and below that have the
// final score, which is no lower than any.
func (g *group) eachAtTop(i int, final int64, f func(table.Row)) {
	if i < len(g.heap) && int64(g.heap[i].final) == final {
		f(g.heap[i].row)
		g.eachAtTop(2*i+1, final, f)
		g.eachAtTop(2*i+2, final, f)
	}
}
