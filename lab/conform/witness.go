package conform

import (
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
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/generate"
	"github.com/berth-scheduler/berth/sim/scenario"
)

// witness follows a story that Berth plays, shows kube-scheduler the same
// cluster, and asks it the same questions: about every decision, and about every
// change while pods wait. Where Berth decided, both go on with that. Time is
// Berth's alone: when pods are tried again kube-scheduler is not asked.
type witness struct {
	oracle *oracle.Scheduler
	world  *sim.World
	step   *scenario.Step

	written store // the story's, and what became of them by writes
	last    metav1.Object
	nodes   map[string]bool       // that kube-scheduler knows
	pods    map[types.UID]*v1.Pod // as the scheduler was told last
	origin  map[types.UID]*v1.Pod // as the story wrote them then
	waiting []oracle.Rejected     // in the places where pods wait for a change
	placing map[types.UID]*v1.Pod // decided on, their writes to come
	counts  storyCounts
	parted  []parting // since the last change or decision, not marked yet
	faults  []string  // what nobody marked
	err     error     // that ends the story
}

// parting is something that the two sides say differently about a pod.
type parting struct {
	pod  string // namespace/name
	diff string
}

// storyCounts is what was compared.
type storyCounts struct {
	stories, decisions, wakes, extra, marked int
}

func newWitness(upstream *oracle.Scheduler) *witness {
	return &witness{oracle: upstream, written: store{}, nodes: map[string]bool{}, pods: map[types.UID]*v1.Pod{},
		origin: map[types.UID]*v1.Pod{}, placing: map[types.UID]*v1.Pod{}}
}

// Directive settles what the one before led to: a difference has to be marked
// before anything else happens.
func (w *witness) Directive(s *scenario.Step, world *sim.World) error {
	w.world = world
	switch s.Words[0] {
	case "expect":
	case "differs":
		return w.differs(s)
	default:
		w.settle()
		w.step = s
	}
	return w.err
}

// differs takes the mark of a difference, which has to be there.
func (w *witness) differs(s *scenario.Step) error {
	if len(s.Words) < 2 {
		return nil // the story's player says so
	}
	before := len(w.parted)
	w.parted = slices.DeleteFunc(w.parted, func(p parting) bool {
		return p.pod == s.Words[1] || p.pod == v1.NamespaceDefault+"/"+s.Words[1]
	})
	if len(w.parted) == before {
		return fmt.Errorf("kube-scheduler does and says the same")
	}
	w.counts.marked++
	return nil
}

// settle has what differs and is not marked be a fault.
func (w *witness) settle() {
	for _, p := range w.parted {
		w.faults = append(w.faults, fmt.Sprintf("%d: %s: pod %s: %s", w.step.Line, strings.Join(w.step.Words, " "), p.pod, p.diff))
	}
	w.parted = nil
}

func (w *witness) part(p *v1.Pod, diff string) {
	w.parted = append(w.parted, parting{p.Namespace + "/" + p.Name, diff})
}

// Wrote notes an object as the story has it.
func (w *witness) Wrote(o metav1.Object) { w.written[objectKey(o)], w.last = o, o }

// Told shows kube-scheduler what the scheduler was told.
func (w *witness) Told(e machine.Event) {
	if err := w.follow(e); err != nil && w.err == nil {
		w.err = fmt.Errorf("kube-scheduler: %w", err)
	}
	w.waiting = slices.DeleteFunc(w.waiting, func(r oracle.Rejected) bool { return !w.waits(r.Pod.UID) })
}

func (w *witness) follow(e machine.Event) error {
	switch e := e.(type) {
	case machine.NodeSet:
		verb := generate.Add
		if w.nodes[e.Node.Name] {
			verb = generate.Update
		}
		w.nodes[e.Node.Name] = true
		return w.change(generate.Change{Verb: verb, Node: w.written["Node /"+e.Node.Name].(*v1.Node)})
	case machine.NodeGone:
		delete(w.nodes, e.Name)
		return w.change(generate.Change{Verb: generate.Delete, Node: w.written["Node /"+e.Name].(*v1.Node)})
	case machine.NamespaceSet:
		return w.change(generate.Change{Verb: generate.Update, Namespace: w.written["Namespace /"+e.Namespace.Name].(*v1.Namespace)})
	case machine.BudgetSet:
		return w.oracle.SetBudget(w.written[fmt.Sprintf("PodDisruptionBudget %s/%s", e.Budget.Namespace, e.Budget.Name)].(*policyv1.PodDisruptionBudget))
	case machine.SelectorOwnerSet:
		if err := w.oracle.SetSelectorOwner(w.last); err != nil {
			return err
		}
		return w.compareWakes("a change of "+e.Owner.Name, make([]bool, len(w.waiting))) // v1.36.3 wakes nobody
	case machine.ObjectSet:
		m := e.Object.Head()
		key := fmt.Sprintf("%s %s/%s", m.Kind, m.Namespace, m.Name)
		o := w.written[key].(runtime.Object).DeepCopyObject().(metav1.Object)
		o.SetResourceVersion(m.Version)
		w.written[key] = o
		return w.change(generate.Change{Verb: generate.Update, Other: o})
	case machine.ObjectGone:
		o := w.written[fmt.Sprintf("%s %s/%s", e.Kind, e.Namespace, e.Name)]
		return w.change(generate.Change{Verb: generate.Delete, Other: o})
	case machine.PodSet:
		return w.podSet(e)
	case machine.PodGone:
		gone := w.pods[e.UID]
		delete(w.pods, e.UID)
		w.leave(e.UID)
		if gone != nil {
			return w.change(generate.Change{Verb: generate.Delete, Pod: gone})
		}
	}
	return nil
}

