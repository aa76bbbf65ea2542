package replay

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/sim"
)

// Pod is what became of a pod on a day.
type Pod struct {
	Key     string
	Arrived time.Time // when it was first seen
	Placed  time.Time // when it got a node, zero if it never did
	Node    string
	// Given: it had its node when it was first seen.
	Given   bool
	Evicted bool // for another pod
	Gone    bool // it was deleted, or ended
	// Workload is kind/namespace/name, "" for a pod without controller.
	Workload string

	zone  string // of Node
	there bool   // it is on Node now
}

// Day is what came of a record under a configuration.
type Day struct {
	From, To    time.Time
	Pods        map[types.UID]*Pod
	Recorded    map[types.UID]string // the nodes of pods, as the record has them
	Decisions   int
	ByResult    map[decision.Result]int
	Preemptions int // pods that were evicted
	Samples     []Sample
	// Crowds says by workload how many of its pods were in one place.
	Crowds map[string]*Crowd
	// Empty are the nodes that are empty at the end, sorted.
	Empty []string
	// Unserved counts, by the names of served schedulers, the pods that arrived without a node and
	// that no profile of the configuration serves: they stay without one.
	Unserved map[string]int
}

// Run plays what the record says came from outside: nodes, pods and other objects,
// at their times. What the machine asks for is done at once by a virtual cluster.
// When pods end, and which come in their place, is the record's: a pod that is
// placed sooner or elsewhere ends when it did. The scheduler makes the profiles of the
// options anew, with hosted plugins; nil: there are none.
//
// served are the names of the schedulers whose pods are decided on, those of the options' profiles
// among them; pods of other schedulers go where the record says. Days are compared that have the
// same names.
func Run(l Log, served []string, o machine.Options, s *sim.Scheduler) (*Day, error) {
	p := NewPlayer(l, served, o, s)
	for !p.over {
		if err := p.step(); err != nil {
			return p.day, err
		}
	}
	if p.world != nil {
		defer p.world.Close()
	}
	return p.Finish(), nil
}

// NewPlayer returns a new player of a record, which plays as Run does and stops where its caller
// likes.
func NewPlayer(l Log, served []string, o machine.Options, s *sim.Scheduler) *Player {
	p := &Player{
		day: &Day{Pods: map[types.UID]*Pod{}, Recorded: map[types.UID]string{}, ByResult: map[decision.Result]int{},
			Crowds: map[string]*Crowd{}, Unserved: map[string]int{}},
		log: l, options: o, scheduler: s,
		served: map[string]bool{},
	}
	for _, name := range served {
		p.served[name] = false
	}
	for _, profile := range o.Profiles {
		p.served[profile.Name] = true
	}
	return p
}

// World returns the cluster at the time that was played to, nil before the first run begins. Its
// owner closes it.
func (p *Player) World() *sim.World { return p.world }

// PlayTo plays up to and including the time, or to the end of the record. What came before an error
// of the record, or before the context ended, was played; what follows may be played later.
func (p *Player) PlayTo(ctx context.Context, t time.Time) error {
	for !p.over {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.read(); err != nil {
			return err
		}
		if p.next != nil && p.world != nil && timeOf(p.next).After(t) {
			break
		}
		if err := p.step(); err != nil {
			return err
		}
	}
	if p.over && t.After(p.day.To) {
		t = p.day.To
	}
	if p.world != nil {
		if t.After(p.world.Now) {
			p.advance(t)
		}
		p.world.Settle()
	}
	return nil
}

// timeOf returns when an entry happened.
func timeOf(e *recording.Entry) time.Time {
	if e.Begin != nil {
		return e.Begin.Start
	}
	return e.Now
}

