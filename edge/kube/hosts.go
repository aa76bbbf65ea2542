package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/fence"
)

// Hosts run the plugins that are written against kube-scheduler's Go framework. Package
// compat implements it.
type Hosts interface {
	// Run runs the PreBind or Bind plugins of the effect for a pod, waits for them, however
	// long, and returns their reply. For PostBind it only queues the call and returns nil.
	Run(context.Context, machine.RunPlugins) machine.Event
	// Cancel cancels the context of the PreBind plugins that run for the pod, with why as
	// its cause. Those that have not begun will not run. It returns false if none runs, or
	// it is too late to cancel.
	Cancel(uid types.UID, why error) bool
	// Pods and Nodes return the informers that the plugins read, which others start.
	Pods() cache.SharedIndexInformer
	Nodes() cache.SharedIndexInformer
}

// Host makes the executor run the plugins of these hosts. Call it before the first Do.
func (x *Executor) Host(h Hosts) { x.hosts = h }

// startPlugins runs the PreBind or Bind plugins of an effect on a goroutine of their own, if
// the lease is held, and reports their reply. Before Bind plugins run, a status patch of the
// pod is voided if it was not sent, else awaited; PreBind plugins run beside it. PostBind is
// handed to the hosts at once. A plugin that hangs is left behind when the scheduler stops.
func (x *Executor) startPlugins(e machine.RunPlugins) {
	if e.Point == "PostBind" {
		x.hosts.Run(context.Background(), e)
		return
	}
	start := func() { x.plugins.start(func(ctx context.Context) { x.runPlugins(ctx, e) }) }
	if e.Point == "PreBind" {
		start()
		return
	}
	x.status.cancel(e.Pod.UID, start)
}

// runPlugins runs the effect's plugins and reports their reply. Without the lease it runs
// none and reports that they were refused.
func (x *Executor) runPlugins(ctx context.Context, e machine.RunPlugins) {
	if !x.clients.held() {
		x.report(refuse(e))
		return
	}
	x.unanswered.Add(1)
	defer x.unanswered.Add(-1)
	x.report(x.hosts.Run(ctx, e))
}

// refuse returns the reply to a PreBind or Bind effect whose plugins were not run because the
// lease is lost.
func refuse(e machine.RunPlugins) machine.Event {
	if e.Point == "Bind" {
		return machine.BindReply{UID: e.Pod.UID, Result: machine.BindRefused, Err: fence.ErrNotLeading}
	}
	return machine.PreBindReply{UID: e.Pod.UID, Status: &decision.Status{Code: decision.Error, Plugin: e.Plugins[0], Err: fence.ErrNotLeading}}
}

// Host makes the watcher take pods and nodes from the informers that hosted plugins read,
// so that these never show an older state than the machine decides on. Events of pods and
// nodes then have the API objects. Call it before Run.
func (w *Watcher) Host(h Hosts) {
	w.hosted = true
	for _, s := range w.stores {
		switch s.name {
		case "pods":
			s.inform(h.Pods())
		case "nodes":
			s.inform(h.Nodes())
		}
	}
}

// inform makes s.run fill the store from an informer that somebody else runs, in place of a
// reflector of its own. Marks and Audit then leave the store out.
func (s *store) inform(i cache.SharedIndexInformer) {
	s.list = nil
	_ = i.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		s.failed.Store(&err)
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	s.run = func(ctx context.Context) {
		handler, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { _ = s.Update(obj) },
			UpdateFunc: func(_, obj any) { _ = s.Update(obj) },
			DeleteFunc: func(obj any) {
				if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = lost.Obj
				}
				_ = s.Delete(obj)
			},
		})
		if err != nil {
			s.failed.Store(&err)
			return
		}
		if cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
			s.failed.Store(nil)
			s.complete()
		}
		<-ctx.Done()
	}
}
