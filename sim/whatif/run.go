package whatif

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/workload"
	"github.com/berth-scheduler/berth/sim"
)

// Options says how the changes are made.
type Options struct {
	// IgnoreBudgets evicts pods whatever their budgets say.
	IgnoreBudgets bool
	// Stdin is what the file "-" of a change stands for.
	Stdin io.Reader
	// Names is where pods and workloads are that are named without a namespace.
	Names Names
	// Anew returns the scheduler's options once more. With it the cluster is also played without
	// the changes if pods were evicted for others, for Result.InAnyCase.
	Anew func() (machine.Options, error)
}

// Names says in which namespace a name without one is looked for: in Namespace ("" means
// "default"), then, unless Only is set, anywhere.
type Names struct {
	Namespace string
	Only      bool
}

func (n Names) namespace() string { return cmp.Or(n.Namespace, metav1.NamespaceDefault) }

// Result is how a run with changes ended.
type Result struct {
	*sim.Result
	Changes []Change
	// Before is the cluster as it was.
	Before *sim.Cluster
	// Moved are the pods that ran and had to start again, by namespace and name.
	Moved []Move
	// Gone are the pods that were there and are not made again.
	Gone []Stay
	// Kept are the pods that were to be evicted and were not.
	Kept []Stay
	// KeptBy are the budgets that held these back, by pod, with how many were down then.
	KeptBy map[string][]BudgetUse
	// Stayed are the pods that a drain leaves on their nodes.
	Stayed []Stay
	// Budgets are those some of whose pods were down.
	Budgets []BudgetUse
	// Pending are the pods that had no node before, by namespace/name.
	Pending map[string]bool
	// InAnyCase are the pods that lose their node without the changes, too, by namespace/name: pods
	// that were pending before have them evicted. The value is their node then, "" for none.
	InAnyCase map[string]string
	// Notices are for the user.
	Notices []string
}

// StuckInAnyCase reports whether the pod, which had a node, has none at the end, and would have
// none without the changes.
func (r *Result) StuckInAnyCase(pod string) bool {
	node, loses := r.InAnyCase[pod]
	return loses && node == "" && r.Unplaced[pod] != ""
}

// Stuck counts the pods without a node that the changes left so: they had one, or were
// not there.
func (r *Result) Stuck() int {
	n := 0
	for pod := range r.Unplaced {
		if !r.Pending[pod] && !r.StuckInAnyCase(pod) {
			n++
		}
	}
	return n
}

// Move is a pod that went from a node to another; To is "" when it has none. Workload is
// kind/namespace/name, "" for a pod without controller.
type Move struct{ Pod, From, To, Workload string }

// Stay is a pod, the node that it is on or was on ("" for none), and why.
type Stay struct{ Pod, Node, Why string }

// BudgetUse is how many pods of a budget were down at the same time.
type BudgetUse struct {
	Budget  string
	Allowed int
	Down    int
}

// Broken tells that more were down than the budget allows.
func (b BudgetUse) Broken() bool { return b.Down > b.Allowed }

// Run plays the cluster with the changes made. in is made of the set, which Run
// owns from now on.
func Run(set *manifest.Set, in sim.Input, changes []Change, o Options) (*Result, error) {
	as, before := in, set
	if len(changes) > 0 && o.Anew != nil {
		before = set.Clone()
	}
	s := newSession(set, &in, o)
	r := &Result{Changes: changes, Before: snapshot(in), Pending: pendingPods(set, in)}
	in.Refused = set.Refusals
	in.Begin = func(w *sim.World) error { return s.begin(w, changes) }
	in.Idle = func(*sim.World) bool { return s.evictAllowed() }
	in.Evicted = s.evicted
	run, err := sim.Run(in)
	if err != nil {
		return nil, err
	}
	r.Result = run
	r.Notices = endlessNotices(run)
	s.tell(r)
	if before != set && len(run.Evicted) > 0 && len(r.Pending) > 0 {
		err = r.compare(before, as, o)
	}
	return r, err
}

