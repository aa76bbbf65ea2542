package preempt

import (
	"slices"

	"github.com/berth-scheduler/berth/core/table"
)

// pardon decides which units come back, of those that a search took off their nodes.
type pardon struct {
	table *table.Table
	// fits reports whether the preemptor fits now that these units are back.
	fits func(back []*unit) bool
	// byRow are the units that are single pods of gangs, by row; nil: there are none.
	byRow map[table.Row][]*unit
}

// newPardon returns a pardon for the units. fits reports whether the preemptor fits now
// that some of them are back.
func newPardon(t *table.Table, units []*unit, fits func(back []*unit) bool) *pardon {
	r := &pardon{table: t, fits: fits}
	for _, u := range units {
		if u.gang == nil || u.isWhole() {
			continue
		}
		if r.byRow == nil {
			r.byRow = map[table.Row][]*unit{}
		}
		r.byRow[u.rows[0]] = append(r.byRow[u.rows[0]], u)
	}
	return r
}

// all puts the units back on their nodes, atOnce at a time and in their order, and takes those off
// again beside which the preemptor does not fit. Of several units beside which it does not fit it
// tries each half. Of a whole gang as many pods come back as it must keep.
func (r *pardon) all(units []*unit, atOnce int) {
	for chunk := range slices.Chunk(units, max(1, atOnce)) {
		back := r.putBack(chunk)
		if len(back) == 0 || r.fits(back) {
			continue
		}
		for _, u := range back {
			u.takeFrom(r.table)
		}
		switch u := chunk[0]; {
		case len(chunk) > 1:
			r.all(chunk, (len(chunk)+1)/2)
		case u.isWhole():
			r.keepMinimum(u.gang)
		default:
			r.exchange(u)
		}
	}
}

// putBack puts back those of the units that are off their nodes, and returns them. For a whole gang
// as many of its pods come back as it must keep; pods of a gang that goes as a whole do not.
func (r *pardon) putBack(units []*unit) (back []*unit) {
	for _, u := range units {
		switch {
		case u.isWhole():
			u.gone = false
			for _, s := range u.gang.surplus {
				if s.gone && u.gang.missing() > 0 {
					s.putBack(r.table)
					back = append(back, s)
				}
			}
			if len(back) > 0 {
				back = append(back, u)
			}
		case u.gone && (u.gang == nil || !u.gang.lost):
			u.putBack(r.table)
			back = append(back, u)
		}
	}
	return back
}

// keepMinimum puts pods of the gang back, one by one, until it has its minimum. If too few
// can stay the whole gang goes.
func (r *pardon) keepMinimum(g *gang) {
	if r.refill(g) {
		g.whole.gone = false
		return
	}
	g.lost = true
	for _, u := range g.surplus {
		if !u.gone {
			u.takeFrom(r.table)
		}
	}
}

// refill puts pods of the gang back, one by one, until it has its minimum. It returns false
// if too few can stay.
func (r *pardon) refill(g *gang) bool {
	for _, u := range g.surplus {
		if g.missing() == 0 {
			break
		}
		if u.gone {
			r.putBackIfFits(u)
		}
	}
	return g.missing() == 0
}

// putBackIfFits puts the unit back if the preemptor fits beside it.
func (r *pardon) putBackIfFits(u *unit) {
	if u.putBack(r.table); !r.fits([]*unit{u}) {
		u.takeFrom(r.table)
	}
}

// exchange puts back a unit beside which the preemptor does not fit, in the place of pods of gangs
// on the same rows, if these gangs can keep other pods instead. Else it changes nothing.
func (r *pardon) exchange(u *unit) {
	moved := r.movable(u)
	if len(moved) == 0 {
		return
	}
	was := map[*unit]bool{} // whether it was gone
	for _, m := range moved {
		for _, s := range m.gang.surplus {
			was[s] = s.gone
		}
	}
	for _, m := range moved {
		m.takeFrom(r.table)
	}
	u.putBack(r.table)
	if r.fits([]*unit{u}) && !slices.ContainsFunc(moved, func(m *unit) bool { return !r.refill(m.gang) }) {
		return
	}
	u.takeFrom(r.table)
	for s, gone := range was { // any order: each by itself
		switch {
		case gone && !s.gone:
			s.takeFrom(r.table)
		case !gone && s.gone:
			s.putBack(r.table)
		}
	}
}

// movable returns the pods of other gangs on the unit's rows that may go so that the unit stays:
// they have no higher priority, and no budget guards them, unless one guards the unit, too.
func (r *pardon) movable(u *unit) (moved []*unit) {
	for _, row := range u.rows {
		for _, s := range r.byRow[row] {
			if !s.gone && s.gang.least > 0 && s.gang != u.gang && s.priority <= u.priority && (s.violations == 0 || u.violations > 0) {
				moved = append(moved, s)
			}
		}
	}
	return moved
}
