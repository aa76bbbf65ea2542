package engine

import (
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// filter is a plugin with the state that its PreFilter made for a class.
type filter struct {
	*framework.Plugin
	in       framework.Input
	position int16 // in the profile's order, from 1
	hosted   bool
	skip     bool   // a hosted one that has nothing to say in this decision
	cells    *cells // nil: it answers by rows
	column   column // of its cells
}

// run asks the filter about the rows and notes its rejections on those that no
// earlier filter rejects.
func (f *filter) run(rows []table.Row, found *scratch) {
	if f.Costly {
		f.runOnUnrejected(rows, found)
		return
	}
	verdicts := found.verdicts[:len(rows)]
	f.Filter(&f.in, rows, verdicts)
	if allFit(verdicts) {
		return
	}
	for i, v := range verdicts {
		f.note(found, i, v)
	}
}

// note keeps the filter's verdict on the i-th row, unless an earlier one rejects it.
func (f *filter) note(found *scratch, i int, v framework.Verdict) {
	if v != framework.Fits && (found.Filter[i] == ranking.Feasible || found.Filter[i] > f.position) {
		found.Filter[i], found.Verdict[i] = f.position, uint64(v)
	}
}

// runOnUnrejected is run for a costly filter, which is asked about the rows alone that no
// earlier filter rejects.
func (f *filter) runOnUnrejected(rows []table.Row, found *scratch) {
	unrejected, at := found.unrejected[:0], found.at[:0]
	for i, r := range rows {
		if found.Filter[i] == ranking.Feasible || found.Filter[i] > f.position {
			unrejected, at = append(unrejected, r), append(at, int32(i))
		}
	}
	f.runOn(unrejected, at, found)
}

// runOn is run for some of the rows; at says where in the list they stand.
func (f *filter) runOn(rows []table.Row, at []int32, found *scratch) {
	verdicts := found.verdicts[:len(rows)]
	f.Filter(&f.in, rows, verdicts)
	for k, v := range verdicts {
		f.note(found, int(at[k]), v)
	}
}

// narrow is runOn for rows that no earlier filter rejects, nor a later one. It returns
// those that it lets through.
func (f *filter) narrow(rows []table.Row, at []int32, found *scratch) ([]table.Row, []int32) {
	verdicts := found.verdicts[:len(rows)]
	f.Filter(&f.in, rows, verdicts)
	if allFit(verdicts) {
		return rows, at
	}
	n := 0
	for k, v := range verdicts {
		i := at[k]
		if rows[n], at[n] = rows[k], i; v == framework.Fits {
			n++
			continue
		}
		found.Filter[i], found.Verdict[i] = f.position, uint64(v)
	}
	return rows[:n], at[:n]
}

func allFit(verdicts []framework.Verdict) bool {
	var any framework.Verdict
	for _, v := range verdicts {
		any |= v
	}
	return any == framework.Fits
}

// verdictAt is the filter's verdict on one row of the table as it stands.
func (f *filter) verdictAt(r table.Row) framework.Verdict {
	if f.cells != nil {
		return f.verdictOnCell(r)
	}
	var out [1]framework.Verdict
	f.Filter(&f.in, one(f.in.Table, r), out[:])
	return out[0]
}

// firstCause runs the filters on one row of the table as it stands.
func firstCause(filters []filter, r table.Row) ranking.Cause {
	for k := range filters {
		if filters[k].skip {
			continue
		}
		if v := filters[k].verdictAt(r); v != framework.Fits {
			return ranking.Cause{Filter: filters[k].position, Verdict: uint64(v)}
		}
	}
	return ranking.Cause{Filter: ranking.Feasible}
}

// one lists a single row.
func one(t *table.Table, r table.Row) []table.Row { return t.All()[r : r+1] }
