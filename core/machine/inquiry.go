package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// inquiry is an attempt that extenders have a say in: it stops while one is
// asked and goes on with the answer, on the table as it is then. Other pods go
// on meanwhile.
type inquiry struct {
	*attempt
	managers []int         // the pod's extenders, in order
	at       int           // how many of them have filtered
	review   engine.Review // what they said so far
	// nominated: only the node that the pod is nominated to is looked at yet.
	nominated bool
	scored    bool // all were asked for scores
	asked     map[string]bool
	rounds    int // how often it had to begin anew

	// offer is a PostFilter plugin's, while its candidates are reviewed.
	offer *offer

	// open are the questions without an answer, by number: who was asked.
	open  map[uint64]question
	since time.Time // when the last was asked
}

type question struct {
	extender int
	verb     Verb
	nodes    []string
}

const (
	// askGrace is how much longer than the edge the machine waits.
	askGrace = 5 * time.Second
	// askRounds is how often a pod begins anew when no node that its extenders
	// let pass is left, but others became free meanwhile.
	askRounds = 3
)

var errRestless = errors.New("the nodes that extenders let pass were taken while they were asked, time and again")

// inquire starts, or lines up, the attempt of a pod with extenders.
func (m *Machine) inquire(a *attempt, managers []int) *flight {
	q := &inquiry{attempt: a, managers: managers, open: map[uint64]question{}}
	m.inquiries[a.pod.UID] = q
	if !m.admits(q) {
		at, _ := slices.BinarySearchFunc(m.line, q, func(o, q *inquiry) int {
			if o.pod.Priority >= q.pod.Priority {
				return -1
			}
			return 1
		})
		m.line = slices.Insert(m.line, at, q)
		return nil
	}
	return m.inquiring(q)
}

// begin sets the inquiry to its start.
func (q *inquiry) begin() {
	q.at, q.scored, q.asked = 0, false, map[string]bool{}
	q.review = engine.Review{Refused: map[string]decision.Blocker{}, Scores: map[string][]decision.Score{}}
	if q.nominated = q.pod.NominatedNode != ""; q.nominated {
		q.review.Passed = []string{q.pod.NominatedNode}
	}
}

// widen goes on from the pod's nominated node to all nodes.
func (q *inquiry) widen() { q.nominated, q.at, q.review.Passed = false, 0, nil }

// admits tells whether none of the pod's extenders is fully occupied.
func (m *Machine) admits(q *inquiry) bool {
	return !slices.ContainsFunc(q.managers, m.full)
}

func (m *Machine) full(extender int) bool {
	return m.busy[extender] >= m.options.Extenders[extender].Limit
}

// next lets those in line start whose extenders have room, the most important
// first.
func (m *Machine) next() {
	m.roomy = false
	for i := 0; i < len(m.line) && !m.allFull(); {
		q := m.line[i]
		if !m.admits(q) {
			i++
			continue
		}
		m.line = slices.Delete(m.line, i, i+1)
		m.resume(q)
	}
}

func (m *Machine) allFull() bool {
	for i := range m.busy {
		if !m.full(i) {
			return false
		}
	}
	return true
}

// free notes that a question is settled.
func (m *Machine) free(extender int) {
	m.busy[extender]--
	m.roomy = true
}

// resume goes on with the pod as it is now.
func (m *Machine) resume(q *inquiry) {
	s, _ := m.queue.State(q.pod.UID)
	if s.Pod.Terminating {
		m.unask(q.pod.UID)
		m.skip(s.Pod)
		return
	}
	if s.Pod.API != nil {
		q.pod = s.Pod
	}
	var f *flight
	if err := m.guard("scheduling cycle", "", func() { f = m.inquiring(q) }); err != nil {
		m.unask(q.pod.UID)
		m.abandon(q.attempt, err)
		return
	}
	if f != nil {
		m.advance(f)
	}
}

// inquiring takes the attempt as far as it goes without another answer. As in
// v1.36 the node that the pod is nominated to is tried alone, first; filters
// come one after the other, each asked about what the others left; scores are
// asked for all at once.
func (m *Machine) inquiring(q *inquiry) *flight {
	a := q.attempt
	if q.asked == nil {
		q.begin()
	}
	a.record.NodesTotal = m.table.Live()
	if m.table.Live() == 0 {
		return m.conclude(q, &decision.Status{Code: decision.UnschedulableAndUnresolvable, Err: ErrNoNodes})
	}
	o := m.engine.DecideReviewed(engine.For(a.profile, a.pod), m.queue, &q.review)
	if o.Feasible == 0 {
		switch {
		case o.Rejected != nil && !o.Rejected.Code.Rejects():
			return m.conclude(q, o.Rejected)
		case q.nominated:
			q.widen()
			return m.inquiring(q)
		case m.unseen(q):
			return m.anew(q)
		}
		return m.hopeless(q, o)
	}
	for ; q.at < len(q.managers); q.at++ {
		if m.options.Extenders[q.managers[q.at]].Filter {
			m.ask(q, q.managers[q.at], Filter, o.FeasibleNodes())
			return nil
		}
	}
	if o.Feasible > 1 && !q.scored {
		q.scored = true
		if m.askScores(q, o.FeasibleNodes()) {
			return nil
		}
	}
	delete(m.inquiries, a.pod.UID)
	return m.chosen(a, o)
}

