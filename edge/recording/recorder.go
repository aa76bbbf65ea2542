package recording

import (
	"context"
	"errors"
	"fmt"
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
	Segment int64         // bytes after which a segment ends
	Pending int           // steps that may wait for the writer
	Flush   time.Duration // how long steps wait for more
	Retry   time.Duration // how long to wait after an error
}

// tuning: a segment is an eighth of the limit, between 128 KiB and 64 MiB.
func tuning(o *Options) Tuning {
	t := Tuning{Segment: min(max(o.Limit/8, 128<<10), 64<<20), Pending: 1 << 17, Flush: time.Second, Retry: 10 * time.Second}
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
	wake    chan struct{} // there is something to write
	full    chan struct{} // there is much to write
	stop    chan struct{}
	done    chan struct{}

	mu      sync.Mutex
	room    sync.Cond
	steps   []Step
	spare   []Step     // what was written last, to be used again
	begin   *beginning // a run begins before the steps
	gap     string     // why steps are not taken, "" if they are
	missed  missed     // of the gap
	resume  bool       // the next step ends the gap
	closing bool

	// wanted: the log could do with a snapshot. unwilling is how many steps it is not
	// asked for.
	wanted    atomic.Bool
	unwilling int

	out    *log // the writer's own
	counts struct{ entries, lost, bytes, errors atomic.Uint64 }
}

// beginning is how a run begins in the middle.
type beginning struct {
	missed missed
	gap    string
}

// missed are the last events of objects that no segment tells of.
type missed map[address]machine.Event

func (m missed) add(e machine.Event) {
	if at, ok := addressOf(e); ok {
		m[at] = e
	}
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
	r := &Recorder{options: o, tuning: tuning(&o), wake: make(chan struct{}, 1), full: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	r.room.L = &r.mu
	r.out = &log{dir: o.Dir, limit: o.Limit, longest: r.tuning.Segment, header: o.Header, names: o.Names}
	r.out.header.Version, r.out.header.Redacted, r.out.header.Whole = Version, o.Names != nil, true
	if err := r.out.beginRun(nil); err != nil {
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

// Observe takes in a step.
func (r *Recorder) Observe(s Step) {
	if r.wanted.Load() {
		s.snapshot = r.snapshot()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return
	}
	if r.gap == "" && len(r.steps) >= r.tuning.Pending {
		r.overflow()
	}
	if r.gap != "" {
		r.miss(s)
		return
	}
	if r.steps = append(r.steps, s); len(r.steps) == 1 {
		signal(r.wake)
	}
	if len(r.steps) == r.tuning.Pending/8 {
		signal(r.full)
	}
}

// afterRefusal is how many steps pass before a machine that seemed to rest, and did
// not, is asked for a snapshot again: to find that out takes a look at every pod.
const afterRefusal = 1000

// snapshot is what the machine knows, where it rests. Else the step is not the last.
func (r *Recorder) snapshot() *machine.Snapshot {
	r.unwilling = max(r.unwilling-1, 0)
	source := r.options.Source
	if source == nil || r.unwilling > 0 || !source.Resting() {
		return nil
	}
	s := source.Snapshot()
	if s != nil {
		r.wanted.Store(false)
	} else {
		r.unwilling = afterRefusal
	}
	return s
}

// miss notes a step of a gap, and ends the gap with it when that is wanted.
func (r *Recorder) miss(s Step) {
	r.counts.lost.Add(1)
	r.missed.add(s.Event)
	if !r.resume {
		return
	}
	r.begin = &beginning{missed: r.missed, gap: r.gap}
	r.gap, r.missed, r.resume = "", nil, false
	signal(r.wake)
}

// overflow waits for the writer, or begins a gap.
func (r *Recorder) overflow() {
	for r.options.Wait && len(r.steps) >= r.tuning.Pending && !r.closing && r.gap == "" {
		r.room.Wait()
	}
	if !r.options.Wait {
		r.lose("the writer could not keep up")
	}
}

// lose begins a gap: steps are not taken until the writer says so.
func (r *Recorder) lose(why string) {
	r.counts.errors.Add(1)
	r.counts.lost.Add(uint64(len(r.steps)))
	r.missed = missed{}
	if r.begin != nil {
		r.missed = r.begin.missed
	}
	for i := range r.steps {
		r.missed.add(r.steps[i].Event)
	}
	r.gap, r.resume, r.steps, r.begin = why, false, nil, nil
	signal(r.wake)
	r.room.Broadcast()
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
	case <-r.done:
	case <-ctx.Done():
	}
}

// write is the writer's goroutine.
func (r *Recorder) write() {
	defer close(r.done)
	failing, pause := false, r.tuning.Retry
	for stopping := false; !stopping; {
		stopping = r.await()
		r.mu.Lock()
		steps, begin, gap := r.steps, r.begin, r.gap
		r.steps, r.spare, r.begin = r.spare, nil, nil
		r.room.Broadcast()
		r.mu.Unlock()
		if gap == "" {
			gap = r.take(steps, begin)
		}
		switch {
		case gap == "" && failing && begin != nil:
			failing, pause = false, r.tuning.Retry
			r.options.Logger.Info("Recording goes on after a gap", "dir", r.options.Dir)
		case gap != "" && !stopping:
			r.out.abandon()
			if !failing {
				failing = true
				r.options.Logger.Error(errors.New(gap), "Failed to record, trying again later; scheduling goes on", "dir", r.options.Dir)
			}
			r.rest(pause)
			pause = min(2*pause, maxRetry)
		}
	}
	r.out.abandon()
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

// rest waits after an error and then has the next step end the gap.
func (r *Recorder) rest(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.stop:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resume = true
	select {
	case <-r.wake: // it told of the gap; the step that ends it gives another sign
	default:
	}
}

// maxSpare is the longest list of steps that is kept for use again.
const maxSpare = 1 << 15

// take writes the steps. begin: a run begins with them. It returns why a gap begins
// instead, "" where none does.
func (r *Recorder) take(steps []Step, begin *beginning) (gap string) {
	written, err := 0, error(nil)
	if begin != nil {
		r.out.miss(begin.missed)
		err = r.out.beginRun(begin)
	}
	if err == nil {
		written, err = r.out.write(steps)
	}
	r.counts.entries.Add(uint64(written))
	r.counts.bytes.Store(r.out.bytes)
	r.wanted.Store(err == nil && r.out.wantsSnapshot())
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		rest := missed{}
		for i := range steps {
			rest.add(steps[i].Event)
		}
		r.out.miss(rest)
		r.counts.lost.Add(uint64(len(steps) - written))
		if r.gap == "" {
			r.lose(err.Error())
		}
		return err.Error()
	}
	if cap(steps) <= maxSpare {
		clear(steps)
		r.spare = steps[:0]
	}
	return ""
}
