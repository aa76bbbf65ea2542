package chaos

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/queue"
)

// attempt is how a process last tried a pod.
type attempt struct {
	at     time.Time
	errors int    // in a row
	idle   bool   // no other attempt is due until something happens
	said   string // why it was not placed
}

const (
	firstBackoff = time.Second // as configured by default
	backoffGrain = time.Second // what ends a backoff may come that much early
	longest      = 10 * time.Second
)

// stir notes whether the event may help a pod that waits.
func (k *cluster) stir(now time.Time, e machine.Event) {
	switch e := e.(type) {
	case machine.Tick, machine.ScheduleOne, machine.BudgetSet:
	case machine.PodSet:
		if e.Pod.NodeName != "" {
			k.stirred = now
		}
	default:
		k.stirred = now
	}
}

// tried looks that a process waits before it tries a pod again after an error, that
// after a rejection it waits until something has happened (of pods without claims, of
// which no extender has a say), and that it counts each node once.
func (c *check) tried(proc *process, k *cluster, now time.Time, d *decision.Decision) {
	before, again := k.attempts[d.UID]
	gap := now.Sub(before.at)
	switch wait := min(firstBackoff<<max(before.errors-1, 0), longest); {
	case !again:
	case before.errors > 0 && gap < wait-backoffGrain:
		c.note("%s tries pod %s again %s after error %d in a row", proc.name, d.Pod, gap, before.errors)
	case before.idle && k.stirred.Before(before.at) && gap < queue.DefaultMaxUnschedulable:
		c.note("%s tries pod %s again after %s, in which nothing happened", proc.name, d.Pod, gap)
	}
	nodes := 0
	for i := range d.Tallies {
		nodes += d.Tallies[i].Nodes
	}
	rejected := d.Result == decision.ResultUnschedulable || d.Result == decision.ResultPreempting
	if rejected && d.PreFilter == nil && (nodes != d.NodesTotal || nodes != len(k.nodes)) {
		c.note("%s gives reasons of %d nodes why pod %s is not placed; it knows %d", proc.name, nodes, d.Pod, len(k.nodes))
	}
	pod := c.specs[d.UID]
	next := attempt{at: now, idle: rejected && len(k.nodes) > 0 && pod != nil && len(pod.Spec.Volumes)+len(pod.Spec.ResourceClaims) == 0 && !managed(pod)}
	if rejected {
		next.said = explain.Message(d)
	}
	if d.Result == decision.ResultError {
		next.errors = before.errors + 1
	}
	k.attempts[d.UID] = next
	if !rejected || d.Result == decision.ResultPreempting {
		k.stirred = now // a pod more, or room soon
	}
}

// says looks that a condition counts the nodes that there are.
func (c *check) says(proc *process, k *cluster, e machine.PatchStatus) {
	if said := e.Condition; said != nil && said.Reason == v1.PodReasonUnschedulable && !k.panicked && strings.HasPrefix(said.Message, "0/") {
		if !strings.HasPrefix(said.Message, fmt.Sprintf("0/%d nodes are available: ", len(k.nodes))) {
			c.note("%s says of pod %s: %q; it knows %d nodes", proc.name, e.Pod.Key(), said.Message, len(k.nodes))
		}
	}
}

// lastSaid is why the process did not place the pod when it last tried; "" where it
// placed it, or did not try.
func (c *check) lastSaid(process string, pod *v1.Pod) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.knows[process]; k != nil && !k.cluster.panicked && !c.setBack {
		return k.cluster.attempts[pod.UID].said
	}
	return ""
}
