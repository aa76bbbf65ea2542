package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// Bounds of the terminating pods that are looked for.
const (
	mostLeavingNodes = 50 // of a group of nodes
	mostLeaving      = 50 // that are listed
)

// Leaving is a pod that is being deleted, without which the pod would fit on its node.
type Leaving struct {
	Pod   string     `json:"pod"`
	Node  string     `json:"node"`
	Since *time.Time `json:"since,omitempty"` // its deletionTimestamp
	// Holds is what it has of that which the pod lacks.
	Holds      []string `json:"holds,omitempty"`
	Finalizers []string `json:"finalizers,omitempty"`
	NodeLost   bool     `json:"nodeLost,omitempty"`

	known bool // its API object was read
}

// departure is a terminating pod, and what blocks the pod that waits for it.
type departure struct {
	pod      *object.Pod
	node     string
	blockers []Blocker
}

// leaving lists the terminating pods of nodes where the pod fits once they are gone. It ends
// with the context.
func (c *Cluster) leaving(ctx context.Context, a *Answer) (listed []Leaving) {
	var all []departure
	for _, g := range a.Groups {
		if slices.ContainsFunc(g.Blockers, func(b Blocker) bool { return b.Code != decision.Unschedulable.String() }) {
			continue
		}
		for _, name := range g.names[:min(mostLeavingNodes, len(g.names))] {
			if ctx.Err() != nil {
				break
			}
			for _, p := range c.departing(a.facts.pod, name) {
				all = append(all, departure{p, name, g.Blockers})
			}
		}
	}
	slices.SortFunc(all, func(a, b departure) int { return cmp.Or(cmp.Compare(a.node, b.node), compareKeys(a.pod, b.pod)) })
	for _, d := range all[:min(mostLeaving, len(all))] {
		listed = append(listed, c.describe(&d))
	}
	return listed
}

// departing returns the terminating pods of the node; nil if the pod does not fit without them.
func (c *Cluster) departing(p *object.Pod, node string) (gone []*object.Pod) {
	t := c.Machine.Table()
	row, _ := t.Find(node) // it is there: the answer's nodes are of this table
	for _, pl := range t.Pods(row) {
		if pl.Pod.Terminating {
			gone = append(gone, pl.Pod)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	for _, p := range gone {
		t.RemovePod(p.UID)
	}
	fits := len(c.Machine.Blockers(p, row)) == 0
	for _, p := range gone {
		t.AddPod(p, node)
	}
	if !fits {
		return nil
	}
	return gone
}

func (c *Cluster) describe(d *departure) Leaving {
	l := Leaving{Pod: d.pod.Key(), Node: d.node}
	for i := range d.blockers {
		for _, name := range d.blockers[i].insufficient {
			if has := d.pod.Demand.Usage.Of(name); has > 0 {
				l.Holds = append(l.Holds, amount(name, has))
			}
		}
	}
	for _, api := range c.Set.Pods {
		if api.UID == d.pod.UID && api.DeletionTimestamp != nil {
			l.known, l.Since, l.Finalizers = true, &api.DeletionTimestamp.Time, api.Finalizers
		}
	}
	for _, n := range c.Set.Nodes {
		l.NodeLost = l.NodeLost || n.Name == d.node && fix.Lost(n)
	}
	return l
}

// firstLeaving says for whom the pod waits that is on its way out.
func (a *Answer) firstLeaving() string {
	if len(a.Leaving) == 0 {
		return ""
	}
	node := a.Leaving[0].Node
	var pods []string
	for i := range a.Leaving {
		if a.Leaving[i].Node == node {
			pods = append(pods, a.Leaving[i].Pod)
		}
	}
	if len(pods) == 1 {
		return fmt.Sprintf(" It fits on %s once %s is gone, which is terminating.", node, pods[0])
	}
	return fmt.Sprintf(" It fits on %s once %s are gone, which are terminating.", node, list(pods, shortNames))
}

// leavingText says which pods are on their way out, and what holds them.
func (a *Answer) leavingText(b *strings.Builder, wide bool) {
	if len(a.Leaving) == 0 {
		return
	}
	b.WriteString("\nTERMINATING (it fits once these are gone)\n")
	shown := a.Leaving
	if !wide {
		shown = shown[:min(shortNames, len(shown))]
	}
	for i := range shown {
		terminal.Fprintf(b, "  %s\n", shown[i].text())
	}
	if rest := len(a.Leaving) - len(shown); rest > 0 {
		terminal.Fprintf(b, "  (and %d more: -o wide)\n", rest)
	}
}

func (l *Leaving) text() string {
	text := fmt.Sprintf("%s on %s is terminating", l.Pod, l.Node)
	if l.Since != nil {
		text += " since " + l.Since.UTC().Format(time.RFC3339)
	}
	if len(l.Holds) > 0 {
		text += " and holds " + strings.Join(l.Holds, ", ")
	}
	namespace, name, _ := strings.Cut(l.Pod, "/")
	switch {
	case len(l.Finalizers) > 0:
		return text + "; it stays as long as it has the " + finalizers(l.Finalizers)
	case l.NodeLost:
		return text + "; its node does not answer, so nobody ends it"
	case l.known:
		return text + fmt.Sprintf("; no finalizer holds it, its node is to end it: wait, or, if that node is dead, kubectl delete pod %s -n %s --force --grace-period=0", word(name), word(namespace))
	}
	return text
}

func finalizers(names []string) string {
	if len(names) == 1 {
		return "finalizer " + names[0]
	}
	return "finalizers " + list(names, shortNames)
}
