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

// A nomination goes where a plugin says, and Berth counts it as its own.
func TestNominator(t *testing.T) {
	var h fwk.Handle
	c := New(t, WithPlugin("M", with(func(given fwk.Handle) fwk.Plugin {
		h = given
		return &filter{"M", func(_ fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
			if p.Name == "p" {
				return fwk.NewStatus(fwk.Unschedulable, "nowhere")
			}
			return nil
		}}
	})))
	p := Pod("p")
	p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
	c.Add(Node("a"), Node("b"), p)
	c.Failure("p")
	nominated := func(node string) *v1.Pod {
		n := p.DeepCopy()
		n.Status.NominatedNodeName = node
		return n
	}
	for _, step := range []struct {
		what string
		do   func(klog.Logger)
		want string
	}{
		{"AddNominatedPod, as it is told", func(l klog.Logger) {
			h.AddNominatedPod(l, alone{pod: p}, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: "a"})
		}, "a"},
		{"AddNominatedPod, as the pod says", func(l klog.Logger) { h.AddNominatedPod(l, alone{pod: nominated("b")}, nil) }, "b"},
		{"UpdateNominatedPod", func(l klog.Logger) { h.UpdateNominatedPod(l, nominated("b"), alone{pod: nominated("a")}) }, "a"},
		{"UpdateNominatedPod with nothing new", func(l klog.Logger) { h.UpdateNominatedPod(l, nominated("b"), alone{pod: nominated("b")}) }, "a"},
		{"UpdateNominatedPod after that", func(l klog.Logger) { h.UpdateNominatedPod(l, p, alone{pod: nominated("b")}) }, "b"},
		{"DeleteNominatedPodIfExists", func(klog.Logger) { h.DeleteNominatedPodIfExists(p) }, ""},
	} {
		step.do(klog.Background())
		c.Until(step.what, func() bool {
			for _, node := range []string{"a", "b"} {
				list := h.NominatedPodsForNode(node)
				if node == step.want && (len(list) != 1 || list[0].GetPod().Name != "p") || node != step.want && len(list) != 0 {
					return false
				}
			}
			return true
		})
	}
	h.AddNominatedPod(klog.Background(), alone{pod: nominated("a")}, nil)
	rival := Pod("rival")
	rival.Spec.Containers[0].Ports = p.Spec.Containers[0].Ports
	if c.Add(rival); c.NodeOf("rival") != "b" {
		t.Error("the port of the nominated pod is given away")
	}
}
