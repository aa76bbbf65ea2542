package kube

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
)

// Extenders are the services outside that have a say about pods. Calls end by
// themselves after a time, and sooner when their context does.
type Extenders interface {
	Answer(context.Context, machine.CallExtender) machine.ExtenderReply
	Bind(context.Context, machine.BindByExtender) (machine.BindResult, error)
	// Pod and Nodes tell which API objects they may be told of.
	Pod(*v1.Pod) bool
	Nodes() bool
}

// Extend has the source keep what the extenders may be told of. It comes before
// Run.
func (w *Watcher) Extend(x Extenders) { w.extenders = x }

// Extend has the executor ask the extenders. It comes before the first Do.
func (x *Executor) Extend(e Extenders) { x.extenders = e }

// startAsk asks an extender. The machine bounds how many are asked at a time.
func (x *Executor) startAsk(e machine.CallExtender) {
	x.asking.start(func(ctx context.Context) {
		answer := x.extenders.Answer(ctx, e)
		if ctx.Err() != nil {
			return // the scheduler stops; the pod did nothing wrong
		}
		if answer.Err != nil {
			x.logger.Error(answer.Err, "Failed to call extender",
				"verb", e.Verb, "pod", klog.KRef(e.Pod.Namespace, e.Pod.Name))
		}
		x.report(answer)
	})
}

// startBindBy has an extender bind a pod. Like a binding of ours it waits for a
// status patch that is on its way, and is not sent without the lease. It does
// not count in Full: an extender that hangs is no reason to stop.
func (x *Executor) startBindBy(e machine.BindByExtender) {
	x.status.cancel(e.Pod.UID, func() {
		x.delegated.start(func(ctx context.Context) {
			if !x.clients.held() {
				x.report(machine.BindReply{UID: e.Pod.UID, Result: machine.BindRefused, Err: ErrNotLeading})
				return
			}
			x.unanswered.Add(1)
			defer x.unanswered.Add(-1)
			result, err := x.extenders.Bind(ctx, e)
			x.report(machine.BindReply{UID: e.Pod.UID, Result: result, Err: err})
		})
	})
}

// calls are goroutines that wait for somebody outside, and end together.
type calls struct {
	ctx context.Context
	end context.CancelFunc
	mu  sync.Mutex
	wg  sync.WaitGroup
}

func newCalls() *calls {
	c := &calls{}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c
}

// start makes a call, unless they have ended.
func (c *calls) start(f job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() == nil {
		c.wg.Go(func() { f(c.ctx) })
	}
}

// leave lets calls come to their end until ctx ends, then leaves them to themselves.
func (c *calls) leave(ctx context.Context) {
	done := make(chan struct{})
	go func() { c.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
}

// wait lets calls come to their end until ctx ends, then ends them.
func (c *calls) wait(ctx context.Context) {
	done := make(chan struct{})
	go func() { c.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	c.mu.Lock()
	c.end()
	c.mu.Unlock()
	<-done
}
