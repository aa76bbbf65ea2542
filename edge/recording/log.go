package recording

import (
	"time"

	baseversion "k8s.io/component-base/version"

	"github.com/berth-scheduler/berth/core/machine"
)

// log encodes what a recorder keeps into segments, and asks the disk to write them. It waits
// for nothing.
type log struct {
	longest int64 // bytes that a segment may grow by after what it begins with
	header  Header
	names   *Names
	disk    *disk

	encoder   *encoder
	digest    *Digest
	current   *segmentWriter // nil: none
	exact     bool           // the segment can be replayed exactly, from somewhere in it on
	entries   uint64         // of the run
	unwritten int            // entries that no frame has yet
}

// frameTarget is how many bytes of entries go into a frame at most, about.
const frameTarget = 256 << 10

func newLog(d *disk, o *Options, longest int64) *log {
	l := &log{longest: longest, header: o.Header, names: o.Names, disk: d, encoder: newEncoder(o.Names, o.Header.Start.Round(0))}
	l.header.Version, l.header.Kubernetes, l.header.Redacted = Version, baseversion.DefaultKubeBinaryVersion, o.Names != nil
	return l
}

// beginRun begins a run, and its first segment: whole, if no entry was lost before it. Of
// what was lost gap says why, and at is when it ended, with the snapshot if there is one.
func (l *log) beginRun(gap string, at time.Time, snapshot *machine.Snapshot) {
	h := &l.header
	h.Segment++
	h.Run, h.Before, h.Whole, h.Gap, h.Start = h.Segment, 0, gap == "", gap, at.Round(0)
	l.entries, l.digest = 0, NewDigest(l.names, l.names == nil)
	l.encoder.last = h.Start
	l.openSegment(snapshot)
}

// openSegment begins the segment of the header, with the snapshot if there is one.
func (l *log) openSegment(snapshot *machine.Snapshot) {
	first := l.header.Segment == l.header.Run
	l.current = newSegmentWriter()
	l.disk.ask(request{run: l.header.Run, open: l.header.Segment, bytes: l.current.head(&l.header)})
	if l.exact = first && l.header.Whole; !l.exact {
		for part := range l.encoder.checkpoint() {
			l.ask(request{bytes: l.current.frame(part)})
		}
		if snapshot != nil {
			l.exact = l.encoder.snapshot(snapshot) == nil
			l.flush(0)
		}
	}
	l.ask(request{begun: true})
	l.current.begun = l.current.size
}

func (l *log) ask(q request) {
	q.run = l.header.Run
	l.disk.ask(q)
}

// late reports whether the segment is to end with the next snapshot, before it has to.
func (l *log) late() bool { return l.current.grown() >= l.longest-l.longest/4 }

func (l *log) wantsSnapshot() bool { return l.current != nil && (!l.exact || l.late()) }

// flush asks the disk to write what is encoded. That ends the given number of entries, for the
// disk to count.
func (l *log) flush(entries int) {
	out := l.encoder.out
	for len(out) > 0 {
		n := min(len(out), maxFrame/4)
		q := request{bytes: l.current.frame(out[:n])}
		if out = out[n:]; len(out) == 0 {
			q.entries = entries
		}
		l.ask(q)
	}
	l.encoder.out = l.encoder.out[:0]
	l.unwritten = 0
}

// write writes the step as an entry.
func (l *log) write(s *Step) error {
	e := Entry{Now: s.Now, Event: s.Event, Panicked: s.Panicked, Digest: l.digest.Of(s.Effects)}
	if e.Digest != 0 {
		e.Attempts = Attempts(s.Effects)
	}
	if err := l.encoder.entry(&e); err != nil {
		return err
	}
	l.entries++
	l.unwritten++
	ends := s.snapshot != nil && l.late()
	if s.snapshot != nil && !ends && !l.exact {
		l.exact = l.encoder.snapshot(s.snapshot) == nil
	}
	if len(l.encoder.out) < frameTarget && !ends {
		return nil
	}
	l.flush(l.unwritten)
	if ends || l.current.grown() >= l.longest {
		l.rotate(s.snapshot)
	}
	return nil
}

// end writes what is left of a list of steps.
func (l *log) end() {
	l.flush(l.unwritten)
	if l.current.grown() >= l.longest {
		l.rotate(nil)
	}
}

// rotate ends the segment and begins the next, with the snapshot if there is one.
func (l *log) rotate(snapshot *machine.Snapshot) {
	l.ask(request{close: true})
	l.header.Segment++
	l.header.Before = l.entries
	l.header.Start = l.encoder.last
	l.openSegment(snapshot)
}

// abandon ends the run, and returns how many entries are lost with it that the disk was not
// asked to write.
func (l *log) abandon() (lost int) {
	lost, l.unwritten = l.unwritten, 0
	l.current, l.encoder.out = nil, l.encoder.out[:0]
	return lost
}
