package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// Machine is what the loop owns.
type Machine interface {
	// Step handles an event and returns the effects to carry out.
	Step(now time.Time, e machine.Event) []machine.Effect
	// First returns the pod that a Cycle would take, nil when there is none.
	First() *object.Pod
	// NextTimer returns when a Tick is due, false when none is.
	NextTimer() (time.Time, bool)
	// Repair puts right what a step that panicked may have left, and returns
	// what the step had asked for and what the repair asks for.
	Repair() []machine.Effect
}

// Executor carries effects out.
type Executor interface {
	// Do starts on the effect and returns at once. The outcome, where one is
	// due, comes back through Report.
	Do(e machine.Effect)
	// Full reports whether so many bindings wait to be sent that deciding on more pods
	// would only make them wait. It may turn false without an outcome: Lead makes the
	// loop check again.
	Full() bool
}

// Options of a Loop.
type Options struct {
	Logger klog.Logger
	// Observe, when set, sees each step after it, on the loop's goroutine.
	Observe func(Step)
	// Rest, when set, is called before the loop waits, on its goroutine.
	Rest func()
	// Panicked, when set, is called for each step that panicked.
	Panicked func(e machine.Event)
}

// Step is one step of the machine.
type Step struct {
	Now time.Time
	// Event is nil for a step that panicked: it is given again. Panicked is then the
	// event.
	Event, Panicked machine.Event
	Effects         []machine.Effect
	Took            time.Duration
}

// News that may wait in the inbox. At this many the watches stop reading.
const inboxLimit = 8192

// resolution of the machine's timers.
const resolution = 5 * time.Millisecond

// ErrStopped is what questions to a loop that no longer runs are answered.
var ErrStopped = errors.New("the scheduling loop has stopped")

// Loop feeds a machine. Post, Report, Lead and Inspect may be called from
// any goroutine; all else is Run's own.
type Loop struct {
	machine  Machine
	executor Executor
	options  Options
	inbox    *inbox
	leading  atomic.Bool
	now      doing
	clock    clock
	longest  atomic.Int64 // step or question, in nanoseconds

	ticked time.Time // when timers were last looked at
	due    time.Time // the next timer then, zero when there was none
	stale  bool      // there was a step since

	// After a cycle or a tick that panicked there is none for a while, as the
	// next may well meet the same pod.
	cycles, ticks pause
	lost          lost
	reports       map[string]report // of panics, by where they were raised
}

// New returns a loop that does not yet lead. Nobody else may touch the
// machine from here on.
func New(m Machine, h Executor, o Options) *Loop {
	return &Loop{machine: m, executor: h, options: o, inbox: newInbox(inboxLimit),
		lost: lost{waiting: map[subject]*again{}}, reports: map[string]report{}}
}

// Post sends the machine an event from the cluster. It waits while the inbox is full, and
// drops the event once the loop has stopped.
func (l *Loop) Post(e machine.Event) { l.inbox.post(e) }

// Report sends the machine the outcome of an effect. It never waits.
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
		l.giveAgain(now)
		l.tick(now)
		if p := l.next(now); p != nil {
			l.cycle(p)
			continue
		}
		if l.options.Rest != nil {
			l.rest()
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
		l.give(it.event)
		return
	}
	l.now.begin(nil)
	defer l.contain("a question", func() {})
	began := l.clock.now()
	defer func() { l.took(l.clock.now().Sub(began)) }()
	it.ask()
}

// took keeps the longest time that a step or a question took.
func (l *Loop) took(t time.Duration) {
	if int64(t) > l.longest.Load() {
		l.longest.Store(int64(t))
	}
}

// Longest returns how long the longest step or question has taken so far. No pod is
// scheduled meanwhile.
func (l *Loop) Longest() time.Duration { return time.Duration(l.longest.Load()) }

// tick sends the machine a Tick if a timer is due. It does not check after each step, as
// steps are many and timers coarse.
func (l *Loop) tick(now time.Time) {
	if now.Sub(l.ticked) < resolution || now.Before(l.ticks.until) {
		return
	}
	l.ticked, l.stale, l.due = now, false, time.Time{}
	due, ok := l.machine.NextTimer()
	switch {
	case ok && !due.After(now):
		l.ticks.after(l.step(machine.Tick{}), now, lastPause)
	case ok:
		l.due = due
	}
}

// next returns the pod to decide on now, nil when there is none, or the machine may
// not.
func (l *Loop) next(now time.Time) *object.Pod {
	if !l.leading.Load() || now.Before(l.cycles.until) || l.executor.Full() {
		return nil
	}
	return l.machine.First()
}

// cycle decides on one pod.
func (l *Loop) cycle(p *object.Pod) {
	l.now.cycle(p)
	l.cycles.after(l.step(machine.ScheduleOne{}), time.Now(), lastPause)
}

// untilTimer returns how long to sleep when nothing comes in: until timers may be
// looked at again if there was a step since, or the next one is due, and at
// most an hour.
func (l *Loop) untilTimer() time.Duration {
	now, sleep := time.Now(), time.Hour
	until := func(t time.Time) { sleep = min(sleep, t.Sub(now)) }
	switch {
	case l.ticks.until.After(now):
		until(l.ticks.until)
	case l.stale:
		until(now)
	case !l.due.IsZero():
		until(l.due)
	}
	if l.cycles.until.After(now) {
		until(l.cycles.until)
	}
	if due, any := l.lost.next(); any {
		until(due)
	}
	return max(sleep, l.ticked.Add(resolution).Sub(now))
}

// step takes one step and passes its effects on. It reports false when the
// step panicked.
func (l *Loop) step(e machine.Event) (ok bool) {
	l.stale = true
	l.now.begin(e)
	s := Step{Now: l.clock.now(), Event: e}
	s.Effects, ok = l.stepMachine(s.Now, e)
	s.Took = l.clock.now().Sub(s.Now)
	l.took(s.Took)
	for _, effect := range s.Effects {
		l.do(effect)
	}
	if l.options.Observe != nil {
		if !ok {
			s.Event, s.Panicked = nil, e
		}
		l.observe(s)
	}
	return ok
}

// stepMachine runs a step and contains a panic that the machine does not contain. The
// machine itself contains those of plugins and makes their pod back off.
func (l *Loop) stepMachine(now time.Time, e machine.Event) (effects []machine.Effect, ok bool) {
	defer l.contain(fmt.Sprintf("%T", e), func() {
		effects = l.repair()
		if l.options.Panicked != nil {
			l.options.Panicked(e)
		}
	})
	return l.machine.Step(now, e), true
}

// do starts on an effect. One that panics is tried again later.
func (l *Loop) do(e machine.Effect) (ok bool) {
	defer l.contain(fmt.Sprintf("%T", e), func() { l.loseEffect(e) })
	l.executor.Do(e)
	return true
}

func (l *Loop) observe(s Step) {
	defer l.contain("the report of a step", func() {})
	l.options.Observe(s)
}

func (l *Loop) rest() {
	defer l.contain("what is done at rest", func() {})
	l.options.Rest()
}

// repair runs the machine's repair. If that panics too, the next panicking step tries
// again.
func (l *Loop) repair() (effects []machine.Effect) {
	defer l.contain("the repair after a panic", func() {})
	return l.machine.Repair()
}
