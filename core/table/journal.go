package table

import "github.com/berth-scheduler/berth/core/object"

// changeList keeps the rows in the order of their last change, newest first.
// A change moves its row to the head, so a reader that stands at revision R
// walks from the head until it meets a row at or below R: each dirty row
// once, however often it changed, and nothing is ever trimmed.
type changeList struct {
	newer, older []Row    // neighbours, -1 at the ends
	at           []uint64 // the row's revision, 0: never changed
	head         Row
}

func newChangeList() changeList { return changeList{head: -1} }

func (l *changeList) grow() {
	l.newer = append(l.newer, -1)
	l.older = append(l.older, -1)
	l.at = append(l.at, 0)
}

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

func (l *changeList) since(revision uint64, visit func(Row) bool) {
	for r := l.head; r >= 0 && l.at[r] > revision; r = l.older[r] {
		if !visit(r) {
			return
		}
	}
}

// journal is the rows by their last change.
type journal struct {
	revision uint64     // of the last change
	rows     changeList // by their last change of any kind
	nodes    changeList // by the last change of their node object
	lasting  []uint64   // by row, the revision of the last change that was no try
}

func (j *journal) grow() {
	j.rows.grow()
	j.nodes.grow()
	j.lasting = append(j.lasting, 0)
}

func (j *journal) touch(r Row, try bool) {
	j.revision++
	j.rows.touch(r, j.revision)
	if !try {
		j.lasting[r] = j.revision
	}
}

// touchNode records that the row's last change is one of its node object.
func (j *journal) touchNode(r Row) { j.nodes.touch(r, j.revision) }

// Touch marks the row as changed, as a follower's answer about it did.
func (t *Table) Touch(r Row) { t.journal.touch(r, t.Trying()) }

// Revision returns the number of the last change. It only ever grows.
func (t *Table) Revision() uint64 { return t.journal.revision }

// NodeRevision returns the number of the last change of a node object.
func (t *Table) NodeRevision() uint64 {
	if l := &t.journal.nodes; l.head >= 0 {
		return l.at[l.head]
	}
	return 0
}

// NodeChangedAt returns the number of the last change of the row's node object.
func (t *Table) NodeChangedAt(r Row) uint64 { return t.journal.nodes.at[r] }

// AppendChanged appends to the list the rows that changed after the revision,
// newest first, until it has most of them.
func (t *Table) AppendChanged(rows []Row, after uint64, most int) []Row {
	l := &t.journal.rows
	for r := l.head; r >= 0 && len(rows) < most && l.at[r] > after; r = l.older[r] {
		rows = append(rows, r)
	}
	return rows
}

// NodesChanged calls visit with each row whose node object came, changed or
// went after the revision, newest first, until visit returns false; placements
// do not count.
func (t *Table) NodesChanged(after uint64, visit func(Row) bool) {
	t.journal.nodes.since(after, visit)
}

// Lasting returns the revision of the row's last change that was no try: whatever
// was tried since is undone, except for what an open checkpoint will undo.
func (t *Table) Lasting(r Row) uint64 { return t.journal.lasting[r] }

// Shown is the rows on which API objects of pods were replaced, though no row changed. Only
// readers of API objects see a change.
type Shown struct {
	rows    changeList // by when a pod there was last shown
	count   uint64     // how often that was
	updates uint64     // how often it was a pod that was bound already
}

// Shown returns where API objects of the table's pods were replaced.
func (t *Table) Shown() *Shown { return &t.shown }

// replace replaces a placed pod by another state of it that is the same for other pods.
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

// Append appends to the list the rows on which objects were replaced after the first that
// many times.
func (s *Shown) Append(rows []Row, after uint64) []Row {
	s.rows.since(after, func(r Row) bool {
		rows = append(rows, r)
		return true
	})
	return rows
}

// Count returns how often an object was replaced.
func (s *Shown) Count() uint64 { return s.count }

// Updates returns how often that was an object of a pod that was bound before: it shows no
// binding, but something that Berth does not read.
func (s *Shown) Updates() uint64 { return s.updates }
