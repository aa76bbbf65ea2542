package machine

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// extenderCycle is an attempt that extenders have a say in: it stops while one is
// called and goes on with the reply, on the table as it is then. Other pods go
// on meanwhile. An attempt that waits for a PostFilter plugin, or for what that writes,
// is one, too; then there may be no extenders.
type extenderCycle struct {
	*attempt
	extenders []int // the pod's, in order
	filtered  int   // how many of them have filtered
	// results holds the extenders' answers so far.
	results engine.ExtenderResults
	// nominated: only the node that the pod is nominated to is looked at yet.
	nominated bool
	scored    bool            // all were asked for scores
	shown     map[string]bool // the nodes that they were asked about
	rounds    int             // how often it had to begin anew

	// review is of a PostFilter plugin's candidates, nil when there are none.
	review *preemptionReview
	// postFilter is the PostFilter plugin that is waited for, nil when none is.
	postFilter *pendingPostFilter

	// open are the calls without a reply, by number.
	open  map[uint64]call
	since time.Time // when the last was made
}

func (c *extenderCycle) uid() types.UID { return c.pod.UID }

// waits reports whether a reply is outstanding.
func (c *extenderCycle) waits() bool { return len(c.open) > 0 || c.postFilter != nil }

type call struct {
	extender int
	verb     Verb
	nodes    []string
}

const (
	// replyGrace is how much longer than the edge the machine waits.
	replyGrace = 5 * time.Second
	// maxRounds is how often a pod begins again because no node is left that its
	// extenders pass, but other nodes became free meanwhile.
	maxRounds = 3
)

var errNodesTaken = fmt.Errorf("%d times in a row the nodes that the extenders accepted did not fit any more when the replies had come", maxRounds)

// startExtenderCycle starts, or lines up, the attempt of a pod with extenders.
func (d *schedulingCycles) startExtenderCycle(a *attempt, extenders []int) *bindingCycle {
	c := &extenderCycle{attempt: a, extenders: extenders, open: map[uint64]call{}}
	if !d.extenders.enter(c) {
		return nil
	}
	return d.runExtenders(c)
}

// begin sets the cycle to its start.
func (c *extenderCycle) begin() {
	c.filtered, c.scored, c.shown = 0, false, map[string]bool{}
	c.results = engine.ExtenderResults{Refused: map[string]decision.Blocker{}, Scores: map[string][]decision.Score{}}
	if c.nominated = c.pod.NominatedNode != ""; c.nominated {
		c.results.Passed = []string{c.pod.NominatedNode}
	}
}

// widen makes the cycle consider all nodes, instead of the pod's nominated node.
func (c *extenderCycle) widen() { c.nominated, c.filtered, c.results.Passed = false, 0, nil }

// resume continues the cycle, with the pod as it is now, after an answer.
func (d *schedulingCycles) resume(c *extenderCycle) {
	p := c.state.entry.Pod
	if p.Terminating {
		d.extenders.finish(c.state)
		d.attempts.skip(c.state)
		return
	}
	if p.API != nil {
		c.pod, c.request = p, c.state.request
	}
	var b *bindingCycle
	if err := d.guard.run("scheduling cycle", "", func() { b = d.runExtenders(c) }); err != nil {
		d.failAfterPanic(c.attempt, err)
		return
	}
	if b != nil && b.phase == reserve {
		d.bindings.runPreBind(b)
	}
}

// runExtenders runs the attempt until it needs an answer of an extender. As in v1.36 the
// node that the pod is nominated to is tried alone, first. Filters are called one after
// the other, each about the nodes that the others passed; scores are requested from all
// at once.
func (d *schedulingCycles) runExtenders(c *extenderCycle) *bindingCycle {
	a := c.attempt
	if c.shown == nil {
		c.begin()
	}
	a.record.NodesTotal = d.table.Live()
	if d.table.Live() == 0 {
		return d.failExtenderCycle(c, &decision.Status{Code: decision.UnschedulableAndUnresolvable, Err: ErrNoNodes})
	}
	o := d.engine.DecideWithExtenders(a.request, d.nominations, &c.results)
	if o.Feasible == 0 {
		switch {
		case o.Rejected != nil && !o.Rejected.Code.Rejects():
			return d.failExtenderCycle(c, o.Rejected)
		case c.nominated:
			c.widen()
			return d.runExtenders(c)
		case d.newNodeFits(c):
			return d.beginAnew(c)
		}
		// newNodeFits decided, too, which ended what o stood on.
		return d.makeRoom(c, d.engine.DecideWithExtenders(a.request, d.nominations, &c.results))
	}
	for ; c.filtered < len(c.extenders); c.filtered++ {
		if d.options.Extenders[c.extenders[c.filtered]].Filter {
			d.callExtenderAboutNodes(c, c.extenders[c.filtered], Filter, o.FeasibleNodes())
			return nil
		}
	}
	if o.Feasible > 1 && !c.scored {
		c.scored = true
		if d.callPrioritize(c, o.FeasibleNodes()) {
			return nil
		}
	}
	d.extenders.finish(a.state)
	return d.assumeChosen(a, o)
}

