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

// Machine is the scheduler's state machine, which only the loop may call.
type Machine interface {
	// Step handles an event, at the time now, and returns the effects to carry out.
	Step(now time.Time, e machine.Event) []machine.Effect
	// First returns the pod that the next ScheduleOne would take; nil if there is none. It
	// leaves the pod in the queue.
	First() *object.Pod
	// NextTimer returns when a Tick is due; false if no timer is set.
	NextTimer() (time.Time, bool)
	// Repair is called after a step that panicked. It mends what the step may have left and
	// returns the effects of the step so far and those of the repair.
	Repair() []machine.Effect
}

// Executor carries effects out.
type Executor interface {
	// Do starts to carry out the effect and returns at once. The outcome, if the machine
	// expects one, comes back through Report.
	Do(e machine.Effect)
	// Full reports whether so many bindings wait to be sent that deciding on more pods
	// would only make them wait. It may turn false without an outcome: Lead makes the
	// loop check again.
	Full() bool
}

// Options are optional hooks of a Loop, and its logger.
type Options struct {
	Logger klog.Logger
	// Observe, when set, is called after each step, on the loop's goroutine.
	Observe func(Step)
	// Rest, when set, is called on the loop's goroutine before it waits for something
	// to do.
	Rest func()
	// Panicked, when set, is called on the loop's goroutine with the event of each step
	// that panicked, after Machine.Repair.
	Panicked func(e machine.Event)
}

// Step describes one step of the machine, for Options.Observe.
type Step struct {
	Now time.Time // when the step began, by the machine's clock
	// Event is what the machine handled. If the step panicked, Event is nil and Panicked is
	// the event, which is given again later.
	Event, Panicked machine.Event
	Effects         []machine.Effect // already handed to the Executor
	Took            time.Duration    // by the machine alone, without handing effects out
}

// inboxLimit is how many events from the cluster may wait. Beyond it Post blocks, and so do
// the watches.
const inboxLimit = 8192

// resolution is the least time between two checks of the machine's timers.
const resolution = 5 * time.Millisecond

// ErrStopped is what Inspect returns if the loop has stopped.
var ErrStopped = errors.New("the scheduling loop has stopped")

// Loop owns a machine and hands it events and timers, one step after the other. Post,
// Report, Lead, Longest and Inspect may be called from any goroutine; all else runs on
// Run's.
type Loop struct {
	machine  Machine
	executor Executor
	options  Options
	inbox    *inbox
	stopped  chan struct{} // closed when Run has returned
	leading  atomic.Bool   // what Lead was last called with
	now      doing         // for the watchdog
	clock    clock
	longest  atomic.Int64 // the longest step or question so far, in nanoseconds

	ticked time.Time // when tick last called NextTimer
	due    time.Time // the timer that NextTimer returned then; zero: none, or it is past
	stale  bool      // there was a step since ticked, so due may be wrong

	// cycles pauses ScheduleOne after a ScheduleOne that panicked, ticks pauses Tick after a
	// Tick that panicked: the next may well meet the same pod.
	cycles, ticks pause
	led           bool              // the machine had a ScheduleOne since this process leads
	lost          lost              // what panicked and is tried again later
	reports       map[string]report // of panics, by the file and line that raised them
}

// New returns a loop that does not lead until Lead is called. It passes the effects of m to h.
// Run starts it. From New on, only the loop may call the machine.
func New(m Machine, h Executor, o Options) *Loop {
	return &Loop{machine: m, executor: h, options: o, inbox: newInbox(inboxLimit), stopped: make(chan struct{}),
		lost: lost{waiting: map[subject]*again{}}, reports: map[string]report{}}
}

// Post sends the machine an event from the cluster. It waits while the inbox is full, and
// drops the event once the loop has stopped.
func (l *Loop) Post(e machine.Event) { l.inbox.post(e) }

// Report sends the machine the outcome of an effect. It never waits. It drops the outcome
// once the loop has stopped.
func (l *Loop) Report(e machine.Event) { l.inbox.push(item{event: e}) }

// Lead sets whether the machine may decide on pods: whether this process has the leader
// lease. Events from the cluster and outcomes reach the machine in any case. Each call wakes
// the loop, which then checks Executor.Full again.
func (l *Loop) Lead(yes bool) {
	l.leading.Store(yes)
	l.inbox.ring()
}