// conclude ends the attempt without a verdict on the pod.
func (m *Machine) conclude(q *inquiry, s *decision.Status) *flight {
	delete(m.inquiries, q.pod.UID)
	m.fail(q.attempt, s, nil)
	return nil
}

// unseen tells whether plugins let a node pass that no extender was asked
// about: it became free, or came, meanwhile.
func (m *Machine) unseen(q *inquiry) bool {
	if q.review.Passed == nil {
		return false
	}
	all := m.engine.DecideReviewed(engine.For(q.profile, q.pod), m.queue, &engine.Review{})
	return slices.ContainsFunc(all.FeasibleNodes(), func(n string) bool { return !q.asked[n] })
}

// anew begins from the start.
func (m *Machine) anew(q *inquiry) *flight {
	if q.rounds++; q.rounds >= askRounds {
		return m.conclude(q, &decision.Status{Code: decision.Error, Err: errRestless})
	}
	q.begin()
	return m.inquiring(q)
}

// askScores asks all extenders that score; false: there is none.
func (m *Machine) askScores(q *inquiry, nodes []string) bool {
	for _, i := range q.managers {
		if m.options.Extenders[i].Prioritize {
			m.ask(q, i, Prioritize, nodes)
		}
	}
	if len(q.open) > 0 {
		q.review.Passed = nodes
	}
	return len(q.open) > 0
}

// ask puts a question about nodes to an extender.
func (m *Machine) ask(q *inquiry, extender int, v Verb, names []string) {
	e := Ask{Pod: q.pod, Extender: extender, Verb: v, Nodes: make([]*object.Node, 0, len(names))}
	for _, name := range names {
		q.asked[name] = true
		if row, ok := m.table.Find(name); ok {
			e.Nodes = append(e.Nodes, m.table.Node(row))
		}
	}
	m.put(q, e, names)
}

func (m *Machine) put(q *inquiry, e Ask, names []string) {
	m.questions++
	e.Question = m.questions
	q.open[e.Question], q.since = question{e.Extender, e.Verb, names}, m.now
	m.busy[e.Extender]++
	m.do(e)
}

// answered takes in an answer. One that is not waited for any more, or that a
// pod did not ask for, is nothing.
func (m *Machine) answered(e Answered) {
	q := m.inquiries[e.UID]
	if q == nil {
		return
	}
	asked, open := q.open[e.Question]
	if !open {
		return
	}
	delete(q.open, e.Question)
	m.free(asked.extender)
	switch x := &m.options.Extenders[asked.extender]; asked.verb {
	case Filter:
		m.filtered(q, x, asked, e)
	case Prioritize:
		q.prioritized(x, asked, e)
		if len(q.open) == 0 {
			m.resume(q)
		}
	case Preempt:
		m.reviewed(q, x, e)
	}
}

// filtered takes in which nodes an extender let pass.
func (m *Machine) filtered(q *inquiry, x *Extender, asked question, e Answered) {
	switch {
	case e.Err == nil:
		passed := map[string]bool{}
		for _, n := range e.Passed {
			passed[n] = true
		}
		left := []string{} // not nil: that would be all nodes
		for _, n := range asked.nodes {
			if passed[n] {
				left = append(left, n)
			}
			if reason, failed := e.Unresolvable[n]; failed {
				q.review.Refused[n] = refusal(decision.UnschedulableAndUnresolvable, reason)
			} else if reason, failed := e.Failed[n]; failed {
				q.review.Refused[n] = refusal(decision.Unschedulable, reason)
			}
		}
		q.review.Passed = left
		q.at++
	case x.Ignorable:
		q.at++
	case q.nominated:
		q.widen() // as v1.36: the nominated node is given up, not the pod
	default:
		m.conclude(q, &decision.Status{Code: decision.Error, Err: e.Err})
		return
	}
	m.resume(q)
}

// prioritized adds an extender's scores. As in v1.36 a pod does without those
// of an extender that fails.
func (q *inquiry) prioritized(x *Extender, asked question, e Answered) {
	if e.Err != nil {
		return
	}
	for _, n := range asked.nodes {
		if score, told := e.Scores[n]; told {
			q.review.Scores[n] = append(q.review.Scores[n], decision.Score{
				Plugin: x.Name, Score: score * extenderScale, Weight: x.Weight,
			})
		}
	}
}

