package table

import "slices"

// DropOldest deletes from byKey the values that were used longest ago: half of them and one
// more, or more if some were used at the same time. used returns when a value was used, as a
// growing number.
func DropOldest[K comparable, V any](byKey map[K]V, used func(V) uint64) {
	uses := make([]uint64, 0, len(byKey))
	for _, v := range byKey { // any order: sorted below
		uses = append(uses, used(v))
	}
	slices.Sort(uses)
	for key, v := range byKey { // any order: each by itself
		if used(v) <= uses[len(uses)/2] {
			delete(byKey, key)
		}
	}
}
