package recording

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
)

// log is the segments that a writer writes.
type log struct {
	dir            string
	limit, longest int64 // of all segments, of one
	header         Header
	names          *Names

	encoder *encoder
	digest  *Digest
	current *segmentWriter // nil: none
	exact   bool           // the segment can be replayed exactly, from somewhere in it on
	entries uint64         // of the run
	bytes   uint64
}

// frameTarget is how many bytes of entries go into a frame at most, about.
const frameTarget = 256 << 10

// beginRun begins a run, and its first segment.
func (l *log) beginRun(b *beginning) error {
	l.abandon()
	numbers, err := segments(l.dir)
	if err != nil {
		return err
	}
	h := &l.header
	if h.Segment = 1; len(numbers) > 0 {
		h.Segment = numbers[len(numbers)-1] + 1
	}
	h.Run, h.Before = h.Segment, 0
	if b != nil || h.Start.IsZero() {
		h.Start = time.Now().UTC()
	}
	l.entries, l.digest = 0, NewDigest(l.names, l.names == nil)
	if h.Whole = b == nil; h.Whole {
		l.encoder = newEncoder(l.names, h.Start.Round(0))
		return l.openSegment(nil)
	}
	h.Gap = b.gap
	l.encoder.out, l.encoder.last = l.encoder.out[:0], h.Start.Round(0)
	return l.openSegment(nil)
}

// miss takes in what no segment tells of.
func (l *log) miss(all missed) {
	for _, e := range all { // any order: one event of each object
		_, _ = l.encoder.event(e)
		l.encoder.out = l.encoder.out[:0]
	}
}

// openSegment begins the segment that the header tells of, with the snapshot if there
// is one.
func (l *log) openSegment(snapshot *machine.Snapshot) error {
	if err := l.dropOldest(); err != nil {
		return err
	}
	w, err := createSegment(l.dir, &l.header)
	if err != nil {
		return err
	}
	l.current = w
	if l.exact = l.header.Segment == l.header.Run && l.header.Whole; l.exact {
		return nil
	}
	l.encoder.checkpoint()
	if snapshot != nil {
		l.exact = l.encoder.snapshot(snapshot) == nil
	}
	if err := l.flush(); err != nil {
		return err
	}
	w.begun = w.size
	return l.dropOldest()
}

// late tells whether the segment is to end at the next moment at which the machine
// rests: before it has to.
func (l *log) late() bool { return l.current.grown() >= l.longest-l.longest/4 }

func (l *log) wantsSnapshot() bool { return l.current != nil && (!l.exact || l.late()) }

// flush writes what is encoded. A checkpoint may make many frames.
func (l *log) flush() error {
	out := l.encoder.out
	for len(out) > 0 {
		n := min(len(out), maxFrame/4)
		size := l.current.size
		if err := l.current.flush(out[:n]); err != nil {
			return err
		}
		l.bytes += uint64(l.current.size - size)
		out = out[n:]
	}
	l.encoder.out = l.encoder.out[:0]
	return nil
}

// write writes the steps as entries, and counts those that are on the disk.
func (l *log) write(steps []Step) (written int, err error) {
	if l.current == nil {
		return 0, errors.New("no segment is open")
	}
	for i := range steps {
		s := &steps[i]
		e := Entry{Now: s.Now, Event: s.Event, Panicked: s.Panicked, Digest: l.digest.Of(s.Effects)}
		if e.Digest != 0 {
			e.Attempts = Attempts(s.Effects)
		}
		if err := l.encoder.entry(&e); err != nil {
			return written, err
		}
		l.entries++
		ends := s.snapshot != nil && l.late()
		if s.snapshot != nil && !ends && !l.exact {
			l.exact = l.encoder.snapshot(s.snapshot) == nil
		}
		if len(l.encoder.out) < frameTarget && i < len(steps)-1 && !ends {
			continue
		}
		if err := l.flush(); err != nil {
			return written, err
		}
		written = i + 1
		if ends || l.current.grown() >= l.longest {
			if err := l.rotate(s.snapshot); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// rotate ends the segment and begins the next, with the snapshot if there is one.
func (l *log) rotate(snapshot *machine.Snapshot) error {
	if err := l.current.close(); err != nil {
		return err
	}
	l.current = nil
	l.header.Segment++
	l.header.Before = l.entries
	l.header.Start = l.encoder.last
	return l.openSegment(snapshot)
}

// dropOldest makes room for what a segment grows by. A checkpoint that has none goes
// beyond the limit.
func (l *log) dropOldest() error {
	numbers, err := segments(l.dir)
	if err != nil {
		return err
	}
	sizes, total := make([]int64, len(numbers)), l.longest+frameTarget
	for i, n := range numbers {
		if stat, err := os.Stat(filepath.Join(l.dir, segmentName(n))); err == nil {
			sizes[i] = stat.Size()
			total += stat.Size()
		}
	}
	for i, n := range numbers {
		if total <= l.limit || l.current != nil && n == l.header.Segment {
			return nil
		}
		if err := os.Remove(filepath.Join(l.dir, segmentName(n))); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		total -= sizes[i]
	}
	return nil
}

// abandon closes the segment.
func (l *log) abandon() {
	if l.current != nil {
		_ = l.current.close()
		l.current = nil
	}
}
