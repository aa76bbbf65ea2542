package table

import "fmt"

// Mark is a point to which the table can be taken back.
type Mark struct{ depth, entries int }

type undoEntry struct {
	placed *Placed
	put    bool // true: it was placed; false: it was removed
}

// Checkpoint starts a try: placements and removals from here on can be taken
// back with Undo. Checkpoints nest. While one is open nodes may not change.
func (t *Table) Checkpoint() Mark {
	t.marks++
	return Mark{t.marks, len(t.undo)}
}

// Trying reports whether a checkpoint is open.
func (t *Table) Trying() bool { return t.marks > 0 }

// Undo reverts every placement and removal since the checkpoint, newest first, and closes
// it. Contents are as before; revisions go on growing, so that views made during the
// trial are brought up to date like any other.
func (t *Table) Undo(m Mark) {
	if m.depth != t.marks {
		panic(fmt.Sprintf("table: Undo of checkpoint %d while %d is the innermost", m.depth, t.marks))
	}
	undone := t.undo[m.entries:]
	for i := len(t.undo) - 1; i >= m.entries; i-- {
		e := t.undo[i]
		if e.put {
			t.take(e.placed)
		} else {
			t.put(e.placed)
		}
	}
	t.marks--
	for _, e := range undone {
		t.release(e.placed.Row)
	}
	clear(undone)
	t.undo = t.undo[:m.entries]
	if t.marks == 0 {
		for _, r := range t.idle {
			t.release(r)
		}
		t.idle = t.idle[:0]
	}
}

func (t *Table) record(e undoEntry) {
	if t.marks > 0 {
		t.undo = append(t.undo, e)
	}
}

func (t *Table) noCheckpoint(op string) {
	if t.marks > 0 {
		panic("table: " + op + " under a checkpoint")
	}
}

// Rollback reverts all open checkpoints, which a trial that was broken off left behind.
func (t *Table) Rollback() {
	if t.marks > 0 {
		t.marks = 1
		t.Undo(Mark{depth: 1})
	}
}
