package kube

import (
	"context"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/fence"
)

// Extenders are the HTTP extenders of the configuration. Their calls have timeouts, and
// end early if their context does.
type Extenders interface {
	// Answer makes a filter, prioritize or preempt call, waits for the answer and returns it.
	Answer(context.Context, machine.CallExtender) machine.ExtenderReply
	// Bind lets an extender bind the pod. It sends nothing if held returns false: the
	// leader lease is lost.
	Bind(ctx context.Context, e machine.BindByExtender, held func() bool) (machine.BindResult, error)
	// Pod and Nodes report whether an extender needs the API object of this pod, and of
	// nodes.
	Pod(*v1.Pod) bool
	Nodes() bool
}

// Extend makes the watcher attach the API objects that extenders need to its events. Call it
// before Run.
func (w *Watcher) Extend(x Extenders) { w.extenders = x }

// Extend makes the executor call these extenders. described are their configurations, by
// the index that effects name. Call it before the first Do.
func (x *Executor) Extend(e Extenders, described []machine.Extender) {
	x.extenders, x.described = e, described
}

// startAsk starts a filter, prioritize or preempt call and reports its answer, also if the
// call panics. Nothing is reported once the scheduler stops. The machine limits how many calls
// run at a time.
func (x *Executor) startAsk(e machine.CallExtender) {
	x.asking.start(func(ctx context.Context) {
		var answer machine.ExtenderReply
		if err := contained("CallExtender", func() error {
			answer = x.extenders.Answer(ctx, e)
			return nil
		}); err != nil {
			answer = machine.ExtenderReply{UID: e.Pod.UID, Call: e.Call, Err: err}
		}
		if ctx.Err() != nil {
			return // the scheduler stops; the pod did nothing wrong
		}
		x.logAnswer(e, &answer)
		x.report(answer)
	})
}

// logAnswer logs the error of an extender's call, in kube-scheduler's words, or its
// scores at verbosity 10.
func (x *Executor) logAnswer(e machine.CallExtender, answer *machine.ExtenderReply) {
	pod, extender := klog.KRef(e.Pod.Namespace, e.Pod.Name), x.described[e.Extender]
	switch {
	case answer.Err != nil && e.Verb == machine.Prioritize:
		x.logger.V(5).Info("Failed to run extender's priority function. No score given by this extender.", "error", answer.Err, "pod", pod, "extender", extender.Name)
	case answer.Err != nil && !extender.Ignorable:
		x.logger.Error(answer.Err, "Failed to call extender", "extender", extender.Name, "verb", e.Verb, "pod", pod)
	case answer.Err != nil && e.Verb == machine.Preempt:
		x.logger.V(2).Info("Skipped extender as it returned error and has ignorable flag set", "extender", extender.Name, "err", answer.Err)
	case answer.Err != nil:
		x.logger.Info("Skipping extender as it returned error and has ignorable flag set", "extender", extender.Name, "err", answer.Err)
	case len(answer.Scores) > 0:
		if v := x.logger.V(10); v.Enabled() {
			for _, node := range slices.Sorted(maps.Keys(answer.Scores)) {
				v.Info("Extender scored node for pod", "pod", pod, "extender", extender.Name, "node", node, "score", answer.Scores[node])
			}
		}
	}
}

// startBindBy lets an extender bind a pod and reports a BindReply. A status patch of the pod is
// voided first if it was not sent, else awaited. Nothing is sent without the lease. The call
// does not count in Full: an extender that hangs must not stop the scheduler.
func (x *Executor) startBindBy(e machine.BindByExtender) {
	x.status.cancel(e.Pod.UID, func() {
		x.delegated.start(func(ctx context.Context) {
			if !x.clients.held() {
				x.report(machine.BindReply{UID: e.Pod.UID, Result: machine.BindRefused, Err: fence.ErrNotLeading})
				return
			}
			x.unanswered.Add(1)
			defer x.unanswered.Add(-1)
			result := machine.BindUnknown
			err := contained("BindByExtender", func() (err error) {
				result, err = x.extenders.Bind(ctx, e, x.clients.held)
				return err
			})
			if extender := x.described[e.Extender]; err != nil && extender.Ignorable {
				x.logger.Info("Skipping extender in bind as it returned error and has ignorable flag set", "extender", extender.Name, "err", err)
			}
			x.report(machine.BindReply{UID: e.Pod.UID, Result: result, Err: err})
		})
	})
}

// calls is a group of goroutines that wait for an extender or a plugin and can be
// cancelled and awaited together. Unlike with a WaitGroup, a call may start another while
// somebody waits for all.
type calls struct {
	ctx   context.Context    // of all calls
	end   context.CancelFunc // cancels all calls; no other can start afterwards
	mu    sync.Mutex
	n     int           // calls that run
	quiet chan struct{} // closed when n falls to 0; nil: nobody waits
}

// newCalls returns a group without calls.
func newCalls() *calls {
	c := &calls{}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c
}

// start runs f on a new goroutine, unless the group was cancelled.
func (c *calls) start(f job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return
	}
	c.n++
	go func() {
		defer c.returned()
		f(c.ctx)
	}()
}

// returned records the end of a call.
func (c *calls) returned() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 && c.quiet != nil {
		close(c.quiet)
		c.quiet = nil
	}
}

// none returns a channel that is closed as soon as no call runs.
func (c *calls) none() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == 0 {
		quiet := make(chan struct{})
		close(quiet)
		return quiet
	}
	if c.quiet == nil {
		c.quiet = make(chan struct{})
	}
	return c.quiet
}

// leave waits until no call runs or ctx ends, then cancels the group, so that no other call
// can start. It does not wait for calls that still run then.
func (c *calls) leave(ctx context.Context) {
	select {
	case <-c.none():
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
}

// wait waits until no call runs. When ctx ends it cancels those that do, and waits for
// them to return. No other call can start afterwards.
func (c *calls) wait(ctx context.Context) {
	c.leave(ctx)
	<-c.none()
}
