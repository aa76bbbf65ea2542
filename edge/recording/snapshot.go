package recording

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
)

// Source is the machine whose steps are recorded.
type Source interface {
	// Resting reports whether a snapshot may be possible, at little cost.
	Resting() bool
	// Snapshot returns what the machine knows, nil while a snapshot cannot hold it.
	Snapshot() *machine.Snapshot
}

// snapshot writes what the machine knows, between two entries. On an error nothing is
// written.
func (w *encoder) snapshot(s *machine.Snapshot) error {
	at, version := len(w.out), w.version
	w.out = append(w.out, codeSnapshotUnderway)
	err := w.resting(s)
	if err == nil {
		err = w.underway(s)
	}
	if err != nil {
		w.out, w.version = w.out[:at], version
	}
	return err
}

// resting writes the part of a snapshot that version 2 had.
func (w *encoder) resting(s *machine.Snapshot) error {
	w.uint(uint64(len(s.Table.Rows)))
	for _, name := range s.Table.Rows {
		w.node(name)
	}
	w.uint(uint64(len(s.Table.Free)))
	for _, row := range s.Table.Free {
		w.uint(uint64(row))
	}
	w.uint(uint64(len(s.Table.Replied)))
	for _, o := range s.Table.Replied {
		m := o.Head()
		if err := w.shown(address{numberOf(m.Kind), m.Namespace, m.Name}, m.Recorded); err != nil {
			return err
		}
	}
	w.uint(uint64(len(s.Unlisted)))
	for _, e := range s.Unlisted {
		w.uint(uint64(numberOf(e.Kind)))
		w.error(e.Err)
	}
	w.uint(s.LastCall)
	w.uint(s.Queue.Sequence)
	w.int(int64(s.Queue.Epoch))
	w.uint(uint64(len(s.Queue.Entries)))
	for _, e := range s.Queue.Entries {
		w.uid(e.UID)
		w.json(w.redactedEntry(e))
	}
	w.uint(uint64(len(s.Pods)))
	for _, p := range s.Pods {
		w.uid(p.UID)
		w.json(w.redactedPod(p))
	}
	return nil
}

func (w *encoder) json(v any) {
	text, _ := json.Marshal(v) // of types that can be
	w.string(string(text))
}

func (w *encoder) redactedEntry(e queue.Saved) queue.Saved {
	e.Nominated = w.names.Of(e.Nominated)
	if g := e.Gate; g != nil && w.names != nil {
		e.Gate = &queue.Gate{Code: g.Code, Plugin: g.Plugin}
	}
	return e
}

// redactedPod: what was asked to be said of a pod does not count in a record without
// texts.
func (w *encoder) redactedPod(p machine.SavedPod) machine.SavedPod {
	if w.names == nil {
		return p
	}
	p.Condition, p.Underway = nil, w.redactedUnderway(p.Underway)
	if p.Nominating != nil {
		node := w.names.Of(*p.Nominating)
		p.Nominating = &node
	}
	if p.Group != nil {
		group := w.names.group(*p.Group)
		p.Group = &group
	}
	if x := p.Preemption; x != nil {
		p.Preemption = &machine.SavedPreemption{Node: w.names.Of(x.Node), Victims: x.Victims}
	}
	if x := p.Eviction; x != nil {
		p.Eviction = &machine.SavedEviction{Node: w.names.Of(x.Node), Preemptors: x.Preemptors, ForGroup: x.ForGroup, Replied: x.Replied, Undone: x.Undone, Gone: x.Gone}
	}
	return p
}

// snapshot reads what encoder.snapshot wrote after the code, and returns the events that tell
// of the objects. Version 2 had no code but codeSnapshot.
func (r *decoder) snapshot(code byte) (*machine.Snapshot, []machine.Event) {
	s := &machine.Snapshot{}
	r.resting(s)
	switch {
	case r.err != nil:
		return nil, nil
	case code == codeSnapshotUnderway:
		return s, r.underway(s)
	}
	if err := s.Queue.Valid(); err != nil {
		r.fail(err)
	}
	return s, r.all()
}

// resting reads what encoder.resting wrote.
func (r *decoder) resting(s *machine.Snapshot) {
	for range r.count() {
		s.Table.Rows = append(s.Table.Rows, r.node())
	}
	for range r.count() {
		row := r.uint()
		if row >= uint64(len(s.Table.Rows)) {
			r.fail(fmt.Errorf("the free row %d does not exist", row))
			return
		}
		s.Table.Free = append(s.Table.Free, table.Row(row))
	}
	for range r.count() {
		if e, ok := r.shown().(machine.ObjectSet); ok {
			s.Table.Replied = append(s.Table.Replied, e.Object)
		}
	}
	for range r.count() {
		s.Unlisted = append(s.Unlisted, machine.KindUnlisted{Kind: r.kind(), Err: r.error()})
	}
	s.LastCall, s.Queue.Sequence, s.Queue.Epoch = r.uint(), r.uint(), queue.Age(r.int())
	for range r.count() {
		e := queue.Saved{UID: r.uid()}
		r.json(&e)
		e.Changes = r.actions(e.Changes)
		s.Queue.Entries = append(s.Queue.Entries, e)
	}
	for range r.count() {
		p := machine.SavedPod{UID: r.uid()}
		r.json(&p)
		if p.Eviction != nil && len(p.Eviction.Preemptors) == 0 {
			r.fail(fmt.Errorf("the eviction of pod %s has no preemptor", p.UID))
			return
		}
		s.Pods = append(s.Pods, p)
	}
}

func (r *decoder) json(into any) {
	text := r.string()
	if r.err == nil {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			r.fail(err)
		}
	}
}

// all are the events that tell of the objects that are there, in the order of their
// numbers.
func (r *decoder) all() []machine.Event {
	list := make([]machine.Event, 0, len(r.objects))
	for _, id := range slices.SortedFunc(maps.Keys(r.objects), cmp.Compare[uint64]) {
		list = append(list, r.objects[id].set)
	}
	return list
}