// failExtenderCycle ends the attempt without a verdict on the pod.
func (d *schedulingCycles) failExtenderCycle(c *extenderCycle, s *decision.Status) *bindingCycle {
	d.extenders.finish(c.state)
	d.bindings.fail(c.attempt, s)
	return nil
}

// newNodeFits reports whether plugins pass a node that no extender was asked about,
// because it became free, or came, meanwhile.
func (d *schedulingCycles) newNodeFits(c *extenderCycle) bool {
	if c.results.Passed == nil {
		return false
	}
	all := d.engine.DecideWithExtenders(c.request, d.nominations, &engine.ExtenderResults{})
	return slices.ContainsFunc(all.FeasibleNodes(), func(n string) bool { return !c.shown[n] })
}

// beginAnew begins from the start.
func (d *schedulingCycles) beginAnew(c *extenderCycle) *bindingCycle {
	if c.rounds++; c.rounds >= maxRounds {
		return d.failExtenderCycle(c, &decision.Status{Code: decision.Error, Err: errNodesTaken})
	}
	c.begin()
	return d.runExtenders(c)
}

// callPrioritize calls all extenders that score. It returns false if there is none.
func (d *schedulingCycles) callPrioritize(c *extenderCycle, nodes []string) bool {
	for _, i := range c.extenders {
		if d.options.Extenders[i].Prioritize {
			d.callExtenderAboutNodes(c, i, Prioritize, nodes)
		}
	}
	if len(c.open) > 0 {
		c.results.Passed = nodes
	}
	return len(c.open) > 0
}

// callExtenderAboutNodes calls an extender about nodes.
func (d *schedulingCycles) callExtenderAboutNodes(c *extenderCycle, extender int, v Verb, names []string) {
	e := CallExtender{Pod: c.pod, Extender: extender, Verb: v, Nodes: make([]*object.Node, 0, len(names))}
	for _, name := range names {
		c.shown[name] = true
		if row, ok := d.table.Find(name); ok {
			e.Nodes = append(e.Nodes, d.table.Node(row))
		}
	}
	d.extenders.send(c, e, names)
}

// extenderReplied handles a reply of an extender. It ignores one that no cycle waits for.
func (d *schedulingCycles) extenderReplied(e ExtenderReply) {
	ps := d.pods.byUID[e.UID]
	if ps == nil || ps.extender == nil {
		return
	}
	c := ps.extender
	sent, open := d.extenders.reply(c, e.Call)
	if !open {
		return
	}
	switch x := &d.options.Extenders[sent.extender]; sent.verb {
	case Filter:
		d.filterReplied(c, x, sent, e)
	case Prioritize:
		c.prioritizeReplied(x, sent, e)
		if len(c.open) == 0 {
			d.resume(c)
		}
	case Preempt:
		d.preemptReplied(c, x, e)
	}
}

// filterReplied handles a reply to Filter: which nodes the extender passes.
func (d *schedulingCycles) filterReplied(c *extenderCycle, x *Extender, sent call, e ExtenderReply) {
	switch {
	case e.Err == nil:
		passed := map[string]bool{}
		for _, n := range e.Passed {
			passed[n] = true
		}
		left := []string{} // not nil: that would be all nodes
		for _, n := range sent.nodes {
			if passed[n] {
				left = append(left, n)
			}
			if reason, failed := e.Unresolvable[n]; failed {
				c.results.Refused[n] = refusal(decision.UnschedulableAndUnresolvable, reason)
			} else if reason, failed := e.Failed[n]; failed {
				c.results.Refused[n] = refusal(decision.Unschedulable, reason)
			}
		}
		c.results.Passed = left
		c.filtered++
	case x.Ignorable:
		c.filtered++
	case c.nominated:
		c.widen() // as v1.36: the nominated node is given up, not the pod
	default:
		d.failExtenderCycle(c, &decision.Status{Code: decision.Error, Err: e.Err})
		return
	}
	d.resume(c)
}

