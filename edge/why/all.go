package why

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// Bounds of what is found out about the causes that block most pods.
const (
	mostExplained = 10  // causes that get fixes
	mostAdded     = 100 // nodes that are added
	mostPlaced    = 500 // pods that are placed on them
)

// Ranking is what blocks the pending pods, by cause, the most pods first.
type Ranking struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Pending    int     `json:"pending"`
	Causes     []Cause `json:"causes"`
	// Cut says in a sentence that the time was up before all pods were looked at.
	Cut string `json:"cut,omitempty"`
	// LeftOut says which pods were not looked at, and why.
	LeftOut []string `json:"leftOut,omitempty"`
}

// Cause is what some pods wait for, or lack.
type Cause struct {
	Pods     int       `json:"pods"`
	Examples []string  `json:"examples"`
	Verdict  PodState  `json:"verdict"`
	Text     string    `json:"text"`
	Blockers []Blocker `json:"blockers"`
	// Nodes is how many nodes of which shape would place how many of the pods.
	Nodes *More `json:"nodes,omitempty"`
	// Fixes are those of the first example.
	Fixes []fix.Fix `json:"fixes"`
	// Cut says why the search for them ended early.
	Cut string `json:"cut,omitempty"`

	pods []*v1.Pod
}

// More is a number of nodes of one shape, and how many pods they would place.
type More struct {
	Like   string `json:"like"`
	Nodes  int    `json:"nodes"`
	Places int    `json:"places"`
}

// sort is pods that differ in their names alone.
type sort struct {
	pods    []*v1.Pod
	decoded *object.Pod // the first
}

// All ranks what blocks all pending pods. When the context's time is up it ranks those
// that were looked at until then, and says so. It is an error if the context was canceled.
func (c *Cluster) All(ctx context.Context) (*Ranking, error) {
	r := &Ranking{APIVersion: "berth.dev/v1alpha1", Kind: "WhyAll", Causes: []Cause{}}
	at := map[string]int{}
	sorts := c.sorts()
	for _, s := range sorts {
		r.Pending += len(s.pods)
	}
	brief, known := c.brief(ctx, sorts)
	looking, cancel := until(ctx, 0.7)
	defer cancel()
	looked := 0
	for _, s := range sorts[:known] {
		if looking.Err() != nil {
			break
		}
		looked += len(s.pods)
		a := brief.Why(ctx, s.pods[0]) // and no longer: it takes as much memory as there are nodes
		key := causeKey(a)
		i, known := at[key]
		if !known {
			i = len(r.Causes)
			at[key] = i
			cause := Cause{Verdict: a.Verdict, Text: a.cause(), Blockers: []Blocker{}, Fixes: []fix.Fix{}}
			if len(a.Groups) > 0 {
				cause.Blockers = a.nearestGroup().Blockers
			}
			r.Causes = append(r.Causes, cause)
		}
		r.Causes[i].pods = append(r.Causes[i].pods, s.pods...)
	}
	slices.SortStableFunc(r.Causes, func(a, b Cause) int { return cmp.Compare(len(b.pods), len(a.pods)) })
	if looked < r.Pending {
		r.Cut = fmt.Sprintf("the time was up when %d of %d pending pods had been looked at", looked, r.Pending)
	}
	for i := range r.Causes {
		c.finish(ctx, &r.Causes[i], i < mostExplained)
	}
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, err
	}
	return r, nil
}

// until returns a context for a share of the time that ctx has left.
func until(ctx context.Context, share float64) (context.Context, context.CancelFunc) {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(share*float64(time.Until(deadline))))
}

// brief is the cluster for answers without fixes, in which it is known for the first
// sorts, and how many, whether load alone explains what blocks them. All are asked at
// once: the nodes are emptied for it.
func (c *Cluster) brief(ctx context.Context, sorts []*sort) (brief *Cluster, known int) {
	ctx, cancel := until(ctx, 0.4)
	defer cancel()
	pods := make([]*object.Pod, len(sorts))
	for i, s := range sorts {
		pods[i] = s.decoded
	}
	waits := waitForLoad(ctx, c.Machine, pods)
	brief = &Cluster{Machine: c.Machine, Set: c.Set, NoProfile: c.NoProfile, NoFixes: true, waits: map[types.UID]bool{}}
	for i := range waits {
		brief.waits[pods[i].UID] = waits[i]
	}
	return brief, len(waits)
}

// finish says how many pods the cause has, and, where it is to be explained, what would
// help them.
func (c *Cluster) finish(ctx context.Context, cause *Cause, explained bool) {
	cause.Pods = len(cause.pods)
	for _, p := range cause.pods[:min(mostExamples, len(cause.pods))] {
		cause.Examples = append(cause.Examples, p.Namespace+"/"+p.Name)
	}
	if !explained || c.NoFixes || !cause.hasFixes() {
		return
	}
	if c.Read != nil {
		c.Read(cause.pods[0])
	}
	cause.Fixes, cause.Cut = c.fixes(ctx, cause.pods[0])
	cause.Nodes = c.more(ctx, cause)
}

// hasFixes tells whether what would help is looked for.
func (c *Cause) hasFixes() bool {
	return c.Verdict == Waiting || c.Verdict == Misconfigured || c.Verdict == Gated
}

// sorts are the pending pods by what they ask for.
func (c *Cluster) sorts() (sorts []*sort) {
	at := map[string]*sort{}
	for _, p := range c.Set.Pods {
		if p.Spec.NodeName != "" || p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed {
			continue
		}
		key, err := json.Marshal([]any{p.Namespace, p.Labels, p.Spec, p.DeletionTimestamp, p.Status.NominatedNodeName})
		if err != nil {
			continue // an object that was read from JSON can be written
		}
		if at[string(key)] == nil {
			at[string(key)] = &sort{decoded: decode.Pod(p)}
			sorts = append(sorts, at[string(key)])
		}
		at[string(key)].pods = append(at[string(key)].pods, p)
	}
	return sorts
}

