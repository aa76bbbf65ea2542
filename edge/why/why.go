package why

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/spelling"
)

// APIVersion is the version of all JSON that Berth writes for programs.
const APIVersion = "berth.dev/v1alpha1"

// Cluster is what answers are about: a machine that knows the cluster, and the API
// objects that it was told of. One owner; nothing of it is changed for good.
type Cluster struct {
	Machine *machine.Machine
	Set     *manifest.Set
	// NoFixes leaves out the search for fixes.
	NoFixes bool
	// Read adds to the set what fixes of a pod may change, where it is not there yet;
	// nil: all of it is.
	Read func(*v1.Pod)
	// Unread is true where more pods are pending than the set has.
	Unread bool
	// Look reads a running pod that the set does not have, nil if there is none; nil: the set
	// has all of them.
	Look func(types.NamespacedName) *v1.Pod
	// LookNode reads a node as the API server has it, with conditions and with who wrote what,
	// nil if that cannot be read; nil: the set's nodes are so.
	LookNode func(name string) *v1.Node
	// NoProfile says why a pod is not tried whose schedulerName no profile has; nil: the
	// machine is the scheduler, and has no other profiles.
	NoProfile func(schedulerName string) string
	// Record is what the scheduler's record says of the last attempt for the pod that is asked
	// about, nil where there is none.
	Record *Said
	// Namespace is that of pods that are named without one; empty: "default".
	Namespace string
	// Now is the cluster's time, zero where that is not known.
	Now time.Time
	// waits tells of pods whether load alone explains what blocks them; nil: it is
	// found out for each.
	waits map[types.UID]bool
	// refusing are the workloads whose controllers say that they cannot make pods; nil: not
	// asked for yet.
	refusing map[Workload]bool
	index    index
}

// facts are what the text says beyond the data.
type facts struct {
	api      *v1.Pod
	pod      *object.Pod
	decision *decision.Decision
	cluster  *Cluster
	nodes    map[string]*v1.Node
	spread   []spread
	refused  bool // by admission
	anti     []map[string]domain
}

// Why answers for a pod of the cluster. Once the context ends it looks for no more fixes,
// and the answer says so.
func (c *Cluster) Why(ctx context.Context, api *v1.Pod) *Answer {
	p := c.Machine.Member(c.Set.DecodePod(api))
	a := &Answer{
		APIVersion: APIVersion, Kind: "Why", Pod: p.Key(), Profile: p.SchedulerName, Verdict: Failed, PodGroup: p.PodGroup(),
		NodesTotal: c.Machine.Table().Live(), Groups: []NodeGroup{}, Fixes: []fix.Fix{}, Events: []Event{}, Scores: []Node{},
		facts: &facts{api: api, pod: p, cluster: c},
	}
	refused, isRefused := c.Set.Refused[p.Key()]
	switch {
	case isRefused:
		a.facts.refused = true
		a.Message, a.Verdict = refused.Error(), Misconfigured
		if refused.Waits {
			a.Verdict = Waiting
		}
	case p.NodeName != "":
		c.placed(a, api)
	case p.Terminal:
		a.Message = ended(api)
	default:
		c.pending(ctx, a, p)
		if a.Verdict != Gated && a.Verdict != Failed && a.Verdict != InProgress {
			a.GroupCause = a.groupCause(ctx)
		}
		c.observe(a, api)
		a.Held = a.held()
	}
	return a
}

// placed answers for a pod that has a node: how the nodes would do if it had none.
func (c *Cluster) placed(a *Answer, api *v1.Pod) {
	a.Verdict, a.Node, a.NotRunning = Placed, api.Spec.NodeName, NotRunning(api)
	if a.facts.pod.Terminal {
		return
	}
	d := assessElsewhere(c, api)
	a.facts.decision = d
	a.NodesFeasible, a.Scores = d.NodesFeasible, scoresOf(d.Nodes, a.Node)
	c.evicted(a)
}

func (c *Cluster) pending(ctx context.Context, a *Answer, p *object.Pod) {
	d := c.Machine.Assess(p)
	a.facts.decision = d
	a.Message, a.NodesFeasible = explain.Message(d), d.NodesFeasible
	if !p.Terminating && c.Machine.Profile(p.SchedulerName) == nil {
		a.Message = c.noProfile(p.SchedulerName)
	}
	a.Groups = a.facts.groupsOf(d.Nodes)
	a.Verdict = c.verdict(ctx, p, d)
	if ctx.Err() != nil {
		a.Cut = "the time was up before it was known whether load alone explains what blocks the pod, and no fix or terminating pod was looked for"
	}
	switch a.Verdict {
	case WouldBePlaced:
		a.Node, a.Scores = d.Node, scoresOf(d.Nodes, d.Node)
	case Preempting:
		a.Node = d.NominatedNode
		for _, v := range d.Victims {
			a.Victims = append(a.Victims, v.String())
		}
		a.Leaving = c.victimsLeaving(a, d)
		a.setNext(c, d)
	case Failed:
		a.Groups, a.NodesFeasible = []NodeGroup{}, 0
	}
	if !c.NoFixes && (a.Verdict == WouldBePlaced || a.Verdict == Preempting) {
		a.First = fix.Outrunning(ctx, c.Machine, c.Set, a.facts.api, a.Verdict == Preempting, c.others(a.facts.api))
	}
	a.Events = c.events(a, p, d)
	if a.Verdict == Waiting || a.Verdict == Misconfigured {
		a.Rollout = a.rolledOut()
	}
	if a.Verdict == Waiting && !c.NoFixes {
		a.Leaving = c.leaving(ctx, a)
		if len(a.Groups) > 0 {
			a.Holders = a.facts.heldMost(a.nearestGroup())
		}
	}
	if a.Cut == "" && !c.NoFixes && (a.Verdict == Waiting || a.Verdict == Misconfigured || a.Verdict == Gated) {
		a.Fixes, a.Cut = c.fixes(ctx, a.facts.api)
	}
}

