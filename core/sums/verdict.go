package sums

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// A verdict on a row is a set of bits: bit k if the k-th sum of the list does not fit there,
// and two more. It is 0 if all fit. Explanations read from it what the node lacks.
const (
	// noOwnBit is set if a sum that does not fit has no bit of its own, because there are
	// more sums than bits. Its hash is mixed into the bits of the others instead, and
	// EachShort compares the row again.
	noOwnBit = 1 << 62
	// never is set if one of the requests is more than the whole node has.
	never = 1 << 63
	// lastOwnBit is the index of the last sum that has a bit of its own.
	lastOwnBit = 61
)

// Verdicts writes to out, for each of the rows, which sums of the list do not fit there; 0
// if all do.
func Verdicts[V ~uint64](list []Sum, t *table.Table, rows []table.Row, out []V) {
	clear(out)
	for k := range list {
		list[k].eachUnfit(t, rows, func(i int, a Answer) { out[i] = V(reject(uint64(out[i]), list, k, a)) })
	}
}

// VerdictExchanged returns the verdict on the row if its pods of a priority lower than
// below left and the pods in came were added. known is false if a sum is unknown then, or
// has no bit of its own.
func VerdictExchanged(list []Sum, t *table.Table, row table.Row, below int32, came []*object.Pod) (v uint64, known bool) {
	for k := range list {
		a, known := list[k].exchanged(t, row, below, came)
		if !known || k > lastOwnBit {
			return 0, false
		}
		if a != Fits {
			v = reject(v, list, k, a)
		}
	}
	return v, true
}

// reject returns the verdict v with the mark that the k-th sum does not fit. If a is Never it also
// sets never, except for the number of pods.
func reject(v uint64, list []Sum, k int, a Answer) uint64 {
	if k <= lastOwnBit {
		v |= 1 << k
	} else {
		v = (v | noOwnBit) ^ hashBits(list[k].Name)
	}
	if a == Never && list[k].Name != v1.ResourcePods { // a node without any room for pods may get some
		v |= never
	}
	return v
}

// hashBits returns bits for a resource, within those of sums, that differ between two
// resources with near certainty. Bit 0 is never set.
func hashBits(name v1.ResourceName) uint64 {
	return draw.Hash(string(name)) & (1<<(lastOwnBit+1) - 1<<1)
}

// EachShort calls visit with each sum that does not fit, according to the verdict v on the row. If
// v has noOwnBit, the row as it is now decides instead. It reports whether a request (other than
// for the number of pods) is more than the whole node has.
func EachShort(list []Sum, t *table.Table, row table.Row, v uint64, visit func(*Sum)) (beyond bool) {
	for k := range list {
		short := k <= lastOwnBit && v&(1<<k) != 0
		if v&noOwnBit != 0 && k > 0 { // codes never touch the first bit
			short = list[k].On(t, row) != Fits
		}
		if short {
			visit(&list[k])
		}
	}
	return v&never != 0
}
