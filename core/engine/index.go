package engine

import (
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// index keeps the feasible rows of a view by their totals, so that the best
// are read off without a walk. Rows whose raw scores and cells agree form a
// group: whatever the extremes and the domains' counts are, filters by cells
// give them the same verdict and normalised scorers the same score, so that
// within a group the order by final scores stands. As these are small
// integers, a group is a list of rows for each; a pick compares the groups'
// highest.
type index struct {
	parts   []part
	groups  []group
	byKey   map[groupKey]int32
	groupOf []int32 // by row, none: not feasible
	final   []int32 // by row: the final score under which it stands
	next    []table.Row
	prev    []table.Row
	highest int64 // the most that a row's final score can be
	counts  []framework.CellCount
	totals  []int64
}

// none ends a list of rows, and stands for no group.
const none = -1

// part is one of the numbers by which rows are grouped: a normalised scorer's
// raw score or cell, or a filter's cell.
type part struct {
	scorer *scorer
	place  int // of the scorer in the view
	filter *filter
	column func() []int64
}

// groupKey holds a group's numbers, in the order of the parts.
type groupKey [maxParts]int64

// maxParts is how many numbers an index can tell apart; views with more are
// scanned.
const maxParts = 8

// maxFinal bounds the lists of a group.
const maxFinal = 1 << 12

type group struct {
	key    groupKey
	rows   int
	top    int32       // the highest final score that some row has
	first  []table.Row // by final score, the first of the list
	having []int32     // by final score, how many
	// fits: it has rows, and no filter by cells rejects them (this decision).
	fits bool
}

// newIndex builds the index of a view, nil where its rows cannot be told apart
// by groups or would make too many.
func newIndex(v *view) *index {
	x := &index{byKey: map[groupKey]int32{}}
	for k := range v.scorers {
		switch s := &v.scorers[k]; {
		case s.cells != nil:
			x.parts = append(x.parts, part{scorer: s, place: k, column: s.cells.column})
		case s.Normalize != nil:
			x.parts = append(x.parts, part{scorer: s, place: k, column: s.raw})
		default:
			x.highest += maxScore * s.weight
		}
	}
	for _, f := range v.cellFilters {
		x.parts = append(x.parts, part{filter: f, column: f.cells.column})
	}
	if len(x.parts) > maxParts || x.highest >= maxFinal || v.poisoned > 0 {
		return nil
	}
	n := len(v.first)
	x.groupOf, x.final = make([]int32, n), make([]int32, n)
	x.next, x.prev = make([]table.Row, n), make([]table.Row, n)
	for i, first := range v.first {
		x.groupOf[i] = none
		if first == feasible {
			x.insert(v, table.Row(i))
		}
		if x.scattered() {
			return nil
		}
	}
	return x
}

// scattered tells that there are so many groups that a scan is as good.
func (x *index) scattered() bool { return len(x.groups) > 64+len(x.groupOf)/16 }

// update puts the row where the view's columns say that it belongs.
func (x *index) update(v *view, r table.Row) {
	fits, at := v.first[r] == feasible, x.groupOf[r]
	if fits && at != none && int64(x.final[r]) == v.final[r] && x.same(r, at) {
		return
	}
	if at != none {
		x.remove(r)
	}
	if fits {
		x.insert(v, r)
	}
}

func (x *index) insert(v *view, r table.Row) {
	id, score := x.group(r), int32(v.final[r])
	g := &x.groups[id]
	x.groupOf[r], x.final[r] = id, score
	x.prev[r], x.next[r] = none, g.first[score]
	if g.first[score] != none {
		x.prev[g.first[score]] = r
	}
	g.first[score] = r
	g.having[score]++
	g.rows++
	g.top = max(g.top, score)
}

func (x *index) remove(r table.Row) {
	g, score := &x.groups[x.groupOf[r]], x.final[r]
	if prev := x.prev[r]; prev != none {
		x.next[prev] = x.next[r]
	} else {
		g.first[score] = x.next[r]
	}
	if next := x.next[r]; next != none {
		x.prev[next] = x.prev[r]
	}
	x.groupOf[r] = none
	g.having[score]--
	g.rows--
	for g.top > 0 && g.having[g.top] == 0 {
		g.top--
	}
}

// group finds or makes the group for the row's numbers.
func (x *index) group(r table.Row) int32 {
	var key groupKey
	for i := range x.parts {
		key[i] = x.parts[i].column()[r]
	}
	if g, ok := x.byKey[key]; ok {
		return g
	}
	id := int32(len(x.groups))
	x.byKey[key] = id
	g := group{key: key, first: make([]table.Row, x.highest+1), having: make([]int32, x.highest+1)}
	for i := range g.first {
		g.first[i] = none
	}
	x.groups = append(x.groups, g)
	return id
}

func (x *index) same(r table.Row, id int32) bool {
	for i := range x.parts {
		if x.parts[i].column()[r] != x.groups[id].key[i] {
			return false
		}
	}
	return true
}

// judge asks the filters by cells about the groups and returns the number of
// feasible rows.
func (x *index) judge() int {
	rows := 0
	for g := range x.groups {
		group := &x.groups[g]
		group.fits = group.rows > 0
		for i := range x.parts {
			if f := x.parts[i].filter; f != nil && group.fits {
				group.fits = f.CellFilter.Verdict(&f.in, group.key[i]) == framework.Fits
			}
		}
		if group.fits {
			rows += group.rows
		}
	}
	return rows
}

// each calls f with the group's rows of that final score.
func (x *index) each(g *group, score int64, f func(table.Row)) {
	if !g.fits || score < 0 || score > x.highest {
		return
	}
	for r := g.first[score]; r != none; r = x.next[r] {
		f(r)
	}
}
