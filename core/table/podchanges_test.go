package table

import (
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
)

// The journal keeps that many entries, and fewer where their pods have long keys; who
// asks for what is gone is told so.
func TestPodChangesAreBounded(t *testing.T) {
	var l podChanges
	read := func(n uint64) (seen uint64, ok bool) {
		t := Table{podChanges: l}
		ok = t.PodChangesAfter(n, func(p PodChange) {
			if p.Pod == nil {
				panic("a dropped entry is shown")
			}
			seen++
		})
		return seen, ok
	}
	plain := &object.Pod{Labels: map[string]string{"a": "b"}}
	for range podChangesKept + 100 {
		l.add(PodChange{Pod: plain})
	}
	if n, ok := read(100); !ok || n != podChangesKept {
		t.Errorf("%d entries, %v", n, ok)
	}
	if _, ok := read(99); ok {
		t.Error("an entry too many is shown")
	}
	long := &object.Pod{Tolerations: match.Tolerations{Key: strings.Repeat("x", 1<<20)}}
	for range 200 {
		l.add(PodChange{Pod: long})
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
	for range podChangesKept {
		l.add(PodChange{Pod: plain})
	}
	if want := podChangesKept * bytesHeld(plain); l.bytes != want {
		t.Errorf("%d bytes are counted, %d are held", l.bytes, want)
	}
	if n, ok := read(l.first); !ok || n != podChangesKept {
		t.Errorf("%d entries, %v", n, ok)
	}
	// One pod beyond all bounds is not kept at all.
	l.add(PodChange{Pod: &object.Pod{Tolerations: match.Tolerations{Key: strings.Repeat("x", bytesKept+1)}}})
	if _, ok := read(l.total - 1); ok || l.bytes != 0 || l.first != l.total {
		t.Errorf("kept %d bytes after %d of %d", l.bytes, l.first, l.total)
	}
}
