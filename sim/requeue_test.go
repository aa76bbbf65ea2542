package sim

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim/generate"
)

var requeueSeeds = flag.String("requeue-seeds", "0-30", "seeds of the worlds of TestPodsThatFitAreRequeued, first-last")

// A pod that waits for an event fits no node, at any time: an event that made
// one fit has requeued it. The queue's sweep is off, so that nothing else does.
func TestPodsThatFitAreRequeued(t *testing.T) {
	var first, last uint64
	if _, err := fmt.Sscanf(*requeueSeeds, "%d-%d", &first, &last); err != nil {
		t.Fatalf("-requeue-seeds %q: %v", *requeueSeeds, err)
	}
	for _, mix := range generate.Mixes() {
		t.Run(mix, func(t *testing.T) {
			t.Parallel()
			for seed := first; seed <= last && !t.Failed(); seed++ {
				newVerifier(t, mix, seed).run()
			}
		})
	}
}

// verifier changes a generated world in any way, and looks after every step whether
// an unschedulable pod fits a node.
type verifier struct {
	*testing.T
	*rand.Rand
	world, donor generate.World // what there is, and what comes later
	cluster      *Cluster
	machine      *machine.Machine
	evaluator    *engine.Engine
	profiles     map[string]*profile.Profile
	now          time.Time
	bindings     []machine.Bind     // not answered yet
	pods         map[string]*v1.Pod // by namespace/name, except for node and status
	story        []string
	serial       int
	replicas     int           // of each pod that waits
	spared       []*object.Pod // by the events of the step
}

