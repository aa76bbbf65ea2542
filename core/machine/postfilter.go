package machine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/foresight"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// runPostFilter runs the profile's PostFilter plugins from index from on, until one finds room for
// the pod or fails. was is the nomination by the plugins before; the result is the pod's nomination
// after all. waits is true if the attempt must wait and a reply will continue it: for extenders,
// which review a plugin's candidates (c is the attempt's extender cycle, nil without extenders), or
// for a plugin or its writes.
func (d *schedulingCycles) runPostFilter(a *attempt, o *engine.Outcome, from int, was nominating, c *extenderCycle) (_ nominating, waits bool) {
	if from >= len(a.profile.PostFilter) {
		return was, false
	}
	call := d.postFilterCall(a, o)
	call.HasExtenders = d.reviewsPreemption(c)
	for i, pl := range a.profile.PostFilter[from:] {
		call.Cache = o.Kept(pl.Name)
		call.Number = d.extenders.upcomingCall() // if it is answered later
		call.Searched = a.record.PreemptionTried
		out := pl.PostFilter(call)
		if out.Pending || len(out.Writes) > 0 {
			d.extenders.nextCall()
			d.awaitPostFilter(a, pendingPostFilter{call: call.Number, plugin: from + i, nomination: was, result: out})
			return was, true
		}
		if call.HasExtenders && len(out.Candidates) > 0 {
			c.review = &preemptionReview{plugin: from + i, candidates: out.Candidates, choose: out.Choose, nomination: was}
			return was, d.callPreempt(c)
		}
		var done bool
		if was, done = d.applyPostFilter(a, pl.Name, out, was); done {
			break
		}
	}
	return was, false
}

// postFilterCall returns the argument for a PostFilter plugin of the attempt. o is the
// outcome of the decision that found no node.
func (d *schedulingCycles) postFilterCall(a *attempt, o *engine.Outcome) *framework.PostFilterCall {
	return d.postFilterCallFor(a.pod, a.state, a.record.Attempt, o)
}

// postFilterCallFor returns the argument for a PostFilter plugin for the pod with state
// ps, in the attempt of that number.
func (d *schedulingCycles) postFilterCallFor(p *object.Pod, ps *podState, attempt int, o *engine.Outcome) *framework.PostFilterCall {
	nominated := ps.entry.NominatedNode()
	return &framework.PostFilterCall{
		Now: d.now, Table: d.table, Pod: p,
		Filters: framework.FilterResults{
			PreFilter: o.Rejected, Code: o.Code, AppendUnschedulable: o.AppendUnschedulable, Unschedulable: o.Unschedulable, Rows: o.Rows(),
			Run: func(r table.Row) *decision.Blocker { return o.Refit(r, d.nominations) },
			RunWithoutLower: func(r table.Row, kept []*object.Pod) (*decision.Blocker, bool) {
				return o.RefitWithoutLower(r, kept, d.nominations)
			},
			Local: o.Local(), Shortfall: o.Shortfall, Frees: o.Frees,
		},
		Nominations: framework.Nominations{
			NodeName: nominated, PreemptedNodeName: cmp.Or(d.preemptors.victimsLeaving(ps), nominated), Leaving: d.preemptors.leaving(ps),
			PodsForNode: d.queue.NominatedTo, All: d.nominations.all(), ChangedSince: d.queue.Renominated,
		},
		Disruption: framework.Disruption{Budgets: d.budgets.of(d.profiles[p.SchedulerName]), Strict: d.profiles[p.SchedulerName].StrictBudgets, Evicting: d.preemptors.evicting},
		Quotas:     d.profiles[p.SchedulerName].Quotas,
		Draw:       func(n int) int { return draw.Number(draw.Seed(d.options.Seed, p.UID, attempt), n) },
		Check:      d.options.Check && !o.AsksHosted(), // a hosted filter may count its calls
	}
}

