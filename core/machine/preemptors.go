package machine

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
)

// preemptors are the pods that have preempted others and wait for their victims to leave.
type preemptors struct {
	*step
	pods     *pods
	heldBack int // preemptions
}

// retryAfterError moves the preemptors that wait to the error backoff, because an eviction
// that they relied on failed.
func (w *preemptors) retryAfterError(preemptors []*object.Pod) {
	for _, p := range preemptors {
		if ps := w.pods.byUID[p.UID]; ps != nil && ps.entry != nil {
			w.queue.RetryAfterError(w.now, ps.entry)
		}
	}
}

// skipBackoffs lets those preemptors skip their backoff whose victims are all gone. The
// others wait their backoff out: each victim that goes calls all preemptors, and were
// they all tried each time, a thousand of them would be tried a million times.
func (w *preemptors) skipBackoffs(preemptors []*object.Pod) {
	for _, p := range preemptors {
		if ps := w.pods.byUID[p.UID]; ps != nil && ps.entry != nil && w.victimsLeaving(ps) == "" {
			w.queue.SkipBackoff(w.now, ps.entry)
		}
	}
}

// evicting reports whether the pod with this UID is being preempted.
func (w *preemptors) evicting(uid types.UID) bool {
	ps := w.pods.byUID[uid]
	return ps != nil && ps.evicting()
}

// victimsLeaving returns the node on which victims that the pod has preempted are on
// their way out, "" when none is.
func (w *preemptors) victimsLeaving(ps *podState) string {
	if ps.preemption == nil {
		return ""
	}
	if slices.ContainsFunc(ps.preemption.victims, w.evicting) {
		return ps.preemption.node
	}
	ps.preemption = nil
	return ""
}

// stays reports whether a pod is placed and not being deleted or evicted.
func (w *preemptors) stays(uid types.UID) bool {
	pl := w.table.Pod(uid)
	return pl != nil && !pl.Pod.Terminating && !w.evicting(uid)
}