func newVerifier(t *testing.T, mix string, seed uint64) *verifier {
	v := &verifier{T: t, Rand: rand.New(rand.NewPCG(seed, 7)), cluster: NewCluster(Epoch), now: Epoch, replicas: int(seed % 3),
		profiles: map[string]*profile.Profile{}, pods: map[string]*v1.Pod{}}
	var err error
	if v.world, err = generate.Cluster(mix, seed); err != nil {
		t.Fatal(err)
	}
	if v.donor, err = generate.Cluster(mix, seed+1<<32); err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	if v.world.Config != "" {
		if c, err = config.Decode([]byte(v.world.Config), "world"); err != nil {
			t.Fatal(err)
		}
	}
	o, err := Options(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range o.Profiles {
		v.profiles[p.Name] = p
	}
	o.Seed, o.MaxUnschedulable = seed, 10000*time.Hour
	v.machine = machine.New(o)
	v.machine.Listen(&queue.Listener{WouldFailAgain: func(p *object.Pod, _ string) { v.spared = append(v.spared, p) }})
	v.evaluator = engine.New(v.machine.Table(), seed, 1)
	v.say("mix %s, seed %d, %s", mix, seed, v.world.Config)
	return v
}

func (v *verifier) say(format string, args ...any) {
	v.story = append(v.story, fmt.Sprintf(format, args...))
}

// run plays the world: it is set up, its pods come one by one, and between
// them happens whatever may.
func (v *verifier) run() {
	for _, n := range v.world.Nodes {
		v.cluster.SetNode(decode.Node(n))
	}
	for _, n := range v.world.Namespaces {
		v.cluster.SetNamespace(decode.Namespace(n))
	}
	for _, f := range v.world.SelectorOwners {
		v.tell(machine.SelectorOwnerSet{Owner: decode.SelectorOwner(f)})
	}
	for _, o := range v.world.Objects {
		v.tell(machine.ObjectSet{Object: decode.Object(o)})
	}
	for _, p := range v.world.Bound {
		v.create(p)
	}
	v.deliver()
	for _, p := range v.world.Pending {
		v.say("create %s", p.Name)
		v.create(p)
		for i := range v.replicas {
			replica := p.DeepCopy()
			replica.Name = fmt.Sprint(p.Name, "-", i)
			replica.UID = types.UID(replica.Name)
			v.create(replica)
		}
		v.settle()
		for range v.IntN(4) {
			v.happen()
			v.deliver()
			if v.chance(70) {
				v.settle()
			}
		}
	}
}

func (v *verifier) chance(percent int) bool { return v.IntN(100) < percent }

func one[T any](v *verifier, list []T) (x T, ok bool) {
	if len(list) == 0 {
		return x, false
	}
	return list[v.IntN(len(list))], true
}

func (v *verifier) create(p *v1.Pod) {
	v.pods[p.Namespace+"/"+p.Name] = p
	v.cluster.SetPod(decode.Pod(p))
}

// change gives a pod of the cluster another spec or other metadata.
func (v *verifier) change(p *object.Pod, f func(*v1.Pod)) {
	raw := v.pods[p.Key()].DeepCopy()
	f(raw)
	v.pods[p.Key()] = raw
	raw = raw.DeepCopy()
	raw.Spec.NodeName = p.NodeName
	now := decode.Pod(raw)
	now.NominatedNode, now.Scheduled, now.Started = p.NominatedNode, p.Scheduled, p.Started
	v.cluster.SetPod(now)
}

func (v *verifier) deliver() {
	for events := v.cluster.Watch(); len(events) > 0; events = v.cluster.Watch() {
		for _, e := range events {
			v.tell(e)
		}
	}
}

// tell gives the machine the event, does what it asks for, and looks.
func (v *verifier) tell(e machine.Event) {
	for _, effect := range v.machine.Step(v.now, e) {
		switch x := effect.(type) {
		case machine.AttemptDone:
			v.say("   %s: %s on %q, rejected by %v, nominated to %q", x.Decision.Pod, x.Decision.Result, x.Decision.Node, x.Decision.RejectedBy, x.Decision.NominatedNode)
		case machine.Bind:
			v.bindings = append(v.bindings, x)
		case machine.ReadPod:
			v.tell(machine.ReadReply{UID: x.Pod.UID, Pod: v.cluster.Pod(x.Pod.Key())})
		case machine.PatchStatus:
			_, _ = v.cluster.Patch(x.Pod.Key(), x.Pod.UID, x.Condition, x.Nominated)
		case machine.Evict:
			v.say("   evict %s", x.Victim.Name)
			v.tell(machine.EvictReply{Victim: x.Victim.UID, Preemptor: x.Preemptor.UID, Err: v.cluster.DeletePod(x.Victim.Key())})
		}
	}
	v.verify(e)
}

// verify fails the test when an unschedulable pod fits a node, or would preempt others and
// was called because of the step. Pods that wait for one that is assumed only are requeued
// when it is bound.
func (v *verifier) verify(e machine.Event) {
	v.verifySpared(e)
	if v.machine.Assumed() > 0 {
		return
	}
	for _, p := range v.cluster.Pods() {
		e := v.machine.Entry(p.UID)
		if e.Place() != queue.Unschedulable {
			continue
		}
		o := v.evaluator.Decide(engine.For(v.profiles[p.SchedulerName], e.Pod), v.machine.Nominator())
		if o.Rejected == nil && o.Feasible > 0 {
			v.Log(strings.Join(v.story, "\n"))
			v.Fatalf("after %T pod %s, rejected by %v, fits node %s and was not requeued", e, p.Key(), e.State().RejectedBy, v.machine.Table().Name(o.Row))
		}
	}
}

// verifySpared fails the test when an attempt for a pod that queueing hints called because
// of the step, and that was left where it is, would not have been in vain. One that fails
// is: what else a node that is full gets asked is the attempt's own affair. So is one that
// a PreEnqueue plugin prevents.
func (v *verifier) verifySpared(e machine.Event) {
	spared := v.spared
	v.spared = nil
	for _, p := range spared {
		entry := v.machine.Entry(p.UID)
		if entry.Place() != queue.Unschedulable || entry.Pod.Terminating {
			continue
		}
		switch d := v.machine.AssessBriefly(entry.Pod); d.Result {
		case decision.ResultScheduled, decision.ResultWaiting, decision.ResultPreempting:
			v.Log(strings.Join(v.story, "\n"))
			v.Fatalf("after %T pod %s, rejected by %v, was not requeued, and an attempt says %v %v %s %v", e, p.Key(), entry.State().RejectedBy, d.Result, d.Err, d.NominatedNode, d.Victims)
		}
	}
}

// settle lets backoffs end, and decides on all pods that are active.
func (v *verifier) settle() {
	v.now = v.now.Add(time.Minute)
	v.tell(machine.Tick{})
	v.deliver()
	for tries := 0; v.machine.Ready() && tries < 50; tries++ {
		v.tell(machine.ScheduleOne{})
		v.deliver()
		for len(v.bindings) > 0 && v.chance(70) {
			v.answer()
		}
	}
}

// answer ends a binding: done, refused, or nobody knows.
func (v *verifier) answer() {
	i := v.IntN(len(v.bindings))
	b := v.bindings[i]
	v.bindings = slices.Delete(v.bindings, i, i+1)
	out := machine.BindReply{UID: b.Pod.UID, Result: machine.BindResult(v.IntN(3))}
	if v.chance(60) {
		out.Result = machine.BindDone
	}
	if out.Result != machine.BindRefused {
		if out.Err = v.cluster.Bind(b.Pod.Key(), b.Pod.UID, b.Node); out.Err != nil {
			out.Result = machine.BindRefused
		}
	}
	v.say("binding of %s: %v", b.Pod.Name, out.Result)
	v.tell(out)
	v.deliver()
}

// happen makes one thing happen in the cluster.
func (v *verifier) happen() {
	v.now = v.now.Add(time.Second)
	if len(v.world.Changes) > 0 && v.chance(30) {
		v.generated()
		return
	}
	switch v.IntN(4) {
	case 0:
		v.happenToNodes()
	case 1:
		v.happenToOthers()
	default:
		v.happenToPods()
	}
}

// generated makes the next change that the generator thought of.
func (v *verifier) generated() {
	c := v.world.Changes[0]
	v.world.Changes = v.world.Changes[1:]
	v.say("%s", c)
	switch {
	case c.Namespace != nil:
		v.cluster.SetNamespace(decode.Namespace(c.Namespace))
	case c.Other != nil && c.Verb == generate.Delete:
		v.tell(machine.ObjectGone{Kind: decode.Object(c.Other).Head().Kind, Namespace: c.Other.GetNamespace(), Name: c.Other.GetName()})
	case c.Other != nil:
		v.tell(machine.ObjectSet{Object: decode.Object(c.Other)})
	case c.Node != nil && c.Verb == generate.Delete:
		_ = v.cluster.DeleteNode(c.Node.Name)
	case c.Node != nil:
		v.cluster.SetNode(decode.Node(c.Node))
	default:
		p := v.cluster.Pod(c.Pod.Namespace + "/" + c.Pod.Name)
		switch {
		case p == nil:
		case c.Verb == generate.Delete:
			_ = v.cluster.DeletePod(p.Key())
		default:
			v.change(p, func(raw *v1.Pod) { raw.Labels, raw.Spec.Tolerations = c.Pod.Labels, c.Pod.Spec.Tolerations })
		}
	}
}

func (v *verifier) happenToNodes() {
	n, ok := one(v, v.cluster.Nodes())
	if ok && v.chance(40) {
		v.say("delete node %s", n.Name)
		_ = v.cluster.DeleteNode(n.Name)
	} else if n, ok := one(v, v.donor.Nodes); ok {
		v.say("set node %s: %v %v %v", n.Name, n.Labels, n.Spec.Taints, n.Status.Allocatable)
		v.cluster.SetNode(decode.Node(n))
	}
}

func (v *verifier) happenToOthers() {
	switch v.IntN(8) {
	case 0:
		if f, ok := one(v, slices.Concat(v.donor.SelectorOwners, v.world.SelectorOwners)); ok {
			v.say("set %T %s", f, f.GetName())
			v.tell(machine.SelectorOwnerSet{Owner: decode.SelectorOwner(f)})
		}
	case 1:
		if f, ok := one(v, slices.Concat(v.donor.SelectorOwners, v.world.SelectorOwners)); ok {
			v.say("delete %T %s", f, f.GetName())
			v.tell(machine.SelectorOwnerGone{Kind: decode.SelectorOwner(f).Kind, Namespace: f.GetNamespace(), Name: f.GetName()})
		}
	case 2:
		if n, ok := one(v, v.donor.Namespaces); ok {
			v.say("set namespace %s %v", n.Name, n.Labels)
			v.cluster.SetNamespace(decode.Namespace(n))
		}
	case 3:
		if n, ok := one(v, v.donor.Namespaces); ok {
			v.say("delete namespace %s", n.Name)
			v.tell(machine.NamespaceGone{Name: n.Name})
		}
	case 4:
		if o, ok := one(v, v.donor.Objects); ok {
			v.say("set %T %s", o, o.GetName())
			v.tell(machine.ObjectSet{Object: decode.Object(o)})
		}
	case 5:
		if o, ok := one(v, slices.Concat(v.donor.Objects, v.world.Objects)); ok {
			v.say("delete %T %s", o, o.GetName())
			v.tell(machine.ObjectGone{Kind: decode.Object(o).Head().Kind, Namespace: o.GetNamespace(), Name: o.GetName()})
		}
	default:
		p, okPod := one(v, v.donor.Bound)
		n, okNode := one(v, v.cluster.Nodes())
		if okPod && okNode {
			v.serial++
			p = p.DeepCopy()
			p.Name = fmt.Sprint("late-", v.serial)
			p.UID, p.Spec.NodeName = types.UID(p.Name), n.Name
			v.say("create %s on %s", p.Name, n.Name)
			v.create(p)
		}
	}
}

// happenToPods is what can happen to a pod that is there.
func (v *verifier) happenToPods() {
	p, ok := one(v, v.cluster.Pods())
	if !ok {
		return
	}
	like, ok := one(v, slices.Concat(v.donor.Pending, v.donor.Bound))
	if !ok {
		return
	}
	kind := v.IntN(11)
	v.say("%s on %q: %s", p.Name, p.NodeName, [...]string{"delete", "relabel", "unlabel", "tolerate", "ungate", "shrink", "own", "terminate", "nominate", "bind", "move"}[kind])
	switch kind {
	case 0:
		_ = v.cluster.DeletePod(p.Key())
	case 1:
		v.change(p, func(raw *v1.Pod) { raw.Labels = like.Labels })
	case 2:
		v.change(p, func(raw *v1.Pod) { raw.Labels = nil })
	case 3:
		v.change(p, func(raw *v1.Pod) {
			raw.Spec.Tolerations = slices.Concat(raw.Spec.Tolerations, like.Spec.Tolerations)
		})
	case 4:
		v.change(p, func(raw *v1.Pod) { raw.Spec.SchedulingGates = nil })
	case 5:
		v.change(p, shrink)
	case 6:
		v.change(p, func(raw *v1.Pod) { raw.OwnerReferences = like.OwnerReferences })
	case 7:
		v.change(p, func(raw *v1.Pod) { raw.DeletionTimestamp = &metav1.Time{Time: Epoch} })
	case 8:
		if n, ok := one(v, v.cluster.Nodes()); ok && p.NodeName == "" {
			_, _ = v.cluster.Patch(p.Key(), p.UID, nil, &n.Name)
		}
	case 9:
		if n, ok := one(v, v.cluster.Nodes()); ok && p.NodeName == "" {
			_ = v.cluster.Bind(p.Key(), p.UID, n.Name)
		}
	case 10: // etcd was restored
		if n, ok := one(v, v.cluster.Nodes()); ok && p.NodeName != "" {
			moved := *p
			moved.NodeName = n.Name
			v.cluster.SetPod(&moved)
		}
	}
}

// shrink halves what the first container asks for.
func shrink(p *v1.Pod) {
	r := p.Spec.Containers[0].Resources.Requests
	for name, q := range r { // any order: each on its own
		half := resource.NewMilliQuantity(q.MilliValue()/2, q.Format)
		if name != v1.ResourceCPU {
			half = resource.NewQuantity(q.Value()/2, q.Format)
		}
		r[name] = *half
	}
}
