package ranking

import (
	"slices"

	"github.com/berth-scheduler/berth/core/table"
)

// Bucket is the set of feasible rows whose values (raw scores and cells) are equal. Scores
// that are normalised, and verdicts by cells, are the same for all of them, so Pick
// decides by bucket what it need not decide by row.
type Bucket struct {
	// Rows is the number of rows in the bucket; it may be 0.
	Rows int
	// Fits and Bonus are set by the caller of Pick: whether the rows may be chosen, and
	// what is added to the score of each.
	Fits  bool
	Bonus int64

	key     values  // the values of each row
	top     int32   // the highest score of a row; -1: there are no rows
	ties    int32   // number of rows with the score top
	byScore []int32 // number of rows by score; set when progress is counted

	// lists holds, by score from lowest on, at least the rows that have the score,
	// and some that had it before; listed counts them all.
	lists     [][]table.Row
	listed    int   // entries in all lists
	lowest    int32 // the score of lists[0]; unlisted: there are no lists
	unwritten bool  // lists were allocated but not filled yet
}

// maxValues is how many values a row may have in an index with buckets; with more values the
// index has none.
const maxValues = 8

// values are the values of a row, by column; those beyond Shape.Values are 0.
type values [maxValues]int64

// maxBuckets returns the most buckets that an index of that many rows may have; each takes
// memory for its counts, up to 40 bytes a row. With more buckets a decision by buckets is no
// faster than a scan of all rows.
func maxBuckets(rows int) int { return 16 + rows/32 }

const (
	// none is the index of no bucket.
	none = -1
	// unlisted is Bucket.lowest of a bucket without lists. It is above any score.
	unlisted = maxScore
)

// Buckets returns the index's own buckets, for the caller to set Fits and Bonus; empty if the
// index is not Bucketed. They stay in place until the next Update.
func (x *Index) Buckets() []Bucket { return x.buckets }

// Value returns the value in column k, a raw score or a cell, that all rows of the bucket
// have.
func (b *Bucket) Value(k int) int64 { return b.key[k] }

// Bucket returns the State of a feasible row with the values in key and score 0, in the bucket of
// these values, which it makes if there is none. It returns false if the index has no buckets, or
// there would be too many: it gives up buckets then.
func (x *Index) Bucket(key []int64) (State, bool) {
	if id := x.bucketWith(func(k int) int64 { return key[k] }); x.Bucketed && id != none {
		return stateOf(id, 0), true
	}
	x.dropBuckets()
	return 0, false
}

// bucketWith returns the index of the bucket whose k-th value is value(k) for each k, a new
// bucket if there is none; none if there are too many buckets.
func (x *Index) bucketWith(value func(k int) int64) int32 {
	width := x.shape.Values
	has := func(id int32) bool {
		for k := range width {
			if x.buckets[id].key[k] != value(k) {
				return false
			}
		}
		return true
	}
	hash := uint64(0)
	for k := range width {
		hash = mix(hash, uint64(value(k)))
	}
	id, known := x.byKey.find(hash, has)
	if !known {
		if len(x.buckets) >= maxBuckets(len(x.states)) {
			return none
		}
		var key values
		for k := range width {
			key[k] = value(k)
		}
		id = x.addBucket(key)
		x.byKey.add(id, hash, x.hashOfBucket)
	}
	x.last = id
	return id
}

// addBucket appends an empty bucket with the values and returns its index. It reuses memory
// of a bucket from before Begin.
func (x *Index) addBucket(key values) int32 {
	n := len(x.buckets)
	if n == cap(x.buckets) {
		x.buckets = append(x.buckets, Bucket{})
	}
	x.buckets = x.buckets[:n+1]
	b := &x.buckets[n] // one that was there before Begin: its memory is used again
	*b = Bucket{key: key, byScore: b.byScore[:0], top: -1, lowest: unlisted}
	if x.progress == counted {
		b.byScore = extend(b.byScore, int(x.shape.Highest)+1)
	}
	return int32(n)
}

// bucketOf returns the index of the bucket for the i-th row of found, whose state was the parameter
// was; a new bucket if there is none for its values, and none if there are too many. It tries the
// row's old bucket and the last one found first.
func (x *Index) bucketOf(was State, found *Answers, i int) int32 {
	if was.feasible() && int(was>>scoreBits) < len(x.buckets) && x.buckets[was>>scoreBits].has(found, i) {
		return int32(was >> scoreBits)
	}
	if int(x.last) < len(x.buckets) && x.buckets[x.last].has(found, i) { // neighbours are often alike
		return x.last
	}
	return x.bucketWith(func(k int) int64 { return found.Values[k][i] })
}

// has reports whether the values of the i-th row of found are those of the bucket, so that
// the row belongs to it.
func (b *Bucket) has(found *Answers, i int) bool {
	for k, column := range found.Values {
		if column[i] != b.key[k] {
			return false
		}
	}
	return true
}

// hashOfBucket returns the hash of the values of the bucket with that index.
func (x *Index) hashOfBucket(id int32) uint64 {
	hash := uint64(0)
	for _, value := range x.buckets[id].key[:x.shape.Values] {
		hash = mix(hash, uint64(value))
	}
	return hash
}

