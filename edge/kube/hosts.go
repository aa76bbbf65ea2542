package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/fence"
)

// Hosts run plugins that are written against another contract.
type Hosts interface {
	// Run runs plugins and waits for them, however long. The reply is nil where
	// nobody waits for one.
	Run(context.Context, machine.RunPlugins) machine.Event
	// Cancel cancels the plugins that run for a pod.
	Cancel(uid types.UID, why error) bool
	// Pods and Nodes are the informers that the plugins read.
	Pods() cache.SharedIndexInformer
	Nodes() cache.SharedIndexInformer
}

// Host makes the executor run the plugins of hosts. Call it before the first Do.
func (x *Executor) Host(h Hosts) { x.hosts = h }

// startPlugins runs plugins, not without the lease. Bind waits, as a binding of ours
// does, for a status patch that is on its way; the patch that shows where the pod is
// expected goes out beside PreBind. A plugin that hangs is left behind when the
// scheduler stops.
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

func (x *Executor) runPlugins(ctx context.Context, e machine.RunPlugins) {
	if !x.clients.held() {
		x.report(refuse(e))
		return
	}
	x.unanswered.Add(1)
	defer x.unanswered.Add(-1)
	x.report(x.hosts.Run(ctx, e))
}

// refuse returns the reply where plugins were not run.
func refuse(e machine.RunPlugins) machine.Event {
	if e.Point == "Bind" {
		return machine.BindReply{UID: e.Pod.UID, Result: machine.BindRefused, Err: fence.ErrNotLeading}
	}
	return machine.PreBindReply{UID: e.Pod.UID, Status: &decision.Status{Code: decision.Error, Plugin: e.Plugins[0], Err: fence.ErrNotLeading}}
}

// Host has pods and nodes come from the informers that the plugins of hosts read: so
// these are never older than what is decided on. It comes before Run.
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

// inform makes an informer, which somebody else runs, fill the store.
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
