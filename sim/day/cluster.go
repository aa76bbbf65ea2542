package day

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/recording"
)

// Cluster is a machine and the pods that it schedules, as API objects. It has one
// owner.
type Cluster struct {
	Now     time.Time
	Machine *machine.Machine
	// Objects writes what a record holds of an object; nil: nothing is recorded.
	Objects *recording.Objects
	// Observe, when set, is shown each step.
	Observe func(recording.Step)
	// Faults, when set, draws which replies are lost or bad.
	Faults *rand.Rand

	pods    map[types.UID]*v1.Pod
	others  map[string]metav1.Object // of kinds that only plugins read, by kind and name
	version uint64
	coming  []machine.Event // replies, and what the watch will show
}

// NewCluster returns a cluster without objects.
func NewCluster(m *machine.Machine, now time.Time) *Cluster {
	return &Cluster{Now: now, Machine: m, pods: map[types.UID]*v1.Pod{}, others: map[string]metav1.Object{}}
}

// Step gives the machine an event and carries out what it asks for: the outcomes
// wait for Deliver.
func (c *Cluster) Step(e machine.Event) []machine.Effect {
	effects := c.Machine.Step(c.Now, e)
	if c.Observe != nil {
		c.Observe(recording.Step{Now: c.Now, Event: e, Effects: effects})
	}
	for _, effect := range effects {
		if outcome := c.carryOut(effect); outcome != nil {
			c.coming = append(c.coming, outcome)
		}
	}
	return effects
}

// Set makes or replaces an object. It gets the next resource version.
func (c *Cluster) Set(o metav1.Object) { c.Step(c.set(o)) }

func (c *Cluster) set(o metav1.Object) machine.Event {
	c.version++
	o.SetResourceVersion(strconv.FormatUint(c.version, 10))
	var e machine.Event
	switch a := o.(type) {
	case *v1.Pod:
		c.pods[a.UID] = a
		e = machine.PodSet{Pod: decode.Pod(a)}
	case *v1.Node:
		e = machine.NodeSet{Node: decode.Node(a)}
	case *v1.Namespace:
		e = machine.NamespaceSet{Namespace: decode.Namespace(a)}
	case *policyv1.PodDisruptionBudget:
		e = machine.BudgetSet{Budget: decode.Budget(a)}
	default:
		if f := decode.SelectorOwner(o); f != nil {
			e = machine.SelectorOwnerSet{Owner: f}
		} else {
			d := decode.Object(o)
			c.others[keyOf(d.Head())] = o
			e = machine.ObjectSet{Object: d}
		}
	}
	if c.Objects != nil {
		c.Objects.Attach(e, o)
	}
	return e
}

// Delete deletes a pod, if it is there.
func (c *Cluster) Delete(uid types.UID) {
	if p := c.pods[uid]; p != nil {
		delete(c.pods, uid)
		c.Step(machine.PodGone{UID: uid, Namespace: p.Namespace, Name: p.Name})
	}
}

// Pod is the pod as the API has it, nil where there is none.
func (c *Cluster) Pod(uid types.UID) *v1.Pod { return c.pods[uid] }

// Pods lists all pods, by UID.
func (c *Cluster) Pods() []*v1.Pod {
	var list []*v1.Pod
	for _, uid := range slices.Sorted(maps.Keys(c.pods)) {
		list = append(list, c.pods[uid])
	}
	return list
}

// Deliver gives the machine what waits to be told, and what follows from it.
func (c *Cluster) Deliver() {
	for len(c.coming) > 0 {
		e := c.coming[0]
		c.coming = c.coming[1:]
		c.Step(e)
	}
}

// Settle lets the machine decide for as long as a pod is ready, and delivers.
func (c *Cluster) Settle() {
	for range 10 * (len(c.pods) + 10) {
		if !c.Machine.Ready() {
			break
		}
		c.Step(machine.ScheduleOne{})
	}
	c.Deliver()
}

// Advance moves the clock; timers that are due fire.
func (c *Cluster) Advance(to time.Time) {
	for range 1000 {
		due, ok := c.Machine.NextTimer()
		if !ok || due.After(to) {
			break
		}
		if due.After(c.Now) {
			c.Now = due
		}
		c.Step(machine.Tick{})
		c.Settle()
	}
	c.Now = to
}

var errFault = errors.New("a planted fault")

// fails tells whether a fault is due, one time of n.
func (c *Cluster) fails(n int) bool { return c.Faults != nil && c.Faults.IntN(n) == 0 }

