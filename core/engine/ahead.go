package engine

import (
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/par"
	"github.com/berth-scheduler/berth/core/profile"
)

// Coming is a pod that is to be decided on soon, under its profile.
type Coming struct {
	Profile *profile.Profile
	Pod     *object.Pod
}

const (
	// aheadMost is how many pods are worth looking at ahead of their turn: each
	// that is placed before changes a row, to be looked at again.
	aheadMost = 32
	// aheadRows bounds the rows of the guests among their views.
	aheadRows = 1 << 21
	// lagging is how many rows a decision has to ask about for others to be
	// worth doing ahead.
	lagging = 64
)

// Lag is how many pods the engine would like to see ahead of their turn, 0
// where it keeps up without.
func (e *Engine) Lag() int {
	if e.workers < 2 || e.plain || e.asked < lagging {
		return 0
	}
	return min(aheadMost, aheadRows/max(1, e.table.Rows()))
}

// Ahead brings the views of pods that are decided on soon up to date, several
// at a time over the cores. What changes until a pod's turn is looked at then:
// no decision is another for it.
func (e *Engine) Ahead(pods []Coming) {
	e.dismiss()
	for _, key := range slices.Sorted(maps.Keys(e.guests)) {
		e.takeBack(e.guests[key])
	}
	e.ahead = e.ahead[:0]
	for _, c := range pods {
		e.clock++
		e.keyBuf = e.readingOf(c.Profile).appendKey(e.keyBuf[:0], e.table, c.Pod)
		v := e.known()
		if v == nil {
			v = e.newView(c.Profile, c.Pod)
		}
		switch {
		case v.failed != nil:
			e.takeBack(v) // it may not fail when its turn comes
		case v.class.rejected == nil && v.class.narrowed == nil && !slices.Contains(e.ahead, v):
			v.prepareRefresh(e.table, e.workers, &e.found[0])
			e.ahead = append(e.ahead, v)
		}
	}
	par.Each(e.workers, e.workers, func(worker int) {
		for i := worker; i < len(e.ahead); i += e.workers {
			e.ahead[i].catchUp(e.table, 1, &e.found[worker])
		}
	})
}
