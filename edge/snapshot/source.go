package snapshot

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Interval is how old a snapshot is at most before another one is taken.
const Interval = 100 * time.Millisecond

// Source takes snapshots. Any goroutine may ask it.
type Source struct {
	inspect func(context.Context, func(*machine.Machine)) error
	now     func() time.Time

	turn chan struct{} // who has sent to it owns the rest
	last *Snapshot
	at   time.Time // of the last
}

// NewSource returns a source of snapshots of the machine that inspect shows between two steps.
func NewSource(inspect func(context.Context, func(*machine.Machine)) error, now func() time.Time) *Source {
	return &Source{inspect: inspect, now: now, turn: make(chan struct{}, 1)}
}

// Now returns a snapshot that is no older than Interval. The error is that of inspect or of the
// context.
func (s *Source) Now(ctx context.Context) (*Snapshot, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	now, last := s.now(), s.last
	if age := now.Sub(s.at); last != nil && age >= 0 && age < Interval {
		return last, nil
	}
	next := room(last)
	if err := s.inspect(ctx, func(m *machine.Machine) { next.take(m, last) }); err != nil {
		return nil, err // next may still be written to
	}
	next.compare(last)
	s.last, s.at = next, now
	return next, nil
}

// room returns an empty snapshot with buffers for what the last one held and a little more, so
// that the loop need not allocate.
func room(last *Snapshot) *Snapshot {
	s := &Snapshot{}
	if last == nil {
		return s
	}
	rows := len(last.Nodes) + len(last.Nodes)/64 + 16
	s.Nodes, s.Pods = make([]*object.Node, 0, rows), make([]int64, 0, rows)
	s.Requested = make([]Requested, len(last.Requested))
	for i := range s.Requested {
		s.Requested[i].Amount = make([]int64, 0, rows)
	}
	return s
}

// take copies the machine's table, on the loop's goroutine. last is only read, as readers have it.
func (s *Snapshot) take(m *machine.Machine, last *Snapshot) {
	t := m.Table()
	s.Counts = Counts{m.Queue().Counts(), t.Live(), t.PlacedPods(), m.Assumed()}
	for _, r := range t.All() {
		s.Nodes = append(s.Nodes, t.Node(r))
	}
	s.tableRevision, s.columnRevision = t.Revision(), t.ColumnRevision()
	if last != nil && last.tableRevision == s.tableRevision && len(last.Nodes) == len(s.Nodes) {
		s.Pods, s.Requested = last.Pods, last.Requested
		return
	}
	s.Pods = append(s.Pods, t.PodCount()...)
	s.name(t, last)
	for i := range s.Requested {
		s.Requested[i].Amount = append(s.Requested[i].Amount, t.Used(s.Requested[i].id)...)
	}
}

// name sets which resources the table has columns of.
func (s *Snapshot) name(t *table.Table, last *Snapshot) {
	if last != nil && last.columnRevision == s.columnRevision {
		for i := range s.Requested {
			s.Requested[i].Name, s.Requested[i].id = last.Requested[i].Name, last.Requested[i].id
		}
		return
	}
	s.Requested = s.Requested[:0]
	for name, id := range t.Columns() { // any order: sorted below
		s.Requested = append(s.Requested, Requested{Name: name, id: id})
	}
	slices.SortFunc(s.Requested, func(a, b Requested) int { return cmp.Compare(a.Name, b.Name) })
}
