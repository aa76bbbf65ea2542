package conform

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
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
}

// Berth makes Berth, with these plugins, a side.
func Berth(plugins profile.Registry) Start {
	return func(w generate.World) (Side, error) {
		c := config.Default()
		if w.Config != "" {
			var err error
			if c, err = config.Decode([]byte(w.Config), "configuration"); err != nil {
				return nil, err
			}
		}
		profiles, err := profile.BuildAll(config.Profiles(c), plugins)
		if err != nil {
			return nil, err
		}
		b := &berth{
			machine: machine.New(machine.Options{Profiles: profiles, Seed: 1, Workers: 1, Explain: true, Check: true,
				InitialBackoff: queue.DefaultInitialBackoff, MaxBackoff: queue.DefaultMaxBackoff,
				MaxUnschedulable: queue.DefaultMaxUnschedulable}),
			now:     time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
			placed:  map[types.UID]string{},
			waiting: map[types.UID]*v1.Pod{},
		}
		for _, n := range w.Nodes {
			b.step(machine.NodeSet{Node: decode.Node(n)})
		}
		for _, budget := range w.Budgets {
			b.step(machine.BudgetSet{Budget: decode.Budget(budget)})
		}
		for _, p := range w.Bound {
			b.show(p, p.Spec.NodeName)
		}
		return b, nil
	}
}

func (b *berth) step(e machine.Event) []machine.Effect {
	b.now = b.now.Add(time.Millisecond)
	return b.machine.Step(b.now, e)
}

// show has the API report the pod bound to the node.
func (b *berth) show(p *v1.Pod, node string) {
	p = p.DeepCopy()
	p.Spec.NodeName = node
	b.placed[p.UID] = node
	b.step(machine.PodSet{Pod: decode.Pod(p)})
}

// Decide has the machine take in the pod as a new one and decide on it. A pod
// that it places is assumed there already.
func (b *berth) Decide(p *v1.Pod) oracle.Record {
	b.forget(p)
	for _, e := range []machine.Event{machine.PodSet{Pod: decode.Pod(p)}, machine.Cycle{}} {
		for _, effect := range b.step(e) {
			if d, ok := effect.(machine.Decided); ok && d.Decision.UID == p.UID {
				if d.Decision.Result != decision.Scheduled {
					b.waiting[p.UID] = p
				}
				return record(d.Decision)
			}
		}
	}
	return oracle.Record{Pod: p.Namespace + "/" + p.Name, Result: oracle.Failed, Message: "the machine did not decide"}
}

// Assume confirms the machine's own choice.
func (b *berth) Assume(p *v1.Pod, node string) error {
	b.step(machine.Bound{UID: p.UID, Result: machine.BindDone})
	b.show(p, node)
	return nil
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
	switch {
	case c.Node != nil && c.Verb == generate.Delete:
		b.step(machine.NodeGone{Name: c.Node.Name})
	case c.Node != nil:
		b.step(machine.NodeSet{Node: decode.Node(c.Node)})
	case c.Verb == generate.Delete:
		b.forget(c.Pod)
	case b.placed[c.Pod.UID] != "":
		b.show(c.Pod, b.placed[c.Pod.UID])
	case b.waiting[c.Pod.UID] != nil:
		b.step(machine.PodSet{Pod: decode.Pod(c.Pod)})
	}
	woken := make([]bool, len(waiting))
	for i, w := range waiting {
		switch at := b.machine.Queue().Where(w.Pod.UID); at {
		case queue.Unschedulable, queue.Gated:
		case queue.InFlight:
			return nil, fmt.Errorf("pod %s is in flight while it waits", w.Pod.Name)
		default:
			woken[i] = true
		}
	}
	return woken, nil
}

// forget has the API report the pod deleted.
func (b *berth) forget(p *v1.Pod) {
	delete(b.waiting, p.UID)
	delete(b.placed, p.UID)
	b.step(machine.PodGone{UID: p.UID, Namespace: p.Namespace, Name: p.Name})
}

func (b *berth) Stop() {}

// record puts a decision into the oracle's terms: of several blockers the
// first.
func record(d *decision.Decision) oracle.Record {
	rec := oracle.Record{Pod: d.Pod, Result: oracle.Result(d.Result), Message: explain.Message(d),
		Plugins: d.RejectedBy, Nominated: d.NominatedNode, Node: d.Node}
	for _, v := range d.Victims {
		rec.Victims = append(rec.Victims, v.String())
	}
	for _, n := range d.Nodes {
		node := oracle.Node{Name: n.Name, Feasible: n.Feasible, Total: n.Total}
		for _, blocker := range n.Blockers[:min(1, len(n.Blockers))] {
			node.Plugin, node.Code, node.Reasons = blocker.Plugin, blocker.Code.String(), blocker.Reasons
		}
		for _, s := range n.Scores {
			node.Scores = append(node.Scores, oracle.Score{Plugin: s.Plugin, Score: s.Score, Weight: s.Weight})
		}
		rec.Nodes = append(rec.Nodes, node)
	}
	if d.Result == decision.Scheduled {
		rec.Best = oracle.Best(rec.Nodes)
	}
	return rec
}
