package answers

import (
	"math/bits"
	"slices"

	"github.com/berth-scheduler/berth/core/table"
)

// Partition holds the answers of one plugin about all rows, for pods that the plugin cannot
// tell apart: a set of rows for each verdict but Fits, or for each raw score but 0. Rows in
// no set have the answer 0.
type Partition struct {
	Sets   []Set
	Column []uint64 // by row, where there are too many answers for Sets; else nil

	scores   bool   // the answers are raw scores, not verdicts
	rows     int    // rows that Sets and Column are sized for
	revision uint64 // of the table, up to which changed nodes were asked about; 0: none was
	used     uint64 // use number of the store at the last use
}

// Set is the rows with one answer of the plugin.
type Set struct {
	Answer uint64 // verdict or raw score, as bits
	Rows   table.RowSet
}

// mostSets is the most sets of a partition; with more answers it uses a column. A column
// takes as much memory as 64 sets, and is as fast to read as a few.
const mostSets = 8

// bytes returns about how much memory the partition takes.
func (p *Partition) bytes() int {
	return fixedBytes + 8*len(p.Column) + len(p.Sets)*(p.rows+63)/64*8
}

// At returns the plugin's verdict or raw score for the row, as bits; 0 for a row without a
// node.
func (p *Partition) At(r table.Row) uint64 {
	if p.Column != nil {
		return p.Column[r]
	}
	for i := range p.Sets {
		if s := &p.Sets[i]; s.Rows.Has(r) {
			return s.Answer
		}
	}
	return 0
}

// Write writes the answers (raw scores) about the rows to out, which has the same length.
func (p *Partition) Write(rows []table.Row, out []int64) {
	if p.Column != nil {
		for i, r := range rows {
			out[i] = int64(p.Column[r])
		}
		return
	}
	clear(out)
	for k := range p.Sets {
		set, answer := p.Sets[k].Rows, int64(p.Sets[k].Answer)
		for i, r := range rows {
			out[i] |= answer & -int64(set[r>>6]>>(r&63)&1)
		}
	}
}

// IsZero reports whether the answer is known to be 0 for every row, so that there is
// nothing to add. It may return false for a partition of zeros.
func (p *Partition) IsZero() bool { return p.Column == nil && len(p.Sets) == 0 }

// Reject removes from left, in place, the rows with an answer other than 0, which a filter
// rejects.
func (p *Partition) Reject(left table.RowSet) {
	for i := range p.Sets {
		for w, word := range p.Sets[i].Rows {
			left[w] &^= word
		}
	}
	if p.Column == nil {
		return
	}
	for w, word := range left {
		for ; word != 0; word &= word - 1 {
			if bit := bits.TrailingZeros64(word); p.Column[w<<6+bit] != 0 {
				left[w] &^= 1 << bit
			}
		}
	}
}

// Split calls visit once for each answer that some of rows have, with the set of those
// rows. The set is valid until visit returns; it may be rows itself, or scratch, which must
// be as long as rows.
func (p *Partition) Split(rows, scratch table.RowSet, visit func(answer uint64, part table.RowSet)) {
	if p.Column != nil {
		p.splitColumn(rows, visit)
		return
	}
	if len(p.Sets) == 0 {
		visit(0, rows)
		return
	}
	part, rest := scratch[:len(rows)], slices.Clone(rows)
	for i := range p.Sets {
		any := uint64(0)
		for w, word := range p.Sets[i].Rows {
			part[w] = rest[w] & word
			rest[w] &^= word
			any |= part[w]
		}
		if any != 0 {
			visit(p.Sets[i].Answer, part)
		}
	}
	if slices.ContainsFunc(rest, func(word uint64) bool { return word != 0 }) {
		visit(0, rest)
	}
}

// splitColumn does the work of Split for a partition with a column, in the order in which
// answers occur.
func (p *Partition) splitColumn(rows table.RowSet, visit func(answer uint64, part table.RowSet)) {
	parts := map[uint64]table.RowSet{}
	var found []uint64
	for _, r := range rows.Append(nil) {
		answer := p.Column[r]
		if parts[answer] == nil {
			parts[answer] = make(table.RowSet, len(rows))
			found = append(found, answer)
		}
		parts[answer].Set(r, true)
	}
	for _, answer := range found {
		visit(answer, parts[answer])
	}
}

