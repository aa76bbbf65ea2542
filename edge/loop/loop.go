package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// Machine is what the loop owns.
type Machine interface {
	// Step takes an event and returns what is to be done.
	Step(now time.Time, e machine.Event) []machine.Effect
	// First is the pod that a Cycle would take, nil when there is none.
	First() *object.Pod
	// NextTimer is when a Tick is due, false when none is.
	NextTimer() (time.Time, bool)
	// Repair puts right what a step that panicked may have left.
	Repair() []machine.Effect
}

// Hands carry effects out.
type Hands interface {
	// Do starts on the effect and returns at once. The outcome, where one is
	// due, comes back through Report.
	Do(e machine.Effect)
	// Full says that so many bindings are under way that deciding on more
	// pods would only make them wait. It turns false with an outcome.
	Full() bool
}

// Options of a Loop.
type Options struct {
	Logger klog.Logger
	// Observe, when set, sees each step after it, on the loop's goroutine.
	Observe func(Step)
	// Panicked, when set, is told of each step that panicked.
	Panicked func(e machine.Event)
}

// Step is one step of the machine.
type Step struct {
	Now     time.Time
	Event   machine.Event
	Effects []machine.Effect
	Took    time.Duration
}

// News that may wait in the inbox. At this many the watches stop reading.
const inboxLimit = 8192

// resolution of the machine's timers.
const resolution = 5 * time.Millisecond

// After a cycle that panicked no pod is decided on for a while, as the next
// cycle may well meet the same pod.
const (
	firstPause = time.Second
	lastPause  = 10 * time.Second
)

// ErrStopped is what questions to a loop that no longer runs are answered.
var ErrStopped = errors.New("the scheduling loop has stopped")

// Loop feeds a machine. Post, Report, Lead and Inspect may be called from
// any goroutine; all else is Run's own.
type Loop struct {
	machine Machine
	hands   Hands
	options Options
	inbox   *inbox
	leading atomic.Bool
	now     doing

	pause   time.Duration // after the last panic, 0 when there was none
	resumes time.Time     // no cycle before this
	ticked  time.Time     // when timers were last looked at
	due     time.Time     // the next timer then, zero when there was none
	stale   bool          // there was a step since
}

// New returns a loop that does not yet lead. Nobody else may touch the
// machine from here on.
func New(m Machine, h Hands, o Options) *Loop {
	return &Loop{machine: m, hands: h, options: o, inbox: newInbox(inboxLimit)}
}

// Post tells the machine news from the cluster. It waits while the inbox is
// full, and drops the news once the loop has stopped.
func (l *Loop) Post(e machine.Event) { l.inbox.post(e) }

// Report tells the machine the outcome of an effect. It never waits.
func (l *Loop) Report(e machine.Event) { l.inbox.push(item{event: e}) }

// Lead says whether the machine may decide on pods. News and outcomes reach
// it in any case.
func (l *Loop) Lead(yes bool) {
	l.leading.Store(yes)
	l.inbox.ring()
}

// Inspect runs look between two steps, on the goroutine that owns the
// machine, and waits for it.
func (l *Loop) Inspect(ctx context.Context, look func()) error {
	done := make(chan struct{})
	ask := func() {
		defer close(done)
		if ctx.Err() == nil {
			look()
		}
	}
	if !l.inbox.push(item{ask: ask}) {
		return ErrStopped
	}
	select {
	case <-done:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run owns the machine until the context ends.
func (l *Loop) Run(ctx context.Context) {
	defer l.inbox.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		for _, it := range l.inbox.take() {
			l.handle(it)
		}
		now := time.Now()
		l.tick(now)
		if p := l.next(now); p != nil {
			l.cycle(p)
			continue
		}
		l.now.rest()
		timer.Reset(l.untilTimer())
		select {
		case <-l.inbox.wake:
			runtime.Gosched() // who woke us may have more to post
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

func (l *Loop) handle(it item) {
	if it.ask == nil {
		l.step(it.event)
		return
	}
	l.now.begin(nil)
	defer l.contain(nil, new(bool))
	it.ask()
}

// tick lets timers fire that are due. It does not look at them after each step,
// as they are many and coarse.
func (l *Loop) tick(now time.Time) {
	if now.Sub(l.ticked) < resolution {
		return
	}
	l.ticked, l.stale, l.due = now, false, time.Time{}
	due, ok := l.machine.NextTimer()
	switch {
	case ok && !due.After(now):
		l.step(machine.Tick{})
	case ok:
		l.due = due
	}
}

// next is the pod to decide on now, nil when there is none, or the machine may
// not.
func (l *Loop) next(now time.Time) *object.Pod {
	if !l.leading.Load() || now.Before(l.resumes) || l.hands.Full() {
		return nil
	}
	return l.machine.First()
}

// cycle decides on one pod.
func (l *Loop) cycle(p *object.Pod) {
	l.now.cycle(p)
	if l.step(machine.Cycle{}) {
		l.pause = 0
		return
	}
	l.pause = min(max(2*l.pause, firstPause), lastPause)
	l.resumes = time.Now().Add(l.pause)
}

// untilTimer is how long to sleep when nothing comes in: until timers may be
// looked at again if there was a step since, or the next one is due, and at
// most an hour.
func (l *Loop) untilTimer() time.Duration {
	now, sleep := time.Now(), time.Hour
	if l.stale {
		sleep = 0
	}
	if !l.due.IsZero() {
		sleep = min(sleep, l.due.Sub(now))
	}
	if l.resumes.After(now) {
		sleep = min(sleep, l.resumes.Sub(now))
	}
	return max(sleep, l.ticked.Add(resolution).Sub(now))
}

// step takes one step and passes its effects on. It reports false when the
// step panicked.
func (l *Loop) step(e machine.Event) (ok bool) {
	defer l.contain(e, &ok)
	l.stale = true
	l.now.begin(e)
	start := time.Now()
	effects := l.machine.Step(start, e)
	took := time.Since(start)
	for _, effect := range effects {
		l.hands.Do(effect)
	}
	if l.options.Observe != nil {
		l.options.Observe(Step{Now: start, Event: e, Effects: effects, Took: took})
	}
	return true
}

// contain is the last resort: the machine contains the panics of plugins
// itself and lets their pod back off. A panic that gets here costs one event.
func (l *Loop) contain(e machine.Event, ok *bool) {
	r := recover()
	if r == nil {
		return
	}
	*ok = false
	l.options.Logger.Error(fmt.Errorf("panic: %v", r), "A step of the scheduler panicked, its event is dropped",
		"event", fmt.Sprintf("%T", e), "stack", string(debug.Stack()))
	if l.options.Panicked != nil {
		l.options.Panicked(e)
	}
	l.repair()
}

// repair has the machine put itself right. Should that panic too, the next
// panicking step tries again.
func (l *Loop) repair() {
	defer func() {
		if r := recover(); r != nil {
			l.options.Logger.Error(fmt.Errorf("panic: %v", r), "The scheduler could not repair itself", "stack", string(debug.Stack()))
		}
	}()
	for _, effect := range l.machine.Repair() {
		l.hands.Do(effect)
	}
}
