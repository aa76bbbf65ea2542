package conform

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/generate"
	"github.com/berth-scheduler/berth/sim/scenario"
)

// follower follows a story that Berth plays, shows kube-scheduler the same
// cluster, and asks it the same questions: about every decision, and about every
// change while pods wait. Where Berth decided, both go on with that. Time is
// Berth's alone: when pods are tried again kube-scheduler is not asked.
type follower struct {
	oracle *oracle.Scheduler
	world  *sim.World
	step   *scenario.Step

	written   store // the story's, and what became of them by writes
	last      metav1.Object
	nodes     map[string]bool       // that kube-scheduler knows
	pods      map[types.UID]*v1.Pod // as the scheduler was told last
	origin    map[types.UID]*v1.Pod // as the story wrote them then
	waiting   []oracle.Rejected     // in the places where pods wait for a change
	placing   map[types.UID]*v1.Pod // decided on, their writes to come
	extender  *storyExtender        // nil: none
	groups    bool                  // pods of groups are tried together
	tried     []tried               // of the group whose cycle is under way
	condition *metav1.Condition     // that kube-scheduler wrote of the last group
	leftOut   bool                  // the last cycle of a group: the two differ on purpose
	assumed   map[types.UID]bool    // placed with their group, and not shown as bound yet
	// admitted holds the groups, by key, whose pods passed kube-scheduler's PreEnqueue plugins
	// when they were asked last. While a group is active or in backoff they are asked again
	// when a pod of it comes, goes or is bound, and at the end of a cycle.
	admitted map[string]bool
	// arrived are the pods that came before the first decision, decidedFirst the pods and
	// groups in the order in which they were tried since, until ordered is set: the two
	// were compared. unordered are groups of which kube-scheduler's order is random.
	arrived      []*v1.Pod
	decidedFirst []string
	unordered    map[string]bool
	ordered      bool
	counts       storyCounts
	differences  []difference // since the last change or decision, not marked yet
	faults       []string     // what nobody marked
	err          error        // that ends the story
}

// difference is something that the two sides say differently about a pod, or its group.
type difference struct {
	pod  string // namespace/name
	diff string
	// meant is set if the difference is intended. A story may mark it.
	meant bool
}

// storyCounts is what was compared.
type storyCounts struct {
	stories, decisions, requeues, extra, spared, marked int
	alone                                               int // stories that kube-scheduler cannot play
	// places is how often it was compared whether a pod group is kept out of the queue;
	// cycles counts the cycles of pod groups by Berth's outcome.
	places int
	cycles map[string]int
}

func newFollower(upstream *oracle.Scheduler) *follower {
	return &follower{oracle: upstream, written: store{}, nodes: map[string]bool{}, pods: map[types.UID]*v1.Pod{},
		origin: map[types.UID]*v1.Pod{}, placing: map[types.UID]*v1.Pod{}, unordered: map[string]bool{}, assumed: map[types.UID]bool{}, admitted: map[string]bool{}}
}

// Directive settles what the one before led to: a difference has to be marked
// before anything else happens.
func (f *follower) Directive(s *scenario.Step, world *sim.World) error {
	f.world = world
	f.settleCycle()
	if err := errors.Join(f.checkOrder(), f.checkGroups()); err != nil {
		return fmt.Errorf("kube-scheduler: %w", err)
	}
	switch s.Words[0] {
	case "expect":
	case "differs":
		return f.differs(s)
	default:
		f.fail()
		f.step = s
	}
	return f.err
}

// differs takes the mark of a difference, which has to be there.
func (f *follower) differs(s *scenario.Step) error {
	if len(s.Words) < 2 {
		return nil // the story's player says so
	}
	before, key := len(f.differences), s.Words[1]
	if !strings.Contains(key, "/") {
		key = v1.NamespaceDefault + "/" + key
	}
	group := key
	for _, p := range f.pods { // any order: one has the name
		if p.Namespace+"/"+p.Name == key {
			group = entityOf(p)
		}
	}
	f.differences = slices.DeleteFunc(f.differences, func(p difference) bool { return p.pod == key || p.pod == group && !p.meant })
	if len(f.differences) == before {
		return fmt.Errorf("kube-scheduler does and says the same")
	}
	f.counts.marked++
	return nil
}

// fail has what differs and is not marked be a fault.
func (f *follower) fail() {
	for _, p := range f.differences {
		if p.meant {
			continue
		}
		f.faults = append(f.faults, fmt.Sprintf("%d: %s: pod %s: %s", f.step.Line, strings.Join(f.step.Words, " "), p.pod, p.diff))
	}
	f.differences = nil
}

func (f *follower) differ(p *v1.Pod, diff string) {
	f.differences = append(f.differences, difference{pod: p.Namespace + "/" + p.Name, diff: diff})
}

