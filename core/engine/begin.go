package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/par"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// beginning is one evaluation of all rows (nodes) of a view. Closing filters first remove
// the rows that they reject. One loop then adds what CPU and memory decide (the view's
// pass), and the other plugins are asked about the rows that are left.
type beginning struct {
	view    *view    // the view that is evaluated
	workers int      // cores that may be used
	found   *scratch // receives the plugins' answers

	mask table.RowSet // rows that nothing rejects so far
	// left are the rows about which all plugins are asked later, since neither the pass nor an
	// early filter decides them. rest are rows whose values fit in no bucket.
	left, rest []table.Row
	split      bool // partitions alone put the rows into buckets, before other plugins are asked

	parts []table.RowSet // scratch of splitBy, by scorer
	lefts [][]table.Row  // scratch of addPass, by part that a core evaluates
}

// begin evaluates all rows anew and writes the results to the view's index, which begins anew and
// is not counted yet (Count). live is the set of rows that have a node; workers is the number of
// cores to use; found is scratch.
func (v *view) begin(live table.RowSet, workers int, found *scratch) {
	v.index.Begin(v.shape(), v.table.Rows())
	b := &found.beginning
	b.view, b.workers, b.found = v, workers, found
	b.left, b.rest = b.left[:0], b.rest[:0]
	b.mask = append(b.mask[:0], live...)
	for k := range v.filters[:v.closing] {
		v.filters[k].partition.Reject(b.mask)
	}
	if !v.index.Bucketed {
		b.rest = b.mask.Append(b.rest)
		b.evaluate(b.rest, v.evaluate, v.update)
		return
	}
	if v.pass != nil {
		b.askEarly()
	}
	if b.split = v.splits(); b.split {
		b.splitBy(0, b.mask, 0, make([]int64, 0, v.columns))
	} else {
		b.add(b.mask, 0)
	}
	if v.pass != nil {
		b.finish()
	}
	b.evaluate(b.left, b.evaluateLeft, b.keep())
	b.evaluate(b.rest, v.evaluate, v.update)
}

// keep returns the function that writes answers to the index for rows in left and for rows that
// passed. If partitions bucketed the rows (split), it adds scores to the rows' states; otherwise it
// replaces the states.
func (b *beginning) keep() func([]table.Row, *scratch) bool {
	if b.split {
		return b.view.add
	}
	return b.view.update
}

// evaluate calls evaluate for chunks of the rows, split over the cores, and keep with the answers,
// on this goroutine. Only one core is used if a filter must not run in parallel.
func (b *beginning) evaluate(rows []table.Row, evaluate func([]table.Row, *scratch), keep func([]table.Row, *scratch) bool) {
	v, workers, least := b.view, b.workers, grain
	if slices.ContainsFunc(v.rowFilters, costly) {
		least = costlyGrain
	}
	if slices.ContainsFunc(v.rowFilters, alone) {
		workers = 1
	}
	evaluateAll(rows, v.columns, workers, least, b.found, evaluate, keep)
}

// costly reports whether the filter takes long for a row, so that fewer rows are worth a
// core of their own.
func costly(f *filter) bool { return f.Costly }

// alone reports whether the filter must run on one core only.
func alone(f *filter) bool { return f.alone }

// askEarly asks the early filters (cheap ones that cannot fail) outside of the pass about the rows
// of the mask. It moves the rows that one of them rejects from the mask to left: a filter before it
// may reject such a row as well, so all plugins are asked about it later.
func (b *beginning) askEarly() {
	for _, f := range b.view.rowFilters {
		if f.inPass || !f.early() {
			continue
		}
		b.found.rows = b.mask.Append(b.found.rows[:0])
		for rows := range slices.Chunk(b.found.rows, chunk) {
			b.found.size(len(rows), 0)
			verdicts := b.found.verdicts[:len(rows)]
			f.ask(rows, verdicts)
			for i, verdict := range verdicts {
				if verdict != framework.Fits {
					b.mask.Set(rows[i], false)
					b.left = append(b.left, rows[i])
				}
			}
		}
	}
}

// splits reports whether partitions alone determine the bucket of each row: no cells are kept, no
// scorer that is asked about rows has a column, and the partition of no scorer has more answers
// than sets can hold.
func (v *view) splits() bool {
	return !v.cellsKept && !slices.ContainsFunc(v.scorers, func(s scorer) bool {
		return s.partition != nil && s.partition.Column != nil || s.partition == nil && s.cells == nil && s.column.kept
	})
}

