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

// waitingPod is a pod that Permit plugins hold, or have held, in one of its attempts.
type waitingPod struct {
	hosts   *Hosts
	pod     *v1.Pod
	attempt int
	pending []string // as of when it was asked for
}

func (w *waitingPod) GetPod() *v1.Pod { return w.pod }

// GetPendingPlugins names the plugins that hold the pod now.
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

// Allow records that the plugin lets the pod go.
func (w *waitingPod) Allow(plugin string) {
	w.answer(machine.PermitReply{Plugin: plugin, Allow: true})
}

// Reject ends the pod's attempt: it waits for what may help it. False where the wait is
// over.
func (w *waitingPod) Reject(plugin, msg string) bool {
	return w.answer(machine.PermitReply{Plugin: plugin, Message: msg})
}

// Preempt ends the pod's attempt for a pod that is more important: it is tried again after
// a backoff. False where the wait is over.
func (w *waitingPod) Preempt(plugin, msg string) bool {
	return w.answer(machine.PermitReply{Plugin: plugin, Preempt: true, Message: msg})
}

// answer sends the reply to the machine if it counts, and reports whether it does. If the
// loop does not answer, a rejection does not count, and a permission is sent for the
// machine to judge.
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

// waitingPods lists the pods that Permit plugins of any profile hold.
func (h *Hosts) waitingPods() []*waitingPod {
	var list []*waitingPod
	if h.ask(func() { list = h.listWaiting() }) != nil {
		return nil
	}
	return list
}

func (h *Hosts) listWaiting() []*waitingPod {
	var list []*waitingPod
	for _, w := range h.machine.WaitingPods() {
		list = append(list, &waitingPod{h, onNode(APIPod(w.Pod), w.Node), w.Attempt, w.Plugins})
	}
	return list
}

// IterateOverWaitingPods calls back for each pod that Permit plugins hold.
func (h *handle) IterateOverWaitingPods(callback func(fwk.WaitingPod)) {
	for _, w := range h.waitingPods() {
		callback(w)
	}
}

// GetWaitingPod finds a pod that Permit plugins hold, nil for none.
func (h *handle) GetWaitingPod(uid types.UID) fwk.WaitingPod {
	for _, w := range h.waitingPods() {
		if w.pod.UID == uid {
			return w
		}
	}
	return nil
}

// RejectWaitingPod ends the wait of the pod; false where it does not wait.
func (h *handle) RejectWaitingPod(uid types.UID) bool {
	w := h.GetWaitingPod(uid)
	return w != nil && w.Reject("", "removed")
}

// podInPreBind is a pod whose PreBind plugins run.
type podInPreBind struct {
	hosts *Hosts
	uid   types.UID
}

// CancelPod cancels the context of the plugins; false where it is too late.
func (p podInPreBind) CancelPod(reason string) bool {
	return p.hosts.binding.cancel(p.uid, errors.New(reason))
}

// MarkPrebound makes it too late to cancel; false where the pod was canceled.
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

// AddPodInPreBind records a call under way for the pod, which cancel ends.
func (h *handle) AddPodInPreBind(uid types.UID, cancel context.CancelCauseFunc) {
	h.binding.add(uid, cancel)
}

// GetPodInPreBind finds a pod whose PreBind plugins run, nil for none.
func (h *handle) GetPodInPreBind(uid types.UID) fwk.PodInPreBind {
	h.binding.mu.Lock()
	defer h.binding.mu.Unlock()
	if h.binding.pods[uid] == nil {
		return nil
	}
	return podInPreBind{h.Hosts, uid}
}

// RemovePodInPreBind records that the call for the pod is over.
func (h *handle) RemovePodInPreBind(uid types.UID) { h.binding.remove(uid) }
