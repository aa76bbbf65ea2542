package machine

import (
	"cmp"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// runPostFilter lets PostFilter plugins make room, from the given one on. It
// returns what becomes of the pod's nomination, or that c waits for what
// extenders say about a plugin's candidates.
func (m *Machine) runPostFilter(a *attempt, o *engine.Outcome, from int, was nominating, c *extenderCycle) (_ nominating, waits bool) {
	if from >= len(a.profile.PostFilter) {
		return was, false
	}
	call := m.postFilterCall(a, o)
	call.HasExtenders = m.reviewsPreemption(c)
	for i, pl := range a.profile.PostFilter[from:] {
		call.Cache = o.Kept(pl.Name)
		out := pl.PostFilter(call)
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
			PreFilter: o.Rejected, Code: o.Code, Unschedulable: o.Unschedulable, Rows: o.Rows(),
			Run:   func(r table.Row) *decision.Blocker { return o.Refit(r, m.nominations) },
			Local: o.Local(), Shortfall: o.Shortfall, Frees: o.Frees,
		},
		Nominations: framework.Nominations{
			NodeName: nominated, PreemptedNodeName: cmp.Or(m.victimsLeaving(ps), nominated),
			PodsForNode: m.queue.NominatedTo, ChangedSince: m.queue.Renominated,
		},
		Disruption: framework.Disruption{Budgets: m.budgets, Evicting: m.evictingUID},
		Draw:       func(n int) int { return ranking.DrawNumber(ranking.Seed(m.options.Seed, p.UID, attempt), n) },
		Check:      m.options.Check,
	}
}

// applyPostFilter carries out what a PostFilter plugin answered; done: no other
// is asked.
func (m *Machine) applyPostFilter(a *attempt, plugin string, out framework.PostFilterResult, was nominating) (_ nominating, done bool) {
	if len(out.Writes) > 0 {
		m.emit(Write{Pod: a.pod, Writes: out.Writes, NoReply: true})
	}
	if out.Preemption {
		a.record.PreemptionTried = true
	}
	if out.Failed {
		a.record.PostFilter = []string{out.Message}
		return nominating{keep: true}, true
	}
	if out.NominatedNodeName != "" && m.holdsBack(a, out.Victims) {
		a.record.PostFilter = append(a.record.PostFilter, heldBack)
		return nominating{}, false
	}
	if !out.KeepNomination {
		was = nominating{node: out.NominatedNodeName}
	}
	if out.NominatedNodeName != "" {
		m.preempt(a, plugin, out)
		return was, true
	}
	if out.Message != "" {
		a.record.PostFilter = append(a.record.PostFilter, out.Message)
	}
	return was, out.Resolved
}
