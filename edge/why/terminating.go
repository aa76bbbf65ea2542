package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/turn"
	"github.com/berth-scheduler/berth/edge/workload"
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
	Since *time.Time `json:"since,omitempty"` // when its deletion was asked for
	Due   *time.Time `json:"due,omitempty"`   // when its grace period ends
	// Holds is what it has of that which the pod lacks.
	Holds      []string `json:"holds,omitempty"`
	Finalizers []string `json:"finalizers,omitempty"`
	NodeLost   bool     `json:"nodeLost,omitempty"`
	// Grace is the time that it is given to end, in seconds.
	Grace int64 `json:"gracePeriodSeconds,omitempty"`
	// Text says all this in words, and what keeps it there. Answer.Explain sets it.
	Text string `json:"text,omitempty"`

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
	if gone = c.terminatingOn(node); len(gone) == 0 {
		return nil
	}
	t := c.Machine.Table()
	row, _ := t.Find(node) // it is there: the pods are on it
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
	if api := c.apiOf(d.pod); api != nil {
		of := leavingOf(api)
		l.known, l.Since, l.Due, l.Finalizers, l.Grace = of.known, of.Since, of.Due, of.Finalizers, of.Grace
	}
	for _, n := range c.Set.Nodes {
		l.NodeLost = l.NodeLost || n.Name == d.node && fix.Lost(n)
	}
	return l
}

// leavingOf returns what a terminating pod says of its end itself, and nothing of another pod.
func leavingOf(p *v1.Pod) (l Leaving) {
	if since, due, terminating := workload.Termination(p); terminating {
		l.known, l.Since, l.Due, l.Finalizers = true, &since, &due, p.Finalizers
		l.Grace = int64(due.Sub(since).Seconds())
	}
	return l
}

// apiOf returns the API object of the pod, nil where it is not known or hidden.
func (c *Cluster) apiOf(p *object.Pod) *v1.Pod {
	if api := c.indexPods()[p.UID]; api != nil || c.Look == nil || c.Set.Hidden(p.Namespace) {
		return api
	}
	if api := c.Look(p.NamespacedName()); api != nil && api.UID == p.UID {
		return api
	}
	return nil
}

// victimsLeaving lists the victims of the pod that are being deleted already.
func (c *Cluster) victimsLeaving(a *Answer, d *decision.Decision) (listed []Leaving) {
	var blockers []Blocker
	for i := range a.Groups {
		if slices.Contains(a.Groups[i].names, d.NominatedNode) {
			blockers = a.Groups[i].Blockers
		}
	}
	for _, p := range c.terminatingOn(d.NominatedNode) {
		if slices.Contains(d.Victims, p.NamespacedName()) && len(listed) < mostLeaving {
			listed = append(listed, c.describe(&departure{p, d.NominatedNode, blockers}))
		}
	}
	return listed
}

// addLeaving adds to the cause the pods that leave the node for one of its pods, if the scheduler
// has nominated the pod to that node: only then were they asked to leave.
func (l *listing) addLeaving(cause *Cause, p turn.Pod, node string) {
	if p.API.Status.NominatedNodeName != node {
		return
	}
	for _, gone := range l.terminatingOn(node) {
		known := slices.ContainsFunc(cause.Leaving, func(l Leaving) bool { return l.Pod == gone.Key() })
		if !known && gone.Priority < corev1.PodPriority(p.API) && len(cause.Leaving) < mostLeaving {
			cause.Leaving = append(cause.Leaving, l.describe(&departure{pod: gone, node: node}))
		}
	}
}

// terminatingOn returns the terminating pods of the node, by name.
func (c *Cluster) terminatingOn(node string) (gone []*object.Pod) {
	t := c.Machine.Table()
	row, ok := t.Find(node)
	if !ok {
		return nil
	}
	for _, pl := range t.Pods(row) {
		if pl.Pod.Terminating {
			gone = append(gone, pl.Pod)
		}
	}
	slices.SortFunc(gone, compareKeys)
	return gone
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
		return fmt.Sprintf(" It fits on %s once %s is gone, which is %s.", node, pods[0], a.Leaving[0].brief())
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
	terminal.More(b, "  ", len(a.Leaving)-len(shown))
}

// brief says since when the pod is terminating and what holds it, if that is known.
func (l *Leaving) brief() string {
	switch text := "terminating" + l.since(); {
	case len(l.Finalizers) > 0:
		return text + ", held by its " + finalizers(l.Finalizers)
	case l.NodeLost:
		return text + ", on a node that does not answer"
	case l.Grace > 0:
		return text + fmt.Sprintf(", with a grace period of %d s until %s", l.Grace, l.Due.UTC().Format(time.RFC3339))
	default:
		return text
	}
}

func (l *Leaving) since() string {
	if l.Since == nil {
		return ""
	}
	return " since " + l.Since.UTC().Format(time.RFC3339)
}

func (l *Leaving) text() string {
	text := fmt.Sprintf("%s on %s is terminating%s", l.Pod, l.Node, l.since())
	if len(l.Holds) > 0 {
		text += " and holds " + strings.Join(l.Holds, ", ")
	}
	namespace, name, _ := strings.Cut(l.Pod, "/")
	grace := ""
	if l.Grace > 0 {
		grace = fmt.Sprintf(" by %s, within its grace period of %d s", l.Due.UTC().Format(time.RFC3339), l.Grace)
	}
	switch {
	case len(l.Finalizers) > 0:
		return text + "; it stays as long as it has the " + finalizers(l.Finalizers)
	case l.NodeLost:
		return text + "; its node does not answer, so nobody ends it"
	case l.known:
		return text + fmt.Sprintf("; no finalizer holds it, its node is to end it%s: wait, or, if that node is dead, kubectl delete pod %s -n %s --force --grace-period=0", grace, word(name), word(namespace))
	}
	return text
}

func finalizers(names []string) string {
	if len(names) == 1 {
		return "finalizer " + names[0]
	}
	return "finalizers " + list(names, shortNames)
}
