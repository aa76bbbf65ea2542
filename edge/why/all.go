package why

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/turn"
)

// Bounds of what is found out about the causes that block most pods.
const (
	mostExplained = 10  // causes that get fixes
	mostSamples   = 3   // pods of a cause whose fixes are tried
	mostPlaced    = 500 // pods of a cause that they are tried on
	mostAlso      = 500 // nodes of pods of a cause behind the first
)

// List is what blocks pending pods, by cause, the most pods first. Its JSON is a contract.
type List struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Stalled is as in an answer.
	Stalled string `json:"stalled,omitempty"`
	// Pods is how many wait.
	Pods int `json:"pods"`
	// Quota is the ElasticQuota that the list is about, if it is about one.
	Quota *Quota `json:"quota,omitempty"`
	// Topology says where in the tree of levels the pod group is, or fits, that the list is about.
	Topology string    `json:"topology,omitempty"`
	Missing  []Missing `json:"missing"`
	// Idle says why a workload has no pending pod.
	Idle []string `json:"idle,omitempty"`
	// Preempted are the workloads whose pods made room for others lately.
	Preempted []Preempted `json:"preempted,omitempty"`
	Causes    []Cause     `json:"causes"`
	// Cut says in a sentence that the time was up before all pods were looked at.
	Cut string `json:"cut,omitempty"`
	// LeftOut says which pods were not looked at, and why.
	LeftOut []string `json:"leftOut,omitempty"`
	// Pending is Pods where kind is WhyAll.
	Pending *int `json:"pending,omitempty"`

	about string // what the list is about, as its text says it; empty: all pods
}

// Older returns the list as kind WhyAll, which has no workloads.
func (l *List) Older() *List {
	l.Kind, l.Pending = "WhyAll", &l.Pods
	for i := range l.Causes {
		l.Causes[i].Text = l.Causes[i].Sentence
	}
	return l
}

// Cause is what some pods wait for, or lack.
type Cause struct {
	Verdict  PodState `json:"verdict"`
	Sentence string   `json:"sentence"`
	Pods     int      `json:"pods"`
	// Workloads says how many pods of which workload, by kind/namespace/name.
	Workloads map[string]int `json:"workloads"`
	Examples  []string       `json:"examples"`
	// Since is since when the first of them waits, nil where that is not known.
	Since    *time.Time `json:"since"`
	Blockers []Blocker  `json:"blockers"`
	// Rollout is what the last rollout of the first pod's Deployment changed that blocks it.
	Rollout *Rollout `json:"rollout,omitempty"`
	// Holders are the workloads that hold most of what the pods lack where they come nearest.
	Holders []Holder `json:"holders,omitempty"`
	// Leaving are pods that are being deleted, which the pods wait for.
	Leaving []Leaving `json:"leaving,omitempty"`
	// Held says since when the first pod is held by what.
	Held  []Held   `json:"held,omitempty"`
	Fixes []Shared `json:"fixes"`
	// Cut says why the search for them ended early.
	Cut string `json:"cut,omitempty"`
	// Text is the sentence where the list's kind is WhyAll.
	Text string `json:"text,omitempty"`

	pods   []turn.Pod
	first  int         // place of the first in the scheduler's order
	short  *turn.Short // of a pod group
	outrun bool        // the pods would fit if others did not take their turn before them
	also   []string    // nodes on which pods behind the first come nearest, where these are few
}

// Shared is a fix that was tried on all pods of a cause together.
type Shared struct {
	fix.Fix
	Places int `json:"places"`
	Of     int `json:"of"`
}

// Scope says which of the pending pods a list is about. The others take their turn, too.
type Scope struct {
	Namespace string          // empty: all
	Selector  labels.Selector // nil: all
	Workload  *Workload
}

// Has reports whether the pod is one of the scope.
func (s *Scope) Has(c *Cluster, p *v1.Pod) bool {
	return (s.Namespace == "" || p.Namespace == s.Namespace) && (s.Selector == nil || s.Selector.Matches(labels.Set(p.Labels))) &&
		(s.Workload == nil || c.belongs(p, *s.Workload))
}

// sort is pods that differ in their names alone.
type sort struct {
	pods    []turn.Pod  // those that the list is about
	decoded *object.Pod // the first of all
	alone   bool        // the first fits before any pod took its turn
}

// listing is a list in the making.
type listing struct {
	*Cluster
	list  *List
	scope *Scope
	sorts []*sort    // by the Kind of their pods
	pods  []turn.Pod // all that are pending, in the scheduler's order
	rank  map[*v1.Pod]int
	at    map[string]int
	short map[types.NamespacedName]*Cause // of pod groups of which too few pods fit
}

