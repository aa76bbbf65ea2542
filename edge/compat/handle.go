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

// handle is the fwk.Handle that a hosted plugin gets. Its methods may be called from any
// goroutine. Besides this file they are in waiting.go (pods that Permit holds, or in
// PreBind), nominator.go, runners.go (other plugins) and managers.go.
type handle struct{ *Host }

var _ fwk.Handle = (*handle)(nil)

// SnapshotSharedLister returns a lister that always reads the last snapshot: that of the present
// cycle, or of the last one.
func (h *handle) SnapshotSharedLister() fwk.SharedLister { return sharedLister{h.Hosts} }

// MutableSnapshotSharedLister returns the lister of SnapshotSharedLister. Its methods that change
// the snapshot fail except in a call of PodGroupPostFilter.
func (h *handle) MutableSnapshotSharedLister() fwk.MutableSnapshotSharedLister {
	return sharedLister{h.Hosts}
}

// ClientSet returns a client that also works without the leader lease: what a plugin writes
// is up to the plugin.
func (h *handle) ClientSet() kubernetes.Interface { return h.options.Client }

// KubeConfig returns a copy of the client configuration; nil in tests without one.
func (h *handle) KubeConfig() *rest.Config {
	if h.options.Config == nil {
		return nil
	}
	return rest.CopyConfig(h.options.Config)
}

// EventRecorder returns the recorder of the profile's plugins.
func (h *handle) EventRecorder() events.EventRecorderLogger { return h.recorder }

// SharedInformerFactory returns a factory whose pods and nodes are those that Berth decides
// on. The informers that plugins request when they are made are synced before the first
// cycle. It is nil in tests without an API.
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory {
	if h.factory == nil {
		return nil
	}
	return h.factory
}

// ProfileName returns the schedulerName of the plugin's profile.
func (h *handle) ProfileName() string { return h.name }

// Extenders returns the configured extenders.
func (h *handle) Extenders() []fwk.Extender { return slices.Clone(h.options.Extenders) }

// Parallelizer returns a parallelizer that uses up to Options.Parallelism goroutines.
func (h *handle) Parallelizer() fwk.Parallelizer { return parallelizer{h.Host} }

// PodGroupManager returns the state of pod groups, which it reads at each call of Get. Pods that
// the cycle of a group only tries count as unscheduled.
func (h *handle) PodGroupManager() fwk.PodGroupManager { return podGroups{h.Hosts, false} }

// APIDispatcher returns nil, as in kube-scheduler without the feature gate
// SchedulerAsyncAPICalls.
func (h *handle) APIDispatcher() fwk.APIDispatcher { return nil }

// APICacher returns nil, as in kube-scheduler without the feature gate
// SchedulerAsyncAPICalls.
func (h *handle) APICacher() fwk.APICacher { return nil }

// Activate moves the pods to the active queue, as soon as the loop gets to it. The keys
// do not matter.
func (h *handle) Activate(_ klog.Logger, pods map[string]*v1.Pod) {
	var list []*v1.Pod
	for _, p := range pods { // any order: each is activated
		if p != nil {
			list = append(list, p)
		}
	}
	h.activate(list)
}

// parallelizer is the fwk.Parallelizer of plugins. When a piece of work panics, no other piece
// begins, and the panic is raised on the caller's goroutine.
type parallelizer struct{ host *Host }

// Until calls work for 0 to pieces-1 and waits. Pieces that have not begun when ctx
// ends are left out.
func (p parallelizer) Until(ctx context.Context, pieces int, work workqueue.DoWorkPieceFunc, _ string) {
	p.host.inParallel(pieces, func(i int) {
		if ctx.Err() == nil {
			work(i)
		}
	})
}
