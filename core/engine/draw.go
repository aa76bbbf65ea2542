package engine

import "github.com/berth-scheduler/berth/core/table"

// sparse: where fewer than one candidate in so many shares the best total,
// those that do are looked up one by one.
const sparse = 64

// draw chooses among the o.Ties candidates that share the best total, each
// with the same chance and whatever was chosen before: the seed and the pod's
// UID decide. tied tells whether a row is among them, each calls with every
// one of them.
func (o *Outcome) draw(tied func(table.Row) bool, each func(func(table.Row))) {
	random := source(o.engine.seed ^ hash(string(o.pod.UID)))
	if n := o.candidates(); o.Ties*sparse >= n {
		for range 100 * sparse { // that all miss will hardly ever happen
			if r := o.candidate(int(random.next() % uint64(n))); tied(r) {
				o.Row = r
				return
			}
		}
	}
	salt, least := random.next(), uint64(0)
	o.Row = -1
	each(func(r table.Row) {
		if lot := mix(salt + uint64(r)*golden); o.Row < 0 || lot < least {
			o.Row, least = r, lot
		}
	})
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

// hash is FNV-1a: the same on every machine and in every run.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}
