package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/par"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// beginning is the work of evaluating all rows of a view. Partitions close rows and split
// the others by raw scores, one loop over each part adds what CPU and memory decide, and
// the other plugins are asked about the rows that are left.
type beginning struct {
	view    *view
	workers int
	found   *scratch

	mask table.RowSet // rows that nothing rejects so far
	// left are the rows that the pass says nothing of, and rest those without a group.
	left, rest []table.Row
	split      bool // rows are in groups before plugins are asked about them

	parts []table.RowSet // scratch of splitBy, by scorer
	lefts [][]table.Row  // scratch of addPass, by part that a core evaluates
}

// begin evaluates all rows. live is those with nodes.
func (v *view) begin(live table.RowSet, workers int, found *scratch) {
	v.index.Begin(v.shape(), v.table.Rows())
	b := &found.beginning
	b.view, b.workers, b.found = v, workers, found
	b.left, b.rest = b.left[:0], b.rest[:0]
	b.mask = append(b.mask[:0], live...)
	for k := range v.filters[:v.closing] {
		v.filters[k].said.Reject(b.mask)
	}
	if !v.index.Grouped {
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

// keep returns what records the answers about rows that have states: where rows are in
// groups already, scores are added to the states.
func (b *beginning) keep() func([]table.Row, *scratch) bool {
	if b.split {
		return b.view.add
	}
	return b.view.update
}

// evaluate evaluates the rows over the cores.
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

func costly(f *filter) bool { return f.Costly }
func alone(f *filter) bool  { return f.Alone != nil && f.Alone(&f.in) }

// askEarly asks the early filters about the rows of the mask, and takes the rows that they
// reject out of it. An earlier filter may reject these as well.
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

// splits reports whether partitions alone say in which group a row is.
func (v *view) splits() bool {
	return !v.cellsKept && !slices.ContainsFunc(v.scorers, func(s scorer) bool {
		return s.said != nil && s.said.Column != nil || s.said == nil && s.cells == nil && s.column.kept
	})
}

// splitBy splits the rows by what the scorers from the k-th on say. score and values are
// what those before say of the rows.
func (b *beginning) splitBy(k int, rows table.RowSet, score int64, values []int64) {
	v := b.view
	for k < len(v.scorers) && v.scorers[k].said == nil {
		k++
	}
	if k == len(v.scorers) {
		if state, grouped := v.index.Group(values); grouped && score >= 0 {
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
	s.said.Split(rows, b.parts[k], func(answer uint64, part table.RowSet) {
		if s.column.kept {
			b.splitBy(k+1, part, score, append(values, int64(answer)))
			return
		}
		b.splitBy(k+1, part, score+s.weighted(int64(answer)), values)
	})
}

// add writes first to the states of the rows, plus the scores of the pass where it fits.
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

// passWords is how many words of a mask a pass looks at in the time that it takes to wake
// another core.
const passWords = 1 << 8

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

// finish asks the plugins that are not in the pass about the rows that it lets through.
func (b *beginning) finish() {
	v := b.view
	filters := slices.ContainsFunc(v.rowFilters, func(f *filter) bool { return !f.inPass && !f.early() })
	scorers := slices.ContainsFunc(v.scorers, func(s scorer) bool { return s.cells == nil && s.said == nil && !s.inPass })
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

func (b *beginning) evaluatePassed(rows []table.Row, found *scratch) {
	b.evaluateOn(rows, found, pluginSet{said: !b.split})
}

func (b *beginning) evaluateLeft(rows []table.Row, found *scratch) {
	b.evaluateOn(rows, found, pluginSet{pass: true, early: true, said: !b.split})
}

// evaluateOn asks plugins about rows that have states.
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
