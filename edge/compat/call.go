package compat

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/recovered"
)

// Calls of plugins from the loop. The plugin runs on another goroutine while the
// loop waits and answers the plugin's questions.

// mostHangs is the number of overdue calls at which a plugin is not called any more. Pods that need
// it fail until one of the calls returns.
const mostHangs = 16

// stepBudget bounds the time of all plugin calls in one step of the loop, as a multiple of
// Options.Timeout: in the cycle of a pod group, or for all pods that an event may help.
const stepBudget = 2

// step is the time budget for plugin calls in the loop's present step.
type step struct {
	number    uint64        // of the machine's step
	left      time.Duration // for calls
	asksLater bool          // a timer will call PreEnqueue again for pods that got no time
}

// inStep returns a pointer to the time that is left for plugin calls in the loop's present step.
// Its first call in a step sets that to the full budget, and so does each call before Connect or
// the first step. Callers subtract what they use. Only the loop may call it.
func (h *Hosts) inStep() *time.Duration {
	if h.machine == nil {
		h.step.left = stepBudget * h.options.Timeout
	} else if n := h.machine.Steps(); h.step.number != n || n == 0 {
		h.step = step{number: n, left: stepBudget * h.options.Timeout}
	}
	return &h.step.left
}

// call runs f, which calls the plugin at the extension point, on a worker and waits for it, at most
// for the lesser of *left and what the step has left. It subtracts the time from both. It returns
// an error if f panics or is overdue, or if refuse forbids the call. An overdue f goes on, so the
// caller may read what f writes only if there is no error.
func (h *Hosts) call(left *time.Duration, pod types.UID, point, plugin string, f func()) error {
	if err := h.refuse(*left, pod, point, plugin); err != nil {
		return err
	}
	start := time.Now()
	w := h.workers.take()
	w.jobs <- f
	returned, err := h.wait(w, *left)
	if *left -= time.Since(start); !returned {
		*left = 0
		return h.overdue(w, pod, point, plugin)
	}
	return err
}

// refuse returns an error if the call must not be made: a call for the pod is overdue, mostHangs
// calls of the plugin are, or no time is left in left or in the step.
func (h *Hosts) refuse(left time.Duration, pod types.UID, point, plugin string) error {
	if err := h.hangs.refuse(pod, plugin); err != nil {
		return err
	}
	if min(left, *h.inStep()) <= 0 {
		return fmt.Errorf("plugin %q: %s: the timeout of %v is used up", plugin, point, h.options.Timeout)
	}
	return nil
}

// wait waits until the worker's call returns, at most for the lesser of limit and what the step has
// left, and answers questions of plugins meanwhile. It subtracts the time from that of the step.
// returned is false if the call is overdue. Else err is its panic, or nil, and the worker is idle
// again. Only the loop may call it.
func (h *Hosts) wait(w *worker, limit time.Duration) (returned bool, err error) {
	start, left := time.Now(), h.inStep()
	defer func() { *left -= time.Since(start) }()
	timer := h.timerOf(min(limit, *left))
	defer h.putTimer(timer)
	for {
		select {
		case err := <-w.done:
			h.workers.put(w, err)
			return true, err
		case q := <-h.questions:
			q.answer()
		case <-timer.C:
			return false, nil
		}
	}
}

// timerOf returns a timer that fires after the limit. It reuses the last call's timer if
// putTimer has returned it.
func (h *Hosts) timerOf(limit time.Duration) *time.Timer {
	timer := h.timer
	if h.timer = nil; timer == nil {
		return time.NewTimer(limit)
	}
	timer.Reset(limit)
	return timer
}

// putTimer stops the timer and keeps it for the next call.
func (h *Hosts) putTimer(timer *time.Timer) {
	timer.Stop()
	h.timer = timer
}

// overdue records that the worker's call has not returned in time, and returns an error
// that says so. When the call returns at last, the worker is freed, and PreEnqueue is
// called again for gated pods, which the hanging call may have blocked.
func (h *Hosts) overdue(w *worker, pod types.UID, point, plugin string) error {
	h.hangs.add(pod, plugin, point)
	go func() {
		err := <-w.done
		h.hangs.remove(pod, plugin)
		h.workers.put(w, err)
		h.report(machine.AskGatedAgain{})
	}()
	return fmt.Errorf("plugin %q did not return from %s within %v", plugin, point, h.options.Timeout)
}

// callOnce runs f on a worker, for at most Options.Timeout and what the step has left. It returns
// an error if f panics or does not return in time, or if refuse forbids the call. pod is "" for a
// call that is for no pod.
func (h *Hosts) callOnce(pod types.UID, point, plugin string, f func()) error {
	left := h.options.Timeout
	return h.call(&left, pod, point, plugin, f)
}

// worker is a goroutine that runs plugin calls, one at a time. A call goes into jobs; its
// panic, or nil, comes back on done.
type worker struct {
	jobs chan func()
	done chan error
}

// workers holds the idle workers, for any goroutine.
type workers struct {
	mu    sync.Mutex
	idle  []*worker
	ended bool // end was called: put keeps none any more
}

