package compat

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/machine"
)

// AddNominatedPod nominates a pod of the queue: to the node of info if its mode is ModeOverride,
// where "" ends the nomination, else to the node in the pod's status, if any.
func (h *handle) AddNominatedPod(_ klog.Logger, pod fwk.PodInfo, info *fwk.NominatingInfo) {
	if p := pod.GetPod(); info.Mode() == fwk.ModeOverride {
		h.nominate(p, info.NominatedNodeName)
	} else if node := p.Status.NominatedNodeName; node != "" {
		h.nominate(p, node)
	}
}

// DeleteNominatedPodIfExists ends the pod's nomination.
func (h *handle) DeleteNominatedPodIfExists(pod *v1.Pod) { h.nominate(pod, "") }

// UpdateNominatedPod changes the pod's nomination to the node in its new status; "" ends it. It
// does nothing if old, which may be nil, has the same node.
func (h *handle) UpdateNominatedPod(_ klog.Logger, old *v1.Pod, pod fwk.PodInfo) {
	if now := pod.GetPod().Status.NominatedNodeName; old == nil || old.Status.NominatedNodeName != now {
		h.nominate(pod.GetPod(), now)
	}
}

// nominate asks the machine to nominate the pod to the node; "" ends the nomination. It
// does not wait.
func (h *handle) nominate(p *v1.Pod, node string) {
	h.report(machine.NominationSet{UID: p.UID, Node: node})
}

// NominatedPodsForNode returns the queued pods nominated to the node; nil if the loop does not
// answer.
func (h *handle) NominatedPodsForNode(node string) []fwk.PodInfo {
	var list []fwk.PodInfo
	err := h.ask(func() {
		var pods []fwk.PodInfo
		for _, p := range h.machine.NominatedTo(node) {
			pods = append(pods, newPodInfo(p, ""))
		}
		list = pods
	})
	if err != nil {
		return nil
	}
	return list
}
