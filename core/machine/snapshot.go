package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/table"
)

// Snapshot is what a machine knows beyond the objects of the API. A new machine that gets the
// objects and restores the snapshot continues as the one that made it would.
type Snapshot struct {
	Table    table.Layout
	Unlisted []KindUnlisted
	LastCall uint64 // number of the last call of an extender or PostFilter plugin
	Queue    queue.Snapshot
	Pods     []SavedPod   // those of which there is something to say, by UID
	Groups   []SavedGroup `json:",omitempty"` // with a condition asked for, by UID
	Quotas   *SavedQuotas `json:",omitempty"` // nil before the first ScheduleOne
	// Statuses is nil before the first ScheduleOne, and if others write these statuses.
	Statuses *SavedStatuses `json:",omitempty"`
	Members  []types.UID    // pods of pod groups, those of a group in its order
	Raised   []types.UID    `json:",omitempty"` // PodGroups of gangs that are group.Group.Raised
	Line     []types.UID    // pods in line for extenders, the first in line first
	// Known are the pods that the machine knows, as the API showed them last, in no order.
	Known []*object.Pod
}

// SavedGroup is the condition of a PodGroup that the API was asked to show and does not show yet.
type SavedGroup struct {
	UID       types.UID
	Condition object.GroupCondition
}

// SavedQuotas are the statuses of ElasticQuotas that the API was asked to show and does not show
// yet, and the faults that were reported last.
type SavedQuotas struct {
	Asked    map[string]object.Amounts `json:",omitempty"` // by key and UID
	Reported map[string]string         `json:",omitempty"` // faults, by key and UID
}

// SavedStatuses is what a machine knows of the status of PodGroups of scheduler-plugins, by the
// group's UID.
type SavedStatuses struct {
	// Asked holds statuses that the API was asked to show and does not show yet.
	Asked map[types.UID]object.GroupStatus `json:",omitempty"`
	// Ended holds the numbers of pods that have ended.
	Ended map[types.UID]EndedPods `json:",omitempty"`
	// Occupied holds each group's OccupiedBy as it was first while this process wrote it. Older
	// snapshots lack it.
	Occupied map[types.UID]string `json:",omitempty"`
}

// SavedPod is what a machine knows of a pod, beyond its place in the queue. A field is nil
// if there is none.
type SavedPod struct {
	UID        types.UID             `json:"-"`
	ToldGated  bool                  `json:",omitempty"` // a Gated record was emitted
	Nominating *string               `json:",omitempty"` // nominatedNodeName in an unshown patch
	Condition  *object.Condition     `json:",omitempty"` // PodScheduled in an unshown patch
	Preemption *SavedPreemption      `json:",omitempty"`
	InARow     *SavedPreemptionCount `json:",omitempty"`
	NoVictims  bool                  `json:",omitempty"` // preemption cannot help the pod
	Stated     *SavedStated          `json:",omitempty"`
	Eviction   *SavedEviction        `json:",omitempty"` // of the pod as a victim
	Underway   *SavedUnderway        `json:",omitempty"`
	// Group is the name of the group that the pod is in though its labels say otherwise, "" for
	// none (keptGroup).
	Group *string `json:",omitempty"`
}

// SavedStated is the pod's place in the list of unschedulable pods whose PodScheduled
// condition is computed again from time to time.
type SavedStated struct {
	Nth    int           // index in the list
	Age    queue.Age     // how long ago the condition was computed
	Latest bool          `json:",omitempty"` // no event but Ticks has come since
	Pause  time.Duration `json:",omitempty"` // first pod only: how long no condition is computed
}

// SavedPreemption is the pod's last preemption: the nominated node, and the victims that were
// to leave it when they were evicted. Some may be gone.
type SavedPreemption struct {
	Node    string
	Victims []types.UID
}

// SavedPreemptionCount counts the pod's preemptions since it was placed last (preemptionCount).
type SavedPreemptionCount struct {
	Preemptions int
	Last        queue.Age // of the last preemption
}

// SavedEviction is the eviction of the pod as a victim, which is under way. Its fields are those of
// eviction.
type SavedEviction struct {
	Node       string
	Preemptors []types.UID
	ForGroup   bool `json:",omitzero"` // the first preemptor preempts for its group
	Replied    bool // EvictReply has come
	Undone     bool `json:",omitzero"` // etcd was restored before the reply
	Gone       bool `json:",omitzero"` // the pod is deleted
}

