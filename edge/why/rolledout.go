package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/edge/fix"
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
}

// rolledOut returns what the pod's rollout changed that blocks it on some node; nil if nothing.
func (a *Answer) rolledOut() *Rollout {
	p := a.facts.api
	last := fix.LastRollout(a.facts.cluster.Set, p, p)
	if last == nil {
		return nil
	}
	r := &Rollout{ReplicaSet: last.New.Name, Revision: last.Revision, Before: last.Old.Name}
	for i := range last.Changes {
		if c := &last.Changes[i]; a.comesOf(c) {
			r.Changes = append(r.Changes, c.Text)
		}
	}
	if len(r.Changes) == 0 {
		return nil
	}
	if !last.Again() {
		r.Since = pointer(last.New.CreationTimestamp.UTC())
	}
	of := Workload{"replicaset", p.Namespace, r.Before}
	for _, other := range a.facts.cluster.Set.Pods {
		if other.Spec.NodeName != "" && other.DeletionTimestamp == nil && a.facts.cluster.belongs(other, of) {
			r.Running++
		}
	}
	return r
}

// comesOf reports whether a blocker of some node may come of the change.
func (a *Answer) comesOf(c *fix.TemplateChange) bool {
	return slices.ContainsFunc(a.Groups, func(g NodeGroup) bool {
		return slices.ContainsFunc(g.Blockers, func(b Blocker) bool {
			return slices.Contains(c.Plugins, b.Plugin) && (c.Resource == "" || slices.Contains(b.insufficient, c.Resource))
		})
	})
}

// text says what was rolled out, since when; indent stands before it.
func (r *Rollout) text(b *strings.Builder, indent string) {
	if r == nil {
		return
	}
	since := sinceText(r.Since)
	if since != "" {
		since += ","
	}
	running := ""
	if r.Running > 0 {
		running = fmt.Sprintf("; %s of %s %s", count(r.Running, "pod"), r.Before, plural(r.Running, "runs", "run"))
	}
	terminal.Fprintf(b, "%sThe rollout to replicaset %s (revision %d)%s %s%s\n", indent, r.ReplicaSet, r.Revision, since, strings.Join(r.Changes, " and "), running)
}