// noProfile says that no profile has the name, and which one may be meant.
func (c *Cluster) noProfile(schedulerName string) string {
	if c.NoProfile != nil {
		return c.NoProfile(schedulerName)
	}
	return explain.NoProfile(schedulerName) + spelling.Profile(schedulerName, c.Machine.Profiles())
}

// fixes looks for fixes of the pod, and writes down how each is carried out.
func (c *Cluster) fixes(ctx context.Context, api *v1.Pod) (fixes []fix.Fix, cut string) {
	fixes, cut = fix.Find(ctx, c.Machine, c.Set, api, c.others(api))
	f := &facts{api: api, cluster: c}
	for i := range fixes {
		fixes[i].Commands = f.commands(withOneNode(fixes[i].Extended()))
	}
	return fixes, cut
}

// others are the pods that wait beside the asked one. If that one was never made,
// pods that no controller makes today wait, too: they come once it can come.
func (c *Cluster) others(asked *v1.Pod) fix.Others {
	others := fix.Others{Like: c.sameTemplate, Unread: c.Unread}
	waits := c.isPending
	if c.neverMade(asked) {
		waits = isUnplaced
	}
	for _, p := range c.Set.Pods {
		if waits(p) {
			others.Pods = append(others.Pods, p)
		}
	}
	return others
}

func (c *Cluster) verdict(ctx context.Context, p *object.Pod, d *decision.Decision) PodState {
	switch d.Result {
	case decision.ResultScheduled:
		return WouldBePlaced
	case decision.ResultPreempting:
		return Preempting
	case decision.ResultWaiting:
		return InProgress
	case decision.ResultGated:
		return Gated
	case decision.ResultUnschedulable:
		switch {
		case d.Writing:
			return InProgress
		case c.waitsForLoad(ctx, p):
			return Waiting
		}
		return Misconfigured
	}
	return Failed
}

// waitsForLoad is true, too, when the context ends before it is known.
func (c *Cluster) waitsForLoad(ctx context.Context, p *object.Pod) bool {
	if c.waits != nil {
		return c.waits[p.UID]
	}
	waits := waitForLoad(ctx, c.Machine, []*object.Pod{p})
	return len(waits) == 0 || waits[0]
}

// evicted says for whom the pod is being evicted, as far as the cluster shows it:
// pods of a higher priority that are nominated to its node.
func (c *Cluster) evicted(a *Answer) {
	p := a.facts.pod
	if !p.Disrupted {
		return
	}
	for _, by := range c.Machine.Nominator().NominatedTo(p.NodeName) {
		if by.Priority > p.Priority {
			a.EvictedBy = append(a.EvictedBy, by.Key())
		}
	}
	a.Evicted = c.whyEvicted(p)
}

// pods returns the pods of the set, and those that admission refuses.
func (c *Cluster) pods() []*v1.Pod {
	all := slices.Clip(c.Set.Pods)
	for _, key := range slices.Sorted(maps.Keys(c.Set.Refused)) {
		all = append(all, c.Set.Refused[key].Pod)
	}
	return all
}

// Find finds the pod that a name stands for: NAMESPACE/NAME, or a name, which is
// looked for in the namespace and then in all.
func (c *Cluster) Find(name, namespace string) (*v1.Pod, error) {
	in, plain := c.inNamespace(name, namespace)
	var elsewhere []*v1.Pod
	for _, p := range c.pods() {
		switch {
		case p.Name != plain:
		case p.Namespace == in:
			return p, nil
		case plain == name && namespace == "":
			elsewhere = append(elsewhere, p)
		}
	}
	switch len(elsewhere) {
	case 0:
		return nil, c.noSuchPod(name, namespace)
	case 1:
		return elsewhere[0], nil
	}
	names := make([]string, len(elsewhere))
	for i, p := range elsewhere {
		names[i] = p.Namespace + "/" + p.Name
	}
	return nil, errors.New("pod " + plain + ": is in several namespaces: say which: " + list(names, 5))
}

func compareKeys(a, b *object.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
