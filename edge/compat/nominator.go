package compat

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/machine"
)

// AddNominatedPod nominates a pod in the queue: to the node that is given, or else
// that its status names.
func (h *handle) AddNominatedPod(_ klog.Logger, pod fwk.PodInfo, info *fwk.NominatingInfo) {
	if p := pod.GetPod(); info.Mode() == fwk.ModeOverride {
		h.nominate(p, info.NominatedNodeName)
	} else if node := p.Status.NominatedNodeName; node != "" {
		h.nominate(p, node)
	}
}

// DeleteNominatedPodIfExists ends the pod's nomination.
func (h *handle) DeleteNominatedPodIfExists(pod *v1.Pod) { h.nominate(pod, "") }

// UpdateNominatedPod moves the nomination to where the newer state of the pod says;
// one that says nothing, as the older did, leaves it.
func (h *handle) UpdateNominatedPod(_ klog.Logger, old *v1.Pod, pod fwk.PodInfo) {
	if now := pod.GetPod().Status.NominatedNodeName; old == nil || old.Status.NominatedNodeName != now {
		h.nominate(pod.GetPod(), now)
	}
}

func (h *handle) nominate(p *v1.Pod, node string) {
	h.report(machine.NominationSet{UID: p.UID, Node: node})
}

// NominatedPodsForNode lists the pods nominated to the node.
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
