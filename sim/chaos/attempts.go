package chaos

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/queue"
)

// attempt is how a process last tried a pod.
type attempt struct {
	number int // as the process counts
	at     time.Time
	errors int    // in a row
	idle   bool   // no other attempt is due until something happens
	stirs  int    // the cluster's, then
	chosen bool   // a node was, and nothing is known of the binding yet
	said   string // why it is not placed
}

const (
	firstBackoff = time.Second // as configured by default
	longest      = 10 * time.Second
)

// stir notes whether the event may help a pod that waits; the cluster has not taken it
// in yet. A nomination that goes leaves room, as a pod that goes does.
func (k *cluster) stir(e machine.Event) {
	switch e := e.(type) {
	case machine.Tick, machine.ScheduleOne, machine.BudgetSet:
	case machine.PodSet:
		before := k.pods[e.Pod.UID]
		if e.Pod.NodeName != "" || before != nil && before.NominatedNode != "" && before.NominatedNode != e.Pod.NominatedNode {
			k.stirs++
		}
	default:
		k.stirs++
	}
}

// tried looks that a process waits before it tries a pod again after an error, that
// after a rejection it waits until something has happened, and that it counts each node
// once. An attempt that waits for an extender, or for a claim of devices to be released,
// is followed by another one because of what happens meanwhile: of such pods nothing is
// said.
func (c *check) tried(proc *process, k *cluster, now time.Time, d *decision.Decision) {
	rejected := d.Result == decision.ResultUnschedulable || d.Result == decision.ResultPreempting
	if !rejected || d.Result == decision.ResultPreempting {
		defer func() { k.stirs++ }() // a pod more, or room soon
	}
	if c.grouped(d.UID) {
		return // a cycle of its group may try it or not
	}
	before := k.attempts[d.UID]
	if d.Attempt < before.number {
		before = attempt{} // the pod came anew
	}
	gap, goesOn := now.Sub(before.at), before.chosen && d.Attempt == before.number
	switch wait := min(firstBackoff<<max(before.errors-1, 0), longest); {
	case goesOn || before.number == 0:
	case before.errors > 0 && gap < wait:
		c.note("%s tries pod %s again %s after error %d in a row", proc.name, d.Pod, gap, before.errors)
	case before.idle && k.stirs == before.stirs && gap < queue.DefaultMaxUnschedulable:
		c.note("%s tries pod %s again after %s, in which nothing happened", proc.name, d.Pod, gap)
	}
	nodes := 0
	for i := range d.Tallies {
		nodes += d.Tallies[i].Nodes
	}
	if rejected && d.PreFilter == nil && (nodes != d.NodesTotal || nodes != len(k.nodes) && !c.extended(d.UID)) {
		c.note("%s gives reasons of %d nodes why pod %s is not placed; it knows %d", proc.name, nodes, d.Pod, len(k.nodes))
	}
	pod := c.specs[d.UID]
	next := attempt{number: d.Attempt, at: now, chosen: d.Result == decision.ResultScheduled,
		idle: rejected && len(k.nodes) > 0 && pod != nil && len(pod.Spec.ResourceClaims) == 0 && !managed(pod), stirs: k.stirs}
	if rejected {
		next.said = explain.Message(d)
	}
	switch d.Result {
	case decision.ResultError:
		next.errors = before.errors + 1
	case decision.ResultScheduled: // it may fail yet
		next.errors = before.errors
	}
	k.attempts[d.UID] = next
}

// extended tells whether the extender manages the pod. An attempt that waits for its
// answer counts the nodes that there were when it began.
func (c *check) extended(uid types.UID) bool { return c.specs[uid] != nil && managed(c.specs[uid]) }

// grouped reports whether the pod is in a group.
func (c *check) grouped(uid types.UID) bool {
	return c.specs[uid] != nil && groupOf(c.specs[uid]) != ""
}

// says takes in what a condition says, and looks that it counts the nodes that there are.
func (c *check) says(proc *process, k *cluster, e machine.PatchStatus) {
	if said, last := e.Condition, k.attempts[e.Pod.UID]; said != nil && last.said != "" {
		last.said = said.Message
		k.attempts[e.Pod.UID] = last
	}
	if said := e.Condition; said != nil && said.Reason == v1.PodReasonUnschedulable && !k.panicked && !c.extended(e.Pod.UID) && strings.HasPrefix(said.Message, "0/") {
		if !strings.HasPrefix(said.Message, fmt.Sprintf("0/%d nodes are available: ", len(k.nodes))) {
			c.note("%s says of pod %s: %q; it knows %d nodes", proc.name, e.Pod.Key(), said.Message, len(k.nodes))
		}
	}
}

// lastSaid is why the process did not place the pod, as it said last; "" where it
// placed it, or did not try.
func (c *check) lastSaid(process string, pod *v1.Pod) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.knows[process]; k != nil && !k.cluster.panicked && !c.setBack {
		return k.cluster.attempts[pod.UID].said
	}
	return ""
}
