package domain

import "github.com/berth-scheduler/berth/core/table"

// Follower keeps counts of pods up to date with a table. It passes on the pods that were
// placed or left since the last time, or has all pods counted anew. The zero value has
// counted nothing.
type Follower struct {
	// ExactTries is set if pods that are placed under a checkpoint count otherwise than other
	// pods. Then a count of all pods that was made under a checkpoint is not used after it.
	ExactTries bool

	revision, podChanges uint64 // revisions of the table up to which all is counted
	counted              bool   // false before the first count, and if Follow was interrupted
	tentative            bool   // all was counted during a trial
	work                 int    // the cost of counting all, in rows
}

// Current reports whether the counts are up to date with the table. It discards counts that
// were made under a checkpoint that has ended, if ExactTries is set.
func (f *Follower) Current(t *table.Table) bool {
	if f.tentative && !t.Trying() {
		f.counted = false
	}
	return f.counted && f.revision == t.Revision()
}

// Follow brings the counts up to date. It calls placed for each pod that was placed (n is 1) or
// left (-1) since the last time. It calls all instead, which counts all pods afresh, if anew is
// set, if nothing was counted yet, if the table's journal does not reach back so far, or if
// that is less work. all returns how many label sets of pods and how many rows it counted, as a
// measure of its cost.
func (f *Follower) Follow(t *table.Table, anew bool, placed func(p table.PodChange, n int64), all func() (sets, rows int)) {
	anew = anew || !f.counted
	f.counted = false // until all is: after a panic in between all is counted anew
	if anew = anew || !f.replay(t, placed); anew {
		sets, rows := all()
		f.work = sets*rowsPerPodChange + rows
	}
	f.revision, f.podChanges, f.counted = t.Revision(), t.PodChangeCount(), true
	f.tentative = f.ExactTries && t.Trying() && (f.tentative || anew)
}

// AddRows adds n rows to the assumed cost of counting all pods anew, for what is counted beside
// the last call of all. Follow replays single pods only while that is cheaper.
func (f *Follower) AddRows(n int) { f.work += n }

// rowsPerPodChange is about how many rows can be counted in bulk in the time that one
// placed or removed pod takes by itself. Follow compares the two ways by it.
const rowsPerPodChange = 32

// replay calls placed for each pod that was placed (n is 1) or left (-1) since the last time.
// It returns false, and calls nothing, if the table's journal does not reach back so far, or if
// counting all is cheaper. Under a checkpoint it ignores the cost if ExactTries is set.
func (f *Follower) replay(t *table.Table, placed func(table.PodChange, int64)) bool {
	pending := t.PodChangeCount() - f.podChanges
	if int(pending) > 64+f.work/rowsPerPodChange && !(f.ExactTries && t.Trying()) {
		return false
	}
	return t.PodChangesAfter(f.podChanges, func(p table.PodChange) {
		n := int64(1)
		if !p.Came {
			n = -1
		}
		placed(p, n)
	})
}
