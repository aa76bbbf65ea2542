package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// Epoch is the start of a run without a start time.
var Epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Input is a cluster and how to schedule it.
type Input struct {
	Nodes []*object.Node
	// Pods with a node run there from the start; the others are pending, in
	// order of creation, or in the given order where two are as old. A pod
	// without a time of creation is created at Start.
	Pods []*object.Pod
	// Budgets stay as they are: what is evicted is not counted off.
	Budgets []*object.Budget
	// Namespaces are known by their labels, which pod affinity may select by.
	Namespaces []*object.Namespace
	// SelectorOwners are Services and controllers; default spread constraints go by
	// them.
	SelectorOwners []*object.SelectorOwner
	// Objects are claims, volumes and what else plugins read.
	Objects []object.Object
	// Start is the time on the virtual clock; zero: Epoch.
	Start   time.Time
	Machine machine.Options
	// Scheduler, when set, makes the profiles of Machine anew, with hosted plugins.
	Scheduler *Scheduler
	// NoProfile, when set, says why a pod is not tried whose schedulerName no profile
	// has.
	NoProfile func(schedulerName string) string
	// Decided, when set, gets each decision when it is taken.
	Decided func(*decision.Decision)
	// Ask, when set, puts a question to an extender and waits for the answer.
	// Extenders of Machine need it. None is asked to bind a pod.
	Ask func(machine.CallExtender) machine.ExtenderReply
	// Begin, when set, changes the cluster before anything is decided.
	Begin func(*World) error
	// Idle, when set, is called when no queue can move. It may change the
	// cluster. The run ends when it returns false.
	Idle func(*World) bool
	// Evicted, when set, is called after a pod was evicted for another one. It
	// may change the cluster, as controllers do. endless says that the two go round: a
	// pod that is made again is to be held (Cluster.Hold).
	Evicted func(c *Cluster, victim *object.Pod, endless bool)
	// Refused, when set, returns at the end why pods are not there that admission refuses,
	// by namespace/name. They count as not placed.
	Refused func() map[string]string
	// Stop, when set, is asked now and then. The run ends once it returns true.
	Stop func() bool
}

// Result is how a run ended.
type Result struct {
	// Cluster is the cluster at the end of the run.
	Cluster *Cluster
	// Placed has the nodes of the pods that the run placed and that are there
	// still, by namespace/name.
	Placed map[string]string
	// Unplaced has the reasons why pods are still pending, by namespace/name.
	Unplaced map[string]string
	// OtherScheduler has those of Unplaced whose schedulerName no profile has.
	OtherScheduler map[string]bool
	// Evicted has the pods that preemption evicted, in the order of the run.
	Evicted   []Eviction
	Decisions int
	End       time.Time
	// Endless are the pods that were evicted for the same pod again and again. They were
	// held in the end.
	Endless []Endless
	// Cut says in a sentence why the run ended before it came to rest, "" if it did.
	Cut string
}

// Eviction is a pod that was evicted for another pod. Both are namespace/name.
type Eviction struct {
	Pod, Node, For string
}

// Load returns the cluster as its scheduler first sees it. No decision is taken.
func Load(in Input) (*World, error) {
	if in.Start.IsZero() {
		in.Start = Epoch
	}
	w, err := NewWorldOf(in.Scheduler, in.Machine, in.Start)
	if err != nil {
		return nil, err
	}
	if err := w.populate(in); err != nil {
		return nil, err
	}
	w.Deliver()
	return w, nil
}