// causeKey is equal for answers with one cause: what blocks the pods where they
// come nearest, and the labels of nodes that they ask for.
func causeKey(a *Answer) string {
	switch a.Verdict {
	case Waiting, Misconfigured:
		if len(a.Groups) > 0 {
			spec := &a.facts.api.Spec
			return fmt.Sprintf("%s %q %v", a.Verdict, a.nearestGroup().Blockers, spec.NodeSelector)
		}
	case WouldBePlaced:
		return fmt.Sprintf("%s %t", a.Verdict, a.PodGroup != "")
	case Preempting, InProgress:
		return string(a.Verdict)
	}
	return string(a.Verdict) + " " + a.Message
}

// cause is what the answer says, without the pod's name.
func (a *Answer) cause() string {
	switch a.Verdict {
	case WouldBePlaced:
		if a.PodGroup != "" {
			return "fitting now each by itself, but placed together with their pod groups, which this answer does not try"
		}
		return "fitting now, and not placed yet"
	case Preempting:
		return "waiting for pods that leave for them"
	case InProgress:
		return "on their way"
	case Waiting:
		if len(a.Groups) > 0 {
			return "waiting for room: " + a.nearest()
		}
		return "waiting: there is no node"
	case Misconfigured:
		if beside := a.beside(); beside != "" {
			return "having to be beside " + beside + ", where there is no room: " + a.nearest()
		}
		return "fitting nowhere, however empty the nodes are: " + a.nearest()
	case Gated:
		return "not tried: " + a.Message
	}
	return "not scheduled: " + a.Message
}

// more counts the nodes of the shape that helps the first of the pods, and how many
// of the pods they place.
func (c *Cluster) more(ctx context.Context, cause *Cause) *More {
	like, zone := "", ""
	for _, f := range cause.Fixes {
		if n, ok := f.Changes[0].Create.(*v1.Node); ok && len(f.Changes) == 1 {
			like, zone = strings.TrimSuffix(n.Name, "-copy"), n.Labels[v1.LabelTopologyZone]
			break
		}
	}
	t := c.Machine.Table()
	pool := fix.PoolOf(t, c.Set, like)
	if pool == nil || pool.Like.Labels[v1.LabelTopologyZone] != zone {
		return nil
	}
	m := &More{Like: like}
	var placed []*object.Pod
	var added []*fix.NewNode
	for _, api := range cause.pods[:min(mostPlaced, len(cause.pods))] {
		if ctx.Err() != nil {
			break
		}
		p := decode.Pod(api)
		node, ok := c.Machine.Admits(p)
		if !ok && len(added) < mostAdded {
			n := pool.NewNode(fmt.Sprintf("%s-copy-%d", like, len(added)+1))
			n.Join(t)
			if node, ok = c.Machine.Admits(p); ok {
				added = append(added, n)
			} else {
				n.Leave(t)
			}
		}
		if ok {
			t.AddPod(p, node)
			placed = append(placed, p)
		}
	}
	for _, p := range placed {
		t.RemovePod(p.UID)
	}
	for _, n := range added {
		n.Leave(t)
	}
	if len(added) == 0 { // a larger node is wanted than the pool has
		return nil
	}
	m.Nodes, m.Places = len(added), len(placed)
	return m
}

// Text writes the ranking for people; wide leaves nothing out.
func (r *Ranking) Text(out io.Writer, wide bool) error {
	var b strings.Builder
	if r.Pending == 0 {
		b.WriteString("No pod is pending.\n")
	} else {
		terminal.Fprintf(&b, "%s pending, by cause\n", isAre(r.Pending))
	}
	for i := range r.Causes {
		c := &r.Causes[i]
		terminal.Fprintf(&b, "\n%s, %s\n", count(c.Pods, "pod"), c.Text)
		terminal.Fprintf(&b, "  %s\n", c.names())
		if c.Nodes != nil {
			of := ""
			if c.Pods > mostPlaced {
				of = fmt.Sprintf(" of the first %d", mostPlaced)
			}
			terminal.Fprintf(&b, "  %s like %s would place %d%s\n", count(c.Nodes.Nodes, "more node"), c.Nodes.Like, c.Nodes.Places, of)
		}
		shown := c.Fixes
		if !wide {
			shown = shown[:min(2, len(shown))]
		}
		for _, f := range shown {
			terminal.Fprintf(&b, "  or, for %s: %s\n", c.Examples[0], f.Summary)
		}
		if c.Cut != "" {
			terminal.Fprintf(&b, "  cut: %s\n", c.Cut)
		}
	}
	if len(r.Causes) > mostExplained && slices.ContainsFunc(r.Causes[mostExplained:], func(c Cause) bool { return c.hasFixes() }) {
		terminal.Fprintf(&b, "\nWhat would help was looked for in the first %d causes; ask about a pod of another one by its name.\n", mostExplained)
	}
	if r.Cut != "" {
		terminal.Fprintf(&b, "\nCut: %s.\n", r.Cut)
	}
	for _, left := range r.LeftOut {
		terminal.Fprintf(&b, "\nLeft out: %s\n", left)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// names names some of the pods and counts the others.
func (c *Cause) names() string {
	if c.Pods <= len(c.Examples) {
		return list(c.Examples, shortNames)
	}
	shown := c.Examples[:min(shortNames, len(c.Examples))]
	return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), c.Pods-len(shown))
}

func isAre(n int) string {
	if n == 1 {
		return "1 pod is"
	}
	return fmt.Sprintf("%d pods are", n)
}
