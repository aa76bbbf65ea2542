package conform

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/extender"
	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/sim/generate"
)

// berth is Berth's machine under a virtual clock: the same state, engine and
// queue that the daemon and the simulation drive, with all invariants checked
// after every step.
type berth struct {
	machine *machine.Machine
	now     time.Time
	placed  map[types.UID]string
	// waiting are the rejected pods that the machine's queue holds.
	waiting map[types.UID]*v1.Pod
	// asked is, by pod, the node of the last binding that was asked for.
	asked map[types.UID]string
	// writes is, by pod, what is to be written before it is bound.
	writes map[types.UID][]framework.Write

	extenders extender.Extenders
	hosting   *hosting               // nil: all plugins are native
	anew      func() (*berth, error) // a side like this one without a cluster; nil: the options make one

	options machine.Options
	fields  func(*v1.Pod) *v1.Pod // those that are read of a pod under the gates
	// spared are the pods that the last change left where they were, as an attempt
	// would be in vain.
	spared    map[types.UID]bool
	evaluator *engine.Engine // of pods that name a node
}

// Berth is Berth as a side, under the world's feature gates.
func Berth(_ context.Context, w generate.World) (Side, error) {
	b, err := newSide(w, func(_ []profile.Config, native profile.Registry) profile.Registry { return native })
	if err != nil {
		return nil, err
	}
	b.populate(w)
	return b, nil
}

// newSide makes a side without a cluster so far; choose says which plugins there are.
func newSide(w generate.World, choose func([]profile.Config, profile.Registry) profile.Registry) (*berth, error) {
	gates := features.New()
	if err := errors.Join(gates.SetEmulationVersion(oracle.Emulated(w.Gates)), gates.SetFromMap(w.Gates)); err != nil {
		return nil, err
	}
	c := config.With(gates).Default()
	if w.Config != "" {
		var err error
		if c, err = config.With(gates).Decode([]byte(reachable(w.Config)), "configuration"); err != nil {
			return nil, err
		}
	}
	configs := config.Profiles(c)
	registry := choose(configs, plugins.Registry(features.Plugins(gates)))
	profiles, err := profile.BuildAll(configs, registry)
	if err != nil {
		return nil, err
	}
	extenders, err := extender.New(c.Extenders)
	if err != nil {
		return nil, err
	}
	return newBerth(extenders, machine.Options{Profiles: profiles, Extenders: extenders.Machine(), Seed: 1, Workers: 1,
		PodGroups: gates.Enabled(features.GenericWorkload), GroupPlacements: gates.Enabled(features.TopologyAwareWorkloadScheduling), Explain: func(*object.Pod) bool { return true }, Check: true,
		InitialBackoff: queue.DefaultInitialBackoff, MaxBackoff: queue.DefaultMaxBackoff,
		MaxUnschedulable: queue.DefaultMaxUnschedulable}, features.PodFields(gates)), nil
}

// populate shows the machine the cluster.
func (b *berth) populate(w generate.World) {
	for _, n := range w.Nodes {
		b.step(machine.NodeSet{Node: b.node(n)})
	}
	for _, budget := range w.Budgets {
		b.hosting.show(budget, false)
		b.step(machine.BudgetSet{Budget: decode.Budget(budget)})
	}
	for _, n := range w.Namespaces {
		b.hosting.show(n, false)
		b.step(machine.NamespaceSet{Namespace: decode.Namespace(n)})
	}
	for _, f := range w.SelectorOwners {
		b.hosting.show(f, false)
		b.step(machine.SelectorOwnerSet{Owner: decode.SelectorOwner(f)})
	}
	for _, o := range w.Objects {
		b.hosting.show(o, false)
		b.step(machine.ObjectSet{Object: decode.Object(o)})
	}
	for _, p := range w.Bound {
		b.show(p, p.Spec.NodeName)
	}
}

func newBerth(x extender.Extenders, o machine.Options, fields func(*v1.Pod) *v1.Pod) *berth {
	m := machine.New(o)
	b := &berth{
		extenders: x,
		machine:   m,
		now:       time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
		placed:    map[types.UID]string{},
		waiting:   map[types.UID]*v1.Pod{},
		asked:     map[types.UID]string{},
		writes:    map[types.UID][]framework.Write{},
		options:   o,
		fields:    fields,
		spared:    map[types.UID]bool{},
		evaluator: engine.New(m.Table(), o.Seed, o.Workers),
	}
	m.Listen(&queue.Listener{WouldFailAgain: func(p *object.Pod, _ string) { b.spared[p.UID] = true }})
	return b
}