// remove removes one row with the score from the bucket's counts, which must be kept by score. It
// updates the top score and the number of rows that have it.
func (b *Bucket) remove(score int32) {
	b.Rows--
	b.byScore[score]--
	if score < b.top {
		return
	}
	if b.ties--; b.ties == 0 {
		b.findTop(score)
	}
}

// findTop sets top to the highest score that some row has, and ties to the number of rows with it;
// -1 and 0 if there is none. It searches downward from the given score.
func (b *Bucket) findTop(score int32) {
	for b.top, b.ties = score, 0; b.top >= 0; b.top-- {
		if b.ties = b.byScore[b.top]; b.ties > 0 {
			return
		}
	}
}

// addRow adds the row with its score to the bucket's counts, top score and lists. id is the
// bucket's index.
func (x *Index) addRow(id, score int32, r table.Row) {
	b := &x.buckets[id]
	b.Rows++
	b.byScore[score]++
	if score > b.top {
		b.top, b.ties = score, 0
	}
	if score == b.top {
		b.ties++
	}
	if score >= b.lowest {
		x.addToList(id, score, r)
	}
}

// eachBest calls f with the rows whose total (score plus bonus of the bucket) is best, some
// perhaps more than once, in no order. best is the highest total. It makes lists of the
// best rows if they are missing.
func (x *Index) eachBest(best int64, f func(table.Row)) {
	if x.progress == ranked {
		x.walkBest(best, f)
		return
	}
	missing := false
	for id := range x.buckets {
		if b := &x.buckets[id]; b.hasBest(best) && b.top < b.lowest {
			b.startLists()
			missing = true
		}
	}
	if missing {
		x.writeLists()
	}
	for id := range x.buckets {
		b := &x.buckets[id]
		if !b.hasBest(best) {
			continue
		}
		b.trimList(b.top-b.lowest, stateOf(int32(id), b.top), x.states)
		for _, r := range b.lists[b.top-b.lowest] {
			f(r)
		}
	}
}

// trimList removes from the i-th list, in place, the rows whose State is no longer at:
// they left the bucket, or have another score now.
func (b *Bucket) trimList(i int32, at State, states []State) {
	list := b.lists[i]
	b.lists[i] = slices.DeleteFunc(list, func(r table.Row) bool { return states[r] != at })
	b.listed -= len(list) - len(b.lists[i])
}

// walkBest calls f with each row whose total is best, in one walk over all rows. It is used
// while progress is ranked, when the index keeps no lists.
func (x *Index) walkBest(best int64, f func(table.Row)) {
	for r, s := range x.states {
		if s.feasible() {
			if b := &x.buckets[s>>scoreBits]; s.score() == b.top && b.hasBest(best) {
				f(table.Row(r))
			}
		}
	}
}

// hasBest reports whether the bucket fits and its best rows have the total best.
func (b *Bucket) hasBest(best int64) bool {
	return b.Fits && b.Rows > 0 && b.Bonus+int64(b.top) == best
}

// startLists allocates lists for the highest scores of the bucket, as many as it takes to list about
// a sixteenth of its rows, so that one walk over all rows serves several searches. writeLists fills
// them.
func (b *Bucket) startLists() {
	b.lowest, b.unwritten = b.top, true
	for n := int(b.byScore[b.top]); n < b.Rows/16 && b.lowest > 0; n += int(b.byScore[b.lowest]) {
		b.lowest--
	}
	b.lists, b.listed = make([][]table.Row, b.top-b.lowest+1), 0
}

// writeLists fills the lists of rows by score that startLists allocated, in one walk over
// all rows.
func (x *Index) writeLists() {
	for r, s := range x.states {
		if !s.feasible() {
			continue
		}
		if b := &x.buckets[s>>scoreBits]; b.unwritten {
			if at := s.score() - b.lowest; at >= 0 {
				b.lists[at] = append(b.lists[at], table.Row(r))
				b.listed++
			}
		}
	}
	for id := range x.buckets {
		x.buckets[id].unwritten = false
	}
}

// addToList adds a row to the list for the score, of the bucket with index id. It first removes rows
// that left from the list when they are many. If the lists of the bucket are too long, it drops them
// all instead; the next search for the best rows makes new ones.
func (x *Index) addToList(id, score int32, r table.Row) {
	b := &x.buckets[id]
	if b.listed > 64+2*b.Rows {
		b.lists, b.listed, b.lowest = nil, 0, unlisted
		return
	}
	i := score - b.lowest
	for len(b.lists) <= int(i) {
		b.lists = append(b.lists, nil)
	}
	if before := len(b.lists[i]); before > 8+2*int(b.byScore[score]) {
		slices.Sort(b.lists[i])
		b.lists[i] = slices.Compact(b.lists[i])
		b.listed -= before - len(b.lists[i])
		b.trimList(i, stateOf(id, score), x.states)
	}
	b.lists[i] = append(b.lists[i], r)
	b.listed++
}
