package domain

import "github.com/berth-scheduler/berth/core/table"

// Follower keeps counts of pods up to date with the table. It counts the pods that came or
// left since the last time, or all pods anew. The zero value has counted nothing.
type Follower struct {
	// ExactTries: pods that are tried count otherwise than those that are there. What was
	// counted of all pods during a try is not used after it.
	ExactTries bool

	revision, placements uint64 // up to which all is counted
	counted              bool
	tentative            bool // all was counted during a try
	work                 int  // that it takes to count all, in rows
}

// Current reports whether all is counted as the table stands.
func (f *Follower) Current(t *table.Table) bool {
	if f.tentative && !t.Trying() {
		f.counted = false
	}
	return f.counted && f.revision == t.Revision()
}

// Follow calls placed for each pod that came (n is 1) or left (-1) since the last time. It
// calls all instead if anew is set, if the table does not remember so much, or if that is
// less work. all returns how many sets of labels, and of rows, it counted.
func (f *Follower) Follow(t *table.Table, anew bool, placed func(p table.Placement, n int64), all func() (sets, rows int)) {
	anew = anew || !f.counted
	f.counted = false // until all is: after a panic in between all is counted anew
	if anew = anew || !f.replay(t, placed); anew {
		sets, rows := all()
		f.work = sets*rowsPerPlacement + rows
	}
	f.revision, f.placements, f.counted = t.Revision(), t.PlacementCount(), true
	f.tentative = f.ExactTries && t.Trying() && (f.tentative || anew)
}

// AddRows records that rows were counted that will have to be counted again with all.
func (f *Follower) AddRows(n int) { f.work += n }

// rowsPerPlacement is about how many rows are counted, of many, while one placement is.
const rowsPerPlacement = 32

func (f *Follower) replay(t *table.Table, placed func(table.Placement, int64)) bool {
	pending := t.PlacementCount() - f.placements
	if int(pending) > 64+f.work/rowsPerPlacement && !(f.ExactTries && t.Trying()) {
		return false
	}
	return t.PlacementsAfter(f.placements, func(p table.Placement) {
		n := int64(1)
		if !p.Came {
			n = -1
		}
		placed(p, n)
	})
}
