package table

// PodCounter counts pods by the rows that they are on.
type PodCounter interface {
	// CountPlacement counts a pod that came, or takes off one that left.
	CountPlacement(*Table, Placement)
	// CountRow counts the pods on the row (sign 1) or takes them off (-1).
	CountRow(t *Table, r Row, sign int)
	// SetNode puts the row, whose pods are not counted, where its node is now.
	SetNode(t *Table, r Row)
	// CountAll counts all pods anew.
	CountAll(*Table)
}

// Follower reads the table's journals for a PodCounter. The zero value has
// read nothing.
type Follower struct {
	revision, placements uint64 // up to which the journals are read
	counted              bool
}

// CountAnew makes the next Follow count all pods anew.
func (f *Follower) CountAnew() { f.counted = false }

// Unread tells whether nothing has been read so far.
func (f *Follower) Unread() bool { return f.revision == 0 }

// Begin counts all pods for a PodCounter that has put all rows where their nodes are.
func (f *Follower) Begin(t *Table, c PodCounter) {
	c.CountAll(t)
	*f = Follower{t.Revision(), t.PlacementCount(), true}
}

// Current tells whether there is nothing to read.
func (f *Follower) Current(t *Table) bool { return f.counted && f.revision == t.revision }

// Follow brings the counts up to date: placements first, on the rows as they
// were, then the rows whose node changed. Where the journal does not reach
// back far enough all pods are counted anew. byRow tells whether a row's pods
// were counted, or all.
func (f *Follower) Follow(t *Table, c PodCounter) (byRow bool) {
	anew := !f.counted || !t.PlacementsAfter(f.placements, func(p Placement) { c.CountPlacement(t, p) })
	t.NodesChanged(f.revision, func(r Row) bool {
		byRow = true
		if !anew {
			c.CountRow(t, r, -1)
		}
		c.SetNode(t, r)
		if !anew {
			c.CountRow(t, r, 1)
		}
		return true
	})
	if anew {
		c.CountAll(t)
	}
	*f = Follower{t.Revision(), t.PlacementCount(), true}
	return byRow || anew
}
