package table

import (
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
)

// The journal keeps that many entries, and fewer where their pods have long keys; who
// asks for what is gone is told so.
func TestPlacementsAreBounded(t *testing.T) {
	var l placements
	read := func(n uint64) (seen uint64, ok bool) {
		t := Table{placements: l}
		ok = t.PlacementsAfter(n, func(p Placement) {
			if p.Pod == nil {
				panic("a dropped entry is shown")
			}
			seen++
		})
		return seen, ok
	}
	plain := &object.Pod{Labels: map[string]string{"a": "b"}}
	for range placementsKept + 100 {
		l.add(Placement{Pod: plain})
	}
	if n, ok := read(100); !ok || n != placementsKept {
		t.Errorf("%d entries, %v", n, ok)
	}
	if _, ok := read(99); ok {
		t.Error("an entry too many is shown")
	}
	long := &object.Pod{Tolerations: match.Tolerations{Key: strings.Repeat("x", 1<<20)}}
	for range 200 {
		l.add(Placement{Pod: long})
		if l.bytes > bytesKept {
			t.Fatalf("%d bytes are kept", l.bytes)
		}
	}
	if n, ok := read(l.total - 64); !ok || n != 64 {
		t.Errorf("%d of 64 long entries, %v", n, ok)
	}
	if _, ok := read(l.total - 65); ok {
		t.Error("more than may be kept")
	}
	for range placementsKept {
		l.add(Placement{Pod: plain})
	}
	if want := placementsKept * bytesHeld(plain); l.bytes != want {
		t.Errorf("%d bytes are counted, %d are held", l.bytes, want)
	}
	if n, ok := read(l.first); !ok || n != placementsKept {
		t.Errorf("%d entries, %v", n, ok)
	}
	// One pod beyond all bounds is not kept at all.
	l.add(Placement{Pod: &object.Pod{Tolerations: match.Tolerations{Key: strings.Repeat("x", bytesKept+1)}}})
	if _, ok := read(l.total - 1); ok || l.bytes != 0 || l.first != l.total {
		t.Errorf("kept %d bytes after %d of %d", l.bytes, l.first, l.total)
	}
}