// splitBy splits the rows by the kept answers of the scorers from the k-th on, and passes each part
// to add. score is the weighted sum, and values the column values, that the scorers before k give
// all these rows. A part goes to rest if there are too many buckets or its score is out of range.
func (b *beginning) splitBy(k int, rows table.RowSet, score int64, values []int64) {
	v := b.view
	for k < len(v.scorers) && v.scorers[k].partition == nil {
		k++
	}
	if k == len(v.scorers) {
		if state, bucketed := v.index.Bucket(values); bucketed && score >= 0 {
			b.add(rows, state+ranking.State(score))
		} else {
			b.rest = rows.Append(b.rest)
		}
		return
	}
	for len(b.parts) <= k {
		b.parts = append(b.parts, nil)
	}
	b.parts[k] = resize(b.parts[k], len(rows))
	s := &v.scorers[k]
	s.partition.Split(rows, b.parts[k], func(answer uint64, part table.RowSet) {
		if s.column.kept {
			b.splitBy(k+1, part, score, append(values, int64(answer)))
			return
		}
		b.splitBy(k+1, part, score+s.weighted(int64(answer)), values)
	})
}

// add sets the state of the rows that the pass finds to fit to first plus the pass's scores. Rows
// that the pass does not decide get the state first and are appended to left. Without a pass these
// are all rows.
func (b *beginning) add(rows table.RowSet, first ranking.State) {
	from, states := len(b.left), b.view.index.States()
	if b.view.pass == nil {
		b.left = rows.Append(b.left)
	} else {
		b.addPass(rows, first, states)
	}
	for _, r := range b.left[from:] {
		states[r] = first
	}
}

// passWords is how many 64-bit words of a row set a pass evaluates in about the time that
// it takes to wake another core.
const passWords = 1 << 8

// addPass runs the pass over the rows, on several cores if they are many. It writes first plus the
// score to states for rows that fit, and appends the others to b.left, in order.
func (b *beginning) addPass(rows table.RowSet, first ranking.State, states []ranking.State) {
	p := b.view.pass
	if b.workers < 2 || len(rows) <= passWords {
		b.left = headroom.AddMask(p, b.view.table, 0, rows, first, states, b.left)
		return
	}
	parts := (len(rows) + passWords - 1) / passWords
	for len(b.lefts) < parts {
		b.lefts = append(b.lefts, nil)
	}
	par.Each(parts, b.workers, func(part int) {
		from, to := part*passWords, min((part+1)*passWords, len(rows))
		b.lefts[part] = headroom.AddMask(p, b.view.table, table.Row(from<<6), rows[from:to], first, states, b.lefts[part][:0])
	})
	for _, left := range b.lefts[:parts] {
		b.left = append(b.left, left...)
	}
}

// finish asks the plugins outside of the pass about the rows that the pass found to fit, and writes
// the answers to the index. That buckets the rows, too, if partitions have not. finish does nothing
// if partitions have and no plugin is left to ask: early filters were asked before, and scorers
// with cells or partitions need not be asked.
func (b *beginning) finish() {
	v := b.view
	filters := slices.ContainsFunc(v.rowFilters, func(f *filter) bool { return !f.inPass && !f.early() })
	scorers := slices.ContainsFunc(v.scorers, func(s scorer) bool { return s.cells == nil && s.partition == nil && !s.inPass })
	if b.split && !filters && !scorers {
		return
	}
	for _, list := range [][]table.Row{b.left, b.rest} {
		for _, r := range list {
			b.mask.Set(r, false)
		}
	}
	b.found.rows = b.mask.Append(b.found.rows[:0])
	b.evaluate(b.found.rows, b.evaluatePassed, b.keep())
}

// evaluatePassed asks the plugins outside of the pass about rows that the pass found to fit, except
// early filters, which were asked before. Scorers with partitions are omitted if the states have
// their scores already.
func (b *beginning) evaluatePassed(rows []table.Row, found *scratch) {
	b.evaluateOn(rows, found, pluginSet{partitioned: !b.split})
}

// evaluateLeft asks all filters by rows and all scorers about rows in left. Scorers with partitions
// are omitted if the states have their scores already.
func (b *beginning) evaluateLeft(rows []table.Row, found *scratch) {
	b.evaluateOn(rows, found, pluginSet{pass: true, early: true, partitioned: !b.split})
}

// evaluateOn asks the plugins in which about rows that are feasible so far in the index, and writes
// the answers to found. Scores in found start from those in the index, or from 0 if partitions
// bucketed the rows, since keep then adds found to the index.
func (b *beginning) evaluateOn(rows []table.Row, found *scratch, which pluginSet) {
	clear(found.Filter[:len(rows)])
	clear(found.Score[:len(rows)])
	if !b.split {
		for i, r := range rows {
			found.Score[i] = b.view.index.Score(r)
		}
	}
	b.view.ask(rows, nil, found, which)
}