// read reads the next entry, unless it was read.
func (p *Player) read() (err error) {
	if p.next != nil || p.over {
		return nil
	}
	p.next, err = p.log.Next()
	if err != nil {
		p.next, p.over = nil, true
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// step plays the next entry.
func (p *Player) step() error {
	if err := p.read(); err != nil || p.over {
		return err
	}
	e := p.next
	p.next = nil
	switch {
	case e.Begin != nil:
		return p.begin(e.Begin)
	case e.Snapshot == nil: // of which the virtual cluster has its own
		p.entry(e)
	}
	return nil
}

// Finish plays what is left of the last second, and returns the day.
func (p *Player) Finish() *Day {
	if p.world != nil {
		p.advance(p.day.To)
		p.world.Settle()
		p.samples.take(p.world)
		p.day.Empty = emptyNodes(p.world.Machine.Table())
		p.day.Samples = slices.DeleteFunc(p.samples.list, func(s Sample) bool { return s.Time.Before(p.listed) })
	}
	return p.day
}

// Player plays a record. One goroutine at a time may call it.
type Player struct {
	// Begun, when set, is shown the cluster when the first run begins, while it is empty.
	Begun func(*sim.World)

	log  Log
	next *recording.Entry // that was read and is not played yet
	over bool             // the record has no more

	day       *Day
	options   machine.Options
	scheduler *sim.Scheduler
	// served has the names of schedulers whose pods are decided on, and whether the options
	// have a profile of that name.
	served  map[string]bool
	world   *sim.World
	samples sampler
	// listed is when the first lists were complete, as far as the record has shown it;
	// whole: it has. An earlier sample is of a part of the cluster.
	listed time.Time
	whole  bool
	// untold are the pods that a run that began anew has not told of yet.
	untold map[string]bool
}

// begin begins a run. The cluster of the run before goes on; what the new run does
// not tell of is gone.
func (p *Player) begin(b *recording.Begin) (err error) {
	if p.world == nil {
		if p.world, err = sim.NewWorldOf(p.scheduler, p.options, b.Start); err != nil {
			return err
		}
		p.world.Observe = p.observe
		if p.Begun != nil {
			p.Begun(p.world)
		}
		p.day.From = b.Start
		p.samples.next = b.Start
	} else {
		p.untold = map[string]bool{}
		for _, pod := range p.world.Cluster.Pods() {
			p.untold[pod.Key()] = true
		}
	}
	p.day.To = b.Start
	for _, e := range b.Objects {
		p.event(e)
	}
	return nil
}

// pause is how long the record is silent where the first lists are taken to be over.
const pause = time.Second

func (p *Player) entry(e *recording.Entry) {
	p.list(e)
	if e.Now.After(p.day.To) {
		p.day.To = e.Now
	}
	switch e.Event.(type) {
	case machine.ScheduleOne: // all has been listed
		for key := range p.untold { // any order: all are gone
			_ = p.world.Cluster.DeletePod(key)
		}
		p.untold = nil
		return
	case machine.Tick, machine.BindReply, machine.EvictReply, machine.ReadReply, machine.WriteReply, machine.ExtenderReply:
		return
	}
	p.advance(e.Now)
	p.event(e.Event)
}

// list looks for the end of the first lists: nothing is decided before, and mostly a
// pause follows.
func (p *Player) list(e *recording.Entry) {
	if p.whole {
		return
	}
	_, decides := e.Event.(machine.ScheduleOne)
	switch {
	case p.listed.IsZero() || decides:
		p.listed, p.whole = e.Now, decides
	case e.Now.Sub(p.day.To) >= pause:
		p.listed, p.whole = p.day.To, true
	}
}

// advance moves the clock, and looks at the cluster now and then.
func (p *Player) advance(to time.Time) {
	for !p.samples.next.After(to) {
		if at := p.samples.next; at.After(p.world.Now) {
			p.world.Advance(at.Sub(p.world.Now))
		}
		p.samples.take(p.world)
	}
	if to.After(p.world.Now) {
		p.world.Advance(to.Sub(p.world.Now))
	}
}

// event changes the cluster.
func (p *Player) event(e machine.Event) {
	c := p.world.Cluster
	switch e := e.(type) {
	case machine.PodSet:
		if p.scheduler.Hosts() {
			e.Pod.API, _ = recording.PodOf(e.Pod) // it was read once
		}
		p.podSet(e.Pod)
	case machine.PodGone:
		p.gone(e.UID, e.Namespace+"/"+e.Name)
	case machine.NodeSet:
		if p.scheduler.Hosts() {
			e.Node.API, _ = recording.NodeOf(e.Node)
		}
		c.SetNode(e.Node)
	case machine.NodeGone:
		_ = c.DeleteNode(e.Name)
	case machine.ObjectSet:
		p.objectSet(e.Object)
	case machine.ObjectGone:
		c.DeleteObject(e.Kind, e.Namespace, e.Name)
	case machine.BudgetSet, machine.BudgetGone, machine.SelectorOwnerSet, machine.SelectorOwnerGone,
		machine.NamespaceSet, machine.NamespaceGone, machine.KindUnlisted, machine.KindListed:
		c.Tell(e)
	}
}

// objectSet takes in an object. A claim or volume that is known stays as it is: its
// changes follow from decisions, and those are the virtual cluster's own.
func (p *Player) objectSet(o object.Object) {
	m, c := o.Head(), p.world.Cluster
	switch m.Kind {
	case object.PersistentVolumeClaims, object.PersistentVolumes, object.ResourceClaims:
		if known := c.Object(m.Kind, m.Namespace, m.Name); known != nil && known.Head().UID == m.UID {
			return
		}
	}
	c.SetObject(o)
}

// podSet takes in a pod. Of one that is ours it takes what the API's users said of
// it, not where it was bound.
func (p *Player) podSet(pod *object.Pod) {
	c := p.world.Cluster
	_, ours := p.served[pod.SchedulerName]
	delete(p.untold, pod.Key())
	known := c.Pod(pod.Key())
	if known != nil && known.UID != pod.UID {
		p.gone(known.UID, known.Key())
		known = nil
	}
	if ours && pod.NodeName != "" && !pod.Terminal {
		p.day.Recorded[pod.UID] = pod.NodeName
	}
	switch {
	case pod.Terminal:
		p.gone(pod.UID, pod.Key())
	case !ours:
		c.SetPod(pod)
	case known == nil && p.day.Pods[pod.UID] == nil:
		p.arrive(pod)
	case known != nil && changed(known, pod):
		c.SetPod(merged(known, pod))
	}
}

// arrive lets a pod in that is new.
func (p *Player) arrive(pod *object.Pod) {
	d := &Pod{Key: pod.Key(), Arrived: p.world.Now, Workload: workloadOf(pod)}
	p.day.Pods[pod.UID] = d
	if pod.NodeName != "" {
		d.Given = true
		p.placed(d, pod.NodeName)
		p.world.Cluster.SetPod(pod)
		return
	}
	if !p.served[pod.SchedulerName] {
		p.day.Unserved[pod.SchedulerName]++
	}
	fresh := *pod
	fresh.NominatedNode, fresh.Scheduled = "", object.Condition{}
	p.world.Cluster.SetPod(&fresh)
}

// changed tells whether more changed than what a scheduler writes.
func changed(known, pod *object.Pod) bool {
	return known.Terminating != pod.Terminating || known.Generation != pod.Generation || len(known.Gates) != len(pod.Gates) ||
		!maps.Equal(known.Labels, pod.Labels) || !known.Demand.Usage.Equal(pod.Demand.Usage)
}

// merged is the pod with the place that it has in the virtual cluster.
func merged(known, pod *object.Pod) *object.Pod {
	m := *pod
	if pod.NodeName != "" && known.NodeName == "" { // a bound pod's constraints are not decoded any more
		m = *known
		m.Labels, m.Terminating, m.Generation, m.Gates, m.Demand = pod.Labels, pod.Terminating, pod.Generation, pod.Gates, pod.Demand
		return &m
	}
	m.NodeName, m.NominatedNode, m.Scheduled, m.Started = known.NodeName, known.NominatedNode, known.Scheduled, known.Started
	return &m
}

func (p *Player) gone(uid types.UID, key string) {
	if d := p.day.Pods[uid]; d != nil {
		d.Gone = true
		p.left(d)
	}
	if known := p.world.Cluster.Pod(key); known != nil && known.UID == uid {
		_ = p.world.Cluster.DeletePod(key)
	}
}

// observe notes what was decided.
func (p *Player) observe(e machine.Effect) {
	switch e := e.(type) {
	case machine.AttemptDone:
		p.day.Decisions++
		p.day.ByResult[e.Decision.Result]++
	case machine.Bind:
		if d := p.day.Pods[e.Pod.UID]; d != nil && d.Node == "" {
			p.placed(d, e.Node)
		}
	case machine.Evict:
		if p.world.Cluster.Pod(e.Victim.Key()) != nil {
			p.day.Preemptions++
			if d := p.day.Pods[e.Victim.UID]; d != nil {
				d.Evicted = true
				p.left(d)
			}
		}
	}
}
