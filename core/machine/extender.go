package machine

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// Extender is an external service that takes part in decisions about the pods it manages:
// the extenders of KubeSchedulerConfiguration. The edge talks to it.
type Extender struct {
	Name string // its URL
	// Which questions it answers.
	Filter, Prioritize, Preempt, Bind bool
	// Weight multiplies its scores.
	Weight int64
	// Manages names the extended resources whose pods it manages; none: it
	// manages all pods.
	Manages []v1.ResourceName
	// Ignorable: where it fails, the pod goes on without it.
	Ignorable bool
	// Limit is how many pods may be with it at a time; at least 1. The others
	// wait in line.
	Limit int
	// Timeout is how long the edge waits for an answer. The machine waits a
	// little longer: an answer may never come.
	Timeout time.Duration
}

// Verb is the kind of a question.
type Verb string

const (
	Filter     Verb = "filter"
	Prioritize Verb = "prioritize"
	Preempt    Verb = "preempt"
)

// Extenders scale their scores to 10 where plugins use 100 (v1.36,
// MaxExtenderPriority).
const extenderScale = 10

// Interested reports whether the extender manages the pod: a container or init container
// requests, or is limited in, one of its resources.
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

// asks reports whether the extender is called before a node is chosen.
func (x *Extender) asks() bool { return x.Filter || x.Prioritize || x.Preempt }

// refusal returns the blocker of a node that an extender refused.
func refusal(code decision.Code, reason string) decision.Blocker {
	return decision.Blocker{Code: code, Reasons: []string{reason}}
}

// resolveVictims finds the pods that an extender leaves as victims. They must be on
// nodes that were offered, and of lower priority than the pod; those that were
// offered and are gone meanwhile are left out.
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
			return nil, fmt.Errorf("expected at least one victim pod on node %q", l.Node)
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

// candidatesLeft returns the offered ones that are left, each with victims that are
// still to be had: on their node, and of lower priority than the pod.
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
