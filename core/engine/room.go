package engine

import (
	"maps"
	"slices"
)

// viewRows bounds the memory of all views: a row of a view takes 4 bytes, 8
// more for each plugin that answers by cells, and up to 40 where there are as
// many groups as there may be; a view itself as much as fixedRows rows. So
// 2^22 rows are about 200 MiB at the worst, and a tenth of that as a rule.
// A large table may have more, for 192 classes: with fewer views than classes
// that take turns each would be dropped just before its turn.
const (
	viewRows   = 1 << 22
	fixedRows  = 128
	largeTable = 1 << 15
	largeViews = 192
)

// room is the number of rows that all views together may hold, each view
// counting fixedRows more than it has.
func (e *Engine) room() int {
	if n := e.table.Rows(); n > largeTable {
		return max(e.budget, largeViews*(fixedRows+n))
	}
	return e.budget
}

// seenClasses bounds what is remembered of classes that came by once.
const seenClasses = 1 << 16

// makeRoom drops the views used longest ago once all together are too large,
// a sixteenth of them at a time, and static parts that no view stands on.
func (e *Engine) makeRoom(keep *view) {
	if most := e.room() / (fixedRows + e.table.Rows()); len(e.views) > max(1, most) {
		uses := make([]uint64, 0, len(e.views))
		for _, v := range e.views { // any order: sorted below
			uses = append(uses, v.used)
		}
		slices.Sort(uses)
		stay := max(1, most-most/16)
		maps.DeleteFunc(e.views, func(_ string, v *view) bool { return v != keep && v.used < uses[len(uses)-stay] })
	}
	e.dropStatics(keep)
}

// dropStatics drops static parts that no view stands on, once they are many.
func (e *Engine) dropStatics(keep *view) {
	if len(e.statics) <= 2*len(e.views)+16 {
		return
	}
	stands := map[*static]bool{keep.static: true}
	for _, v := range e.views { // any order: fills a set
		stands[v.static] = true
	}
	maps.DeleteFunc(e.statics, func(_ string, s *static) bool { return !stands[s] })
}
