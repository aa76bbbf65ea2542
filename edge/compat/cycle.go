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

// Host runs the hosted plugins of one profile. After Built, only cycles, lastSignature and
// lastAnswers change. Only the loop may use these; any goroutine may read the other fields.
type Host struct {
	*Hosts
	name     string                   // of the profile
	plugins  []*hostedPlugin          // all that were made
	byName   map[string]*hostedPlugin // the same plugins
	enabled  [points][]*hostedPlugin  // at each point, in the profile's order
	places   [points]map[string]int   // position of each plugin by name, native ones too, from 1
	weights  map[string]int64         // of Score plugins by name, native ones too
	cycles   map[types.UID]*cycle     // the attempts under way, by pod
	recorder events.EventRecorderLogger

	signers     []*hostedPlugin // plugins that filter or score and implement SignPlugin
	signerNames string          // comma-separated
	signs       bool            // every hosted plugin that filters or scores is a signer
	// lastSignature is the signature of the last pod that was signed, lastAnswers the
	// answers of its cycle. If the next cycle has the same signature, it uses them, too.
	lastSignature string
	lastAnswers   *answers
}

// cycle is one attempt to schedule a pod, from the scheduling cycle to the end of its
// binding: its CycleState and what its plugins answered.
type cycle struct {
	host       *Host
	pod        *v1.Pod
	object     *object.Pod     // core's pod
	ctx        context.Context // of plugin calls up to Permit; ends with the attempt
	cancel     context.CancelCauseFunc
	state      *cycleState
	toActivate fwk.StateData // the state's PodsToActivate
	snapshot   *snapshot     // of when the attempt began
	left       time.Duration // time left for plugin calls

	*answers
	tried      *trial                    // the last node that was tried with other pods; nil: none
	postFilter *framework.PostFilterCall // the call that the loop waits for; nil: none
	unwanted   error                     // why PreBind must not begin; guarded by Hosts.binding
}

// answers maps the statuses that Filter plugins returned to numbers, the core's verdicts:
// equal statuses have one number.
type answers struct {
	statuses        []*decision.Status           // verdict v is the status at v-1, or v-firstError-1
	numbers         map[string]framework.Verdict // by the text of the status
	rejection       *fwk.Status                  // the last one that verdict numbered
	rejectionNumber framework.Verdict            // its number
}

// errCycleEnded is the cause of a context that ended with its attempt, or with the call of a plugin
// for a pod group.
var errCycleEnded = errors.New("the scheduling cycle has ended")

// Begin begins an attempt for the pod: a new CycleState and the snapshot of now. The engine calls
// it before PreFilter. An attempt of the pod that has not ended is cancelled. Unless the cycle of a
// pod group is under way, lastGroup is forgotten.
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

// Show updates the snapshot that plugins see to the table as it is now. The machine calls it when a
// try of a pod group has placed a pod or removed it.
func (h *Host) Show(t *table.Table) { h.snapshots.refresh(t) }

// newCycle returns the state of a new attempt for the pod. The caller must set its snapshot
// of the nodes, and add it to h.cycles if plugins are to find it.
func (h *Host) newCycle(p *object.Pod) *cycle {
	c := &cycle{host: h, pod: APIPod(p), object: p, left: h.options.Timeout, answers: &answers{}, toActivate: h.options.PodsToActivate()}
	c.state = newCycleState(c.toActivate)
	c.ctx, c.cancel = context.WithCancelCause(h.logging)
	return c
}

// cycleOf returns the state of the pod's attempt. A pod without one, which is only tried, gets a
// new one that is not kept, with the latest snapshot. The states of the pod group in its CycleState
// are those of now.
func (h *Host) cycleOf(p *object.Pod) *cycle {
	if c := h.cycles[p.UID]; c != nil {
		return c.inGroup()
	}
	c := h.newCycle(p)
	c.snapshot = h.snapshots.last()
	return c.inGroup()
}

// Attempt returns the pod's attempt, a *cycle, for RunPlugins.Attempt; nil if there is none. The
// states of the pod group in its CycleState are those of now.
func (h *Host) Attempt(uid types.UID) any {
	if c := h.cycles[uid]; c != nil {
		return c.inGroup()
	}
	return nil
}

// End forgets the pod's attempt and cancels the context of its plugins. The machine calls it when
// the attempt is over, whether the pod is bound or not. Calls that have not returned go on.
func (h *Host) End(uid types.UID) {
	if c := h.cycles[uid]; c != nil {
		c.cancel(errCycleEnded)
		delete(h.cycles, uid)
	}
}

// call runs f, a call of the plugin at the point, within what is left of the attempt's time, and
// subtracts its time. If f panics, is overdue or may not run, call returns an error and cancels the
// attempt's context.
func (c *cycle) call(point, plugin string, f func()) error {
	err := c.host.call(&c.left, c.object.UID, point, plugin, f)
	if err != nil {
		c.cancel(err)
	}
	return err
}

// assumed returns the pod with the node in its spec.nodeName.
func (c *cycle) assumed(node string) *v1.Pod { return onNode(c.pod, node) }

// onNode returns p, or a copy of it if it must be changed, with this spec.nodeName.
func onNode(p *v1.Pod, node string) *v1.Pod {
	if p.Spec.NodeName == node {
		return p
	}
	assumed := *p
	assumed.Spec.NodeName = node
	return &assumed
}

// APIPod returns the pod's API object. For a pod that was decoded without keeping it,
// APIPod returns a new object with the few fields that are known.
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
