package queue

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// model is the queue in its simplest form: a map of pods, looked through from
// end to end each time, which remembers every event.
type model struct {
	door     *door
	pods     map[types.UID]*modelPod
	sequence int
}

type modelPod struct {
	pod        *object.Pod
	place      Place
	sequence   int
	queued     time.Time
	since      time.Time
	attempts   int
	rejections int
	errors     int
	outcome    outcome
	gate       string
	node       string

	// In flight.
	events    []*framework.Event
	popped    *object.Pod
	changes   framework.ActionType
	activated bool
}

func (m *model) add(now time.Time, p *object.Pod) {
	m.sequence++
	mp := &modelPod{pod: p, sequence: m.sequence, queued: now, node: p.NominatedNode}
	m.pods[p.UID] = mp
	m.enqueue(now, mp, Active)
}

func (m *model) update(now time.Time, p *object.Pod) {
	mp := m.pods[p.UID]
	if mp == nil {
		m.add(now, p)
		return
	}
	old := mp.pod
	mp.pod = p
	if mp.place != InFlight && (old.NominatedNode != "" || p.NominatedNode != "") {
		mp.node = p.NominatedNode
	}
	change := framework.Event{Resource: framework.TargetPod, ActionType: Changes(old, p), OldPod: old, NewPod: p}
	switch mp.place {
	case InFlight:
		mp.changes |= change.ActionType
	case Unschedulable:
		m.moveToActiveOrBackoff(now, mp, mp.asks(&change))
	case Gated:
		m.moveToActiveOrBackoff(now, mp, afterBackoff)
	}
}

// wait is the backoff, found by doubling.
func (mp *modelPod) wait() time.Duration {
	wait := DefaultInitialBackoff
	count := mp.rejections
	if mp.errors > 0 {
		count = mp.errors
	}
	for ; count > 1 && wait < DefaultMaxBackoff; count-- {
		wait *= 2
	}
	return min(wait, DefaultMaxBackoff)
}

// end is when the backoff is over: the first whole second that lies a second
// or less after the wait, but after it.
func (mp *modelPod) end() time.Time {
	if mp.attempts == 0 {
		return time.Time{}
	}
	return time.Unix(mp.queued.Add(mp.wait()).Unix()+1, 0)
}

func (m *model) moveToActiveOrBackoff(now time.Time, mp *modelPod, how strategy) {
	switch {
	case how == skip:
	case how == immediately || !now.Before(mp.end()):
		m.enqueue(now, mp, Active)
	case mp.errors > 0 || m.door.waits(mp.pod):
		m.enqueue(now, mp, ErrorBackoff)
	default:
		m.enqueue(now, mp, Backoff)
	}
}

func (m *model) enqueue(now time.Time, mp *modelPod, to Place) {
	mp.gate = ""
	if s := m.door.preEnqueue(mp.pod); s != nil {
		to, mp.gate = Gated, s.Plugin
	}
	mp.place, mp.since = to, now
}

func plugs(plugin string, p *object.Pod, e *framework.Event) bool {
	for _, w := range rules[plugin] {
		if (w.Resource == e.Resource || w.Resource == framework.WildCard) && w.ActionType&e.ActionType != 0 {
			if plugin == "Broken" || w.QueueingHintFn == nil || w.QueueingHintFn(p, e) {
				return true
			}
		}
	}
	return false
}

func (mp *modelPod) asks(e *framework.Event) strategy {
	how := skip
	for _, plugin := range mp.outcome.pendingBy {
		if plugs(plugin, mp.pod, e) {
			return immediately
		}
	}
	for _, plugin := range mp.outcome.rejectedBy {
		if plugs(plugin, mp.pod, e) {
			how = afterBackoff
		}
	}
	return how
}

func (m *model) move(now time.Time, e *framework.Event, priority int32) {
	for _, mp := range m.pods {
		switch {
		case mp.place == InFlight:
			mp.events = append(mp.events, e)
		case mp.pod.Priority > priority, mp.place == Unschedulable && inVain(mp.pod, mp.node, e):
		case mp.place == Unschedulable:
			m.moveToActiveOrBackoff(now, mp, mp.asks(e))
		case mp.place == Gated && plugs(mp.gate, mp.pod, e):
			m.moveToActiveOrBackoff(now, mp, afterBackoff)
		}
	}
}