// Run plays the cluster until no queue can move. Two objects with one name are
// an error.
func Run(in Input) (*Result, error) {
	if in.Start.IsZero() {
		in.Start = Epoch
	}
	w, err := NewWorldOf(in.Scheduler, in.Machine, in.Start)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if err := w.populate(in); err != nil {
		return nil, err
	}
	r := &Result{Cluster: w.Cluster, Placed: map[string]string{}, Unplaced: map[string]string{}, OtherScheduler: map[string]bool{}}
	said := map[string]string{}
	w.Observe = func(e machine.Effect) {
		switch e := e.(type) {
		case machine.AttemptDone:
			r.Decisions++
			said[e.Decision.Pod.String()] = why(e.Decision)
			if in.Decided != nil {
				in.Decided(e.Decision)
			}
		case machine.Evict:
			if w.Cluster.Pod(e.Victim.Key()) != nil {
				r.Evicted = append(r.Evicted, Eviction{e.Victim.Key(), e.Victim.NodeName, e.Preemptor.Key()})
			}
		}
	}
	w.evicted, w.Ask, w.noProfile, w.stop = in.Evicted, in.Ask, in.NoProfile, in.Stop
	if in.Begin != nil {
		if err := in.Begin(w); err != nil {
			return nil, err
		}
	}
	w.Exhaust()
	for in.Idle != nil && w.cut == "" && in.Idle(w) {
		w.Exhaust()
	}
	r.End, r.Endless, r.Cut = w.Now, w.endless, w.cut
	ran := map[types.UID]bool{}
	for _, p := range in.Pods {
		ran[p.UID] = p.NodeName != ""
	}
	for _, p := range w.Cluster.Pods() {
		switch {
		case ran[p.UID]:
		case p.NodeName != "":
			r.Placed[p.Key()] = p.NodeName
		default:
			r.Unplaced[p.Key()] = w.pendingBecause(p, said[p.Key()])
			if !w.HasProfile(p.SchedulerName) {
				r.OtherScheduler[p.Key()] = true
			}
		}
	}
	if in.Refused != nil {
		maps.Copy(r.Unplaced, in.Refused())
	}
	return r, nil
}

func (w *World) populate(in Input) error {
	for _, n := range in.Nodes {
		if w.Cluster.Node(n.Name) != nil {
			return fmt.Errorf("node %s: exists twice", n.Name)
		}
		w.Cluster.SetNode(n)
	}
	for _, b := range in.Budgets {
		w.step(machine.BudgetSet{Budget: b})
	}
	for _, n := range in.Namespaces {
		w.step(machine.NamespaceSet{Namespace: n})
	}
	for _, f := range in.SelectorOwners {
		w.step(machine.SelectorOwnerSet{Owner: f})
	}
	for _, o := range in.Objects {
		w.Cluster.SetObject(o)
	}
	pods := slices.Clone(in.Pods)
	slices.SortStableFunc(pods, func(a, b *object.Pod) int {
		return created(a, in.Start).Compare(created(b, in.Start))
	})
	for _, running := range []bool{true, false} {
		for _, p := range pods {
			if (p.NodeName != "") != running || p.Terminal {
				continue
			}
			if w.Cluster.Pod(p.Key()) != nil {
				return fmt.Errorf("pod %s: exists twice", p.Key())
			}
			w.Cluster.SetPod(p)
		}
	}
	return nil
}

func created(p *object.Pod, start time.Time) time.Time {
	if p.Created.IsZero() {
		return start
	}
	return p.Created
}

// why says in words what keeps the pod after the decision.
func why(d *decision.Decision) string {
	if d.Result == decision.ResultWaiting {
		return fmt.Sprintf("a Permit plugin holds it for node %s", d.Node)
	}
	return explain.Message(d)
}

// pendingBecause is why the pod is pending, given what the last decision said.
func (w *World) pendingBecause(p *object.Pod, said string) string {
	if at := slices.IndexFunc(w.endless, func(e Endless) bool { return e.Victim == p.Key() }); at >= 0 {
		return w.endless[at].String()
	}
	switch {
	case said != "":
		return said
	case !w.HasProfile(p.SchedulerName):
		if w.noProfile != nil {
			return w.noProfile(p.SchedulerName)
		}
		return explain.NoProfile(p.SchedulerName)
	case p.Terminating:
		return explain.Deleting(p)
	}
	return "was not tried"
}
