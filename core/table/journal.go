package table

import "github.com/berth-scheduler/berth/core/object"

// changeList holds the rows in the order of their last change, newest first. A change moves
// its row to the head. So a reader that has seen revision R walks from the head until it
// meets a row at or below R: it meets each changed row once, and nothing needs to be
// trimmed.
type changeList struct {
	newer, older []Row    // newer and older neighbour by row, -1 at the ends
	at           []uint64 // revision of the row's last change, 0: never changed
	head         Row      // row that changed last, -1: none
}

// newChangeList returns a list without rows.
func newChangeList() changeList { return changeList{head: -1} }

// grow adds a row that never changed.
func (l *changeList) grow() {
	l.newer = append(l.newer, -1)
	l.older = append(l.older, -1)
	l.at = append(l.at, 0)
}

// touch records that the row changed at the revision, which is higher than all before: the
// row becomes the newest of the list.
func (l *changeList) touch(r Row, revision uint64) {
	if l.at[r] != 0 && l.head != r {
		n, o := l.newer[r], l.older[r]
		l.older[n] = o // r is not the head, so it has a newer neighbour
		if o >= 0 {
			l.newer[o] = n
		}
	}
	l.at[r] = revision
	if l.head == r {
		return
	}
	l.newer[r], l.older[r] = -1, l.head
	if l.head >= 0 {
		l.newer[l.head] = r
	}
	l.head = r
}

// since calls visit with each row that changed after the revision, newest first, until
// visit returns false.
func (l *changeList) since(revision uint64, visit func(Row) bool) {
	for r := l.head; r >= 0 && l.at[r] > revision; r = l.older[r] {
		if !visit(r) {
			return
		}
	}
}

// journal records when each row changed last.
type journal struct {
	revision uint64     // of the last change
	rows     changeList // by their last change of any kind
	nodes    changeList // by the last change of their node object
	lasting  []uint64   // by row, the revision of the last change outside of checkpoints
}

// grow adds a row that never changed.
func (j *journal) grow() {
	j.rows.grow()
	j.nodes.grow()
	j.lasting = append(j.lasting, 0)
}

// touch gives the row the next revision. If try is set, the change was made under a checkpoint,
// and lasting stays.
func (j *journal) touch(r Row, try bool) {
	j.revision++
	j.rows.touch(r, j.revision)
	if !try {
		j.lasting[r] = j.revision
	}
}

// touchNode records that the last change, for which touch was called with the same row, was one
// of the row's node object.
func (j *journal) touchNode(r Row) { j.nodes.touch(r, j.revision) }

// Touch gives the row the next revision, so that readers see it as changed. Followers call it
// when their answer about the row changed.
func (t *Table) Touch(r Row) { t.journal.touch(r, t.Trying()) }

// Revision returns the number of the last change of any row. It only grows.
func (t *Table) Revision() uint64 { return t.journal.revision }

// NodeRevision returns the revision at which a node object was last added, changed or removed;
// 0 if none ever was. An object that is equal for scheduling does not count as a change.
func (t *Table) NodeRevision() uint64 {
	if l := &t.journal.nodes; l.head >= 0 {
		return l.at[l.head]
	}
	return 0
}

// NodeChangedAt returns the revision at which the row's node object was last added, changed or
// removed; 0 if none ever was there.
func (t *Table) NodeChangedAt(r Row) uint64 { return t.journal.nodes.at[r] }

// AppendChanged appends the rows that changed after the revision, newest first. It stops when
// rows has most elements in all.
func (t *Table) AppendChanged(rows []Row, after uint64, most int) []Row {
	l := &t.journal.rows
	for r := l.head; r >= 0 && len(rows) < most && l.at[r] > after; r = l.older[r] {
		rows = append(rows, r)
	}
	return rows
}

// NodesChanged calls visit with each row whose node object was added, changed or removed
// after the revision, newest first, until visit returns false. Changes of pods do not
// count.
func (t *Table) NodesChanged(after uint64, visit func(Row) bool) {
	t.journal.nodes.since(after, visit)
}

// Lasting returns the revision of the row's last change outside of any checkpoint: all
// later changes are undone, or an open checkpoint will undo them.
func (t *Table) Lasting(r Row) uint64 { return t.journal.lasting[r] }

// Shown records the rows on which API objects of pods were replaced by ones that are equal
// for scheduling, so that no row changed. Only readers of API objects see a difference.
type Shown struct {
	rows    changeList // by the count at the last replacement there
	count   uint64     // number of replacements
	updates uint64     // replacements whose old object was bound already
}

// Shown returns the record of replaced API objects of the table's pods.
func (t *Table) Shown() *Shown { return &t.shown }

// replace replaces a placed pod by a newer state that is equal for scheduling, and counts
// it if the API object is another.
func (s *Shown) replace(pl *Placed, p *object.Pod) {
	if p.API != pl.Pod.API {
		s.count++
		s.rows.touch(pl.Row, s.count)
		if pl.Pod.NodeName != "" {
			s.updates++
		}
	}
	pl.Pod = p
}

// Append appends the rows on which API objects were replaced since Count returned after, newest
// first, each once.
func (s *Shown) Append(rows []Row, after uint64) []Row {
	s.rows.since(after, func(r Row) bool {
		rows = append(rows, r)
		return true
	})
	return rows
}

// Count returns how often the API object of a placed pod was replaced.
func (s *Shown) Count() uint64 { return s.count }

// Updates returns how many of the replaced objects were of pods that were bound before.
// Such a replacement shows no binding, but something that Berth does not read.
func (s *Shown) Updates() uint64 { return s.updates }