// applyPostFilter applies the result out of a PostFilter plugin. It writes the result to the
// attempt's record, evicts the victims, and returns the pod's nomination. was is the nomination
// before. If the pod must not preempt yet (holdsBack), nothing is evicted. done is true if no other
// plugin is to run.
func (d *schedulingCycles) applyPostFilter(a *attempt, plugin string, out framework.PostFilterResult, was nominating) (_ nominating, done bool) {
	if out.Preemption {
		a.record.PreemptionTried = true
	}
	if out.Failed {
		a.record.PostFilter = []string{out.Message}
		return nominating{keep: true}, true
	}
	if out.NotHelpful != nil {
		a.noVictims = foresight.NoVictims(a.record.RejectedBy, out.NotHelpful)
		a.spared = a.spared || slices.ContainsFunc(out.NotHelpful, func(t decision.Tally) bool { return t.Plugin == framework.PreemptionBudgets })
	}
	if out.NominatedNodeName != "" && d.preemptors.holdsBack(a, out.Victims) {
		a.record.PostFilter = append(a.record.PostFilter, heldBack)
		return nominating{}, false
	}
	if !out.KeepNomination {
		was = nominating{node: out.NominatedNodeName, ends: out.ClearNominations}
	}
	if out.NominatedNodeName != "" {
		d.evictions.preempt(a, plugin, out)
		return was, true
	}
	if out.Message != "" {
		a.record.PostFilter = append(a.record.PostFilter, out.Message)
	}
	return was, out.Resolved
}

// pendingPostFilter is a PostFilter plugin that has not returned yet, or whose writes
// are under way.
type pendingPostFilter struct {
	call       uint64     // number of the call, which the reply names
	plugin     int        // index into the profile's PostFilter plugins
	nomination nominating // by the plugins before
	// result applies when its writes are done.
	result framework.PostFilterResult
}

// awaitPostFilter makes the attempt wait for the plugin or for its writes, and emits the writes.
// The pod is not tried meanwhile, since it could be bound with a claim that is being released.
func (d *schedulingCycles) awaitPostFilter(a *attempt, w pendingPostFilter) {
	c := a.state.extender
	if c == nil {
		c = &extenderCycle{attempt: a, open: map[uint64]call{}}
		c.begin()
		c.widen()
		d.extenders.await(c)
	}
	c.postFilter = &w
	if len(w.result.Writes) > 0 {
		d.emit(Write{Pod: a.pod, Writes: w.result.Writes, Call: w.call})
	}
}

// postFilterWritten continues an attempt whose PostFilter plugin's writes are done, or have failed;
// then the plugin has failed.
func (d *schedulingCycles) postFilterWritten(e WriteReply) {
	ps := d.pods.byUID[e.UID]
	if ps == nil || ps.extender == nil || ps.extender.postFilter == nil {
		return
	}
	out := ps.extender.postFilter.result
	if out.Writes = nil; e.Err != nil {
		out = framework.PostFilterResult{Failed: true, Message: e.Err.Error()}
	}
	d.postFilterReplied(PostFilterReply{UID: e.UID, Call: e.Call, Result: out})
}

// postFilterReplied continues an attempt with the result of a PostFilter plugin. It ignores a
// result that no attempt waits for. A pod that is being deleted leaves the queue instead.
func (d *schedulingCycles) postFilterReplied(e PostFilterReply) {
	ps := d.pods.byUID[e.UID]
	if ps == nil || ps.extender == nil || ps.extender.postFilter == nil || ps.extender.postFilter.call != e.Call {
		return
	}
	c := ps.extender
	if ps.entry.Pod.Terminating {
		d.extenders.finish(ps)
		d.attempts.skip(ps)
		return
	}
	plugin := c.profile.PostFilter[c.postFilter.plugin].Name
	if err := d.guard.run("PostFilter", plugin, func() { d.resumePostFilter(c, plugin, e.Result) }); err != nil {
		d.failAfterPanic(c.attempt, err)
	}
}

// resumePostFilter applies the plugin's result on the table as it is now. If the plugin found no
// room, it runs the next PostFilter plugins, unless the profile was replaced or a node has become
// free meanwhile. It ends the attempt unless that must wait again.
func (d *schedulingCycles) resumePostFilter(c *extenderCycle, plugin string, out framework.PostFilterResult) {
	a, w := c.attempt, c.postFilter
	c.postFilter = nil
	if _, known := d.table.Find(out.NominatedNodeName); out.NominatedNodeName != "" && !known {
		name := out.NominatedNodeName
		out = framework.PostFilterResult{Failed: true, Message: fmt.Sprintf("plugin %q nominated the pod to node %q, which is gone", plugin, name)}
	}
	nomination, done := d.applyPostFilter(a, plugin, out, w.nomination)
	reconfigured := d.profiles[a.profile.Name] != a.profile
	if next := w.plugin + 1; !done && !reconfigured && next < len(a.profile.PostFilter) {
		o := d.engine.DecideWithExtenders(a.request, d.nominations, &c.results)
		waits := false
		if o.Feasible == 0 && (o.Rejected == nil || o.Rejected.Code.Rejects()) {
			nomination, waits = d.runPostFilter(a, o, next, nomination, c)
		}
		if waits {
			return
		}
	}
	d.extenders.finish(a.state)
	d.attempts.requeue(a, nomination)
}