// Spared implements sparing.
func (b *berth) Spared(uid types.UID) bool { return b.spared[uid] }

// step gives the machine an event and notes what it asks for. Writes are done at
// once; what follows from them is up to the run.
func (b *berth) step(e machine.Event) []machine.Effect {
	b.now = b.now.Add(time.Millisecond)
	effects := b.machine.Step(b.now, e)
	for _, told := range b.hosting.take() {
		effects = append(effects, b.step(told)...)
	}
	for _, effect := range effects {
		switch effect := effect.(type) {
		case machine.Bind:
			b.asked[effect.Pod.UID] = effect.Node
		case machine.Write:
			b.writes[effect.Pod.UID] = effect.Writes
			effects = append(effects, b.step(machine.WriteReply{UID: effect.Pod.UID, Call: effect.Call})...)
		case machine.CallExtender:
			effects = append(effects, b.step(b.extenders.Answer(context.Background(), effect))...)
		}
	}
	return effects
}

// pod and node keep the API object for extenders and hosted plugins.
func (b *berth) pod(p *v1.Pod) *object.Pod {
	pod := decode.Pod(b.fields(p))
	if b.hosting != nil || b.extenders.Pod(p) {
		pod.API = p
	}
	return pod
}

func (b *berth) node(n *v1.Node) *object.Node {
	node := decode.Node(n)
	if b.hosting != nil || b.extenders.Nodes() {
		node.API = n
	}
	return node
}

// show has the API report the pod bound to the node.
func (b *berth) show(p *v1.Pod, node string) {
	p = p.DeepCopy()
	p.Spec.NodeName = node
	b.placed[p.UID] = node
	b.hosting.show(p, false)
	b.step(machine.PodSet{Pod: b.pod(p)})
}

// Decide has the machine take in the pod as a new one and decide on it. A pod
// that it places is assumed there already.
func (b *berth) Decide(p *v1.Pod) oracle.Record {
	if p.Spec.NodeName != "" {
		return b.named(p)
	}
	b.forget(p)
	b.hosting.show(p, false)
	rec := oracle.Record{Pod: p.Namespace + "/" + p.Name, Result: oracle.Failed, Message: "the machine did not decide"}
	for _, e := range []machine.Event{machine.PodSet{Pod: b.pod(p)}, machine.ScheduleOne{}} {
		for _, effect := range b.step(e) {
			if d, ok := effect.(machine.AttemptDone); ok && d.Decision.UID == p.UID {
				rec = record(d.Decision)
			}
		}
		if rec.Result == oracle.Gated {
			break
		}
	}
	switch {
	case rec.Result == oracle.Scheduled:
	case p.Status.NominatedNodeName != "":
		b.forget(p) // kube-scheduler's side keeps no nominations
	default:
		b.waiting[p.UID] = p
	}
	rec.Writes = b.writes[p.UID]
	if b.hosting != nil && rec.Victims == nil {
		rec.Victims = b.hosting.victims()
	}
	return rec
}

// named has the engine evaluate a pod that names a node: the machine would take
// it as bound there.
func (b *berth) named(p *v1.Pod) oracle.Record {
	for _, profile := range b.options.Profiles {
		if profile.Name == p.Spec.SchedulerName {
			pending := p.DeepCopy()
			pending.Spec.NodeName = "" // of a bound pod what only pending ones need is not decoded
			pod := decode.Pod(b.fields(pending))
			pod.API, pod.NodeName = p, p.Spec.NodeName
			d := decision.Decision{Nodes: b.evaluator.Decide(engine.For(profile, pod), b.machine.Nominator()).Nodes()}
			return record(&d)
		}
	}
	return oracle.Record{}
}

// Assume confirms the machine's own choice.
func (b *berth) Assume(p *v1.Pod, node string) error {
	if b.asked[p.UID] != node {
		return fmt.Errorf("pod %s: Berth did not bind it to node %s", p.Name, node)
	}
	b.step(machine.BindReply{UID: p.UID, Result: machine.BindDone})
	b.show(p, node)
	return nil
}