// Resting reports whether it is worth calling Snapshot now: false means that Snapshot would return
// nil. It looks only at the pods with an attempt or a binding under way, which are few.
func (m *Machine) Resting() bool { return m.saveable() }

// Snapshot returns what the machine knows; nil while the machine waits for something that a
// snapshot cannot hold.
func (m *Machine) Snapshot() *Snapshot {
	if !m.saveable() {
		return nil
	}
	s := &Snapshot{Table: m.table.Layout(), LastCall: m.extenders.lastCall, Queue: m.queue.Snapshot(m.now), Members: m.table.Groups().Members()}
	for _, kind := range slices.Sorted(maps.Keys(m.unlisted)) {
		s.Unlisted = append(s.Unlisted, KindUnlisted{Kind: kind, Err: m.unlisted[kind]})
	}
	for _, uid := range slices.Sorted(maps.Keys(m.groups.asked)) {
		s.Groups = append(s.Groups, SavedGroup{uid, m.groups.asked[uid]})
	}
	for _, name := range m.table.Groups().Names() {
		if g := table.PodGroup(m.table, name); g != nil && m.table.Groups().Named(name).Raised() {
			s.Raised = append(s.Raised, g.UID)
		}
	}
	if m.leads {
		s.Quotas = &SavedQuotas{Asked: maps.Clone(m.quotas.asked.by), Reported: maps.Clone(m.quotas.reported)}
	}
	s.Statuses = m.groups.statuses.saved()
	for _, c := range m.extenders.line {
		s.Line = append(s.Line, c.pod.UID)
	}
	stated := m.conditions.saved()
	s.Known = make([]*object.Pod, 0, len(m.pods.byName))
	for _, ps := range m.pods.byUID { // any order: sorted below
		if !ps.ended.saveable() {
			return nil
		}
		saved := ps.saved(m.now)
		saved.Stated, saved.Underway, saved.Group = stated[ps], m.saveUnderway(ps), m.groups.keptGroup(ps.pod)
		if saved.Underway == nil || !saved.Underway.Gone {
			s.Known = append(s.Known, ps.pod)
		}
		if saved != (SavedPod{UID: ps.pod.UID}) {
			s.Pods = append(s.Pods, saved)
		}
	}
	slices.SortFunc(s.Pods, func(a, b SavedPod) int { return strings.Compare(string(a.UID), string(b.UID)) })
	return s
}

// saved returns what a snapshot holds of the pod, but for what other parts of the machine know:
// Stated, Underway and Group.
func (ps *podState) saved(now time.Time) SavedPod {
	s := SavedPod{UID: ps.pod.UID, ToldGated: ps.toldGated, Nominating: ps.nominating, Condition: ps.condition, NoVictims: ps.noVictims}
	if p := ps.preemption; p != nil {
		s.Preemption = &SavedPreemption{p.node, slices.Clone(p.victims)}
	}
	if p := ps.preemptionCount; p.n > 0 {
		s.InARow = &SavedPreemptionCount{p.n, queue.Age(now.Sub(p.last))}
	}
	if e := ps.eviction; e != nil {
		s.Eviction = &SavedEviction{Node: e.node, ForGroup: e.group != nil, Replied: e.replied, Undone: e.undone, Gone: e.gone}
		for _, p := range e.preemptors {
			s.Eviction.Preemptors = append(s.Eviction.Preemptors, p.UID)
		}
	}
	return s
}