// Inspect runs look between two steps, on the loop's goroutine, so that look may read the
// machine. It returns nil when look has returned or panicked. It returns ctx's error when ctx
// ends; look may then still run, or have run. It returns ErrStopped if the loop stops before look
// has run.
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
	case <-ctx.Done():
	case <-l.stopped:
		select {
		case <-done: // it ran just before
		default:
			return ErrStopped
		}
	}
	return ctx.Err()
}

// Run hands events to the machine and its effects to the executor until the context ends.
// Then it drops what is queued and closes the inbox. It must be called once.
func (l *Loop) Run(ctx context.Context) {
	defer close(l.stopped)
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
			l.led = true
			l.cycle(p)
			continue
		}
		if l.beginLead() {
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

// handle gives the machine the item's event, or runs its question. It contains a panic of
// either.
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

// took records that a step or a question took t, if it was the longest so far. The metric of
// the longest step shows it.
func (l *Loop) took(t time.Duration) {
	if int64(t) > l.longest.Load() {
		l.longest.Store(int64(t))
	}
}

// Longest returns how long the longest step or question has taken so far. No pod is
// scheduled meanwhile.
func (l *Loop) Longest() time.Duration { return time.Duration(l.longest.Load()) }

// tick sends the machine a Tick if its next timer is due; else it records when it is (due). It
// checks at most once in resolution, as steps are many and timers coarse, and not during the
// pause after a Tick that panicked.
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

// next returns the pod to schedule now; nil if none is ready, this process does not lead,
// the executor is full, or the pause after a cycle that panicked is not over.
func (l *Loop) next(now time.Time) *object.Pod {
	if !l.leading.Load() || now.Before(l.cycles.until) || l.executor.Full() {
		return nil
	}
	return l.machine.First()
}

// beginLead sends the machine a ScheduleOne if this process has begun to lead and no pod is
// ready, and reports whether it did. The machine learns by ScheduleOne that it leads, and
// writes the statuses that only a leader writes.
func (l *Loop) beginLead() bool {
	if l.led = l.led && l.leading.Load(); l.led || !l.leading.Load() || l.machine.First() != nil {
		return false
	}
	l.led = true
	l.step(machine.ScheduleOne{})
	return true
}

// cycle runs the scheduling cycle of p, which the machine's First has returned. If the cycle
// panics, the next ones wait for a while.
func (l *Loop) cycle(p *object.Pod) {
	l.now.cycle(p)
	l.cycles.after(l.step(machine.ScheduleOne{}), time.Now(), lastPause)
}

// untilTimer returns how long to sleep if nothing comes in: until the next timer, retry or
// end of a pause, at least until timers may be checked again (resolution), at most an hour.
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

// step lets the machine handle an event and passes its effects to the executor. It returns
// false if the machine panicked; the effects are then those of the step so far and those of
// the repair.
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

// stepMachine lets the machine handle an event. A panic is logged and repaired, and makes
// ok false: effects are then those of the step so far and those of the repair, or none if
// that panics too. Panics of plugins do not come here: the machine makes their pod back off.
func (l *Loop) stepMachine(now time.Time, e machine.Event) (effects []machine.Effect, ok bool) {
	defer l.contain(fmt.Sprintf("%T", e), func() {
		effects = l.repair()
		if l.options.Panicked != nil {
			l.options.Panicked(e)
		}
	})
	return l.machine.Step(now, e), true
}

// do hands an effect to the executor. If that panics, do returns false. The effect is then
// tried again later if the machine waits for its outcome, else it is dropped.
func (l *Loop) do(e machine.Effect) (ok bool) {
	defer l.contain(fmt.Sprintf("%T", e), func() { l.loseEffect(e) })
	l.executor.Do(e)
	return true
}

// observe calls Options.Observe and contains its panic.
func (l *Loop) observe(s Step) {
	defer l.contain("the report of a step", func() {})
	l.options.Observe(s)
}

// rest calls Options.Rest, since there is nothing to do for now. A panic there is logged
// and does not end the loop.
func (l *Loop) rest() {
	defer l.contain("what is done at rest", func() {})
	l.options.Rest()
}

// repair calls the machine's Repair and returns its effects; nil if that panics too. The
// next step that panics tries again.
func (l *Loop) repair() (effects []machine.Effect) {
	defer l.contain("the repair after a panic", func() {})
	return l.machine.Repair()
}
