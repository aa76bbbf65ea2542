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

// extenderCycle is an attempt that waits for replies of extenders, or for a PostFilter
// plugin or its writes. With each reply it goes on, on the table as it is then; other
// pods are scheduled meanwhile. One that only waits for PostFilter may have no
// extenders.
type extenderCycle struct {
	*attempt
	extenders []int // the pod's extenders, as indices in Options.Extenders
	filtered  int   // how many of them have replied to Filter or do not filter
	// results holds the extenders' replies so far.
	results engine.ExtenderResults
	// nominated is set while only the node that the pod is nominated to is considered.
	nominated bool
	scored    bool            // all were called for scores
	shown     map[string]bool // the nodes that extenders were called about
	rounds    int             // how often the cycle began anew

	// review is the extenders' review of preemption candidates; nil: there is none.
	review *preemptionReview
	// postFilter is the PostFilter plugin that the cycle waits for; nil: none.
	postFilter *pendingPostFilter

	// open are the calls without a reply, by number.
	open  map[uint64]call
	since time.Time // when the last call was made
}

// uid returns the pod's UID, by which lists of cycles (underway) are sorted.
func (c *extenderCycle) uid() types.UID { return c.pod.UID }

// waits reports whether a reply of an extender or of PostFilter is outstanding. A cycle
// that does not wait stands in line.
func (c *extenderCycle) waits() bool { return len(c.open) > 0 || c.postFilter != nil }

// call is a call of an extender without a reply.
type call struct {
	extender int // index in Options.Extenders
	verb     Verb
	nodes    []string // that it is about; nil for Preempt
}

const (
	// replyGrace is how much longer than Extender.Timeout the machine waits for a reply.
	replyGrace = 5 * time.Second
	// maxRounds bounds the rounds of an attempt. A round in which no node is left that the extenders
	// pass begins anew if another node became free meanwhile; the last round fails the attempt.
	maxRounds = 3
)

// errNodesTaken is why an attempt fails for which no node was left maxRounds times.
var errNodesTaken = fmt.Errorf("%d times in a row the nodes that the extenders accepted did not fit any more when the replies had come", maxRounds)

// startExtenderCycle starts the attempt of a pod that these extenders (by index) manage: it emits
// the calls, whose replies continue the attempt. If one of the extenders has Limit open calls, the
// attempt waits in line. It returns the binding cycle if no call is necessary; nil if the attempt
// waits or has ended.
func (d *schedulingCycles) startExtenderCycle(a *attempt, extenders []int) *bindingCycle {
	c := &extenderCycle{attempt: a, extenders: extenders, open: map[uint64]call{}}
	if !d.extenders.enter(c) {
		return nil
	}
	return d.runExtenders(c)
}

// begin resets the cycle to its start: no extender was called. If the pod is nominated,
// only that node is considered at first.
func (c *extenderCycle) begin() {
	c.filtered, c.scored, c.shown = 0, false, map[string]bool{}
	c.results = engine.ExtenderResults{Refused: map[string]decision.Blocker{}, Scores: map[string][]decision.Score{}}
	if c.nominated = c.pod.NominatedNode != ""; c.nominated {
		c.results.Passed = []string{c.pod.NominatedNode}
	}
}

// widen makes the cycle consider all nodes, instead of the pod's nominated node, from the first
// extender on.
func (c *extenderCycle) widen() { c.nominated, c.filtered, c.results.Passed = false, 0, nil }

// resume continues the cycle, with the latest version of the pod, after a reply or from the line. A
// pod that is being deleted leaves the queue instead.
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

// runExtenders runs the attempt until it must wait for an extender, and returns nil
// then or when it has failed. Once all have replied it assumes the pod and returns the
// binding cycle. As in kube-scheduler the nominated node is tried alone, first. Extenders filter
// one after the other, each the nodes that the others passed; scores are requested from
// all at once.
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

// failExtenderCycle ends the attempt with a status that says why no node was found. It
// returns nil: there is no binding cycle.
func (d *schedulingCycles) failExtenderCycle(c *extenderCycle, s *decision.Status) *bindingCycle {
	d.extenders.finish(c.state)
	d.bindings.fail(c.attempt, s)
	return nil
}