// All says what blocks the pending pods of the scope, once all pending pods took their turn
// in the scheduler's order. When the context's time is up it lists those that were looked at
// until then, and says so. It is an error if the context was canceled.
func (c *Cluster) All(ctx context.Context, scope Scope) (*List, error) {
	l := &listing{Cluster: c, scope: &scope, rank: map[*v1.Pod]int{}, at: map[string]int{}, short: map[types.NamespacedName]*Cause{},
		list: &List{APIVersion: APIVersion, Kind: "WhyList", Causes: []Cause{}, about: scope.String()}}
	if scope.IsQuota() && c.Machine != nil {
		l.list.Quota = newQuota(c.Machine, *scope.Workload)
	}
	l.list.Topology = topologyText(c, &scope)
	whole := true
	if l.list.Missing, whole = c.missing(ctx, &scope); !whole {
		l.cut("before all workloads had been looked at whose controllers make no pods")
	}
	l.list.Preempted = c.preempted(&scope)
	l.gather(ctx)
	for _, s := range l.sorts {
		l.list.Pods += len(s.pods)
	}
	switch {
	case l.list.Pods > 0:
		l.fill(ctx)
	case scope.Workload != nil:
		l.list.Idle = l.idle(*scope.Workload)
	}
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, err
	}
	return l.list, nil
}

// cut records at which point the time was up.
func (l *listing) cut(when string) {
	if l.list.Cut == "" {
		l.list.Cut = "the time was up " + when
		return
	}
	l.list.Cut += ", and " + when
}

// isPending reports whether the pod is there and has no node.
func (c *Cluster) isPending(p *v1.Pod) bool {
	return isUnplaced(p) && !c.neverMade(p)
}

// gather collects the pending pods by what they ask for. All of them are counted, unless nobody
// waits for the list any more.
func (l *listing) gather(ctx context.Context) {
	kinds := turn.Kinds{}
	for _, p := range l.Set.Pods {
		if errors.Is(ctx.Err(), context.Canceled) {
			return
		}
		if !l.isPending(p) {
			continue
		}
		kind, first := kinds.Of(p)
		if first {
			l.sorts = append(l.sorts, &sort{decoded: l.Set.DecodePod(p)})
		}
		l.pods = append(l.pods, turn.Pod{API: p, Kind: kind})
	}
	turn.Sort(l.pods)
	for i, p := range l.pods {
		l.rank[p.API] = i
		if s := l.sorts[p.Kind]; l.scope.Has(l.Cluster, p.API) {
			s.pods = append(s.pods, p)
		}
	}
}

// fill lets the pods take their turn, and lists what keeps those that are left.
func (l *listing) fill(ctx context.Context) {
	turning, cancel := until(ctx, 0.3)
	defer cancel()
	for _, s := range l.sorts {
		if turning.Err() == nil && len(s.pods) > 0 {
			_, s.alone = l.Machine.Admits(s.decoded)
		}
	}
	run := turn.Take(turning, l.Machine, l.Set.DecodePod, l.pods, func(s *turn.Short) { l.shortGroup(ctx, s) })
	defer run.Undo()
	looked := l.stuck(ctx, l.turned(run))
	for _, c := range l.list.Causes {
		if c.Verdict == WouldBePlaced || c.Verdict == Preempting {
			looked += len(c.pods)
		}
	}
	for _, cause := range l.short { // any order: sorted below
		looked += len(cause.pods)
		l.list.Causes = append(l.list.Causes, *cause)
	}
	slices.SortStableFunc(l.list.Causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(len(b.pods), len(a.pods)), cmp.Compare(a.first, b.first))
	})
	if looked < l.list.Pods {
		l.cut(fmt.Sprintf("when %d of %d pending pods had been looked at", looked, l.list.Pods))
	}
	for i := range l.list.Causes {
		l.finish(ctx, &l.list.Causes[i], i < mostExplained)
	}
}

