package recording

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
)

// A snapshot is read back, as is one of a record of version 2, which held nothing that is
// under way.
func TestSnapshots(t *testing.T) {
	set := podSet(1, 1).(machine.PodSet)
	s := &machine.Snapshot{Table: table.Layout{Rows: []string{"node-1", ""}, Free: []table.Row{1}}, LastCall: 7,
		Queue: queue.Snapshot{Sequence: 3, Entries: []queue.Saved{{UID: set.Pod.UID, Place: queue.Active, Sequence: 2}}},
		Pods:  []machine.SavedPod{{UID: set.Pod.UID, ToldGated: true}}, Known: []*object.Pod{set.Pod}}
	for name, write := range map[string]func(*encoder) error{
		"version 2": func(w *encoder) error {
			w.out = append(w.out, codeSnapshot)
			return w.resting(s)
		},
		"version 5": func(w *encoder) error { return w.snapshot(s) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newEncoder(nil, start)
			if err := w.entry(&Entry{Now: start, Event: set}); err != nil {
				t.Fatal(err)
			}
			if err := write(w); err != nil {
				t.Fatal(err)
			}
			r := newDecoder(bytes.NewReader(w.out), &Header{Version: Version, Start: start})
			if _, err := r.entry(); err != nil {
				t.Fatal(err)
			}
			e, err := r.entry()
			if err != nil {
				t.Fatal(err)
			}
			got := e.Snapshot
			if !reflect.DeepEqual(got.Table.Rows, s.Table.Rows) || !reflect.DeepEqual(got.Queue.Entries, s.Queue.Entries) || !reflect.DeepEqual(got.Pods, s.Pods) || got.LastCall != 7 {
				t.Errorf("got %+v, want %+v", got, s)
			}
			if len(e.Objects) != 1 || describe(e.Objects[0]) != describe(set) {
				t.Errorf("the objects are %v", e.Objects)
			}
		})
	}
}
