package machine

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/preempt"
)

// Extender is the configuration of an HTTP extender (KubeSchedulerConfiguration's). The
// edge calls it.
type Extender struct {
	Name string // its URL
	// Filter, Prioritize, Preempt and Bind are set for the verbs that it implements.
	Filter, Prioritize, Preempt, Bind bool
	// Weight multiplies its scores.
	Weight int64
	// Manages names the extended resources whose pods it manages; empty: it manages all
	// pods.
	Manages []v1.ResourceName
	// Ignorable: if a call fails, the pod goes on without this extender.
	Ignorable bool
	// Limit is how many calls may be open at a time; at least 1. Other pods wait.
	Limit int
	// Timeout is how long the edge waits for a reply. The machine waits a little longer, as
	// the edge's report may never come.
	Timeout time.Duration
}

// Verb is what an extender is called for before a node is chosen.
type Verb string

const (
	Filter     Verb = "filter"     // which nodes may take the pod?
	Prioritize Verb = "prioritize" // which of them are best?
	Preempt    Verb = "preempt"    // which candidates for preemption are acceptable?
)

// extenderScale multiplies extenders' scores, which are 0 to 10 (kube-scheduler's
// MaxExtenderPriority), to those of plugins, 0 to 100.
const extenderScale = 10

// Interested reports whether the extender manages the pod: Manages is empty, or a container
// or init container requests, or is limited in, a resource in Manages.
func (x *Extender) Interested(p *v1.Pod) bool {
	if len(x.Manages) == 0 {
		return true
	}
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			r := &list[i].Resources
			if slices.ContainsFunc(x.Manages, func(name v1.ResourceName) bool {
				_, requested := r.Requests[name]
				_, limited := r.Limits[name]
				return requested || limited
			}) {
				return true
			}
		}
	}
	return false
}

// asks reports whether the extender takes part in filtering, scoring or preemption,
// before a node is chosen.
func (x *Extender) asks() bool { return x.Filter || x.Prioritize || x.Preempt }

// refusal returns the entry in the record for a node that an extender refused.
func refusal(code decision.Code, reason string) decision.Blocker {
	return decision.Blocker{Code: code, Reasons: []string{reason}}
}

// resolveVictims returns an extender's reply to Preempt as candidates. It returns an error if a
// node was not offered or has no victims in the reply, or if a victim is not on its node or not of
// lower priority than the pod. A node without victims is left out instead if the extender is
// Ignorable. Victims that were offered and are gone now are left out.
func (d *schedulingCycles) resolveVictims(c *extenderCycle, x *Extender, left []NodeVictims) ([]framework.Candidate, error) {
	var kept []framework.Candidate
	for _, l := range left {
		at := slices.IndexFunc(c.review.candidates, func(o framework.Candidate) bool { return o.Node == l.Node })
		if at < 0 {
			return nil, fmt.Errorf("extender %q: preempt: node %q was not among the candidates", x.Name, l.Node)
		}
		if len(l.Victims) == 0 {
			if x.Ignorable {
				continue
			}
			return nil, preempt.NoVictim(l.Node)
		}
		candidate := framework.Candidate{Node: l.Node, NumPDBViolations: l.Violations}
		for _, uid := range l.Victims {
			pl := d.table.Pod(uid)
			switch {
			case pl != nil && d.table.Name(pl.Row) == l.Node && pl.Pod.Priority >= c.pod.Priority:
				return nil, fmt.Errorf("extender %q: preempt: pod %s on node %q is not of lower priority", x.Name, pl.Pod.Key(), l.Node)
			case pl != nil && d.table.Name(pl.Row) == l.Node:
				candidate.Victims = append(candidate.Victims, pl.Pod)
			case !slices.ContainsFunc(c.review.candidates[at].Victims, func(v *object.Pod) bool { return v.UID == uid }):
				return nil, fmt.Errorf("extender %q: preempt: no pod of UID %q is on node %q", x.Name, uid, l.Node)
			}
		}
		kept = append(kept, candidate)
	}
	return kept, nil
}

// candidatesLeft returns the candidates whose node still exists, each with the victims that are
// still there and of lower priority than the pod. A candidate without such victims is left out.
func (d *schedulingCycles) candidatesLeft(p *object.Pod, left []framework.Candidate) []framework.Candidate {
	var kept []framework.Candidate
	for _, c := range left {
		row, ok := d.table.Find(c.Node)
		if !ok || d.table.Node(row) == nil {
			continue
		}
		c.Victims = slices.DeleteFunc(slices.Clone(c.Victims), func(v *object.Pod) bool {
			pl := d.table.Pod(v.UID)
			return pl == nil || pl.Row != row || pl.Pod.Priority >= p.Priority
		})
		if len(c.Victims) > 0 {
			kept = append(kept, c)
		}
	}
	return kept
}