// turned lists the pods of the scope that found a node in their turn, and returns those that
// did not, by sort. Pods of short groups are among neither.
func (l *listing) turned(run *turn.Run) (left [][]turn.Pod) {
	left = make([][]turn.Pod, len(l.sorts))
	for _, p := range l.pods[:run.Tried] {
		if !l.scope.Has(l.Cluster, p.API) {
			continue
		}
		switch group := groupOf(l.Machine, p.API); {
		case run.Nodes[p.API.UID] != "":
			if l.Machine.PlacesGroups() {
				group = ""
			}
			a := &Answer{Pod: p.API.Namespace + "/" + p.API.Name, Verdict: WouldBePlaced, PodGroup: group, NodesTotal: l.Machine.Table().Live()}
			l.observe(a, p.API)
			l.add(a, p)
		case run.Nominated[p.API.UID] != "":
			node := run.Nominated[p.API.UID]
			a := &Answer{Verdict: Preempting, next: p.API.Status.NominatedNodeName != node}
			l.add(a, p)
			l.addLeaving(&l.list.Causes[l.at[causeKey(a)]], p, node)
		case group == "" || l.short[types.NamespacedName{Namespace: p.API.Namespace, Name: group}] == nil:
			left[p.Kind] = append(left[p.Kind], p)
		}
	}
	return left
}

// stuck adds the pods that found no node, by sort, and returns how many it looked at.
func (l *listing) stuck(ctx context.Context, left [][]turn.Pod) (looked int) {
	var decoded []*object.Pod
	var outrun []bool
	left = slices.DeleteFunc(left, func(pods []turn.Pod) bool { return len(pods) == 0 })
	slices.SortFunc(left, func(a, b []turn.Pod) int { return cmp.Compare(l.rank[a[0].API], l.rank[b[0].API]) })
	for _, pods := range left {
		s := l.sorts[pods[0].Kind]
		first := s.decoded
		if first.UID != pods[0].API.UID {
			first = l.Set.DecodePod(pods[0].API)
		}
		decoded, outrun = append(decoded, first), append(outrun, s.alone)
	}
	brief, known := l.brief(ctx, decoded, outrun)
	looking, cancel := until(ctx, 0.7)
	defer cancel()
	for _, pods := range left[:known] {
		if looking.Err() != nil {
			break
		}
		a := brief.Why(ctx, pods[0].API) // and no longer: it takes as much memory as there are nodes
		a.outrun = a.Verdict == Waiting && l.sorts[pods[0].Kind].alone
		l.add(a, pods...)
		looked += len(pods)
	}
	return looked
}

// add counts the pods to the cause that the answer is about.
func (l *listing) add(a *Answer, pods ...turn.Pod) {
	key := causeKey(a)
	i, known := l.at[key]
	if !known {
		i = len(l.list.Causes)
		l.at[key] = i
		cause := Cause{Verdict: a.Verdict, Sentence: a.cause(), Blockers: []Blocker{}, first: l.rank[pods[0].API], outrun: a.outrun}
		if len(a.Groups) > 0 {
			cause.Blockers = a.nearestGroup().Blockers
		}
		l.list.Causes = append(l.list.Causes, cause)
	}
	c := &l.list.Causes[i]
	if known && len(a.Groups) > 0 && len(c.also) < mostAlso {
		if g := a.nearestGroup(); len(g.names) <= mostExamples {
			c.also = append(c.also, g.names...)
		}
	}
	c.pods = append(c.pods, pods...)
}

// look asks about the first pod of the cause again, and says who holds what it lacks and what holds
// it. The sentence names all nodes on which pods of the cause come nearest: each pod of a DaemonSet
// has another one.
func (l *listing) look(ctx context.Context, cause *Cause) {
	if ctx.Err() != nil {
		return
	}
	brief, first := l.withoutFixes(), cause.pods[0].API
	brief.waits = map[types.UID]bool{first.UID: cause.Verdict == Waiting}
	a := brief.Why(ctx, first)
	if len(a.Groups) == 0 || a.Verdict != cause.Verdict {
		return
	}
	a.outrun = cause.outrun
	g := a.nearestGroup()
	if len(cause.also) > 0 {
		g.names = slices.Compact(slices.Sorted(slices.Values(slices.Concat(g.names, cause.also))))
		g.Nodes = len(g.names)
		cause.Sentence = a.cause()
	}
	cause.Rollout = a.Rollout
	cause.Holders, cause.Leaving, cause.Held = a.facts.heldMost(g), l.leaving(ctx, a), a.Held
}

// until returns a context for a share of the time that ctx has left.
func until(ctx context.Context, share float64) (context.Context, context.CancelFunc) {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(share*float64(time.Until(deadline))))
}

// brief returns a copy of the cluster for answers without fixes. It knows of the first pods whether
// load alone explains what blocks them; of pods that others outrun, it does. known is how many pods
// these are. All are asked at once, as the nodes are emptied for it.
func (c *Cluster) brief(ctx context.Context, pods []*object.Pod, outrun []bool) (brief *Cluster, known int) {
	ctx, cancel := until(ctx, 0.4)
	defer cancel()
	waits := waitForLoad(ctx, c.Machine, pods)
	brief = c.blockedOnly()
	brief.waits = map[types.UID]bool{}
	for i := range waits {
		brief.waits[pods[i].UID] = waits[i] || outrun[i]
	}
	return brief, len(waits)
}