// Wrote notes an object as the story has it.
func (f *follower) Wrote(o metav1.Object) { f.written[objectKey(o)], f.last = o, o }

// Told shows kube-scheduler what the scheduler was told.
func (f *follower) Told(e machine.Event) {
	if !f.cycleUnderWay() {
		f.settleCycle()
	}
	if err := f.follow(e); err != nil && f.err == nil {
		f.err = fmt.Errorf("kube-scheduler: %w", err)
	}
	f.waiting = slices.DeleteFunc(f.waiting, func(r oracle.Rejected) bool { return !f.waits(r.Pod.UID) })
}

func (f *follower) follow(e machine.Event) error {
	switch e := e.(type) {
	case machine.NodeSet:
		verb := generate.Add
		if f.nodes[e.Node.Name] {
			verb = generate.Update
		}
		f.nodes[e.Node.Name] = true
		return f.change(generate.Change{Verb: verb, Node: f.written["Node /"+e.Node.Name].(*v1.Node)})
	case machine.NodeGone:
		delete(f.nodes, e.Name)
		return f.change(generate.Change{Verb: generate.Delete, Node: f.written["Node /"+e.Name].(*v1.Node)})
	case machine.NamespaceSet:
		return f.change(generate.Change{Verb: generate.Update, Namespace: f.written["Namespace /"+e.Namespace.Name].(*v1.Namespace)})
	case machine.BudgetSet:
		return f.oracle.SetBudget(f.written[fmt.Sprintf("PodDisruptionBudget %s/%s", e.Budget.Namespace, e.Budget.Name)].(*policyv1.PodDisruptionBudget))
	case machine.SelectorOwnerSet:
		if err := f.oracle.SetSelectorOwner(f.last); err != nil {
			return err
		}
		return f.compareRequeues("a change of "+e.Owner.Name, make([]bool, len(f.waiting))) // kube-scheduler requeues no pod
	case machine.SelectorOwnerGone:
		return f.selectorOwnerGone(e)
	case machine.ObjectSet:
		m := e.Object.Head()
		key := fmt.Sprintf("%s %s/%s", m.Kind, m.Namespace, m.Name)
		o := f.written[key].(runtime.Object).DeepCopyObject().(metav1.Object)
		o.SetResourceVersion(m.Version)
		if m.Kind == object.PodGroups {
			withCondition(o, e.Object)
		}
		f.written[key] = o
		return f.change(generate.Change{Verb: generate.Update, Other: o})
	case machine.ObjectGone:
		o := f.written[fmt.Sprintf("%s %s/%s", e.Kind, e.Namespace, e.Name)]
		return f.change(generate.Change{Verb: generate.Delete, Other: o})
	case machine.PodSet:
		return f.podSet(e)
	case machine.ExtenderReply:
		f.extender.answered(e)
	case machine.PodGone:
		gone := f.pods[e.UID]
		if f.groups && gone != nil && gone.Spec.NodeName == "" {
			if err := f.askGate(gone); err != nil { // the pod still counts then
				return err
			}
			f.oracle.LeaveGroup(gone)
		}
		delete(f.pods, e.UID)
		delete(f.assumed, e.UID)
		f.leave(e.UID)
		if gone != nil {
			return f.change(generate.Change{Verb: generate.Delete, Pod: gone})
		}
	}
	return nil
}

// selectorOwnerGone deletes the Service or controller for kube-scheduler, which requeues no pod
// then.
func (f *follower) selectorOwnerGone(e machine.SelectorOwnerGone) error {
	key := fmt.Sprintf("%v %s/%s", e.Kind, e.Namespace, e.Name)
	if err := f.oracle.DeleteSelectorOwner(f.written[key]); err != nil {
		return err
	}
	delete(f.written, key)
	return f.compareRequeues("the end of "+e.Name, make([]bool, len(f.waiting)))
}

// podSet is the pod as the story has it, with what the scheduler made of it.
func (f *follower) podSet(e machine.PodSet) error {
	p := e.Pod
	origin := f.written["Pod "+p.Key()].(*v1.Pod)
	now := origin.DeepCopy()
	now.Spec.NodeName, now.Status.NominatedNodeName = p.NodeName, p.NominatedNode
	now.Status.NodeAllocatableResourceClaimStatuses = p.FromDevices
	if !p.Started.IsZero() {
		started := metav1.NewTime(p.Started)
		now.Status.StartTime = &started
	}
	old, before := f.pods[p.UID], f.origin[p.UID]
	f.pods[p.UID], f.origin[p.UID] = now, origin
	if p.NodeName != "" {
		delete(f.assumed, p.UID)
	}
	if f.groups && old == nil && p.NodeName == "" {
		f.oracle.JoinGroup(now)
		f.arrive(now)
		if err := f.askGate(now); err != nil {
			return err
		}
	}
	switch {
	case p.NodeName != "" && (old == nil || old.Spec.NodeName == ""):
		f.leave(p.UID)
		if old != nil {
			if err := f.askGate(now); err != nil {
				return err
			}
		}
		return f.change(generate.Change{Verb: generate.Add, Pod: now})
	case p.NodeName != "":
		return f.change(generate.Change{Verb: generate.Update, Pod: now})
	}
	for i := range f.waiting {
		if f.waiting[i].Pod.UID == p.UID && before != origin { // else only its status changed
			return f.change(generate.Change{Verb: generate.Update, Pod: now})
		}
	}
	return nil
}