// unask forgets the pod's inquiry: the pod is gone, or bound, or done with.
func (m *Machine) unask(uid types.UID) {
	q := m.inquiries[uid]
	if q == nil {
		return
	}
	delete(m.inquiries, uid)
	for _, asked := range q.open { // any order: counts
		m.free(asked.extender)
	}
	if at := slices.Index(m.line, q); at >= 0 {
		m.line = slices.Delete(m.line, at, at+1)
	}
}

// overdue gives up on answers that the edge should have brought long ago.
func (m *Machine) overdue() {
	uids := make([]types.UID, 0, len(m.inquiries))
	for uid := range m.inquiries { // any order: sorted below
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	for _, uid := range uids {
		q := m.inquiries[uid]
		if q == nil {
			continue
		}
		for _, number := range q.numbers() {
			x := &m.options.Extenders[q.open[number].extender]
			if !m.now.Before(q.deadline(x)) {
				m.answered(Answered{UID: uid, Question: number,
					Err: fmt.Errorf("extender %q: %s: no answer in %v", x.Name, q.open[number].verb, m.now.Sub(q.since))})
			}
		}
	}
}

func (q *inquiry) deadline(x *Extender) time.Time { return q.since.Add(x.Timeout + askGrace) }

func (q *inquiry) numbers() []uint64 {
	numbers := make([]uint64, 0, len(q.open))
	for n := range q.open { // any order: sorted below
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers
}

// hopeless goes on to the PostFilter plugins when no node is left.
func (m *Machine) hopeless(q *inquiry, o *engine.Outcome) *flight {
	m.rejected(q.attempt, o)
	nomination, waits := m.postFilter(q.attempt, o, 0, nominate{keep: true}, q)
	if waits {
		return nil
	}
	delete(m.inquiries, q.pod.UID)
	m.reject(q.attempt, nomination)
	return nil
}

// offer is what a PostFilter plugin wants extenders to look at.
type offer struct {
	plugin     int // its place among the PostFilter plugins
	at         int // how many of the pod's extenders have looked
	candidates []framework.Candidate
	choose     func(*framework.PostFilterCall, []framework.Candidate, error) framework.PostFilterResult
	err        error
	nomination nominate // by the plugins before
}

// reviews tells whether an extender wants to see whom the pod preempts.
func (m *Machine) reviews(q *inquiry) bool {
	return q != nil && slices.ContainsFunc(q.managers, func(i int) bool { return m.options.Extenders[i].Preempt })
}

// askReview asks the next extender that looks at candidates; false: none is
// left to be asked.
func (m *Machine) askReview(q *inquiry) bool {
	for ; q.offer.at < len(q.managers) && len(q.offer.candidates) > 0; q.offer.at++ {
		if i := q.managers[q.offer.at]; m.options.Extenders[i].Preempt {
			m.put(q, Ask{Pod: q.pod, Extender: i, Verb: Preempt, Candidates: q.offer.candidates}, nil)
			return true
		}
	}
	return false
}

// reviewed takes in what an extender leaves of the candidates, and goes on to
// the next, or to the choice.
func (m *Machine) reviewed(q *inquiry, x *Extender, e Answered) {
	left, err := []framework.Candidate(nil), e.Err
	if err == nil {
		left, err = m.resolve(q, x, e.Left)
	}
	if q.offer.at++; err == nil {
		q.offer.candidates = left
	} else if !x.Ignorable {
		q.offer.err = err
	}
	if q.offer.err == nil && m.askReview(q) {
		return
	}
	if err := m.guard("PostFilter", q.profile.PostFilter[q.offer.plugin].Name, func() { m.choose(q) }); err != nil {
		m.unask(q.pod.UID)
		m.abandon(q.attempt, err)
	}
}

// choose lets the plugin choose among the candidates that are left, on the
// table as it is now. Where a node became free meanwhile nobody has to go.
func (m *Machine) choose(q *inquiry) {
	a, made := q.attempt, q.offer
	q.offer = nil
	all := m.engine.DecideReviewed(engine.For(a.profile, a.pod), m.queue, &engine.Review{})
	if slices.ContainsFunc(all.FeasibleNodes(), func(n string) bool { return !q.asked[n] }) {
		if f := m.anew(q); f != nil {
			m.advance(f)
		}
		return
	}
	o := m.engine.DecideReviewed(engine.For(a.profile, a.pod), m.queue, &q.review)
	out := made.choose(m.postFilterCall(a, o), m.candidates(a.pod, made.candidates), made.err)
	nomination, done := m.take(a, a.profile.PostFilter[made.plugin].Name, out, made.nomination)
	if !done {
		nomination, _ = m.postFilter(a, o, made.plugin+1, nomination, nil)
	}
	delete(m.inquiries, a.pod.UID)
	m.reject(a, nomination)
}
