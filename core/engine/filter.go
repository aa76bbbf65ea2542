package engine

import (
	"github.com/berth-scheduler/berth/core/answers"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// filter is a filter plugin with the state that its PreFilter returned for a class.
type filter struct {
	*framework.Plugin
	in        framework.Input    // table, pod and PreFilter state that it is asked with
	position  int16              // among the filters that PreFilter did not skip, from 1
	hosted    bool               // it runs in an out-of-tree plugin and is asked in each decision
	skip      bool               // a hosted filter whose PreFilter skipped it in this decision
	alone     bool               // PreFilter said that it must run on one core only
	cells     *cells             // nil: it answers by rows
	column    column             // of its cells; not kept if it has none so far
	inPass    bool               // the view's pass evaluates it
	partition *answers.Partition // kept verdicts of a closing filter; nil: it is not closing
}

// early reports whether the filter may be asked about a row that an earlier filter rejects:
// it is cheap and cannot fail.
func (f *filter) early() bool { return !f.Costly && f.ErrorsFrom == 0 }

// ask writes the filter's verdict on each of the rows, on the table as it is now, to
// verdicts. The state of a filter by cells must be in sync with the table.
func (f *filter) ask(rows []table.Row, verdicts []framework.Verdict) {
	if f.cells != nil {
		f.CellFilter.AskRows(&f.in, rows, verdicts)
		return
	}
	f.Filter(&f.in, rows, verdicts)
}

// narrow asks the filter about rows that no filter rejects so far. It records verdicts
// that reject a row in found, and returns the rows that are left, with their indexes, for
// the next filter. at holds the index of each row in found's list; nil: the rows are that
// list. If at is not nil both slices are overwritten.
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

// allFit reports whether every verdict is Fits.
func allFit(verdicts []framework.Verdict) bool {
	var any framework.Verdict
	for _, v := range verdicts {
		any |= v
	}
	return any == framework.Fits
}

// verdictAt asks the filter about one row of the table as it is now. It syncs a filter by
// cells first.
func (f *filter) verdictAt(r table.Row) framework.Verdict {
	if f.cells != nil {
		f.cells.sync(&f.in)
	}
	var out [1]framework.Verdict
	f.ask(one(f.in.Table, r), out[:])
	return out[0]
}

// firstCause asks the filters about one row, in order, on the table as it is now, trial placements
// included. It returns the first that rejects the row; its Filter is ranking.Feasible if none does.
// Filters with skip set are left out.
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

// one returns a slice with only the row r. It is part of the table's list and must not be
// written.
func one(t *table.Table, r table.Row) []table.Row { return t.All()[r : r+1] }
