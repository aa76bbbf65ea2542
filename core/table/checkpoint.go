package table

import "fmt"

// Mark identifies a checkpoint: Checkpoint returns it, and Undo takes it. depth is the number
// of open checkpoints, this one included. entries is the length of tries.undo before the
// checkpoint.
type Mark struct{ depth, entries int }

// tries holds the open checkpoints, and what is to be undone at their ends.
type tries struct {
	open int         // number of open checkpoints
	undo []undoEntry // placements and removals since the outermost, oldest first
	idle []Row       // rows emptied under a checkpoint; freed when the outermost ends
}

// undoEntry is a placement or removal of a pod under a checkpoint.
type undoEntry struct {
	placed *Placed
	put    bool // true: the pod was placed; false: it was removed
}

// Checkpoint starts a trial, such as placing a pod to see whether it fits: placements and
// removals of pods from here on are reverted by Undo. Checkpoints nest. While one is open,
// calls that change nodes, or set or remove objects, panic.
func (t *Table) Checkpoint() Mark {
	t.tries.open++
	return Mark{t.tries.open, len(t.tries.undo)}
}

// Trying reports whether a checkpoint is open.
func (t *Table) Trying() bool { return t.tries.open > 0 }

// Undo reverts every placement and removal since the checkpoint, newest first, and closes it.
// It panics unless m is of the innermost open checkpoint. Contents are as before; revisions go
// on growing, so that views made during the trial are brought up to date like any other.
func (t *Table) Undo(m Mark) {
	if m.depth != t.tries.open {
		panic(fmt.Sprintf("table: Undo of checkpoint %d while %d is the innermost", m.depth, t.tries.open))
	}
	undone := t.tries.undo[m.entries:]
	for i := len(t.tries.undo) - 1; i >= m.entries; i-- {
		e := t.tries.undo[i]
		if e.put {
			t.take(e.placed)
		} else {
			t.put(e.placed)
		}
	}
	t.tries.open--
	for _, e := range undone {
		t.release(e.placed.Row)
	}
	clear(undone)
	t.tries.undo = t.tries.undo[:m.entries]
	if t.tries.open == 0 {
		for _, r := range t.tries.idle {
			t.release(r)
		}
		t.tries.idle = t.tries.idle[:0]
	}
}

// record adds the entry to those that Undo reverts, if a checkpoint is open.
func (t *Table) record(e undoEntry) {
	if t.tries.open > 0 {
		t.tries.undo = append(t.tries.undo, e)
	}
}

// noCheckpoint panics if a checkpoint is open, since Undo does not revert the operation op.
func (t *Table) noCheckpoint(op string) {
	if t.tries.open > 0 {
		panic("table: " + op + " under a checkpoint")
	}
}

// Rollback undoes and closes all open checkpoints, as after a panic during a trial. It does
// nothing if none is open.
func (t *Table) Rollback() {
	if t.tries.open > 0 {
		t.tries.open = 1
		t.Undo(Mark{depth: 1})
	}
}
