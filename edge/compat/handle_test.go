package compat_test

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

// alone is a pod of no scheduler's, as a plugin may make it up.
type alone struct {
	fwk.PodInfo
	pod *v1.Pod
}

func (a alone) GetPod() *v1.Pod { return a.pod }

// What a factory asks of its handle, before there is anything to schedule, has no answer
// and ends nothing.
func TestHandleInAFactory(t *testing.T) {
	c := New(t, WithPlugin("F", with(func(h fwk.Handle) fwk.Plugin {
		ctx, logger, p := context.Background(), klog.Background(), Pod("p")
		nominated := Pod("p")
		nominated.Status.NominatedNodeName = "a"
		h.AddNominatedPod(logger, alone{pod: nominated}, nil)
		h.AddNominatedPod(logger, alone{pod: p}, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: "a"})
		h.UpdateNominatedPod(logger, p, alone{pod: nominated})
		h.DeleteNominatedPodIfExists(p)
		h.Activate(logger, map[string]*v1.Pod{"p": p, "none": nil})
		h.IterateOverWaitingPods(func(fwk.WaitingPod) { t.Error("a pod waits") })
		if h.GetWaitingPod(p.UID) != nil || h.RejectWaitingPod(p.UID) || h.GetPodInPreBind(p.UID) != nil || h.NominatedPodsForNode("a") != nil {
			t.Error("there are pods")
		}
		if nodes, err := h.SnapshotSharedLister().NodeInfos().List(); err != nil || len(nodes) > 0 {
			t.Errorf("%d nodes, %v", len(nodes), err)
		}
		if s := h.RunFilterPlugins(ctx, nil, p, nil); s.IsSuccess() {
			t.Error("the pod fits no node at all")
		}
		return &filter{"F", func(fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status { return nil }}
	})))
	c.Add(Node("a"), Pod("p"))
	c.NodeOf("p")
}
