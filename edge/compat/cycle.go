package compat

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Host runs the hosted plugins of one profile. The loop owns it, except for the
// recorder.
type Host struct {
	*Hosts
	name     string
	plugins  []*hostedPlugin
	byName   map[string]*hostedPlugin
	enabled  [points][]*hostedPlugin
	places   [points]map[string]int // of plugins in the profile's order
	weights  map[string]int64       // of scores
	cycles   map[types.UID]*cycle
	recorder events.EventRecorderLogger

	signers     []*hostedPlugin // that filter or score
	signerNames string
	signs       bool // they all do
	// lastSignature is the signature of the last pod that was signed, lastAnswers the
	// answers of its cycle.
	lastSignature string
	lastAnswers   *answers
}

// cycle is an attempt for a pod, as hosted plugins know it.
type cycle struct {
	host       *Host
	pod        *v1.Pod
	object     *object.Pod
	ctx        context.Context
	cancel     context.CancelCauseFunc
	state      *cycleState
	toActivate fwk.StateData // in the state
	snapshot   *snapshot
	left       time.Duration // for calls

	*answers
	tried      *trial
	postFilter *framework.PostFilterCall // while PostFilter plugins run
	unwanted   error                     // why nobody waits for PreBind, if it had not begun then; guarded by Hosts.binding
}

// answers are what filters answered.
type answers struct {
	statuses        []*decision.Status // a verdict is a place here
	numbers         map[string]framework.Verdict
	rejection       *fwk.Status // the last one that got a number
	rejectionNumber framework.Verdict
}

var errCycleEnded = errors.New("the scheduling cycle has ended")

// Begin begins an attempt.
func (h *Host) Begin(t *table.Table, p *object.Pod) {
	c := h.newCycle(p)
	c.snapshot = h.snapshots.refresh(t)
	if old := h.cycles[p.UID]; old != nil {
		old.cancel(errCycleEnded)
	}
	h.cycles[p.UID] = c
	if c.inGroup(); c.state.group == nil {
		h.lastGroup = lastGroup{}
	}
}

// Show has plugins see the nodes as they stand.
func (h *Host) Show(t *table.Table) { h.snapshots.refresh(t) }

func (h *Host) newCycle(p *object.Pod) *cycle {
	c := &cycle{host: h, pod: APIPod(p), object: p, left: h.options.Timeout, answers: &answers{}, toActivate: h.options.PodsToActivate()}
	c.state = newCycleState(c.toActivate)
	c.ctx, c.cancel = context.WithCancelCause(h.logging)
	return c
}

// cycleOf returns the attempt for the pod. A pod without an attempt gets a new, empty
// one.
func (h *Host) cycleOf(p *object.Pod) *cycle {
	if c := h.cycles[p.UID]; c != nil {
		return c.inGroup()
	}
	c := h.newCycle(p)
	c.snapshot = h.snapshots.last()
	return c.inGroup()
}

// Attempt returns the pod's cycle.
func (h *Host) Attempt(uid types.UID) any {
	if c := h.cycles[uid]; c != nil {
		return c.inGroup()
	}
	return nil
}

// End ends the attempt. What plugins still run for it goes on.
func (h *Host) End(uid types.UID) {
	if c := h.cycles[uid]; c != nil {
		c.cancel(errCycleEnded)
		delete(h.cycles, uid)
	}
}

// call calls a plugin within what is left of the attempt's time, which it reduces. After an
// error it cancels the cycle's context.
func (c *cycle) call(point, plugin string, f func()) error {
	err := c.host.call(&c.left, c.object.UID, point, plugin, f)
	if err != nil {
		c.cancel(err)
	}
	return err
}

// assumed returns the pod as it looks on the node.
func (c *cycle) assumed(node string) *v1.Pod { return onNode(c.pod, node) }

func onNode(p *v1.Pod, node string) *v1.Pod {
	if p.Spec.NodeName == node {
		return p
	}
	assumed := *p
	assumed.Spec.NodeName = node
	return &assumed
}

// APIPod returns the API object of a pod. One that was decoded without it gets what is
// known.
func APIPod(p *object.Pod) *v1.Pod {
	if p.API != nil {
		return p.API
	}
	pod := &v1.Pod{}
	pod.Name, pod.Namespace, pod.UID, pod.Labels = p.Name, p.Namespace, p.UID, p.Labels
	pod.ResourceVersion = p.Version
	pod.Spec.SchedulerName, pod.Spec.NodeName, pod.Spec.Priority = p.SchedulerName, p.NodeName, &p.Priority
	return pod
}