// compare plays the cluster without the changes, and records which pods lose their node then.
func (r *Result) compare(set *manifest.Set, in sim.Input, o Options) (err error) {
	if in.Machine, err = o.Anew(); err != nil {
		return err
	}
	in.Decided = nil
	without, err := Run(set, in, nil, Options{Names: o.Names})
	if err != nil {
		return err
	}
	r.InAnyCase = map[string]string{}
	for _, m := range without.Moved {
		r.InAnyCase[m.Pod] = m.To
	}
	return nil
}

// evicted makes a pod again that was evicted for another one.
func (s *session) evicted(_ *sim.Cluster, victim *object.Pod, endless bool) {
	s.again(victim.Key(), endless)
	s.lost(victim)
}

// workloadOf names the workload of a pod, "" for none.
func (s *session) workloadOf(key string) string {
	kind, name := workload.OfPod(s.pods[key])
	if kind == "" {
		return ""
	}
	return strings.ToLower(kind) + "/" + s.pods[key].Namespace + "/" + name
}

// endlessNotices name the pods that preempt others without end, and the others.
func endlessNotices(r *sim.Result) (notices []string) {
	victims := map[string][]string{}
	for _, e := range r.Endless {
		victims[e.Preemptor] = append(victims[e.Preemptor], e.Victim)
	}
	for _, preemptor := range slices.Sorted(maps.Keys(victims)) {
		notices = append(notices, fmt.Sprintf("%s preempts without end pods that their controllers make again: %s; these were not tried again in the end",
			preemptor, firstNames(victims[preemptor])))
	}
	if r.Cut != "" {
		notices = append(notices, "cut: "+r.Cut)
	}
	return notices
}

// firstNames names a few, and counts the others.
func firstNames(names []string) string {
	slices.Sort(names)
	text := strings.Join(names[:min(len(names), 3)], ", ")
	if len(names) > 3 {
		text += fmt.Sprintf(" and %d more", len(names)-3)
	}
	return text
}

// snapshot is the cluster before anything happens.
func snapshot(in sim.Input) *sim.Cluster {
	c := sim.NewCluster(in.Start)
	for _, n := range in.Nodes {
		c.SetNode(n)
	}
	for _, p := range in.Pods {
		c.SetPod(p)
	}
	return c
}

// tell says what became of the pods that ran, and of those that were pending and are gone.
func (s *session) tell(r *Result) {
	for _, p := range s.running {
		now := s.cluster.Pod(p.Key())
		_, refused := s.set.Refused[p.Key()]
		switch {
		case now == nil && refused:
			r.Moved = append(r.Moved, Move{p.Key(), p.NodeName, "", s.workloadOf(p.Key())})
		case now == nil:
			r.Gone = append(r.Gone, Stay{p.Key(), p.NodeName, s.gone[p.Key()]})
		case now.UID != p.UID:
			r.Moved = append(r.Moved, Move{p.Key(), p.NodeName, now.NodeName, s.workloadOf(p.Key())})
		case s.left[p.Key()] != "":
			r.Stayed = append(r.Stayed, Stay{p.Key(), p.NodeName, s.left[p.Key()]})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.gone)) {
		if r.Pending[key] && s.cluster.Pod(key) == nil {
			r.Gone = append(r.Gone, Stay{key, "", s.gone[key]})
		}
	}
	r.KeptBy = map[string][]BudgetUse{}
	for _, l := range s.leaving {
		r.Kept, r.KeptBy[l.pod] = append(r.Kept, Stay{l.pod, l.node, l.why}), l.by
	}
	s.countDown()
	for _, b := range s.budgets {
		if b.most > 0 {
			r.Budgets = append(r.Budgets, b.use(b.most))
		}
	}
	if len(s.bare) > 0 {
		slices.Sort(s.bare)
		r.Notices = append(r.Notices, firstNames(slices.Compact(s.bare))+": no controller makes them again, as the simulation does; kubectl drain refuses them without --force")
	}
}