func (c *Cluster) carryOut(effect machine.Effect) machine.Event {
	switch e := effect.(type) {
	case machine.Bind:
		return c.bind(e.Pod.UID, e.Node)
	case machine.BindByExtender:
		return c.bind(e.Pod.UID, e.Node)
	case machine.CallExtender:
		return c.answer(e)
	case machine.Write:
		if c.fails(3) {
			done := c.Faults.IntN(len(e.Writes))
			c.write(e.Writes[:done])
			return machine.WriteReply{UID: e.Pod.UID, Call: e.Call, Done: done, Err: errFault}
		}
		c.write(e.Writes)
		return machine.WriteReply{UID: e.Pod.UID, Call: e.Call, Done: len(e.Writes)}
	case machine.ReadPod:
		return c.read(e)
	case machine.PatchStatus:
		c.patch(e)
	case machine.Evict:
		if c.fails(4) {
			return machine.EvictReply{Victim: e.Victim.UID, Preemptor: e.Preemptor.UID, Err: errFault}
		}
		if p := c.pods[e.Victim.UID]; p != nil {
			delete(c.pods, p.UID)
			c.coming = append(c.coming, machine.PodGone{UID: p.UID, Namespace: p.Namespace, Name: p.Name})
		}
		return machine.EvictReply{Victim: e.Victim.UID, Preemptor: e.Preemptor.UID}
	}
	return nil
}

func (c *Cluster) bind(uid types.UID, node string) machine.Event {
	p := c.pods[uid]
	switch {
	case p == nil || p.Spec.NodeName != "" || c.fails(8):
		return machine.BindReply{UID: uid, Result: machine.BindRefused, Err: errFault}
	case c.fails(8):
		return machine.BindReply{UID: uid, Result: machine.BindUnknown, Err: errFault}
	}
	bound := *p
	bound.Spec.NodeName, bound.Status.NominatedNodeName = node, ""
	bound.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue}}
	started := metav1.NewTime(c.Now.Truncate(time.Second))
	bound.Status.StartTime = &started
	shown := c.set(&bound)
	if c.fails(2) { // the watch is faster than the reply
		c.coming = append(c.coming, shown)
		return machine.BindReply{UID: uid}
	}
	c.coming = append(c.coming, machine.BindReply{UID: uid})
	return shown
}

func (c *Cluster) read(e machine.ReadPod) machine.Event {
	p := c.pods[e.Pod.UID]
	switch {
	case c.fails(3):
		return machine.ReadReply{UID: e.Pod.UID, Err: errFault}
	case p == nil:
		return machine.ReadReply{UID: e.Pod.UID}
	}
	reply := machine.ReadReply{UID: e.Pod.UID, Pod: decode.Pod(p)}
	if c.Objects != nil {
		c.Objects.Attach(reply, p)
	}
	return reply
}

func (c *Cluster) patch(e machine.PatchStatus) {
	p := c.pods[e.Pod.UID]
	if p == nil || p.Spec.NodeName != "" || c.fails(4) {
		return
	}
	patched := *p
	if e.Condition != nil {
		patched.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: e.Condition.Status, Reason: e.Condition.Reason, Message: e.Condition.Message}}
	}
	if e.Nominated != nil {
		patched.Status.NominatedNodeName = *e.Nominated
	}
	c.coming = append(c.coming, c.set(&patched))
}

// answer is an extender's, that lets all nodes pass.
func (c *Cluster) answer(e machine.CallExtender) machine.Event {
	reply := machine.ExtenderReply{UID: e.Pod.UID, Call: e.Call}
	if c.fails(6) {
		reply.Err = errFault
		return reply
	}
	for _, n := range e.Nodes {
		switch {
		case e.Verb == machine.Prioritize:
			if reply.Scores == nil {
				reply.Scores = map[string]int64{}
			}
			reply.Scores[n.Name] = int64(len(n.Name) % 10)
		case c.fails(5):
			if reply.Failed == nil {
				reply.Failed = map[string]string{}
			}
			reply.Failed[n.Name] = "no"
		default:
			reply.Passed = append(reply.Passed, n.Name)
		}
	}
	for i := range e.Candidates {
		left := machine.NodeVictims{Node: e.Candidates[i].Node, Violations: e.Candidates[i].NumPDBViolations}
		for _, v := range e.Candidates[i].Victims {
			left.Victims = append(left.Victims, v.UID)
		}
		reply.Victims = append(reply.Victims, left)
	}
	return reply
}

// Gone tells that an object of a kind that only plugins read is no more.
func (c *Cluster) Gone(o metav1.Object) {
	if d := decode.Object(o); d != nil {
		m := d.Head()
		delete(c.others, keyOf(m))
		c.Step(machine.ObjectGone{Kind: m.Kind, Namespace: m.Namespace, Name: m.Name})
	}
}
