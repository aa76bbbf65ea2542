package machine

import (
	"errors"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// SavedUnderway is the state of a pod between being popped and being shown as bound: its
// assumption, cycles and reads under way.
type SavedUnderway struct {
	// Gone: the pod is deleted and a reply about it is awaited, or a read did not find it.
	Gone bool `json:",omitempty"`
	// Assumed: the pod is placed on a node, and the API has not shown it bound yet.
	Assumed bool `json:",omitempty"`
	// Node is the node of Placed; "" if Placed is nil.
	Node string `json:",omitempty"`

	// Unconfirmed is the read that decides whether the pod is bound, GoneByRead the one that
	// decides whether it is deleted; nil if there is none. StaleRead is set if etcd was restored
	// after the read was sent.
	Unconfirmed *SavedRead `json:",omitempty"`
	GoneByRead  *SavedRead `json:",omitempty"`
	StaleRead   bool       `json:",omitempty"`

	// Binding is the pod's binding cycle, Ended one that ended before the reply to what it sent,
	// and Extender the attempt that waits for extenders; nil if there is none.
	Binding  *SavedBinding  `json:",omitempty"`
	Ended    *SavedBinding  `json:",omitempty"`
	Extender *SavedExtender `json:",omitempty"`

	// Shown is the pod as the API showed it last. Placed is the pod as the table has it on Node,
	// and Taken what its devices take of Node; both are nil if the table has Shown there, or no
	// pod.
	Shown  *object.Pod                             `json:"-"`
	Placed *object.Pod                             `json:"-"`
	Taken  []v1.NodeAllocatableResourceClaimStatus `json:",omitempty"`
}

// SavedRead is the state of a read that decides about a binding or a deletion. Shown: the API has
// confirmed the binding, or shown the pod that is gone, since the read was sent. Reading: the read
// is under way; it is set only for a deletion.
type SavedRead struct {
	Lost    SavedLostReply
	Shown   bool `json:",omitempty"`
	Reading bool `json:",omitempty"`
}

// SavedLostReply is a LostReply in a snapshot: how many reads did not show the effect of the
// request, how many failed since, and the text of the refusal.
type SavedLostReply struct {
	Reads   int     `json:",omitempty"`
	Failed  int     `json:",omitempty"`
	Refusal *string `json:",omitempty"`
}

// SavedAttempt is the part of a snapshot about an attempt that found a node, or waits for
// extenders. Its fields are those of attempt and of its decision.Decision.
type SavedAttempt struct {
	Attempt       int
	Flushed       bool            `json:",omitempty"`
	Result        decision.Result `json:",omitempty"`
	Score         int64           `json:",omitempty"`
	Ties          int             `json:",omitempty"`
	NodesTotal    int             `json:",omitempty"`
	NodesFeasible int             `json:",omitempty"`
	NoVictims     bool            `json:",omitempty"`
	Spared        bool            `json:",omitempty"`
	Pod           *object.Pod     `json:"-"` // as it is scheduled
}

// SavedBinding is a binding cycle in a snapshot: the attempt, and how far its binding is. Its
// fields are those of bindingCycle.
type SavedBinding struct {
	SavedAttempt
	Node       string
	Phase      string // its name, as phase.String returns it
	Since      queue.Age
	Deadlines  map[string]queue.Age `json:",omitempty"` // until when the pod waits, by plugin
	Writers    []string             `json:",omitempty"` // PreBind plugins whose writes were sent
	Binder     int
	BindPlugin int            `json:",omitempty"`
	Lost       SavedLostReply `json:",omitzero"`
	Failed     *SavedStatus   `json:",omitempty"` // why the attempt fails
	Preemptors []types.UID    `json:",omitempty"` // pods that wait for the end of the cycle
	Kept       []SavedKept    `json:",omitempty"` // by Reserve plugins
}

// SavedKept is what a plugin keeps for a pod from Reserve to the end of its binding.
type SavedKept struct {
	Plugin string
	framework.Kept
}

// SavedStatus is why a binding cycle fails: a decision.Status in a snapshot.
type SavedStatus struct {
	Code    decision.Code
	Plugin  string   `json:",omitempty"`
	Reasons []string `json:",omitempty"`
	Point   string   `json:",omitempty"`
	Err     *string  `json:",omitempty"`
}

// SavedExtender is an attempt that waits for extenders, or in line for them. Its fields are those
// of extenderCycle.
type SavedExtender struct {
	SavedAttempt
	Extenders []int                  // the pod's, as indices in Options.Extenders
	Filtered  int                    `json:",omitempty"` // how many replied to Filter or have none
	Said      engine.ExtenderResults // their replies so far
	Nominated bool                   `json:",omitempty"` // only the nominated node is considered
	Scored    bool                   `json:",omitempty"` // all were called for scores
	Shown     map[string]bool        // nodes extenders were called about; null before the start
	Rounds    int                    `json:",omitempty"` // how often the cycle began anew
	Open      map[uint64]SavedCall   // calls without a reply, by number
	Since     queue.Age
}

// SavedCall is a call of an extender without a reply.
type SavedCall struct {
	Extender int // index in Options.Extenders
	Verb     Verb
	Nodes    []string
}

// saveable reports whether a snapshot can hold the binding cycle, true for nil. It cannot
// hold plugins that run, an answer of theirs that is on its way, or a binding that a plugin
// says it made.
func (c *bindingCycle) saveable() bool {
	return c == nil || !c.answered && c.phase != preBindCalled && c.phase != bindClaimed && c.phase != endedAwaitsPreBind && c.attempt.saveable()
}

// saveable reports whether a snapshot can hold the extender cycle; true for nil. It
// cannot while the cycle waits for extenders to review victims, or for a PostFilter
// plugin.
func (c *extenderCycle) saveable() bool {
	return c == nil || c.review == nil && c.postFilter == nil && c.attempt.saveable()
}

// saveable reports whether a snapshot can hold the attempt's record: it may say which node was
// found, but have no reasons, victims, error or result of PostFilter plugins.
func (a *attempt) saveable() bool {
	r := a.record
	return len(r.Tallies)+len(r.RejectedBy)+len(r.PendingBy)+len(r.PostFilter)+len(r.Victims) == 0 && r.PreFilter == nil && r.Err == nil && !r.PreemptionTried && !r.Writing
}

// saveUnderway returns, for a snapshot, the pod's cycles, its assumption and the reads of it
// without a reply. It returns nil if there are none and the pod in the table is as the API shows
// it.
func (m *Machine) saveUnderway(ps *podState) *SavedUnderway {
	// Only for a reply is a pod remembered that its name does not find (verify).
	known := ps.goneByRead == nil && (ps.ended == nil && ps.eviction == nil || m.pods.byName[ps.pod.NamespacedName()] == ps)
	pl := m.table.Pod(ps.pod.UID)
	placedOtherwise := pl != nil && (pl.Pod != ps.pod || ps.pod.NodeName == "")
	if known && !placedOtherwise && !ps.assumed && ps.unconfirmed == nil && !ps.staleRead && ps.binding == nil && ps.ended == nil && ps.extender == nil {
		return nil
	}
	s := &SavedUnderway{Gone: !known, Assumed: ps.assumed, StaleRead: ps.staleRead, Shown: ps.pod}
	if placedOtherwise {
		s.Node, s.Placed, s.Taken = m.table.Name(pl.Row), pl.Pod, pl.Pod.FromDevices
	}
	if d := ps.unconfirmed; d != nil {
		s.Unconfirmed = &SavedRead{Lost: d.lost.saved(), Shown: d.confirmed}
	}
	if g := ps.goneByRead; g != nil {
		s.GoneByRead = &SavedRead{Lost: g.lost.saved(), Shown: g.shown, Reading: g.reading}
	}
	s.Binding, s.Ended, s.Extender = ps.binding.saved(m.now), ps.ended.saved(m.now), ps.extender.saved(m.now)
	return s
}

// saved returns l in the form of a snapshot.
func (l *LostReply) saved() SavedLostReply {
	return SavedLostReply{Reads: l.reads, Failed: l.failed, Refusal: textOf(l.Refusal)}
}

// lostReply returns the LostReply that s was made of.
func (s *SavedLostReply) lostReply() LostReply {
	return LostReply{reads: s.Reads, failed: s.Failed, Refusal: errorWith(s.Refusal)}
}

// textOf returns the text of the error, nil for nil.
func textOf(err error) *string {
	if err == nil {
		return nil
	}
	text := err.Error()
	return &text
}

// errorWith returns an error with the text, nil for nil.
func errorWith(text *string) error {
	if text == nil {
		return nil
	}
	return errors.New(*text)
}

// saved returns the attempt in the form of a snapshot.
func (a *attempt) saved() SavedAttempt {
	r := a.record
	return SavedAttempt{r.Attempt, r.Flushed, r.Result, r.Score, r.Ties, r.NodesTotal, r.NodesFeasible, a.noVictims, a.spared, a.pod}
}

// saved returns the binding cycle in the form of a snapshot made at the time now; nil for nil. It
// asks the Reserve plugins what they keep for the pod.
func (c *bindingCycle) saved(now time.Time) *SavedBinding {
	if c == nil {
		return nil
	}
	s := &SavedBinding{SavedAttempt: c.attempt.saved(), Node: c.node, Phase: c.phase.String(), Since: queue.Age(now.Sub(c.since)),
		Writers: c.writers, Binder: c.binder, BindPlugin: c.bindPlugin, Lost: c.lost.saved()}
	for plugin, t := range c.deadlines { // any order: into a map
		if s.Deadlines == nil {
			s.Deadlines = map[string]queue.Age{}
		}
		s.Deadlines[plugin] = queue.Age(now.Sub(t))
	}
	if f := c.failed; f != nil {
		s.Failed = &SavedStatus{f.Code, f.Plugin, f.Reasons, f.Point, textOf(f.Err)}
	}
	for _, p := range c.preemptors {
		s.Preemptors = append(s.Preemptors, p.UID)
	}
	for _, pl := range c.profile.Reserve {
		if pl.Keeper == nil {
			continue
		}
		if k := pl.Keeper.Kept(c.pod); k != nil {
			s.Kept = append(s.Kept, SavedKept{pl.Name, *k})
		}
	}
	return s
}

// saved returns the extender cycle in the form of a snapshot made at the time now; nil for nil.
func (c *extenderCycle) saved(now time.Time) *SavedExtender {
	if c == nil {
		return nil
	}
	s := &SavedExtender{SavedAttempt: c.attempt.saved(), Extenders: c.extenders, Filtered: c.filtered, Said: c.results.Clone(),
		Nominated: c.nominated, Scored: c.scored, Shown: maps.Clone(c.shown), Rounds: c.rounds, Open: map[uint64]SavedCall{}, Since: queue.Age(now.Sub(c.since))}
	for number, open := range c.open { // any order: into a map
		s.Open[number] = SavedCall{open.extender, open.verb, open.nodes}
	}
	return s
}

// restoreUnderway restores from a snapshot where the pod is placed, whether it is assumed,
// and the reads of it that have no reply. Its cycles follow once the queue is restored.
func (m *Machine) restoreUnderway(ps *podState, s *SavedUnderway) {
	if s.Placed != nil {
		if pl := m.table.Pod(ps.pod.UID); pl != nil {
			m.table.RemovePod(pl.Pod.UID)
		}
		p := m.groups.member(s.Placed)
		if p.Claiming != nil && len(s.Taken)+len(p.FromDevices) > 0 {
			p = p.With(s.Taken)
		}
		m.table.AddPod(p, s.Node)
	}
	m.pods.setAssumed(ps, s.Assumed)
	ps.staleRead = s.StaleRead
	if d := s.Unconfirmed; d != nil {
		ps.unconfirmed = &unconfirmedBinding{lost: d.Lost.lostReply(), confirmed: d.Shown}
	}
	if g := s.GoneByRead; g != nil {
		ps.goneByRead = &goneByRead{lost: g.Lost.lostReply(), shown: g.Shown, reading: g.Reading}
		m.pods.byName[ps.pod.NamespacedName()] = ps
	}
}

// restoreCycles restores the pod's binding cycle and its wait for extenders from a
// snapshot. The pod must be on its node or in the queue again.
func (m *Machine) restoreCycles(now time.Time, ps *podState, s *SavedUnderway) {
	if b := s.Binding; b != nil {
		ps.binding = m.restoredBinding(now, ps, b)
		if ps.binding.phase.waits() {
			m.bindings.waiting.add(ps.binding)
		}
	}
	if b := s.Ended; b != nil {
		ps.ended = m.restoredBinding(now, ps, b)
	}
	x := s.Extender
	if x == nil {
		return
	}
	c := &extenderCycle{attempt: m.restoredAttempt(ps, &x.SavedAttempt), extenders: x.Extenders, filtered: x.Filtered, results: x.Said,
		nominated: x.Nominated, scored: x.Scored, shown: x.Shown, rounds: x.Rounds, open: map[uint64]call{}, since: x.Since.Time(now)}
	for number, open := range x.Open { // any order: into a map, and counts
		c.open[number] = call{open.Extender, open.Verb, open.Nodes}
		m.extenders.busy[open.Extender]++
	}
	m.extenders.await(c)
}

// restoredAttempt returns the pod's attempt as the snapshot holds it. Its new record has only the
// fields of SavedAttempt.
func (m *Machine) restoredAttempt(ps *podState, s *SavedAttempt) *attempt {
	p := m.groups.member(s.Pod)
	record := &decision.Decision{UID: p.UID, Pod: p.NamespacedName(), Profile: p.SchedulerName, Attempt: s.Attempt, Flushed: s.Flushed, Result: s.Result,
		Score: s.Score, Ties: s.Ties, NodesTotal: s.NodesTotal, NodesFeasible: s.NodesFeasible}
	a := &attempt{state: ps, pod: p, profile: m.profiles[p.SchedulerName], request: ps.request, record: record, binding: &bindingCycle{}, noVictims: s.NoVictims, spared: s.Spared}
	if a.request == nil || a.request.Pod != p {
		a.request = engine.For(a.profile, p)
	}
	return a
}

// restoredBinding returns the pod's binding cycle as the snapshot holds it. Plugins that keep
// state for the pod get it back (Keeper). Saved ages are counted back from now. Nothing is sent.
func (m *Machine) restoredBinding(now time.Time, ps *podState, s *SavedBinding) *bindingCycle {
	a := m.restoredAttempt(ps, &s.SavedAttempt)
	a.record.Node = s.Node
	c := a.binding
	*c = bindingCycle{attempt: a, node: s.Node, phase: phaseNamed(s.Phase), since: s.Since.Time(now), writers: s.Writers, binder: s.Binder, bindPlugin: s.BindPlugin, lost: s.Lost.lostReply()}
	if pl := m.table.Pod(ps.pod.UID); pl != nil {
		c.row = pl.Row
	}
	for plugin, age := range s.Deadlines { // any order: into a map
		if c.deadlines == nil {
			c.deadlines = map[string]time.Time{}
		}
		c.deadlines[plugin] = age.Time(now)
	}
	if f := s.Failed; f != nil {
		c.failed = &decision.Status{Code: f.Code, Plugin: f.Plugin, Reasons: f.Reasons, Point: f.Point, Err: errorWith(f.Err)}
	}
	c.preemptors = m.pods.withUIDs(s.Preemptors)
	for i := range s.Kept {
		if pl := a.profile.Plugins[s.Kept[i].Plugin]; pl != nil && pl.Keeper != nil {
			pl.Keeper.Keep(m.table, a.pod, &s.Kept[i].Kept)
		}
	}
	return c
}

// withUIDs returns the pods with these UIDs. For one that is not known it returns a pod with only
// the UID.
func (x *pods) withUIDs(uids []types.UID) (pods []*object.Pod) {
	for _, uid := range uids {
		p := &object.Pod{UID: uid}
		if ps := x.byUID[uid]; ps != nil {
			p = ps.pod
		}
		pods = append(pods, p)
	}
	return pods
}

// phaseNamed returns the phase whose String is name; ended if there is none.
func phaseNamed(name string) phase {
	for p := range ended {
		if p.String() == name {
			return p
		}
	}
	return ended
}

// saveable reports whether a snapshot can hold all cycles that are under way, and no read for a
// group's status is.
func (m *Machine) saveable() bool {
	if len(m.groups.statuses.reads) > 0 {
		return false
	}
	if slices.ContainsFunc(m.extenders.cycles, func(c *extenderCycle) bool { return !c.saveable() }) {
		return false
	}
	for e := range m.queue.InFlight() {
		if ps := e.Owner.(*podState); !ps.binding.saveable() || !ps.ended.saveable() {
			return false
		}
	}
	return true
}
