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

// mostHangs is how many calls of a plugin may hang before none is made any more.
const mostHangs = 16

// stepBudget is how many times what an attempt may take all calls in one step of the loop
// may: in the cycle of a pod group, or for all pods that an event may help.
const stepBudget = 2

// step is the time that calls may still take in the loop's present step.
type step struct {
	number    uint64
	left      time.Duration
	asksLater bool // about gated pods
}

// inStep returns a pointer to the time left for calls in the step under way.
func (h *Hosts) inStep() *time.Duration {
	if h.machine == nil {
		h.step.left = stepBudget * h.options.Timeout
	} else if n := h.machine.Steps(); h.step.number != n || n == 0 {
		h.step = step{number: n, left: stepBudget * h.options.Timeout}
	}
	return &h.step.left
}

// call runs f, the plugin's code at the point, on a worker, within what is left of the
// attempt's budget and of the step's. The caller may read what f writes only if call
// returns no error. While a call for a pod has not returned, no other call for it is
// made.
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

// refuse returns an error if the call must not be made: the pod has a call that hangs, or
// no time is left.
func (h *Hosts) refuse(left time.Duration, pod types.UID, point, plugin string) error {
	if err := h.hangs.refuse(pod, plugin); err != nil {
		return err
	}
	if min(left, *h.inStep()) <= 0 {
		return fmt.Errorf("plugin %q: %s: the timeout of %v is used up", plugin, point, h.options.Timeout)
	}
	return nil
}

// wait waits for the worker's call, no longer than the step has left, and answers the
// plugins' questions meanwhile. It is for the loop.
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

// timerOf returns a timer that fires after the limit. It reuses that of the last call if
// it is free.
func (h *Hosts) timerOf(limit time.Duration) *time.Timer {
	timer := h.timer
	if h.timer = nil; timer == nil {
		return time.NewTimer(limit)
	}
	timer.Reset(limit)
	return timer
}

func (h *Hosts) putTimer(timer *time.Timer) {
	timer.Stop()
	h.timer = timer
}

// overdue records that the worker's call has not returned in time, and returns the error
// for it. When the call returns, the worker is freed and gated pods are asked about
// again.
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

// callOnce runs f on a worker, for at most Options.Timeout. It returns an error if f
// panics or does not return in time.
func (h *Hosts) callOnce(pod types.UID, point, plugin string, f func()) error {
	left := h.options.Timeout
	return h.call(&left, pod, point, plugin, f)
}

// worker is a goroutine that runs plugins' code, one call at a time.
type worker struct {
	jobs chan func()
	done chan error
}

// workers holds the idle workers.
type workers struct {
	mu    sync.Mutex
	idle  []*worker
	ended bool // none is kept any more
}

// mostIdle is how many goroutines are kept for the next call.
const mostIdle = 4

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

// put takes back a worker whose last call ended so.
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

// end ends those that have nothing to do, now and later.
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

// apart is contain on a goroutine of its own: f may end it.
func apart(f func()) error {
	ended := make(chan error, 1)
	go func() {
		err := errExited
		defer func() { ended <- err }()
		err = contain(f)
	}()
	return <-ended
}

// hang is a call that has not returned.
type hang struct {
	plugin, point string
	since         time.Time
}

// hangs are the calls that have not returned.
type hangs struct {
	mu      sync.Mutex
	pods    map[types.UID]hang
	plugins map[string]int
}

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

func (l *hangs) add(pod types.UID, plugin, point string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plugins[plugin]++
	if pod != "" {
		l.pods[pod] = hang{plugin, point, time.Now()}
	}
}

func (l *hangs) remove(pod types.UID, plugin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plugins[plugin]--
	delete(l.pods, pod)
}

// count returns how many calls have not returned.
func (l *hangs) count() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, calls := range l.plugins { // any order: a sum
		n += calls
	}
	return n
}

// question is something that a plugin wants to know of what the loop owns.
type question struct {
	taken  atomic.Bool
	ask    func()
	failed error
	done   chan struct{}
}

// answer runs the question, if nobody else does.
func (q *question) answer() {
	if q.taken.CompareAndSwap(false, true) {
		defer close(q.done)
		q.failed = contain(q.ask)
	}
}

var errNoAnswer = errors.New("the scheduling loop does not answer")

// ask runs f on the loop: between two steps, or while the loop waits for a plugin.
// It may be called from any goroutine but the loop's. What f writes may be read only
// where there is no error.
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
