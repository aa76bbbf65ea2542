package compat

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// handle is what a plugin gets of the scheduler. Its methods may be called from any
// goroutine. They are here, in waiting.go (pods that Permit holds, or in PreBind),
// nominator.go, runners.go (other plugins) and managers.go.
type handle struct{ *Host }

var _ fwk.Handle = (*handle)(nil)

// SnapshotSharedLister returns the cluster as the present cycle sees it, or else the last
// one did.
func (h *handle) SnapshotSharedLister() fwk.SharedLister { return sharedLister{h.Hosts} }

// ClientSet is not bound to the lease: what a plugin writes is up to the plugin.
func (h *handle) ClientSet() kubernetes.Interface { return h.options.Client }

// KubeConfig returns a copy.
func (h *handle) KubeConfig() *rest.Config {
	if h.options.Config == nil {
		return nil
	}
	return rest.CopyConfig(h.options.Config)
}

func (h *handle) EventRecorder() events.EventRecorderLogger { return h.recorder }

// SharedInformerFactory returns informers that have the pods and nodes that Berth decides
// on. What plugins request before the first cycle is complete at the first cycle.
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory {
	if h.factory == nil {
		return nil
	}
	return h.factory
}

func (h *handle) ProfileName() string                  { return h.name }
func (h *handle) Extenders() []fwk.Extender            { return slices.Clone(h.options.Extenders) }
func (h *handle) Parallelizer() fwk.Parallelizer       { return parallelizer{h.Host} }
func (h *handle) PodGroupManager() fwk.PodGroupManager { return podGroups{h.Hosts, false} }

// APIDispatcher and APICacher are nil, as in kube-scheduler where the feature gate
// SchedulerAsyncAPICalls is off.
func (h *handle) APIDispatcher() fwk.APIDispatcher { return nil }

// APICacher is nil.
func (h *handle) APICacher() fwk.APICacher { return nil }

// Activate makes the pods active as soon as possible.
func (h *handle) Activate(_ klog.Logger, pods map[string]*v1.Pod) {
	var list []*v1.Pod
	for _, p := range pods { // any order: each is activated
		if p != nil {
			list = append(list, p)
		}
	}
	h.activate(list)
}

// parallelizer runs pieces of work on several goroutines. A panic of one ends the
// others, and is the caller's.
type parallelizer struct{ host *Host }

func (p parallelizer) Until(ctx context.Context, pieces int, work workqueue.DoWorkPieceFunc, _ string) {
	p.host.inParallel(pieces, func(i int) {
		if ctx.Err() == nil {
			work(i)
		}
	})
}
