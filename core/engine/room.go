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

// fixedWords is how many bytes of a class's key and of its pod's labels are part of
// fixedRows. Each of those beyond counts as a row: a view keeps the key, what
// was compiled from the same fields, and the pod.
const fixedWords = 2048

// wordy is how many rows the view counts for besides its own.
func (v *view) wordy() int {
	n := len(v.class.key)
	for key, value := range v.pod.Labels { // any order: a sum
		n += len(key) + len(value)
	}
	return max(0, n-fixedWords)
}

// most is how many views there is room for.
func (e *Engine) most() int { return max(1, (e.room()-e.excess)/(fixedRows+e.table.Rows())) }

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
	if e.excess += keep.excess; len(e.views) > e.most() {
		e.dropViews(keep)
	}
	e.dropStatics(keep)
}

// drop forgets the view of a class, if there is one.
func (e *Engine) drop(key string) {
	v := e.views[key]
	if v != nil && v.kept != nil {
		e.keeping = slices.DeleteFunc(e.keeping, func(other *view) bool { return other == v })
	}
	delete(e.views, key)
}

func (e *Engine) dropViews(keep *view) {
	uses := make([]uint64, 0, len(e.views))
	e.excess = 0                // of views replaced since it may still hold some
	for _, v := range e.views { // any order: sorted below, and a sum
		uses = append(uses, v.used)
		e.excess += v.excess
	}
	slices.Sort(uses)
	stay := min(max(1, e.most()-e.most()/16), len(uses))
	maps.DeleteFunc(e.views, func(_ string, v *view) bool {
		drop := v != keep && v.used < uses[len(uses)-stay]
		if drop {
			e.excess -= v.excess
		}
		return drop
	})
	e.keeping = slices.DeleteFunc(e.keeping, func(v *view) bool { return e.views[v.class.key] != v })
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
