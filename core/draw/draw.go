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

// Rows describes the rows among which Row and Sample draw: those with the best total.
type Rows struct {
	Candidates int                     // number of rows to guess from
	Candidate  func(i int) table.Row   // returns the i-th of them
	Tied       func(table.Row) bool    // reports whether the row has the best total
	Each       func(f func(table.Row)) // calls f with each row that has the best total, perhaps repeatedly
}

// sparse limits guessing: if fewer than one candidate in sparse has the best total, all
// that have it are listed instead.
const sparse = 64

// Row returns one of the rows with the best total, each with the same chance, decided by
// the seed. ties is their number. Earlier choices do not matter.
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

// Sample returns n of the ties rows with the best total, or all if there are fewer, each
// once and in a random order decided by the seed.
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

// Number returns a number in [0, n), each with the same chance, decided by the seed. It is
// 0 if n is at most 1.
func Number(seed uint64, n int) int {
	if n <= 1 {
		return 0
	}
	random := source(seed)
	return int(random.next() % uint64(n))
}

// Seed returns the seed of a draw for one pod, derived from the scheduler's seed. It
// differs between attempts; pass attempt 0 for a draw that is the same in all of them.
func Seed(seed uint64, uid types.UID, attempt int) uint64 {
	return seed ^ Hash(string(uid)) ^ mix(uint64(attempt))
}

// source is a stream of uniform pseudo-random numbers (splitmix64).
type source uint64

// golden is 2^64 divided by the golden ratio.
const golden = 0x9e3779b97f4a7c15

// next returns the next number of the stream.
func (s *source) next() uint64 {
	*s += golden
	return mix(uint64(*s))
}

// mix returns the image of x under a permutation of the 64-bit numbers. Every bit of x affects all
// bits of the result.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Hash returns a 64-bit hash of the string (FNV-1a, mixed) that is the same on every
// machine and in every run.
func Hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}