func (m *model) activate(now time.Time, id types.UID) {
	mp := m.pods[id]
	if mp == nil {
		return
	}
	switch mp.place {
	case Unschedulable, Gated:
		m.enqueue(now, mp, Active)
	case Backoff, ErrorBackoff:
		mp.place, mp.since = Active, now
	case InFlight:
		mp.activated = true
	}
}

func (m *model) in(place Place) []*modelPod {
	var pods []*modelPod
	for _, mp := range m.pods {
		if mp.place == place {
			pods = append(pods, mp)
		}
	}
	return pods
}

func modelOrder(a, b *modelPod) int {
	switch {
	case a.pod.Priority != b.pod.Priority:
		return int(b.pod.Priority) - int(a.pod.Priority)
	case !a.queued.Equal(b.queued):
		return a.queued.Compare(b.queued)
	}
	return a.sequence - b.sequence
}

func (m *model) pop(now time.Time) *modelPod {
	next := m.in(Active)
	slices.SortFunc(next, modelOrder)
	if len(next) == 0 {
		next = m.in(Backoff)
		slices.SortFunc(next, func(a, b *modelPod) int {
			if !a.end().Equal(b.end()) {
				return a.end().Compare(b.end())
			}
			return modelOrder(a, b)
		})
	}
	if len(next) == 0 {
		return nil
	}
	mp := next[0]
	mp.place, mp.since, mp.popped = InFlight, now, mp.pod
	mp.attempts++
	mp.events, mp.changes, mp.activated = nil, 0, false
	return mp
}

// requeue returns what called the pod, exactly: no event is forgotten.
func (m *model) requeue(now time.Time, mp *modelPod, o outcome) strategy {
	m.sequence++
	mp.sequence, mp.queued, mp.outcome = m.sequence, now, o
	known := func(plugin string) bool { _, ok := rules[plugin]; return ok }
	all := slices.Concat(o.rejectedBy, o.pendingBy)
	how := skip
	if len(all) == 0 || slices.ContainsFunc(all, func(p string) bool { return !known(p) }) {
		mp.errors++
		how = afterBackoff
	} else {
		mp.errors = 0
		mp.rejections++
		for _, e := range mp.events {
			how = max(how, mp.asks(e))
		}
		how = max(how, mp.asks(&framework.Event{Resource: framework.TargetPod, ActionType: mp.changes, OldPod: mp.popped, NewPod: mp.pod}))
		if mp.activated {
			how = max(how, afterBackoff)
		}
	}
	m.settle(now, mp, how)
	return how
}

func (m *model) settle(now time.Time, mp *modelPod, how strategy) {
	mp.place, mp.since = Unschedulable, now
	m.moveToActiveOrBackoff(now, mp, how)
}

func (m *model) flush(now time.Time) {
	for _, mp := range m.pods {
		switch {
		case (mp.place == Backoff || mp.place == ErrorBackoff) && !now.Before(mp.end()):
			mp.place, mp.since = Active, now
		case (mp.place == Unschedulable || mp.place == Gated) && now.Sub(mp.since) >= DefaultMaxUnschedulable:
			m.moveToActiveOrBackoff(now, mp, afterBackoff)
		}
	}
}

func (m *model) timer() time.Time {
	var next time.Time
	for _, mp := range m.pods {
		var due time.Time
		switch mp.place {
		case Backoff, ErrorBackoff:
			due = mp.end()
		case Unschedulable, Gated:
			due = mp.since.Add(DefaultMaxUnschedulable)
		default:
			continue
		}
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next
}

// nominations is who is nominated where.
func (m *model) nominations() map[string][]types.UID {
	to := map[string][]types.UID{}
	for _, id := range slices.Sorted(maps.Keys(m.pods)) {
		if node := m.pods[id].node; node != "" {
			to[node] = append(to[node], id)
		}
	}
	return to
}