// prioritizeReplied adds an extender's scores. As in v1.36 a pod does without those
// of an extender that fails.
func (c *extenderCycle) prioritizeReplied(x *Extender, sent call, e ExtenderReply) {
	if e.Err != nil {
		return
	}
	for _, n := range sent.nodes {
		if score, told := e.Scores[n]; told {
			c.results.Scores[n] = append(c.results.Scores[n], decision.Score{
				Plugin: x.Name, Score: score * extenderScale, Weight: x.Weight,
			})
		}
	}
}

// failLateExtenders fails calls whose replies are overdue. The edge should have reported
// a timeout long before.
func (d *schedulingCycles) failLateExtenders() {
	for _, e := range d.extenders.overdue() {
		d.extenderReplied(e)
	}
}

func (c *extenderCycle) deadline(x *Extender) time.Time { return c.since.Add(x.Timeout + replyGrace) }

func (c *extenderCycle) numbers() []uint64 {
	numbers := make([]uint64, 0, len(c.open))
	for n := range c.open { // any order: sorted below
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers
}

// makeRoom runs the PostFilter plugins when no node is left.
func (d *schedulingCycles) makeRoom(c *extenderCycle, o *engine.Outcome) *bindingCycle {
	d.attempts.recordRejection(c.attempt, o)
	nomination, waits := d.runPostFilter(c.attempt, o, 0, nominating{keep: true}, c)
	if waits {
		return nil
	}
	d.extenders.finish(c.state)
	d.attempts.requeue(c.attempt, nomination)
	return nil
}

// preemptionReview is the review of a PostFilter plugin's candidates by extenders, one
// after the other.
type preemptionReview struct {
	plugin     int // index into the profile's PostFilter plugins
	reviewed   int // how many of the pod's extenders have looked
	candidates []framework.Candidate
	choose     func(*framework.PostFilterCall, []framework.Candidate, error) framework.PostFilterResult
	err        error
	nomination nominating // by the plugins before
}

// reviewsPreemption reports whether an extender of the pod takes part in preemption.
func (d *schedulingCycles) reviewsPreemption(c *extenderCycle) bool {
	return c != nil && slices.ContainsFunc(c.extenders, func(i int) bool { return d.options.Extenders[i].Preempt })
}

// callPreempt calls the next extender that reviews candidates. It returns false if no such
// extender is left, or no candidate.
func (d *schedulingCycles) callPreempt(c *extenderCycle) bool {
	for ; c.review.reviewed < len(c.extenders) && len(c.review.candidates) > 0; c.review.reviewed++ {
		if i := c.extenders[c.review.reviewed]; d.options.Extenders[i].Preempt {
			d.extenders.send(c, CallExtender{Pod: c.pod, Extender: i, Verb: Preempt, Candidates: c.review.candidates}, nil)
			return true
		}
	}
	return false
}

// preemptReplied handles a reply to Preempt: it keeps the candidates that the extender
// accepts, and calls the next extender, or chooses.
func (d *schedulingCycles) preemptReplied(c *extenderCycle, x *Extender, e ExtenderReply) {
	left, err := []framework.Candidate(nil), e.Err
	if err == nil {
		left, err = d.resolveVictims(c, x, e.Victims)
	}
	if c.review.reviewed++; err == nil {
		c.review.candidates = left
	} else if !x.Ignorable {
		c.review.err = err
	}
	if c.review.err == nil && d.callPreempt(c) {
		return
	}
	if err := d.guard.run("PostFilter", c.profile.PostFilter[c.review.plugin].Name, func() { d.chooseCandidate(c) }); err != nil {
		d.failAfterPanic(c.attempt, err)
	}
}

// chooseCandidate calls the plugin to choose among the candidates that are left, on the
// table as it is now. If a node became free meanwhile, the pod begins again without
// preempting.
func (d *schedulingCycles) chooseCandidate(c *extenderCycle) {
	a, made := c.attempt, c.review
	c.review = nil
	all := d.engine.DecideWithExtenders(a.request, d.nominations, &engine.ExtenderResults{})
	if slices.ContainsFunc(all.FeasibleNodes(), func(n string) bool { return !c.shown[n] }) {
		if b := d.beginAnew(c); b != nil && b.phase == reserve {
			d.bindings.runPreBind(b)
		}
		return
	}
	o := d.engine.DecideWithExtenders(a.request, d.nominations, &c.results)
	out := made.choose(d.postFilterCall(a, o), d.candidatesLeft(a.pod, made.candidates), made.err)
	nomination, done := d.applyPostFilter(a, a.profile.PostFilter[made.plugin].Name, out, made.nomination)
	if !done {
		var waits bool
		if nomination, waits = d.runPostFilter(a, o, made.plugin+1, nomination, nil); waits {
			return
		}
	}
	d.extenders.finish(a.state)
	d.attempts.requeue(a, nomination)
}