// leave has the pod wait no more.
func (f *follower) leave(uid types.UID) {
	f.waiting = slices.DeleteFunc(f.waiting, func(r oracle.Rejected) bool { return r.Pod.UID == uid })
}

// waits tells whether Berth has the pod in a place where it waits for a change.
func (f *follower) waits(uid types.UID) bool {
	at := f.world.Machine.Entry(uid).Place()
	return at == queue.Unschedulable || at == queue.Gated
}

// change shows a change and compares what it requeues.
func (f *follower) change(c generate.Change) error {
	want, err := f.oracle.Apply(c, f.waiting)
	if err != nil {
		return err
	}
	return f.compareRequeues(c.String(), want)
}

// compareRequeues compares which waiting pods were requeued. A pod that only one of the
// two requeues makes a difference if it fits now; so does one that nothing requeues.
func (f *follower) compareRequeues(what string, want []bool) error {
	for i, r := range f.waiting {
		pod := f.pods[r.Pod.UID]
		requeued := !f.waits(pod.UID)
		f.counts.requeues++
		if want[i] && requeued || len(f.assumed) > 0 { // kube-scheduler does not know them
			continue
		}
		rec, err := f.ask(pod)
		switch {
		case err != nil:
			return err
		case want[i] && (rec.Result == oracle.Scheduled || rec.Result == oracle.Preempting):
			f.differ(pod, what+" requeues it in kube-scheduler, not in Berth, and it fits or preempts")
		case want[i]:
			f.counts.spared++
		case rec.Result == oracle.Scheduled && requeued:
			f.differ(pod, what+" requeues it in Berth, not in kube-scheduler, and it fits")
		case rec.Result == oracle.Scheduled:
			f.differ(pod, what+" requeues it nowhere, and it fits")
		case requeued:
			f.counts.extra++
		}
	}
	return nil
}

// ask is what kube-scheduler says of the pod, those beside that are nominated.
func (f *follower) ask(pod *v1.Pod) (oracle.Record, error) {
	var nominated []*v1.Pod
	for _, p := range f.pods {
		if p = f.asNominated(p); p.Spec.NodeName == "" && p.Status.NominatedNodeName != "" && p.UID != pod.UID {
			nominated = append(nominated, p)
		}
	}
	return f.oracle.DecideBeside(pod, nominated)
}

// observe compares a decision, and does what Berth writes.
func (f *follower) observe(e machine.Effect) {
	switch e := e.(type) {
	case machine.AttemptDone:
		if err := f.decided(e.Decision); err != nil && f.err == nil {
			f.err = fmt.Errorf("kube-scheduler: %w", err)
		}
	case machine.PodGroupDone:
		f.end(f.groupDone(e))
	case machine.PatchGroupStatus:
		f.compareCondition(e)
	case machine.Write:
		if pod := f.placing[e.Pod.UID]; pod != nil {
			if diff := compareGrants(f.oracle, pod, pod.Spec.NodeName, e.Writes); diff != "" {
				f.differ(pod, diff)
			}
		}
		for i := range e.Writes {
			changed, err := f.written.follow(&e.Writes[i])
			if err != nil && f.err == nil {
				f.err = fmt.Errorf("write %s: %w", e.Writes[i].Describe(), err)
			}
			for _, o := range changed {
				f.Wrote(o)
			}
		}
	}
}

func (f *follower) decided(d *decision.Decision) error {
	pod := f.pods[d.UID]
	f.appear(d, pod)
	if f.groupTried(d, pod) {
		return nil
	}
	want, err := f.ask(pod)
	if err != nil {
		return err
	}
	f.counts.decisions++
	if diffs := compare(want, record(d)); len(diffs) > 0 {
		f.differ(pod, strings.Join(diffs, "; "))
	}
	f.leave(d.UID)
	if delete(f.placing, d.UID); d.Result == decision.ResultScheduled {
		f.placing[d.UID] = pod.DeepCopy()
		f.placing[d.UID].Spec.NodeName = d.Node
	}
	if f.waits(d.UID) {
		f.waiting = append(f.waiting, oracle.Rejected{Pod: pod, Plugins: want.Plugins, Gated: want.Result == oracle.Gated})
	}
	return nil
}
