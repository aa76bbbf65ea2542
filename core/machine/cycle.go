package machine

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// ErrNoNodes is why a pod is not scheduled in a cluster without nodes.
var ErrNoNodes = errors.New("no nodes available to schedule pods")

// attempt is one try for one pod.
type attempt struct {
	pod     *object.Pod
	profile *profile.Profile
	record  *decision.Decision
}

func newAttempt(p *object.Pod, under *profile.Profile) *attempt {
	both := &struct { // in one piece, as every pod has one
		attempt
		record decision.Decision
	}{
		attempt: attempt{pod: p, profile: under},
		record:  decision.Decision{UID: p.UID, Pod: p.Key(), Profile: p.SchedulerName},
	}
	both.attempt.record = &both.record
	return &both.attempt
}

// cycle takes the first pod of the queue and decides on it.
func (m *Machine) cycle() {
	item, ok := m.queue.Pop(m.now)
	if !ok {
		return
	}
	p := item.Pod
	if p.Terminating {
		m.skip(p)
		return
	}
	if m.table.Pod(p.UID) != nil {
		m.queue.Done(p.UID)
		return
	}
	a := newAttempt(p, m.profiles[p.SchedulerName])
	a.record.Attempt, a.record.Flushed, a.record.NodesTotal = item.Number, item.Flushed, m.table.Live()
	m.lookAhead(p)
	var f *flight
	if err := m.guard("scheduling cycle", "", func() { f = m.decide(a) }); err != nil {
		m.abandon(a, err)
		return
	}
	if f != nil {
		m.advance(f)
	}
}

// skip leaves a pod alone that is being deleted.
func (m *Machine) skip(p *object.Pod) {
	m.do(Announce{Pod: p, Warning: true, Reason: "FailedScheduling", Action: "Scheduling",
		Note: explain.Deleting(p)})
	m.queue.Done(p.UID)
}

// abandon gives up an attempt that panicked: whatever it did is undone and
// the pod backs off.
func (m *Machine) abandon(a *attempt, err error) {
	f := m.flights[a.pod.UID]
	m.unask(a.pod.UID)
	if f == nil {
		m.table.Remove(a.pod.UID)
		delete(m.assumed, a.pod.UID)
	}
	m.fail(a, &decision.Status{Code: decision.Error, Err: err}, f)
}

// decide evaluates every node and assumes the pod on the best. It returns nil
// when the attempt is over.
func (m *Machine) decide(a *attempt) *flight {
	if m.table.Live() == 0 {
		m.fail(a, &decision.Status{Code: decision.UnschedulableAndUnresolvable, Err: ErrNoNodes}, nil)
		return nil
	}
	if s := m.undecidable(a); s != nil {
		m.fail(a, s, nil)
		return nil
	}
	if managers := m.managers(a.pod); managers != nil {
		return m.inquire(a, managers)
	}
	o := m.engine.Decide(engine.For(a.profile, a.pod), m.queue)
	if o.Row < 0 && (o.Rejected == nil || o.Rejected.Code.Rejects()) {
		m.rejected(a, o)
		nomination, _ := m.postFilter(a, o, 0, nominate{keep: true}, nil)
		m.reject(a, nomination)
		return nil
	}
	return m.chosen(a, o)
}

// chosen assumes the pod on the node that was found, unless scoring failed.
func (m *Machine) chosen(a *attempt, o *engine.Outcome) *flight {
	m.note(a, o)
	if o.Rejected != nil {
		m.fail(a, o.Rejected, nil)
		return nil
	}
	a.record.Node, a.record.Score, a.record.Ties = m.table.Name(o.Row), o.Score, o.Ties
	return m.assume(a)
}

func (m *Machine) note(a *attempt, o *engine.Outcome) {
	a.record.NodesFeasible = o.Feasible
	if m.options.Explain {
		a.record.Nodes = o.Nodes()
	}
}

