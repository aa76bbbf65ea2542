package engine

import (
	"github.com/berth-scheduler/berth/core/answers"
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
	skip     bool               // a hosted one that has nothing to say in this decision
	cells    *cells             // nil: it answers by rows
	column   column             // of its cells
	inPass   bool               // the pass can stand in for it
	said     *answers.Partition // of a closing filter
}

// early reports whether the filter may be asked about a row that an earlier one rejects:
// it costs little and cannot fail.
func (f *filter) early() bool { return !f.Costly && f.ErrorsFrom == 0 }

// ask writes the filter's verdicts on rows of the table as it stands. The state of a filter
// by cells must be in sync with the table.
func (f *filter) ask(rows []table.Row, verdicts []framework.Verdict) {
	if f.cells != nil {
		f.CellFilter.AskRows(&f.in, rows, verdicts)
		return
	}
	f.Filter(&f.in, rows, verdicts)
}

// narrow asks the filter about rows that no filter rejects so far, records its
// rejections, and returns the rows that pass. at holds the index of each row in found's
// list; nil: the rows are that list, which does not change.
func (f *filter) narrow(rows []table.Row, at []int32, found *scratch) ([]table.Row, []int32) {
	verdicts := found.verdicts[:len(rows)]
	f.ask(rows, verdicts)
	if allFit(verdicts) {
		return rows, at
	}
	if at == nil {
		rows, at = append(found.unrejected[:0], rows...), found.at[:0]
		for i := range rows {
			at = append(at, int32(i))
		}
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

// verdictAt returns the filter's verdict on one row of the table as it stands.
func (f *filter) verdictAt(r table.Row) framework.Verdict {
	if f.cells != nil {
		f.cells.sync(&f.in)
	}
	var out [1]framework.Verdict
	f.ask(one(f.in.Table, r), out[:])
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