// Count calls visit for each answer other than 0 with the set of those of left that have
// it, and removes these from left. The set is valid until visit returns.
func (p *Partition) Count(left table.RowSet, visit func(answer uint64, rows table.RowSet)) {
	p.Split(left, make(table.RowSet, len(left)), func(answer uint64, part table.RowSet) {
		if answer != 0 {
			visit(answer, part)
		}
	})
	p.Reject(left)
}

// resize extends the partition to n rows; new ones have the answer 0.
func (p *Partition) resize(n int) {
	if n <= p.rows {
		return
	}
	p.rows = n
	if p.Column != nil {
		p.Column = append(p.Column, make([]uint64, n-len(p.Column))...)
	}
	for i := range p.Sets {
		if words := (n + 63) / 64; words > len(p.Sets[i].Rows) {
			p.Sets[i].Rows = append(p.Sets[i].Rows, make(table.RowSet, words-len(p.Sets[i].Rows))...)
		}
	}
}

// set replaces the answer about a row. It changes the partition to a column if there are too many
// answers for sets.
func (p *Partition) set(r table.Row, answer uint64) {
	if p.Column == nil && answer != 0 {
		p.setFor(answer)
	}
	if p.Column != nil {
		p.Column[r] = answer
		return
	}
	for i := range p.Sets {
		p.Sets[i].Rows.Set(r, p.Sets[i].Answer == answer)
	}
}

// setFor returns the set for an answer, a new or an emptied one if there is none. If there
// are too many sets it changes the partition to a column and returns nil.
func (p *Partition) setFor(answer uint64) *Set {
	i := slices.IndexFunc(p.Sets, func(s Set) bool { return s.Answer == answer })
	if i < 0 && len(p.Sets) == mostSets { // no row may have one of the others any more
		if i = slices.IndexFunc(p.Sets, func(s Set) bool { return s.Rows.First() < 0 }); i >= 0 {
			p.Sets[i].Answer = answer
		}
	}
	switch {
	case i >= 0:
	case len(p.Sets) == mostSets:
		p.Column = make([]uint64, p.rows)
		for _, s := range p.Sets {
			for _, r := range s.Rows.Append(nil) {
				p.Column[r] = s.Answer
			}
		}
		p.Sets = nil
		return nil
	default:
		i = len(p.Sets)
		p.Sets = append(p.Sets, Set{answer, make(table.RowSet, (p.rows+63)/64)})
	}
	return &p.Sets[i]
}

// record stores said, the answers about consecutive rows from first on, which must be a multiple of
// 64. None of the rows may have an answer so far. It hardly branches on the answers.
func record[T ~int64 | ~uint64](p *Partition, first table.Row, said []T) {
	for from := 0; from < len(said); from += 64 {
		word, r := said[from:min(from+64, len(said))], first+table.Row(from)
		left := rowsWithout(word, 0)
		for i := 0; left != 0 && i < len(p.Sets); i++ {
			hit := left &^ rowsWithout(word, T(p.Sets[i].Answer))
			p.Sets[i].Rows[r>>6] = hit
			left &^= hit
		}
		for left != 0 && p.Column == nil {
			answer := word[bits.TrailingZeros64(left)]
			if s := p.setFor(uint64(answer)); s != nil {
				hit := left &^ rowsWithout(word, answer)
				s.Rows[r>>6] = hit
				left &^= hit
			}
		}
		if p.Column != nil {
			for i, answer := range word {
				p.Column[int(r)+i] = uint64(answer)
			}
		}
	}
}

// rowsWithout returns a bit for each element of word, at most 64, set if the element is not answer.
func rowsWithout[T ~int64 | ~uint64](word []T, answer T) (set uint64) {
	for i, is := range word {
		bit := uint64(0)
		if is != answer {
			bit = 1
		}
		set |= bit << i
	}
	return set
}
