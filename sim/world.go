package sim

import (
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// World is a cluster, a scheduler and the time they share. Whoever owns it
// changes Cluster and then lets the World move on. One owner.
type World struct {
	Cluster *Cluster
	Machine *machine.Machine
	Now     time.Time
	// Observe, when set, is shown every effect before it is carried out.
	Observe func(machine.Effect)
	// Told, when set, is shown every event after the scheduler was told of it,
	// and before its effects are carried out.
	Told func(machine.Event)
	// Ask, when set, puts a question to an extender and waits for the answer. A
	// scheduler with extenders needs it.
	Ask func(machine.CallExtender) machine.ExtenderReply

	hosted   *hosted // nil: no plugin is
	evicted  func(c *Cluster, victim *object.Pod, endless bool)
	profiles map[string]bool
	// noProfile, when set, words why a pod of another scheduler is not tried.
	noProfile func(schedulerName string) string
	// epoch counts the changes after which a rejected pod may fit: nodes,
	// placements, deletions, nominations.
	epoch uint64
	// tried holds the epoch in which a pod was last decided on; fresh is for
	// how many of them that is the present one.
	tried map[types.UID]uint64
	fresh int
	// placed counts the placements.
	placed uint64
	// settling bounds how long the world moves on its own.
	settling
	// idle counts steps since a change that can only happen so often: not a
	// nomination, which may come and go for ever.
	idle int
}

// NewWorld returns an empty world at the given time.
func NewWorld(o machine.Options, start time.Time) *World {
	w := &World{
		Cluster:  NewCluster(start),
		Machine:  machine.New(o),
		Now:      start,
		profiles: map[string]bool{},
		tried:    map[types.UID]uint64{},
		settling: newSettling(),
	}
	for _, p := range o.Profiles {
		w.profiles[p.Name] = true
	}
	return w
}

// HasProfile tells whether the scheduler has a profile of that name.
func (w *World) HasProfile(schedulerName string) bool { return w.profiles[schedulerName] }

// Deliver tells the scheduler what happened in the cluster. It decides
// nothing.
func (w *World) Deliver() {
	for events := w.news(); len(events) > 0; events = w.news() {
		for _, e := range events {
			w.step(e)
		}
	}
}

// news returns what the scheduler has not heard of yet.
func (w *World) news() []machine.Event {
	events := w.Cluster.Watch()
	if w.hosted != nil {
		events = append(events, w.hosted.heard()...)
	}
	return events
}

// Cycle takes one decision; false when no pod is ready for one.
func (w *World) Cycle() bool {
	w.Deliver()
	if !w.Machine.Ready() {
		return false
	}
	w.step(machine.ScheduleOne{})
	w.Deliver()
	return true
}

// Settle takes decisions for as long as a pod is ready now.
func (w *World) Settle() {
	w.idle = 0
	w.restart()
	for w.idle < w.idleLimit() && w.goesOn() && w.Cycle() {
		w.idle++
	}
}

// Advance moves the clock, firing each timer at its time and taking the
// decisions that it leads to.
func (w *World) Advance(d time.Duration) {
	end := w.Now.Add(d)
	w.Settle()
	for range w.idleLimit() {
		next, ok := w.Machine.NextTimer()
		if !ok || next.After(end) {
			break
		}
		w.tick(next)
		w.Settle()
	}
	w.Now = end
	w.tick(end)
	w.Settle()
}

// Exhaust runs until no queue can move: every pending pod was tried against
// the cluster as it is, so that another try would end as the last one did.
// The clock jumps from timer to timer.
func (w *World) Exhaust() {
	w.Deliver()
	w.changed(true)
	w.restart()
	for ; w.idle < w.idleLimit() && !w.exhausted() && w.goesOn(); w.idle++ {
		if w.Cycle() {
			continue
		}
		next, ok := w.Machine.NextTimer()
		if !ok {
			return
		}
		w.tick(next)
	}
}

// idleLimit is how many steps without a lasting change are taken before a
// scheduler that keeps on trying is stopped.
func (w *World) idleLimit() int { return 1000 + 20*len(w.Cluster.pods) }

func (w *World) exhausted() bool {
	n := w.Machine.Queue().Counts()
	return w.fresh >= n.Active+n.Backoff+n.ErrorBackoff+n.Unschedulable
}

func (w *World) tick(at time.Time) {
	if at.After(w.Now) {
		w.Now = at
	}
	w.step(machine.Tick{})
	w.Deliver()
}

// step gives the machine one event and carries out what it asks for, the
// outcomes included.
func (w *World) step(e machine.Event) {
	switch e.(type) {
	case machine.NodeSet, machine.NodeGone, machine.PodGone, machine.NamespaceSet, machine.ObjectSet, machine.ObjectGone:
		w.changed(true)
	}
	if w.hosted != nil {
		w.hosted.tell(e)
	}
	placed := w.placed
	effects := w.Machine.Step(w.Now, e)
	if w.Told != nil {
		w.Told(e)
	}
	for _, effect := range effects {
		if w.Observe != nil {
			w.Observe(effect)
		}
		if outcome := w.carryOut(effect); outcome != nil {
			w.step(outcome)
		}
	}
	if w.placed > placed { // pods of the same group that were rejected may fit elsewhere, or beside these
		w.changed(true)
	}
}

// carryOut does what the edge would do, and returns the outcome.
func (w *World) carryOut(effect machine.Effect) machine.Event {
	switch e := effect.(type) {
	case machine.AttemptDone:
		w.decided(e.Decision)
	case machine.Bind:
		return w.bind(e.Pod, e.Node)
	case machine.BindByExtender:
		return w.bind(e.Pod, e.Node)
	case machine.RunPlugins:
		return w.runPlugins(e)
	case machine.CallExtender:
		if w.Ask == nil {
			return machine.ExtenderReply{UID: e.Pod.UID, Call: e.Call, Err: errors.New("the simulation asks no extender")}
		}
		return w.Ask(e)
	case machine.Write:
		for i := range e.Writes {
			for _, o := range e.Writes[i].Result {
				w.Cluster.SetObject(o)
			}
			w.patchPod(&e.Writes[i])
			if at := &e.Writes[i].Object; e.Writes[i].Delete {
				w.Cluster.DeleteObject(at.Kind, at.Namespace, at.Name)
			}
		}
		return machine.WriteReply{UID: e.Pod.UID, Call: e.Call}
	case machine.ReadPod:
		return machine.ReadReply{UID: e.Pod.UID, Pod: w.Cluster.Read(e.Pod.Key())}
	case machine.PatchStatus:
		// A pod that is gone or bound meanwhile needs no status.
		if nominated, err := w.Cluster.Patch(e.Pod.Key(), e.Pod.UID, e.Condition, e.Nominated); err == nil && nominated {
			w.changed(false)
		}
	case machine.PatchGroupStatus:
		w.Cluster.PatchGroup(e.Group, e.Condition)
	case machine.PatchGroupPhase:
		w.Cluster.PatchPhase(e.Group, e.Status)
	case machine.PatchQuotaStatus:
		w.Cluster.PatchQuota(e.Quota, e.Used)
	case machine.Evict:
		err := w.Cluster.DeletePod(e.Victim.Key())
		if err == nil && w.evicted != nil {
			w.evicted(w.Cluster, e.Victim, w.goesRound(e.Victim.Key(), e.Preemptor.Key()))
		}
		return machine.EvictReply{Victim: e.Victim.UID, Preemptor: e.Preemptor.UID, Err: err}
	}
	return nil
}

// patchPod has the pod take what its devices take of its node's resources.
func (w *World) patchPod(write *framework.Write) {
	status, _ := write.Patch["status"].(map[string]any)
	taken, says := status["nodeAllocatableResourceClaimStatuses"]
	if p := w.Cluster.Pod(write.Object.Key()); says && write.Object.Kind == object.Pods && p != nil && p.Claiming != nil {
		list, _ := taken.([]v1.NodeAllocatableResourceClaimStatus)
		w.Cluster.SetPod(p.With(list))
	}
}

func (w *World) bind(p *object.Pod, node string) machine.Event {
	if err := w.Cluster.Bind(p.Key(), p.UID, node); err != nil {
		return machine.BindReply{UID: p.UID, Result: machine.BindRefused, Err: err}
	}
	return machine.BindReply{UID: p.UID, Result: machine.BindDone}
}

func (w *World) decided(d *decision.Decision) {
	w.decisions[d.Pod.String()]++
	switch d.Result {
	case decision.ResultGated:
	case decision.ResultScheduled, decision.ResultWaiting:
		w.placed++
		w.changed(true)
	default:
		if last, ok := w.tried[d.UID]; !ok || last != w.epoch {
			w.tried[d.UID] = w.epoch
			w.fresh++
		}
	}
}

func (w *World) changed(lasting bool) {
	w.epoch++
	w.fresh = 0
	if lasting {
		w.idle = 0
	}
}
