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

func (l *changeList) init() { l.head = -1 }

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

// Revision returns the number of the last change. It only ever grows.
func (t *Table) Revision() uint64 { return t.revision }

// NodeRevision returns the number of the last change of a node object.
func (t *Table) NodeRevision() uint64 {
	if l := &t.nodeChanges; l.head >= 0 {
		return l.at[l.head]
	}
	return 0
}

// NodeChangedAt returns the number of the last change of the row's node object.
func (t *Table) NodeChangedAt(r Row) uint64 { return t.nodeChanges.at[r] }

// AppendChanged appends to the list the rows that changed after the revision,
// newest first, until it has most of them.
func (t *Table) AppendChanged(rows []Row, after uint64, most int) []Row {
	l := &t.changes
	for r := l.head; r >= 0 && len(rows) < most && l.at[r] > after; r = l.older[r] {
		rows = append(rows, r)
	}
	return rows
}

// NodesChanged calls visit with each row whose node object came, changed or
// went after the revision, newest first, until visit returns false; placements
// do not count.
func (t *Table) NodesChanged(after uint64, visit func(Row) bool) {
	t.nodeChanges.since(after, visit)
}

func (t *Table) touch(r Row) {
	t.revision++
	t.changes.touch(r, t.revision)
	if !t.Trying() {
		t.lasting[r] = t.revision
	}
}

// Lasting returns the revision of the row's last change that was no try: whatever
// was tried since is undone, except for what an open checkpoint will undo.
func (t *Table) Lasting(r Row) uint64 { return t.lasting[r] }

// show replaces a placed pod by another state of it that is the same for other pods. No
// row changes. Only readers of API objects see a change.
func (t *Table) show(pl *Placed, p *object.Pod) {
	if p.API != pl.Pod.API {
		t.shownCount++
		t.shown.touch(pl.Row, t.shownCount)
		if pl.Pod.NodeName != "" {
			t.updates++
		}
	}
	pl.Pod = p
}

// AppendShown appends to the list the rows on which API objects of pods were replaced
// after the first that many times, though no row changed.
func (t *Table) AppendShown(rows []Row, after uint64) []Row {
	t.shown.since(after, func(r Row) bool {
		rows = append(rows, r)
		return true
	})
	return rows
}

// ShownCount returns how often an API object of a placed pod was replaced and no row changed.
func (t *Table) ShownCount() uint64 { return t.shownCount }

// Updates returns how often that was an object of a pod that was bound before: it shows no
// binding, but something that Berth does not read.
func (t *Table) Updates() uint64 { return t.updates }