// rejected notes why no node was found.
func (m *Machine) rejected(a *attempt, o *engine.Outcome) {
	m.note(a, o)
	r := a.record
	r.Tallies, r.RejectedBy = o.Tallies(), o.RejectedBy()
	if o.Rejected != nil {
		r.PreFilter = o.Rejected
	}
	r.Result = decision.ResultUnschedulable
}

// nominate says what becomes of the pod's nomination.
type nominate struct {
	keep bool
	node string
}

// postFilter lets PostFilter plugins make room, from the given one on. It
// returns what becomes of the pod's nomination, or that q waits for what
// extenders say about a plugin's candidates.
func (m *Machine) postFilter(a *attempt, o *engine.Outcome, from int, was nominate, q *inquiry) (_ nominate, waits bool) {
	if from >= len(a.profile.PostFilter) {
		return was, false
	}
	call := m.postFilterCall(a, o)
	call.HasExtenders = m.reviews(q)
	for i, pl := range a.profile.PostFilter[from:] {
		call.Cache = o.Kept(pl.Name)
		out := pl.PostFilter(call)
		if call.HasExtenders && len(out.Candidates) > 0 {
			q.offer = &offer{plugin: from + i, candidates: out.Candidates, choose: out.Choose, nomination: was}
			return was, m.askReview(q)
		}
		var done bool
		if was, done = m.take(a, pl.Name, out, was); done {
			break
		}
	}
	return was, false
}

func (m *Machine) postFilterCall(a *attempt, o *engine.Outcome) *framework.PostFilterCall {
	nominated := m.queue.NominatedNode(a.pod.UID)
	return &framework.PostFilterCall{
		Now: m.now, Table: m.table, Pod: a.pod,
		Filters: framework.FilterResults{
			PreFilter: o.Rejected, Code: o.Code, Rows: o.Rows(),
			Run:   func(r table.Row) *decision.Blocker { return o.Refit(r, m.queue) },
			Local: o.Local(), Shortfall: o.Shortfall, Frees: o.Frees,
		},
		Nominations: framework.Nominations{
			NodeName: nominated, PreemptedNodeName: cmp.Or(m.hunting(a.pod.UID), nominated),
			PodsForNode: m.queue.NominatedTo, ChangedSince: m.queue.Renominated,
		},
		Disruption: framework.Disruption{Budgets: m.budgets, Evicting: m.evicting},
		Draw:       func(n int) int { return m.draw(a.pod, a.record.Attempt, n) },
		Check:      m.options.Check,
	}
}

// take carries out what a PostFilter plugin answered; done: no other is asked.
func (m *Machine) take(a *attempt, plugin string, out framework.PostFilterResult, was nominate) (_ nominate, done bool) {
	if len(out.Writes) > 0 {
		m.do(Write{Pod: a.pod, Writes: out.Writes, Unanswered: true})
	}
	if out.Failed {
		a.record.PostFilter = []string{out.Message}
		return nominate{keep: true}, true
	}
	if !out.KeepNomination {
		was = nominate{node: out.NominatedNodeName}
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

func (m *Machine) clearNomination(p *object.Pod) {
	kept := m.queue.NominatedNode(p.UID)
	m.queue.Unnominate(p.UID)
	m.renominated(p, kept, "")
	if none := m.nomination(p, ""); none != nil {
		m.do(Patch{Pod: p, Nominated: none})
	}
}

// draw is uniform in [0, n): a hash of the seed, the pod and the attempt.
func (m *Machine) draw(p *object.Pod, attempt, n int) int {
	if n <= 1 {
		return 0
	}
	h := m.options.Seed ^ uint64(attempt)*0x9e3779b97f4a7c15
	for _, c := range []byte(p.UID) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h ^= h >> 29
	return int(h % uint64(n))
}

// running says where a guarded call was; plugin "" is none.
func running(point, plugin string) string {
	if plugin == "" {
		return point
	}
	return fmt.Sprintf("running %s plugin %q", point, plugin)
}
