package compat

import (
	"context"
	"errors"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/machine"
)

// waitingPod is the fwk.WaitingPod: a pod that Permit plugins held in one of its attempts.
type waitingPod struct {
	hosts   *Hosts
	pod     *v1.Pod
	attempt int
	pending []string // as of when it was asked for
}

// GetPod returns the pod with its node.
func (w *waitingPod) GetPod() *v1.Pod { return w.pod }

// GetPendingPlugins returns the plugins that hold the pod now; none if it does not wait any more.
// If the loop does not answer, it returns those that held the pod when it was found.
func (w *waitingPod) GetPendingPlugins() []string {
	pending := []string{}
	err := w.hosts.ask(func() {
		for _, now := range w.hosts.machine.WaitingPods() {
			if now.Pod.UID == w.pod.UID && now.Attempt == w.attempt {
				pending = append(pending, now.Plugins...)
			}
		}
	})
	if err != nil {
		return slices.Clone(w.pending)
	}
	return pending
}

// Allow records that the plugin no longer holds the pod. It is bound when none does.
func (w *waitingPod) Allow(plugin string) {
	w.answer(machine.PermitReply{Plugin: plugin, Allow: true})
}

// Reject ends the pod's attempt: the pod is unschedulable by the plugin. It returns
// false if the pod does not wait any more.
func (w *waitingPod) Reject(plugin, msg string) bool {
	return w.answer(machine.PermitReply{Plugin: plugin, Message: msg})
}

// Preempt ends the pod's attempt in favour of a more important pod: it is tried again
// after its backoff. It returns false if the pod does not wait any more.
func (w *waitingPod) Preempt(plugin, msg string) bool {
	return w.answer(machine.PermitReply{Plugin: plugin, Preempt: true, Message: msg})
}

// answer sends the machine a plugin's answer, if the pod still waits, and reports
// whether it does. If the loop does not reply, an Allow is sent all the same, any other
// answer is not.
func (w *waitingPod) answer(e machine.PermitReply) (counts bool) {
	e.UID, e.Attempt = w.pod.UID, w.attempt
	err := w.hosts.ask(func() {
		if counts = w.hosts.machine.Answer(e); counts {
			w.hosts.report(e)
		}
	})
	if err != nil && e.Allow {
		w.hosts.report(e)
	}
	return err == nil && counts
}

// waitingPods returns the pods that Permit plugins of any profile hold; nil if the loop
// does not answer.
func (h *Hosts) waitingPods() []*waitingPod {
	var list []*waitingPod
	if h.ask(func() { list = h.listWaiting() }) != nil {
		return nil
	}
	return list
}

// listWaiting returns the pods that Permit plugins of any profile hold. It must run on
// the loop.
func (h *Hosts) listWaiting() []*waitingPod {
	var list []*waitingPod
	for _, w := range h.machine.WaitingPods() {
		list = append(list, &waitingPod{h, onNode(APIPod(w.Pod), w.Node), w.Attempt, w.Plugins})
	}
	return list
}

// IterateOverWaitingPods calls callback for each pod that Permit plugins of any profile hold.
func (h *handle) IterateOverWaitingPods(callback func(fwk.WaitingPod)) {
	for _, w := range h.waitingPods() {
		callback(w)
	}
}

// GetWaitingPod returns the pod if Permit plugins of any profile hold it; nil if not, or if the
// loop does not answer.
func (h *handle) GetWaitingPod(uid types.UID) fwk.WaitingPod {
	for _, w := range h.waitingPods() {
		if w.pod.UID == uid {
			return w
		}
	}
	return nil
}

// RejectWaitingPod rejects the pod if Permit plugins hold it, and reports whether they do. It
// returns false if the loop does not answer.
func (h *handle) RejectWaitingPod(uid types.UID) bool {
	w := h.GetWaitingPod(uid)
	return w != nil && w.Reject("", "removed")
}

// podInPreBind is the fwk.PodInPreBind: a pod whose PreBind plugins run.
type podInPreBind struct {
	hosts *Hosts
	uid   types.UID
}

// CancelPod cancels the context of the PreBind plugins. It returns false if they have
// returned, or MarkPrebound was called.
func (p podInPreBind) CancelPod(reason string) bool {
	return p.hosts.binding.cancel(p.uid, errors.New(reason))
}

// MarkPrebound makes CancelPod fail from now on. It returns false if the pod was cancelled or its
// PreBind plugins have returned.
func (p podInPreBind) MarkPrebound() bool {
	l := &p.hosts.binding
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.pods[p.uid]
	if b == nil || b.canceled {
		return false
	}
	b.bound = true
	return true
}

// AddPodInPreBind records that PreBind runs for the pod; CancelPod calls cancel.
func (h *handle) AddPodInPreBind(uid types.UID, cancel context.CancelCauseFunc) {
	h.binding.add(uid, cancel)
}

// GetPodInPreBind returns the pod if its PreBind plugins run, else nil.
func (h *handle) GetPodInPreBind(uid types.UID) fwk.PodInPreBind {
	h.binding.mu.Lock()
	defer h.binding.mu.Unlock()
	if h.binding.pods[uid] == nil {
		return nil
	}
	return podInPreBind{h.Hosts, uid}
}

// RemovePodInPreBind records that PreBind for the pod is over.
func (h *handle) RemovePodInPreBind(uid types.UID) { h.binding.remove(uid) }