// mostIdle is how many idle workers are kept.
const mostIdle = 4

// take returns an idle worker, or starts one.
func (l *workers) take() *worker {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.idle); n > 0 {
		w := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return w
	}
	w := &worker{jobs: make(chan func(), 1), done: make(chan error, 1)}
	go func() {
		exited := true // until proven otherwise: a plugin may end the goroutine
		defer func() {
			if exited {
				w.done <- errExited
			}
		}()
		for f := range w.jobs {
			w.done <- contain(f)
		}
		exited = false
	}()
	return w
}

// put makes a worker idle whose last call returned err. It ends the worker if mostIdle are idle
// already or end was called. A worker whose plugin ended the goroutine is gone.
func (l *workers) put(w *worker, err error) {
	if err == errExited {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || len(l.idle) >= mostIdle {
		close(w.jobs)
		return
	}
	l.idle = append(l.idle, w)
}

// end ends the idle workers, and makes put end those that come back.
func (l *workers) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.idle {
		close(w.jobs)
	}
	l.idle, l.ended = nil, true
}

// errExited: the plugin's code called runtime.Goexit.
var errExited = errors.New("it called runtime.Goexit")

// contain runs f and returns a panic as an error.
func contain(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = recovered.From("", r).WithStack()
		}
	}()
	f()
	return nil
}

// apart runs f on a new goroutine and waits for it, however long. It returns an error if f panics
// or ends its goroutine.
func apart(f func()) error {
	ended := make(chan error, 1)
	go func() {
		err := errExited
		defer func() { ended <- err }()
		err = contain(f)
	}()
	return <-ended
}

// hang is a call that is overdue: it has not returned within its time.
type hang struct {
	plugin, point string
	since         time.Time // when the call became overdue
}

// hangs holds the overdue calls, for any goroutine.
type hangs struct {
	mu      sync.Mutex
	pods    map[types.UID]hang // at most one call for each pod
	plugins map[string]int     // number of overdue calls
}

// refuse returns an error if a call for the pod is overdue, or mostHangs calls of the
// plugin are. "" stands for a call for no pod.
func (l *hangs) refuse(pod types.UID, plugin string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x, hung := l.pods[pod]; hung && pod != "" {
		return fmt.Errorf("plugin %q has not returned from %s for this pod since %s", x.plugin, x.point, x.since.Format(time.RFC3339))
	}
	if n := l.plugins[plugin]; n >= mostHangs {
		return fmt.Errorf("plugin %q: %d calls have not returned", plugin, n)
	}
	return nil
}

// refuseAt returns an error if a call at the extension point is overdue, for whichever pod.
func (l *hangs) refuseAt(point string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.pods { // any order: one is enough
		if x.point == point {
			return fmt.Errorf("plugin %q has not returned from %s since %s", x.plugin, x.point, x.since.Format(time.RFC3339))
		}
	}
	return nil
}

// add records that a call of the plugin is overdue. pod is "" for a call that is for no pod.
func (l *hangs) add(pod types.UID, plugin, point string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plugins[plugin]++
	if pod != "" {
		l.pods[pod] = hang{plugin, point, time.Now()}
	}
}

// remove records that an overdue call has returned, so that the plugin may be called again
// for the pod.
func (l *hangs) remove(pod types.UID, plugin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plugins[plugin]--
	delete(l.pods, pod)
}

// count returns the number of overdue calls.
func (l *hangs) count() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, calls := range l.plugins { // any order: a sum
		n += calls
	}
	return n
}

// question is a function that a plugin needs run on the loop, since it reads the
// machine. Of the loop and the plugin's own goroutine, whoever sets taken first decides
// whether it runs.
type question struct {
	taken  atomic.Bool // it runs or has run, or the plugin does not wait any more
	ask    func()
	failed error         // the panic of ask
	done   chan struct{} // closed when ask has returned
}

// answer runs the question, unless it was taken. The loop calls it.
func (q *question) answer() {
	if q.taken.CompareAndSwap(false, true) {
		defer close(q.done)
		q.failed = contain(q.ask)
	}
}

// errNoAnswer is the error of a question that the loop did not take in time.
var errNoAnswer = errors.New("the scheduling loop does not answer")

// ask runs f on the loop's goroutine, between two steps or while the loop waits for a plugin, and
// waits for it. It returns errNoAnswer if f has not begun within Options.Timeout, or before
// Connect, and an error if f panics. Any goroutine but the loop's may call it. What f writes may be
// read only if there is no error.
func (h *Hosts) ask(f func()) error {
	if h.loop == nil {
		return errNoAnswer
	}
	q := &question{ask: f, done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.Background(), h.options.Timeout)
	defer cancel()
	go func() { _ = h.loop.Inspect(ctx, q.answer) }()
	select {
	case h.questions <- q:
	case <-q.done:
	case <-ctx.Done():
		if q.taken.CompareAndSwap(false, true) {
			return errNoAnswer
		}
	}
	<-q.done
	return q.failed
}
