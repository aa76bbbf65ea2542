package table

import "math/bits"

// RowSet is a set of rows as bits, 64 to a word. Rows beyond its length are not in it.
type RowSet []uint64

// Has reports whether the row is in the set.
func (s RowSet) Has(r Row) bool {
	word := int(r) >> 6
	return word < len(s) && s[word]>>(r&63)&1 != 0
}

// Set adds the row if in is true, else removes it. The set must be long enough.
func (s RowSet) Set(r Row, in bool) {
	if bit := uint64(1) << (r & 63); in {
		s[r>>6] |= bit
	} else {
		s[r>>6] &^= bit
	}
}

// Append appends the rows of the set to rows, ascending.
func (s RowSet) Append(rows []Row) []Row {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			rows = append(rows, Row(i<<6+bits.TrailingZeros64(word)))
		}
	}
	return rows
}

// Keep removes the rows that are not in o, which has the same length.
func (s RowSet) Keep(o RowSet) {
	for i := range s {
		s[i] &= o[i]
	}
}

// Add adds the rows of o, which has the same length.
func (s RowSet) Add(o RowSet) {
	for i := range s {
		s[i] |= o[i]
	}
}

// Len returns the number of rows in the set.
func (s RowSet) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// First returns the lowest row of the set, -1 if it is empty.
func (s RowSet) First() Row {
	for i, word := range s {
		if word != 0 {
			return Row(i<<6 + bits.TrailingZeros64(word))
		}
	}
	return -1
}
