package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// Rollout is what the last rollout of a Deployment changed that blocks its pods now.
type Rollout struct {
	ReplicaSet string     `json:"replicaSet"`
	Revision   int        `json:"revision"`
	Since      *time.Time `json:"since"`
	Changes    []string   `json:"changes"`
	// Before is the ReplicaSet of the revision before, and Running how many of its pods have a node.
	Before  string `json:"before"`
	Running int    `json:"running"`
	// Text is all of it in a sentence.
	Text string `json:"text,omitempty"`
}

// rolledOut returns what the pod's rollout changed that blocks it on some node; nil if nothing.
func (a *Answer) rolledOut() *Rollout {
	p := a.facts.api
	return RolloutOf(a.facts.cluster.Set, p, a.Groups, func(old *appsv1.ReplicaSet) (pods int) {
		of := Workload{"replicaset", p.Namespace, old.Name}
		for _, other := range a.facts.cluster.Set.Pods {
			if other.Spec.NodeName != "" && other.DeletionTimestamp == nil && a.facts.cluster.belongs(other, of) {
				pods++
			}
		}
		return pods
	})
}

// RolloutOf returns what the last rollout of the pod's Deployment changed that blocks the pod on some of the
// nodes, nil if nothing did. The set has the Deployment and its ReplicaSets. running returns how many pods of
// the one before have a node.
func RolloutOf(set *manifest.Set, p *v1.Pod, groups []NodeGroup, running func(*appsv1.ReplicaSet) int) *Rollout {
	last := fix.LastRollout(set, p, p)
	if last == nil {
		return nil
	}
	r := &Rollout{ReplicaSet: last.New.Name, Revision: last.Revision, Before: last.Old.Name}
	for i := range last.Changes {
		if c := &last.Changes[i]; comesOf(groups, c) {
			r.Changes = append(r.Changes, c.Text)
		}
	}
	if len(r.Changes) == 0 {
		return nil
	}
	if !last.Again() {
		r.Since = pointer(last.New.CreationTimestamp.UTC())
	}
	r.Running = running(last.Old)
	r.Text = r.sentence()
	return r
}

// comesOf reports whether a blocker of some node may come of the change.
func comesOf(groups []NodeGroup, c *fix.TemplateChange) bool {
	return slices.ContainsFunc(groups, func(g NodeGroup) bool {
		return slices.ContainsFunc(g.Blockers, func(b Blocker) bool {
			return slices.Contains(c.Plugins, b.Plugin) && (c.Resource == "" || slices.Contains(b.Reasons, "Insufficient "+string(c.Resource)))
		})
	})
}

// sentence says what was rolled out, since when.
func (r *Rollout) sentence() string {
	since := sinceText(r.Since)
	if since != "" {
		since += ","
	}
	running := ""
	if r.Running > 0 {
		running = fmt.Sprintf("; %s of %s %s", terminal.Count(r.Running, "pod"), r.Before, terminal.Plural(r.Running, "runs", "run"))
	}
	return fmt.Sprintf("The rollout to replicaset %s (revision %d)%s %s%s", r.ReplicaSet, r.Revision, since, strings.Join(r.Changes, " and "), running)
}

// text writes the sentence; indent stands before it.
func (r *Rollout) text(b *strings.Builder, indent string) {
	if r != nil {
		terminal.Fprintf(b, "%s%s\n", indent, r.Text)
	}
}
