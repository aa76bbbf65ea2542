// Package draw is the seeded choice among equals: of nodes with the best score, and
// of whatever else kube-scheduler chooses at random. The same seed gives the same
// choice, on every machine and in every run.
package draw

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/table"
)

// Rows describes the rows that Row and Sample draw from.
type Rows struct {
	Candidates int                     // how many rows were looked at
	Candidate  func(i int) table.Row   // the i-th of them
	Tied       func(table.Row) bool    // reports whether the row has the best total
	Each       func(f func(table.Row)) // calls f with every row that has the best total, perhaps more than once
}

// sparse bounds the guesses: if fewer than one in sparse candidates has the best total,
// those that have it are listed instead.
const sparse = 64

// Row returns one of the tied rows, each with the same chance. Earlier choices do not
// matter.
func Row(seed uint64, ties int, from Rows) table.Row {
	random := source(seed)
	if n := from.Candidates; ties*sparse >= n {
		for range 100 * sparse { // that all miss will hardly ever happen
			if r := from.Candidate(int(random.next() % uint64(n))); from.Tied(r) {
				return r
			}
		}
	}
	salt, least, row := random.next(), uint64(0), table.Row(-1)
	from.Each(func(r table.Row) {
		if key := mix(salt + uint64(r)*golden); row < 0 || key < least {
			row, least = r, key
		}
	})
	return row
}

// Sample returns n of the tied rows in a random order, or all if there are fewer.
func Sample(seed uint64, ties, n int, from Rows) (rows []table.Row) {
	random := source(seed)
	n = min(n, ties)
	add := func(r table.Row) {
		if !slices.Contains(rows, r) {
			rows = append(rows, r)
		}
	}
	if all := from.Candidates; ties*sparse >= all {
		for i := 0; i < 100*sparse && len(rows) < n; i++ {
			if r := from.Candidate(int(random.next() % uint64(all))); from.Tied(r) {
				add(r)
			}
		}
	}
	if len(rows) == n {
		return rows
	}
	salt := random.next()
	rows = rows[:0]
	from.Each(add)
	slices.SortFunc(rows, func(a, b table.Row) int {
		return cmp.Compare(mix(salt+uint64(a)*golden), mix(salt+uint64(b)*golden))
	})
	return rows[:min(n, len(rows))]
}

// Number returns a number in [0, n), each with the same chance; the seed decides.
// It is 0 if there is nothing to choose.
func Number(seed uint64, n int) int {
	if n <= 1 {
		return 0
	}
	random := source(seed)
	return int(random.next() % uint64(n))
}

// Seed returns the seed of a draw for a pod, by the scheduler's seed. It differs
// between attempts; 0 is any of them.
func Seed(seed uint64, uid types.UID, attempt int) uint64 {
	return seed ^ Hash(string(uid)) ^ mix(uint64(attempt))
}

// source is a stream of uniform numbers (splitmix64).
type source uint64

const golden = 0x9e3779b97f4a7c15

func (s *source) next() uint64 {
	*s += golden
	return mix(uint64(*s))
}

// mix spreads every bit of x over the result; no two results are the same.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Hash returns FNV-1a of the string, mixed: the same on every machine and in every run.
func Hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}