// podSet is the pod as the story has it, with what the scheduler made of it.
func (w *witness) podSet(e machine.PodSet) error {
	p := e.Pod
	origin := w.written["Pod "+p.Key()].(*v1.Pod)
	now := origin.DeepCopy()
	now.Spec.NodeName, now.Status.NominatedNodeName = p.NodeName, p.NominatedNode
	if !p.Started.IsZero() {
		started := metav1.NewTime(p.Started)
		now.Status.StartTime = &started
	}
	old, before := w.pods[p.UID], w.origin[p.UID]
	w.pods[p.UID], w.origin[p.UID] = now, origin
	switch {
	case p.NodeName != "" && (old == nil || old.Spec.NodeName == ""):
		w.leave(p.UID)
		return w.change(generate.Change{Verb: generate.Add, Pod: now})
	case p.NodeName != "":
		return w.change(generate.Change{Verb: generate.Update, Pod: now})
	}
	for i := range w.waiting {
		if w.waiting[i].Pod.UID == p.UID && before != origin { // else only its status changed
			return w.change(generate.Change{Verb: generate.Update, Pod: now})
		}
	}
	return nil
}

// leave has the pod wait no more.
func (w *witness) leave(uid types.UID) {
	w.waiting = slices.DeleteFunc(w.waiting, func(r oracle.Rejected) bool { return r.Pod.UID == uid })
}

// waits tells whether Berth has the pod in a place where it waits for a change.
func (w *witness) waits(uid types.UID) bool {
	at := w.world.Machine.Queue().Where(uid)
	return at == queue.Unschedulable || at == queue.Gated
}

// change shows a change and compares what it wakes.
func (w *witness) change(c generate.Change) error {
	want, err := w.oracle.Apply(c, w.waiting)
	if err != nil {
		return err
	}
	return w.compareWakes(c.String(), want)
}

// compareWakes compares which waiting pods were woken. Whom Berth alone wakes
// makes a difference if he fits now; so does whom nobody wakes.
func (w *witness) compareWakes(what string, want []bool) error {
	for i, r := range w.waiting {
		pod := w.pods[r.Pod.UID]
		woken := !w.waits(pod.UID)
		w.counts.wakes++
		if want[i] && woken {
			continue
		}
		if want[i] {
			w.part(pod, what+" wakes it in kube-scheduler, not in Berth")
			continue
		}
		rec, err := w.ask(pod)
		switch {
		case err != nil:
			return err
		case rec.Result == oracle.Scheduled && woken:
			w.part(pod, what+" wakes it in Berth, not in kube-scheduler, and it fits")
		case rec.Result == oracle.Scheduled:
			w.part(pod, what+" wakes it nowhere, and it fits")
		case woken:
			w.counts.extra++
		}
	}
	return nil
}

// ask is what kube-scheduler says of the pod, those beside that are nominated.
func (w *witness) ask(pod *v1.Pod) (oracle.Record, error) {
	var nominated []*v1.Pod
	for _, p := range w.pods {
		if p.Spec.NodeName == "" && p.Status.NominatedNodeName != "" && p.UID != pod.UID {
			nominated = append(nominated, p)
		}
	}
	return w.oracle.DecideBeside(pod, nominated)
}

// observe compares a decision, and does what Berth writes.
func (w *witness) observe(e machine.Effect) {
	switch e := e.(type) {
	case machine.Decided:
		if err := w.decided(e.Decision); err != nil && w.err == nil {
			w.err = fmt.Errorf("kube-scheduler: %w", err)
		}
	case machine.Write:
		if pod := w.placing[e.Pod.UID]; pod != nil {
			if diff := compareGrants(w.oracle, pod, pod.Spec.NodeName, e.Writes); diff != "" {
				w.part(pod, diff)
			}
		}
		for i := range e.Writes {
			changed, err := w.written.follow(&e.Writes[i])
			if err != nil && w.err == nil {
				w.err = fmt.Errorf("write %s: %w", e.Writes[i].Describe(), err)
			}
			for _, o := range changed {
				w.Wrote(o)
			}
		}
	}
}

func (w *witness) decided(d *decision.Decision) error {
	pod := w.pods[d.UID]
	want, err := w.ask(pod)
	if err != nil {
		return err
	}
	w.counts.decisions++
	if diffs := compare(want, record(d)); len(diffs) > 0 {
		w.part(pod, strings.Join(diffs, "; "))
	}
	w.leave(d.UID)
	if delete(w.placing, d.UID); d.Result == decision.ResultScheduled {
		w.placing[d.UID] = pod.DeepCopy()
		w.placing[d.UID].Spec.NodeName = d.Node
	}
	if w.waits(d.UID) {
		w.waiting = append(w.waiting, oracle.Rejected{Pod: pod, Plugins: want.Plugins, Gated: want.Result == oracle.Gated})
	}
	return nil
}
