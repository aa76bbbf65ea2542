package machine

import (
	"cmp"
	"fmt"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// runPostFilter runs PostFilter plugins from index from on. It returns the pod's
// nomination. waits is true if the attempt waits for extenders, which review a plugin's
// candidates, or for a plugin; c is then its extender cycle.
func (m *Machine) runPostFilter(a *attempt, o *engine.Outcome, from int, was nominating, c *extenderCycle) (_ nominating, waits bool) {
	if from >= len(a.profile.PostFilter) {
		return was, false
	}
	call := m.postFilterCall(a, o)
	call.HasExtenders = m.reviewsPreemption(c)
	group := a.trying()
	for i, pl := range a.profile.PostFilter[from:] {
		if group.triesPlacements() && pl.Host != nil {
			group.putOffPostFilter()
			continue
		}
		call.Cache = o.Kept(pl.Name)
		call.Number = m.lastCall + 1
		out := pl.PostFilter(call)
		if group.triesPlacements() && len(out.Writes) > 0 {
			group.putOffPostFilter()
			out.Writes = nil
		}
		if out.Pending || len(out.Writes) > 0 {
			m.lastCall++ // only a call that is answered later has a number of its own
			m.awaitPostFilter(a, pendingPostFilter{call: call.Number, plugin: from + i, nomination: was, result: out})
			return was, true
		}
		if call.HasExtenders && len(out.Candidates) > 0 {
			c.review = &preemptionReview{plugin: from + i, candidates: out.Candidates, choose: out.Choose, nomination: was}
			return was, m.callPreempt(c)
		}
		var done bool
		if was, done = m.applyPostFilter(a, pl.Name, out, was); done {
			break
		}
	}
	return was, false
}

func (m *Machine) postFilterCall(a *attempt, o *engine.Outcome) *framework.PostFilterCall {
	return m.postFilterCallFor(a.pod, a.state, a.record.Attempt, o)
}

func (m *Machine) postFilterCallFor(p *object.Pod, ps *podState, attempt int, o *engine.Outcome) *framework.PostFilterCall {
	nominated := ps.entry.NominatedNode()
	return &framework.PostFilterCall{
		Now: m.now, Table: m.table, Pod: p,
		Filters: framework.FilterResults{
			PreFilter: o.Rejected, Code: o.Code, AppendUnschedulable: o.AppendUnschedulable, Unschedulable: o.Unschedulable, Rows: o.Rows(),
			Run:             func(r table.Row) *decision.Blocker { return o.Refit(r, m.nominations) },
			RunWithoutLower: func(r table.Row) (*decision.Blocker, bool) { return o.RefitWithoutLower(r, m.nominations) },
			Local:           o.Local(), Shortfall: o.Shortfall, Frees: o.Frees,
		},
		Nominations: framework.Nominations{
			NodeName: nominated, PreemptedNodeName: cmp.Or(m.preemptors.victimsLeaving(ps), nominated),
			PodsForNode: m.queue.NominatedTo, ChangedSince: m.queue.Renominated,
		},
		Disruption: framework.Disruption{Budgets: m.budgets.list, Evicting: m.preemptors.evicting},
		Draw:       func(n int) int { return draw.Number(draw.Seed(m.options.Seed, p.UID, attempt), n) },
		Check:      m.options.Check && !o.AsksHosted(), // a hosted filter may count its calls
	}
}

// applyPostFilter applies the result of a PostFilter plugin. done is true if no other
// plugin is to run.
func (m *Machine) applyPostFilter(a *attempt, plugin string, out framework.PostFilterResult, was nominating) (_ nominating, done bool) {
	if out.Preemption {
		a.record.PreemptionTried = true
	}
	if out.Failed {
		a.record.PostFilter = []string{out.Message}
		return nominating{keep: true}, true
	}
	if plugin == names.DefaultPreemption {
		a.noVictims = noVictims(a.record.RejectedBy, out.NotHelpful)
	}
	if out.NominatedNodeName != "" && m.preemptors.holdsBack(a, out.Victims) {
		a.record.PostFilter = append(a.record.PostFilter, heldBack)
		return nominating{}, false
	}
	if !out.KeepNomination {
		was = nominating{node: out.NominatedNodeName, ends: out.ClearNominations}
	}
	if out.NominatedNodeName != "" && a.trying() != nil {
		a.group.plan = &preemptionPlan{plugin, out}
		return was, true
	}
	if out.NominatedNodeName != "" {
		m.evictions.preempt(a, plugin, out)
		return was, true
	}
	if out.Message != "" {
		a.record.PostFilter = append(a.record.PostFilter, out.Message)
	}
	return was, out.Resolved
}

// pendingPostFilter is a PostFilter plugin that runs beside the loop, or whose writes
// are under way.
type pendingPostFilter struct {
	call       uint64
	plugin     int        // index into the profile's PostFilter plugins
	nomination nominating // by the plugins before
	// result is what counts when its writes are done.
	result framework.PostFilterResult
}

// awaitPostFilter makes the attempt wait for the plugin or its writes. A pod whose claim
// is being released may not be tried meanwhile, as it could be bound with that claim.
func (m *Machine) awaitPostFilter(a *attempt, w pendingPostFilter) {
	c := a.state.extender
	if c == nil {
		c = &extenderCycle{attempt: a, open: map[uint64]call{}}
		c.begin()
		c.widen()
		a.state.extender = c
		m.extenderCycles.add(c)
	}
	c.postFilter = &w
	if len(w.result.Writes) > 0 {
		m.emit(Write{Pod: a.pod, Writes: w.result.Writes, Call: w.call})
	}
}

// postFilterWritten continues an attempt whose PostFilter plugin's writes are done, or
// failed.
func (m *Machine) postFilterWritten(e WriteReply) {
	ps := m.pods.byUID[e.UID]
	if ps == nil || ps.extender == nil || ps.extender.postFilter == nil {
		return
	}
	out := ps.extender.postFilter.result
	if out.Writes = nil; e.Err != nil {
		out = framework.PostFilterResult{Failed: true, Message: e.Err.Error()}
	}
	m.postFilterReplied(PostFilterReply{UID: e.UID, Call: e.Call, Result: out})
}

// postFilterReplied continues an attempt with the result of a PostFilter plugin. It
// ignores a result that no attempt waits for.
func (m *Machine) postFilterReplied(e PostFilterReply) {
	ps := m.pods.byUID[e.UID]
	if ps == nil || ps.extender == nil || ps.extender.postFilter == nil || ps.extender.postFilter.call != e.Call {
		return
	}
	c := ps.extender
	if ps.entry.Pod.Terminating {
		m.endExtenderCycle(ps)
		m.attempts.skip(ps)
		return
	}
	plugin := c.profile.PostFilter[c.postFilter.plugin].Name
	if err := m.guard.run("PostFilter", plugin, func() { m.resumePostFilter(c, plugin, e.Result) }); err != nil {
		m.failAfterPanic(c.attempt, err)
	}
}

// resumePostFilter carries the result out on the table as it is now, and asks the
// plugins that come next, if the profile is the same still. Where a node became free
// meanwhile nobody has to go.
func (m *Machine) resumePostFilter(c *extenderCycle, plugin string, out framework.PostFilterResult) {
	a, w := c.attempt, c.postFilter
	c.postFilter = nil
	if _, known := m.table.Find(out.NominatedNodeName); out.NominatedNodeName != "" && !known {
		name := out.NominatedNodeName
		out = framework.PostFilterResult{Failed: true, Message: fmt.Sprintf("plugin %q nominated the pod to node %q, which is gone", plugin, name)}
	}
	nomination, done := m.applyPostFilter(a, plugin, out, w.nomination)
	reconfigured := m.profiles[a.profile.Name] != a.profile
	if next := w.plugin + 1; !done && !reconfigured && next < len(a.profile.PostFilter) {
		o := m.engine.DecideWithExtenders(a.request, m.nominations, &c.results)
		waits := false
		if o.Feasible == 0 && (o.Rejected == nil || o.Rejected.Code.Rejects()) {
			nomination, waits = m.runPostFilter(a, o, next, nomination, c)
		}
		if waits {
			return
		}
	}
	m.endExtenderCycle(a.state)
	m.attempts.requeue(a, nomination)
}
