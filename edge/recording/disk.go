package recording

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// disk does in the directory of a log what it is asked for, in order, on a goroutine of
// its own: a file system may hang. After an error it does nothing more for the run.
type disk struct {
	dir         string
	limit, room int64 // of all segments; what is kept free for one to grow
	create      func(path string) (io.WriteCloser, error)
	written     func(entries, bytes int)
	lost        func(entries int)
	turned      chan struct{} // an error ended a run, or a segment of one was begun
	done        chan struct{}

	mu      sync.Mutex
	changed sync.Cond
	asked   []request // the first may be under way
	bytes   int       // of entries that wait
	begun   int       // the last run of which a segment was begun
	failed  int       // the last run that an error ended
	err     error     // that error
	closing bool

	// The goroutine's own.
	file    io.WriteCloser // nil: none is open
	segment int
	whole   bool // the file has its checkpoint
}

// request is one thing to do.
type request struct {
	run     int
	open    int    // the segment to make; 0: none
	bytes   []byte // to write
	entries int    // that the bytes end
	begun   bool   // the segment has all that it begins with
	close   bool
}

// start begins to work, until the disk is closed.
func (d *disk) start() {
	d.done = make(chan struct{})
	d.changed.L = &d.mu
	go d.work()
}

// ask asks for something to be done. It does not wait.
func (d *disk) ask(q request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if q.entries > 0 {
		d.bytes += len(q.bytes)
	}
	d.asked = append(d.asked, q)
	d.changed.Broadcast()
}

// close ends the goroutine when all is done that was asked for.
func (d *disk) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closing = true
	d.changed.Broadcast()
}

// awaitBytes waits until at most n bytes of entries wait.
func (d *disk) awaitBytes(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.bytes > n {
		d.changed.Wait()
	}
}

// awaitIdle waits until all is done that was asked for.
func (d *disk) awaitIdle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.asked) > 0 {
		d.changed.Wait()
	}
}

// diskState is how far a disk is.
type diskState struct {
	bytes int   // of entries that wait
	idle  bool  // nothing is left to do
	begun bool  // a segment of the run was begun
	err   error // that ended the run; nil: none did
}

// state returns how far the disk is with a run.
func (d *disk) state(run int) diskState {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := diskState{bytes: d.bytes, idle: len(d.asked) == 0, begun: d.begun == run}
	if d.failed == run {
		s.err = d.err
	}
	return s
}

// work does what is asked for until the disk is closed.
func (d *disk) work() {
	defer close(d.done)
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		for len(d.asked) == 0 && !d.closing {
			d.changed.Wait()
		}
		if len(d.asked) == 0 {
			d.abandon()
			return
		}
		q, err := d.asked[0], error(nil)
		if failed := d.failed == q.run; !failed {
			d.mu.Unlock()
			err = d.do(&q)
			d.mu.Lock()
		} else if q.entries > 0 {
			d.lost(q.entries)
		}
		switch {
		case err != nil:
			d.failed, d.err = q.run, err
			d.lost(q.entries)
			signal(d.turned)
		case q.begun && d.failed != q.run:
			d.begun = q.run
			signal(d.turned)
		}
		if q.entries > 0 {
			d.bytes -= len(q.bytes)
		}
		d.asked = slices.Delete(d.asked, 0, 1)
		d.changed.Broadcast()
	}
}

// do does one thing. After an error no segment is open, and none is left that has not all
// that it begins with.
func (d *disk) do(q *request) (err error) {
	defer func() {
		if err != nil {
			d.abandon()
		}
	}()
	if q.open > 0 {
		if err := d.openSegment(q.open); err != nil {
			return err
		}
	}
	if len(q.bytes) > 0 {
		if _, err := d.file.Write(q.bytes); err != nil {
			return err
		}
		d.written(q.entries, len(q.bytes))
	}
	if q.begun {
		d.whole = true
		if err := d.dropOldest(); err != nil {
			return err
		}
	}
	if q.close {
		file := d.file
		d.file = nil
		return file.Close()
	}
	return nil
}

func (d *disk) openSegment(n int) (err error) {
	d.abandon()
	if err := d.dropOldest(); err != nil {
		return err
	}
	d.segment, d.whole = n, false
	d.file, err = d.create(d.path(n))
	if err != nil {
		d.file = nil
	}
	return err
}

// abandon closes the segment that is open, if one is, and takes it away if it has not all
// that it begins with.
func (d *disk) abandon() {
	if d.file == nil {
		return
	}
	_ = d.file.Close()
	if d.file = nil; !d.whole {
		_ = os.Remove(d.path(d.segment))
	}
}

func (d *disk) path(n int) string { return filepath.Join(d.dir, segmentName(n)) }

// dropOldest removes the oldest segments until the current one can grow to its end within the
// limit. A checkpoint that does not fit goes beyond the limit.
func (d *disk) dropOldest() error {
	numbers, err := segments(d.dir)
	if err != nil {
		return err
	}
	sizes, total := make([]int64, len(numbers)), d.room
	for i, n := range numbers {
		if stat, err := os.Stat(d.path(n)); err == nil {
			sizes[i] = stat.Size()
			total += stat.Size()
		}
	}
	for i, n := range numbers {
		if total <= d.limit || d.file != nil && n == d.segment {
			return nil
		}
		if err := os.Remove(d.path(n)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		total -= sizes[i]
	}
	return nil
}