// Restore sets up a new machine from events about all objects and a snapshot. It returns an error
// if the state that results breaks an invariant.
func (m *Machine) Restore(now time.Time, objects []Event, s *Snapshot) error {
	m.table.LayOut(&s.Table)
	check := m.options.Check
	m.options.Check = false // rows are laid out before their nodes are there; Verify ends it
	for _, e := range s.Unlisted {
		m.unlisted[e.Kind] = e.Err
	}
	m.groups.kept = map[types.UID]string{}
	for i := range s.Pods {
		if name := s.Pods[i].Group; name != nil {
			m.groups.kept[s.Pods[i].UID] = *name
		}
	}
	pending := map[types.UID]*object.Pod{}
	for _, e := range objects {
		if p, ok := e.(PodSet); ok && p.Pod.NodeName == "" && !p.Pod.Terminal && m.profiles[p.Pod.SchedulerName] != nil {
			pending[p.Pod.UID] = p.Pod
			continue
		}
		m.Step(now, e)
	}
	for _, o := range s.Table.Replied {
		m.table.Objects().Set(o)
		m.table.Objects().Replied(o)
	}
	for i := range s.Table.Assumed {
		m.table.Objects().Reassume(&s.Table.Assumed[i])
	}
	m.extenders.lastCall = s.LastCall
	for _, g := range s.Groups {
		m.groups.asked[g.UID] = g.Condition
	}
	if s.Quotas != nil {
		m.leads = true
		maps.Copy(m.quotas.asked.by, s.Quotas.Asked)
		maps.Copy(m.quotas.reported, s.Quotas.Reported)
	}
	m.groups.statuses.restore(s.Statuses)
	for _, uid := range slices.Sorted(maps.Keys(pending)) {
		p := pending[uid]
		p = m.groups.member(p)
		pending[uid] = p
		m.pods.state(p).request = engine.For(m.profiles[p.SchedulerName], p)
	}
	for i := range s.Pods {
		m.restorePod(now, &s.Pods[i])
	}
	for _, e := range s.Queue.Events.Last {
		e.Table = m.table
	}
	for _, e := range m.queue.Restore(now, &s.Queue, func(uid types.UID) *object.Pod { return pending[uid] }) {
		ps := m.pods.byUID[e.Pod.UID]
		ps.entry, e.Owner = e, ps
		if ps.request != nil {
			_ = m.guard.run("classifying", "", func() { m.engine.Classify(ps.request) })
		}
	}
	for i := range s.Pods {
		if u := s.Pods[i].Underway; u != nil {
			m.restoreCycles(now, m.pods.byUID[s.Pods[i].UID], u)
		}
	}
	for _, uid := range s.Line {
		m.extenders.line = append(m.extenders.line, m.pods.byUID[uid].extender)
	}
	m.table.Groups().Arrange(s.Members)
	for _, name := range m.table.Groups().Names() {
		if g := table.PodGroup(m.table, name); g != nil && slices.Contains(s.Raised, g.UID) {
			m.table.Groups().Named(name).SetRaised()
		}
	}
	m.orderGroups()
	m.groups.kept = nil
	m.conditions.restore(now, s.Pods)
	if m.leads {
		quota.Of(m.table).TakeChanged() // what led here was acted on before the snapshot
	}
	m.options.Check = check
	if err := m.Verify(); err != nil {
		return fmt.Errorf("the state of the scheduler in the record is invalid: %w", err)
	}
	return nil
}

// restorePod restores what a snapshot has of a pod beyond its entry in the queue and its cycles. It
// ignores unknown pods, except deleted ones about which a reply is outstanding.
func (m *Machine) restorePod(now time.Time, s *SavedPod) {
	ps, u := m.pods.byUID[s.UID], s.Underway
	if ps == nil && u != nil && u.Gone {
		ps = &podState{pod: u.Shown}
		m.pods.byUID[s.UID] = ps
	}
	if ps == nil {
		return
	}
	if u != nil {
		m.restoreUnderway(ps, u)
	}
	ps.toldGated, ps.nominating, ps.condition, ps.noVictims = s.ToldGated, s.Nominating, s.Condition, s.NoVictims
	if p := s.Preemption; p != nil {
		ps.preemption = &preemption{p.Node, p.Victims}
	}
	if p := s.InARow; p != nil {
		ps.preemptionCount = preemptionCount{p.Preemptions, p.Last.Time(now)}
	}
	if e := s.Eviction; e != nil {
		ps.eviction = &eviction{victim: ps.pod, node: e.Node, replied: e.Replied, undone: e.Undone, gone: e.Gone}
		if !e.Replied {
			m.evictions.open++
		}
		ps.eviction.preemptors = m.pods.withUIDs(e.Preemptors)
		if e.ForGroup && len(e.Preemptors) > 0 {
			ps.eviction.group = table.PodGroup(m.table, ps.eviction.preemptors[0].GroupKey())
		}
	}
}