// newNodeFits reports whether the plugins pass a node that no extender was called about,
// because it was added or became free meanwhile.
func (d *schedulingCycles) newNodeFits(c *extenderCycle) bool {
	if c.results.Passed == nil {
		return false
	}
	all := d.engine.DecideWithExtenders(c.request, d.nominations, &engine.ExtenderResults{})
	return slices.ContainsFunc(all.FeasibleNodes(), func(n string) bool { return !c.shown[n] })
}

// beginAnew starts the cycle again from the first extender, or fails the attempt if no node was
// left for the last of maxRounds times. It returns the binding cycle; nil if the attempt waits or
// has ended.
func (d *schedulingCycles) beginAnew(c *extenderCycle) *bindingCycle {
	if c.rounds++; c.rounds >= maxRounds {
		return d.failExtenderCycle(c, &decision.Status{Code: decision.Error, Err: errNodesTaken})
	}
	c.begin()
	return d.runExtenders(c)
}

// callPrioritize emits calls of all extenders that score, about these nodes; the replies
// continue the cycle. It returns false if no extender scores, so that the node can be chosen
// at once.
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

// callExtenderAboutNodes emits a call of an extender, to filter or score these nodes.
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

// extenderReplied handles an extender's reply. It ignores one that no cycle waits for.
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

// filterReplied handles a reply to Filter and goes on with the nodes that the extender passes. If
// the call failed, the cycle goes on without the extender if that is Ignorable, else with all nodes
// if only the nominated node was tried; otherwise the attempt fails.
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
		c.widen() // as in kube-scheduler: the nominated node is given up, not the pod
	default:
		d.failExtenderCycle(c, &decision.Status{Code: decision.Error, Err: e.Err})
		return
	}
	d.resume(c)
}

// prioritizeReplied adds an extender's scores. As in kube-scheduler an error counts as no scores.
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

// deadline returns when the replies to the cycle's last calls are overdue, by the extender's
// Timeout.
func (c *extenderCycle) deadline(x *Extender) time.Time { return c.since.Add(x.Timeout + replyGrace) }

// numbers returns the numbers of the open calls, sorted.
func (c *extenderCycle) numbers() []uint64 {
	numbers := make([]uint64, 0, len(c.open))
	for n := range c.open { // any order: sorted below
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers
}

// makeRoom runs the PostFilter plugins, as no node passes plugins and extenders, and
// requeues the pod unless the cycle must wait for a reply. It returns nil: there is no
// binding cycle.
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

// preemptionReview is a PostFilter plugin's preemption candidates, which the pod's
// extenders review one after the other.
type preemptionReview struct {
	plugin     int                   // index into the profile's PostFilter plugins
	reviewed   int                   // how many of the pod's extenders have replied or take no part
	candidates []framework.Candidate // those still accepted
	// choose is the plugin's choice among the accepted candidates.
	choose     func(*framework.PostFilterCall, []framework.Candidate, error) framework.PostFilterResult
	err        error      // of an extender that is not ignorable
	nomination nominating // result of the PostFilter plugins before
}

// reviewsPreemption reports whether an extender of the pod takes part in preemption. c is nil for a
// pod without extenders.
func (d *schedulingCycles) reviewsPreemption(c *extenderCycle) bool {
	return c != nil && slices.ContainsFunc(c.extenders, func(i int) bool { return d.options.Extenders[i].Preempt })
}

// callPreempt emits a call of the next extender that reviews the preemption candidates. It
// returns false if no extender or no candidate is left: the plugin can choose now.
func (d *schedulingCycles) callPreempt(c *extenderCycle) bool {
	for ; c.review.reviewed < len(c.extenders) && len(c.review.candidates) > 0; c.review.reviewed++ {
		if i := c.extenders[c.review.reviewed]; d.options.Extenders[i].Preempt {
			d.extenders.send(c, CallExtender{Pod: c.pod, Extender: i, Verb: Preempt, Candidates: c.review.candidates}, nil)
			return true
		}
	}
	return false
}

// preemptReplied handles a reply to Preempt: it keeps the candidates that the extender accepts, and
// calls the next extender or lets the plugin choose. The error of an extender that is not Ignorable
// ends the review, and is passed to the plugin.
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

// chooseCandidate lets the PostFilter plugin choose among the accepted candidates, on
// the table as it is now, and ends the attempt. If a node has become free meanwhile,
// the cycle begins anew and nobody is preempted.
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