// finish says which pods the cause has and since when they wait, and, where it is to be
// explained, what would help them.
func (l *listing) finish(ctx context.Context, cause *Cause, explained bool) {
	slices.SortFunc(cause.pods, func(a, b turn.Pod) int { return cmp.Compare(l.rank[a.API], l.rank[b.API]) })
	cause.Pods, cause.Workloads, cause.Fixes = len(cause.pods), map[string]int{}, []Shared{}
	for _, p := range cause.pods {
		if w := l.WorkloadOf(p.API); w.Kind != "" {
			cause.Workloads[w.String()]++
		}
		if since := pendingSince(p.API); cause.Since == nil || !since.IsZero() && since.Before(*cause.Since) {
			cause.Since = pointer(since)
		}
	}
	for _, p := range cause.pods[:min(mostExamples, len(cause.pods))] {
		cause.Examples = append(cause.Examples, p.API.Namespace+"/"+p.API.Name)
	}
	if cause.Sentence == unplaced {
		cause.Sentence += l.waitText(cause.Since)
	}
	if explained && !l.NoFixes && cause.hasFixes() {
		l.look(ctx, cause)
		l.fix(ctx, cause)
	}
}

// promptly is for how long pods that fit may wait without a word about the scheduler.
const promptly = 5 * time.Second

// waitText says for how long pods wait that would be placed, where that is long and known.
func (c *Cluster) waitText(since *time.Time) string {
	if since == nil || c.Now.IsZero() || c.Now.Sub(*since) <= promptly {
		return ""
	}
	return fmt.Sprintf("; waiting for up to %s: `berth status` says how it stands with the scheduler", c.Now.Sub(*since).Round(time.Second))
}

// hasFixes reports whether what would help is looked for.
func (c *Cause) hasFixes() bool {
	return (c.Verdict == Waiting || c.Verdict == Misconfigured || c.Verdict == Gated) && (c.short == nil || c.short.Fault == "")
}

// pendingSince returns when the pod's PodScheduled condition became False, or its creation time if
// there is no such condition. It returns the zero time if neither is set.
func pendingSince(p *v1.Pod) time.Time {
	if c := NotScheduled(p); c != nil && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.UTC()
	}
	return p.CreationTimestamp.UTC()
}

// pointer returns nil for the zero time.
func pointer(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// fix looks for what would help the cause: fixes of its first pods, tried on all of them.
func (l *listing) fix(ctx context.Context, cause *Cause) {
	pods := cause.pods[:min(mostPlaced, len(cause.pods))]
	samples := l.samples(pods)
	g := fix.Group{Machine: l.Machine, Set: l.Set, Pods: pods, Like: l.sameTemplate}
	var found []fix.Shared
	if s := cause.short; s != nil { // what the first lacks shows with the others placed
		samples = []*v1.Pod{s.First.API}
		g.Before = s.Fitting
	}
	for _, p := range samples {
		if l.Read != nil {
			l.Read(p)
		}
	}
	found, cause.Cut = g.Find(ctx, samples)
	for _, f := range found {
		facts := &facts{api: samples[0], cluster: l.Cluster}
		for _, p := range samples {
			if p.Name == f.Sample.Name && p.Namespace == f.Sample.Namespace {
				facts.api = p
			}
		}
		shared := Shared{Fix: f.Fix, Places: f.Places, Of: len(pods)}
		shared.Then.Evicts = append([]string{}, f.Evicts...)
		shared.Commands = facts.commands(withOneNode(shared.Fix))
		cause.Fixes = append(cause.Fixes, shared)
	}
}

// withOneNode returns the fix with the first only of the nodes that it adds: they are alike.
func withOneNode(f fix.Fix) *fix.Fix {
	first := true
	f.Changes = slices.DeleteFunc(slices.Clone(f.Changes), func(c fix.Change) bool {
		_, node := c.Create.(*v1.Node)
		drop := node && !first
		first = first && !node
		return drop
	})
	return &f
}

// samples returns a pod of each of the first workloads.
func (l *listing) samples(pods []turn.Pod) (samples []*v1.Pod) {
	seen := map[string]bool{}
	for _, p := range pods {
		key := fmt.Sprint(p.Kind)
		if w := l.WorkloadOf(p.API); w.Kind != "" {
			key = w.String()
		}
		if !seen[key] && len(samples) < mostSamples {
			seen[key] = true
			samples = append(samples, p.API)
		}
	}
	return samples
}