// Order has a machine without nodes decide on the pods.
func (b *berth) Order(pods []*v1.Pod) ([]*v1.Pod, error) {
	empty := newBerth(b.extenders, b.options, b.fields)
	if b.anew != nil {
		var err error
		if empty, err = b.anew(); err != nil {
			return nil, err
		}
	}
	byUID := map[types.UID]*v1.Pod{}
	for _, p := range pods {
		byUID[p.UID] = p
		empty.step(machine.PodSet{Pod: b.pod(p)})
	}
	var order []*v1.Pod
	for range empty.machine.Queue().Counts().Active {
		for _, effect := range empty.step(machine.ScheduleOne{}) {
			if d, ok := effect.(machine.AttemptDone); ok {
				order = append(order, byUID[d.Decision.UID])
			}
		}
	}
	return order, nil
}

// Apply tells the machine of the change and sees which waiting pods left the
// places where pods wait for a change. All of them leave the machine: whoever
// is tried again comes as new.
func (b *berth) Apply(c generate.Change, waiting []oracle.Rejected) ([]bool, error) {
	defer func() {
		for _, p := range b.waiting {
			b.forget(p)
		}
	}()
	clear(b.spared)
	switch {
	case c.Node != nil && c.Verb == generate.Delete:
		b.step(machine.NodeGone{Name: c.Node.Name})
	case c.Node != nil:
		b.step(machine.NodeSet{Node: b.node(c.Node)})
	case c.Namespace != nil:
		b.hosting.show(c.Namespace, false)
		b.step(machine.NamespaceSet{Namespace: decode.Namespace(c.Namespace)})
	case c.Other != nil:
		b.hosting.show(c.Other, c.Verb == generate.Delete)
		o := decode.Object(c.Other)
		if m := o.Head(); c.Verb == generate.Delete {
			b.step(machine.ObjectGone{Kind: m.Kind, Namespace: m.Namespace, Name: m.Name})
		} else {
			b.step(machine.ObjectSet{Object: o})
		}
	case c.Verb == generate.Delete:
		b.forget(c.Pod)
	case b.placed[c.Pod.UID] != "":
		b.show(c.Pod, b.placed[c.Pod.UID])
	case b.waiting[c.Pod.UID] != nil:
		b.step(machine.PodSet{Pod: b.pod(c.Pod)})
	}
	requeued := make([]bool, len(waiting))
	for i, w := range waiting {
		switch at := b.machine.Entry(w.Pod.UID).Place(); at {
		case queue.Unschedulable, queue.Gated:
		case queue.InFlight:
			return nil, fmt.Errorf("pod %s is in flight while it waits", w.Pod.Name)
		default:
			requeued[i] = true
		}
	}
	return requeued, nil
}

// forget has the API report the pod deleted.
func (b *berth) forget(p *v1.Pod) {
	b.hosting.show(p, true)
	delete(b.waiting, p.UID)
	delete(b.placed, p.UID)
	delete(b.asked, p.UID)
	delete(b.writes, p.UID)
	b.step(machine.PodGone{UID: p.UID, Namespace: p.Namespace, Name: p.Name})
}

// record puts a decision into the oracle's terms: of several blockers the
// first.
func record(d *decision.Decision) oracle.Record {
	rec := oracle.Record{Pod: d.Pod.String(), Result: oracle.Result(d.Result), Message: explain.Message(d),
		Plugins: d.RejectedBy, Nominated: d.NominatedNode, Node: d.Node}
	for _, v := range d.Victims {
		rec.Victims = append(rec.Victims, v.String())
	}
	for _, n := range d.Nodes {
		node := oracle.Node{Name: n.Name, Feasible: n.Feasible, Total: n.Total}
		for _, blocker := range n.Blockers[:min(1, len(n.Blockers))] {
			node.Plugin, node.Code, node.Reasons = blocker.Plugin, blocker.Code.String(), blocker.Reasons
			if blocker.Plugin == engine.Extender && d.Result == decision.ResultScheduled {
				node.Code, node.Reasons = "", nil // then kube-scheduler does not say why
			}
		}
		for _, s := range n.Scores {
			node.Scores = append(node.Scores, oracle.Score{Plugin: s.Plugin, Score: s.Score, Weight: s.Weight})
		}
		rec.Nodes = append(rec.Nodes, node)
	}
	if d.Result == decision.ResultScheduled {
		rec.Best = oracle.Best(rec.Nodes)
	}
	return rec
}
