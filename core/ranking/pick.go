package ranking

import (
	"math"

	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/table"
)

// Pick returns a row with the highest total among the buckets that fit, the total, and the
// number of rows that have it. Each of these has the same chance, decided by the seed.
// Count must have been called, and some bucket must fit and have rows.
func (x *Index) Pick(seed uint64) (row table.Row, total int64, ties int) {
	total, ties = x.best()
	return draw.Row(seed, ties, x.tied(total)), total, ties
}

// Sample returns n of the rows that Pick chooses from, or all if there are fewer, drawn by
// the seed and in random order, with their total and number. rows is nil if no bucket fits.
func (x *Index) Sample(seed uint64, n int) (rows []table.Row, total int64, ties int) {
	total, ties = x.best()
	if ties == 0 {
		return nil, total, 0
	}
	return draw.Sample(seed, ties, n, x.tied(total)), total, ties
}

// tied returns the feasible rows whose total is best, from which package draw chooses one
// at random.
func (x *Index) tied(best int64) draw.Rows {
	return draw.Rows{
		Candidates: len(x.states),
		Candidate:  func(i int) table.Row { return table.Row(i) },
		Tied:       func(r table.Row) bool { return x.hasTotal(r, best) },
		Each:       func(f func(table.Row)) { x.eachBest(best, f) },
	}
}

// best returns the highest total (score plus bonus) of rows in buckets that fit, and the number of
// rows that have it. If there is no such row, ties is 0 and total is math.MinInt64.
func (x *Index) best() (total int64, ties int) {
	total = math.MinInt64
	for id := range x.buckets {
		b := &x.buckets[id]
		if !b.Fits || b.Rows == 0 {
			continue
		}
		switch sum := b.Bonus + int64(b.top); {
		case sum > total:
			total, ties = sum, int(b.ties)
		case sum == total:
			ties += int(b.ties)
		}
	}
	return total, ties
}

// hasTotal reports whether the row may be chosen (it is feasible, and its bucket fits) and
// its score plus the bucket's bonus is total.
func (x *Index) hasTotal(r table.Row, total int64) bool {
	s := x.states[r]
	if !s.feasible() {
		return false
	}
	b := &x.buckets[s>>scoreBits]
	return b.Fits && b.Bonus+int64(s.score()) == total
}

// progress is which counts of an index are up to date.
type progress uint8

const (
	uncounted progress = iota // no counts; the next Count counts the best rows of each bucket only
	ranked                    // the counts of each bucket's rows and of those with its highest score
	outdated                  // no counts, as rows or buckets changed since; the next Count counts all
	counted                   // all counts, and Update keeps them up to date
)

// Count brings the counts up to date; call it after updates and before reading. The first
// time after Begin it counts only the best rows of each bucket, which is faster: most
// classes are never seen again.
func (x *Index) Count() {
	if x.progress == ranked || x.progress == counted {
		return
	}
	x.Feasible, x.OutOfRange = 0, 0
	clear(x.causes.rows)
	switch {
	case !x.Bucketed:
		x.countWithoutBuckets()
		x.progress = counted
		return
	case x.progress == uncounted:
		x.countBest()
		x.progress = ranked
	default:
		x.countByScore()
		x.progress = counted
	}
	for id := range x.buckets {
		x.Feasible += x.buckets[id].Rows
	}
}

// countWithoutBuckets counts feasible, out-of-range and rejected rows of an index without
// buckets.
func (x *Index) countWithoutBuckets() {
	for r, s := range x.states {
		switch {
		case !s.feasible():
			x.countCause(s)
		case x.scores[r] < 0:
			x.OutOfRange++
			x.Feasible++
		default:
			x.Feasible++
		}
	}
}

// countCause adds one row to the count of the state's cause, if a filter rejected it.
func (x *Index) countCause(s State) {
	if s.rejected() {
		x.causes.rows[s.cause()]++
	}
}

// countByScore counts the rows of each bucket by score, and the rejected rows by cause.
func (x *Index) countByScore() {
	for id := range x.buckets {
		b := &x.buckets[id]
		b.Rows, b.byScore = 0, extend(b.byScore[:0], int(x.shape.Highest)+1)
	}
	for _, s := range x.states {
		if s.feasible() {
			x.buckets[s>>scoreBits].byScore[s.score()]++
		} else {
			x.countCause(s)
		}
	}
	for id := range x.buckets {
		b := &x.buckets[id]
		for _, n := range b.byScore {
			b.Rows += int(n)
		}
		b.findTop(int32(len(b.byScore)) - 1)
	}
}

// countBest counts the rows of each bucket, those with its highest score, and the rejected
// rows by cause. Neighbouring rows of one bucket are counted together.
func (x *Index) countBest() {
	for id := range x.buckets {
		x.buckets[id].Rows, x.buckets[id].top, x.buckets[id].ties = 0, -1, 0
	}
	for from := 0; from < len(x.states); {
		s := x.states[from]
		if !s.feasible() {
			x.countCause(s)
			from++
			continue
		}
		first := s >> scoreBits << scoreBits
		from += x.buckets[s>>scoreBits].countRun(x.states[from:], first, 1<<scoreBits)
	}
}

// countRun adds to the bucket's counts the leading states that belong to it, and returns
// their number. The states of the bucket are those from first to first+many-1.
func (b *Bucket) countRun(states []State, first, many State) int {
	best, ties, n := first+State(b.top), b.ties, 0
	for _, s := range states {
		if uint32(s-first) >= uint32(many) {
			break
		}
		if s > best {
			best, ties = s, 0
		}
		if s == best {
			ties++
		}
		n++
	}
	b.Rows += n
	b.top, b.ties = int32(best-first), ties
	return n
}
