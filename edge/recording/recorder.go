package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
)

// Step is a step of the machine, as the loop knows it.
type Step struct {
	Now      time.Time
	Event    machine.Event
	Panicked bool
	Effects  []machine.Effect

	snapshot *machine.Snapshot // after the step, where one was wanted
}

// Options of a Recorder.
type Options struct {
	Dir string
	// Limit is how many bytes the segments in the directory may have; at least
	// MinLimit. The oldest go first.
	Limit int64
	Names *Names // nil: nothing is redacted
	// Header is what every segment says. Start is now, unless it is set.
	Header Header
	Logger klog.Logger
	// Source is the machine, which rests between a step and its Observe; nil: what
	// begins in the middle cannot be replayed exactly.
	Source Source
	// Wait: Observe waits where the writer cannot keep up. Else the log gets a gap.
	Wait bool
	// Tune changes sizes and times, for tests.
	Tune func(*Tuning)
}

// MinLimit is the least limit of a log's size.
const MinLimit = 1 << 20

// Tuning are sizes and times of a Recorder.
type Tuning struct {
	Segment   int64         // bytes after which a segment ends
	Pending   int           // steps that may wait for the writer
	Unwritten int           // bytes of entries that may wait for the disk
	Flush     time.Duration // how long steps wait for more
	Retry     time.Duration // how long to wait after an error
	// Create makes a file that is not there yet.
	Create func(path string) (io.WriteCloser, error)
}

// tuning: a segment is an eighth of the limit, between 128 KiB and 64 MiB.
func tuning(o *Options) Tuning {
	t := Tuning{Segment: min(max(o.Limit/8, 128<<10), 64<<20), Pending: 1 << 17, Unwritten: 16 << 20, Flush: time.Second, Retry: 10 * time.Second, Create: createFile}
	if o.Tune != nil {
		o.Tune(&t)
	}
	return t
}

// maxRetry is the longest wait after errors.
const maxRetry = 5 * time.Minute

// Recorder writes steps to a log. Observe has one caller at a time; all else may be
// called from anywhere.
type Recorder struct {
	options Options
	tuning  Tuning
	wake    chan struct{} // there is something to write, or to know of the disk
	full    chan struct{} // there is much to write
	stop    chan struct{}

	mu      sync.Mutex
	room    sync.Cond
	steps   []Step
	spare   []Step // what was written last, to be used again
	closing bool

	behind atomic.Bool // the writer could not keep up
	wanted atomic.Bool // the log could do with a snapshot

	out    *log // the writer's own
	disk   *disk
	gap    gap // the writer's own
	counts struct{ entries, lost, bytes, errors atomic.Uint64 }
}

// gap is what a log leaves out: steps are followed, and not written.
type gap struct {
	why    string // "" for no gap
	until  time.Time
	pause  time.Duration // how long the next one lasts at least
	logged bool          // that there is one, and not yet that it ended
}

// Counters count since the start.
type Counters struct {
	Entries uint64 // written
	Lost    uint64 // steps that are in no segment
	Bytes   uint64 // written
	Errors  uint64 // that ended a run
}

