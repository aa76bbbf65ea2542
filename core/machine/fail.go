package machine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// fail ends an attempt with a status: an error, or a rejection by a plugin
// after the pod was assumed (f is then its flight, and is undone; where things
// have to be taken back in the API, when that is done).
func (m *Machine) fail(a *attempt, s *decision.Status, f *flight) {
	if f != nil && m.retract(f, s) {
		return
	}
	r := a.record
	if f != nil {
		again := *r
		r, a = &again, &attempt{pod: a.pod, profile: a.profile, record: &again}
		r.Node, r.Nodes = "", nil
		m.unreserve(f)
		m.land(f)
	}
	r.Result, r.Err = decision.ResultError, s.Err
	r.RejectedBy, r.PendingBy = nil, nil // a failure is no verdict, whatever was found before
	if s.Code.Rejects() && s.Err == nil {
		// As v1.36: the one node that it was to go to, and why not.
		r.Result, r.NodesTotal, r.NodesFeasible = decision.ResultUnschedulable, 1, 0
		r.Tallies = []decision.Tally{{Blocker: decision.Blocker{Plugin: s.Plugin, Code: s.Code, Reasons: s.Reasons}, Nodes: 1}}
		if s.Code == decision.Pending {
			r.PendingBy = []string{s.Plugin}
		} else {
			r.RejectedBy = []string{s.Plugin}
		}
	} else if s.Err == ErrNoNodes {
		r.Result = decision.ResultUnschedulable
	}
	if f != nil && !s.Code.Rejects() {
		m.move(forgotten(f))
	}
	m.reject(a, nominate{})
	if f != nil && s.Code.Rejects() {
		m.queue.MoveOthers(m.now, forgotten(f), a.pod.UID)
	}
}

// reject tells the queue, the API and the record's readers that the attempt
// ended without a node.
func (m *Machine) reject(a *attempt, n nominate) {
	r := a.record
	m.do(Decided{r})
	if m.queue.Park(m.now, a.pod.UID, queue.Outcome{RejectedBy: r.RejectedBy, PendingBy: r.PendingBy}) == queue.Nowhere {
		return // deleted while it was in flight
	}
	s, _ := m.queue.State(a.pod.UID)
	p, patch := s.Pod, Patch{Pod: s.Pod}
	if !n.keep {
		kept := m.queue.NominatedNode(p.UID)
		m.queue.Nominate(p.UID, n.node)
		m.renominated(p, kept, n.node)
		patch.Nominated = m.nomination(p, n.node)
	}
	if c := explain.Condition(r); *c != p.Scheduled {
		patch.Condition = c
	}
	m.do(Announce{Pod: p, Warning: true, Reason: "FailedScheduling", Action: "Scheduling", Note: explain.Message(r)})
	if patch.Condition != nil || patch.Nominated != nil {
		m.do(patch)
	}
}

// nomination is what to write so that the API shows the pod nominated to the
// node: nil where it does, and was not asked for anything else meanwhile.
func (m *Machine) nomination(p *object.Pod, node string) *string {
	asked, pending := m.asked[p.UID]
	if node == p.NominatedNode && (!pending || asked == node) {
		return nil
	}
	m.asked[p.UID] = node
	return &node
}