// Start begins a log: the directory is made, and the first segment. Whatever goes
// wrong later is logged and counted, and tried again.
func Start(o Options) (*Recorder, error) {
	if o.Limit < MinLimit {
		return nil, fmt.Errorf("a limit of %d bytes is too small for a record: at least %d", o.Limit, int64(MinLimit))
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	numbers, err := segments(o.Dir)
	if err != nil {
		return nil, err
	}
	if len(numbers) > 0 {
		o.Header.Segment = numbers[len(numbers)-1]
	}
	if o.Header.Start.IsZero() {
		o.Header.Start = time.Now().UTC()
	}
	r := &Recorder{options: o, tuning: tuning(&o), wake: make(chan struct{}, 1), full: make(chan struct{}, 1), stop: make(chan struct{})}
	r.room.L, r.gap.pause = &r.mu, r.tuning.Retry
	r.disk = &disk{dir: o.Dir, limit: o.Limit, room: r.tuning.Segment + frameTarget, create: r.tuning.Create,
		written: r.written, lost: r.lost, turned: r.wake}
	r.disk.start()
	r.out = newLog(r.disk, &o, r.tuning.Segment)
	r.out.beginRun("", o.Header.Start, nil)
	r.disk.awaitIdle()
	if err := r.disk.state(r.out.header.Run).err; err != nil {
		r.disk.close()
		return nil, err
	}
	go r.write()
	return r, nil
}

// Counters returns what was counted.
func (r *Recorder) Counters() Counters {
	c := &r.counts
	return Counters{c.entries.Load(), c.lost.Load(), c.bytes.Load(), c.errors.Load()}
}

func (r *Recorder) written(entries, bytes int) {
	r.counts.entries.Add(uint64(entries))
	r.counts.bytes.Add(uint64(bytes))
}

func (r *Recorder) lost(entries int) { r.counts.lost.Add(uint64(entries)) }

// Observe adds a step. It never waits for the disk, unless Options.Wait is set: a writer
// that is behind follows steps, which takes it next to no time.
func (r *Recorder) Observe(s Step) {
	if source := r.options.Source; r.wanted.Load() && source != nil && source.Resting() {
		if s.snapshot = source.Snapshot(); s.snapshot != nil {
			r.wanted.Store(false)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	most := r.tuning.Pending
	if !r.options.Wait && len(r.steps) >= most {
		r.behind.Store(true)
		most *= 2
	}
	for len(r.steps) >= most && !r.closing {
		r.room.Wait()
	}
	if r.closing {
		return
	}
	if r.steps = append(r.steps, s); len(r.steps) == 1 {
		signal(r.wake)
	}
	if len(r.steps) == max(r.tuning.Pending/8, 1) {
		signal(r.full)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Close writes what is left, until the context ends.
func (r *Recorder) Close(ctx context.Context) {
	r.mu.Lock()
	closing := r.closing
	r.closing = true
	r.room.Broadcast()
	r.mu.Unlock()
	if !closing {
		close(r.stop)
	}
	select {
	case <-r.disk.done:
	case <-ctx.Done():
	}
}

// write is the writer's goroutine. It follows all steps, and never waits for the disk
// unless Options.Wait is set.
func (r *Recorder) write() {
	defer r.disk.close()
	for stopping := false; !stopping; {
		stopping = r.await()
		r.mu.Lock()
		steps := r.steps
		r.steps, r.spare = r.spare, nil
		r.room.Broadcast()
		r.mu.Unlock()
		r.take(steps)
	}
}

// await waits for something to write, and a little for more of it. It reports true
// when the recorder is to stop.
func (r *Recorder) await() (stopping bool) {
	select {
	case <-r.wake:
	case <-r.stop:
		return true
	}
	timer := time.NewTimer(r.tuning.Flush)
	defer timer.Stop()
	select {
	case <-r.full:
	case <-timer.C:
	case <-r.stop:
		return true
	}
	return false
}

// maxSpare is the longest list of steps that is kept for use again.
const maxSpare = 1 << 15

// take writes the steps, or follows them where there is a gap.
func (r *Recorder) take(steps []Step) {
	for i := range steps {
		r.takeOne(&steps[i])
	}
	if r.behind.Store(false); r.gap.why == "" {
		r.out.end()
		r.judge()
	}
	if r.wanted.Store(r.gap.why == "" && r.out.wantsSnapshot() || r.mayResume()); cap(steps) > maxSpare {
		return
	}
	clear(steps)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spare = steps[:0]
}

func (r *Recorder) takeOne(s *Step) {
	if r.gap.why == "" && r.behind.Load() {
		r.lose("the writer could not keep up")
	}
	if r.gap.why == "" {
		if err := r.out.write(s); err != nil {
			r.lose(err.Error())
		} else {
			r.judge()
			return
		}
	}
	r.out.encoder.follow(s.Event)
	r.lost(1)
	if overdue := time.Since(r.gap.until) > snapshotWait; r.mayResume() && (s.snapshot != nil || r.options.Source == nil || overdue) {
		r.out.beginRun(r.gap.why, s.Now, s.snapshot)
		r.gap.why = ""
	}
}

// snapshotWait is how long a gap that may end waits for a snapshot, without which decisions
// after it cannot be compared.
const snapshotWait = time.Minute

// mayResume reports whether a gap may end.
func (r *Recorder) mayResume() bool {
	return r.gap.why != "" && !time.Now().Before(r.gap.until) && !r.behind.Load() && r.disk.state(0).idle
}

// judge begins a gap where the disk failed, or has too much to write. It waits for the disk
// if Options.Wait is set.
func (r *Recorder) judge() {
	if r.options.Wait {
		r.disk.awaitBytes(r.tuning.Unwritten)
	}
	switch s := r.disk.state(r.out.header.Run); {
	case s.err != nil:
		r.lose(s.err.Error())
	case s.bytes > r.tuning.Unwritten:
		r.lose("the disk could not keep up")
	case s.begun && r.gap.logged:
		r.gap.logged, r.gap.pause = false, r.tuning.Retry
		r.options.Logger.Info("Recording goes on after a gap", "dir", r.options.Dir)
	}
}

// lose begins a gap.
func (r *Recorder) lose(why string) {
	r.counts.errors.Add(1)
	r.lost(r.out.abandon())
	if !r.gap.logged {
		r.gap.logged = true
		r.options.Logger.Error(errors.New(why), "Failed to record, trying again later; scheduling goes on", "dir", r.options.Dir)
	}
	r.gap.why, r.gap.until = why, time.Now().Add(r.gap.pause)
	r.gap.pause = min(2*r.gap.pause, maxRetry)
}
