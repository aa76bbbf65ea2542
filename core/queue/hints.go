package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// strategy is the result of queueing hints: where a pod goes because of an event.
type strategy uint8

const (
	skip         strategy = iota // the event does not help
	afterBackoff                 // it may help
	immediately                  // it may help, and the pod does not wait for its backoff
)

// plugin is a plugin of a profile, with the events that may help the pods that
// it rejected, and the unschedulable or gated ones of these in no particular but
// a deterministic order.
type plugin struct {
	profile, name string
	events        []framework.ClusterEventWithHint
	members       []member
	named         named
}

// member is pods that wait for a plugin.
type member struct {
	*alike
	pending bool
	sized   bool // size is known
	size    Size
}

// rejector is a plugin that rejected a pod.
type rejector struct {
	plugin  *plugin
	pending bool // it answered Pending
}

// pluginIndex finds the pods that a plugin rejected. Plugins are added at first
// use and stay; there are as many as have rejected a pod, at most.
type pluginIndex struct {
	eventsToRegister func(profile, plugin string) ([]framework.ClusterEventWithHint, bool)
	plugins          []*plugin         // by profile, then name
	alike            map[string]*alike // by key
	sizeOf           func(plugin string, e *Entry) (Size, bool)
}

// find returns the plugin, nil when the profile does not have it.
func (x *pluginIndex) find(profile, name string) *plugin {
	at, ok := slices.BinarySearchFunc(x.plugins, name, func(p *plugin, name string) int {
		return cmp.Or(cmp.Compare(p.profile, profile), cmp.Compare(p.name, name))
	})
	if ok {
		return x.plugins[at]
	}
	events, known := x.eventsToRegister(profile, name)
	if !known {
		return nil
	}
	p := &plugin{profile: profile, name: name, events: events, named: named{}}
	x.plugins = slices.Insert(x.plugins, at, p)
	return p
}

// resolve notes the plugins as the pod's rejectors.
func (x *pluginIndex) resolve(e *Entry, rejectedBy, pendingBy []string) {
	e.rejectors, e.unknown = nil, nil
	names := slices.Concat(rejectedBy, pendingBy)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		p := x.find(e.Pod.SchedulerName, name)
		if p == nil {
			e.unknown = append(e.unknown, name)
			continue
		}
		e.rejectors = append(e.rejectors, rejector{p, slices.Contains(pendingBy, name)})
	}
}

// MoveAllToActiveOrBackoff tells the queue of an event in the cluster.
// Unschedulable pods that it may help, says a queueing hint of a plugin that
// rejected them, go to backoff or, when their backoff is over, become active;
// where a plugin that answered Pending says so, they become active at once. Pods
// whose gate it may open are looked at again. For pods in flight the event is
// kept: it may not be changed any more. One event may carry several actions. One
// on AnyResource calls all pods. Pods that preCheck excludes stay where they are;
// nil excludes none. So do unschedulable pods that Options.WouldFailAgain speaks of, and those
// that are too large for it. It returns the number of pods called.
func (q *Queue) MoveAllToActiveOrBackoff(now time.Time, e *framework.Event, preCheck func(*object.Pod) bool) int {
	if q.inFlight.len() > 0 {
		q.events.add(e)
	}
	var called, spared []*alike
	plugin, tooLarge := q.opts.TooLarge(e)
	told := q.wouldFailAgainWanted()
	for _, p := range q.plugins.plugins {
		if len(p.members) == 0 || !p.registered(e) {
			continue
		}
		screened := tooLarge != nil && p.name == plugin
		for _, m := range p.concerned(e) {
			if screened && m.sized && tooLarge(m.size) {
				if told {
					spared = append(spared, m.alike)
				}
				continue
			}
			first := m.first(preCheck)
			if first == nil {
				continue
			}
			skipped := m.strategy == skip
			if m.strategy = q.strategyOf(p, m.pending, m.strategy, first.Pod, e); skipped && m.strategy != skip {
				called = append(called, m.alike)
			}
		}
	}
	label, moved := Label(e.Resource, e.ActionType), q.calledByUnknown(e, preCheck)
	q.tellSpared(spared, label, preCheck)
	for _, a := range called {
		moved = q.call(moved, a, e, preCheck)
	}
	slices.SortFunc(moved, func(a, b calledPod) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, m := range moved {
		q.moveToActiveOrBackoff(now, m.Entry, m.how, label)
	}
	if q.skipsWanted() {
		q.tellSkipped(label, preCheck)
	}
	return len(moved)
}

// calledPod is a pod that an event calls.
type calledPod struct {
	*Entry
	how strategy
}

// call adds the pods that are alike and called by the event, unless the try would be in
// vain for them.
func (q *Queue) call(to []calledPod, a *alike, e *framework.Event, preCheck func(*object.Pod) bool) []calledPod {
	how, first := a.strategy, a.first(preCheck)
	a.strategy = skip
	wouldFailAgain := first.place == Unschedulable && q.opts.WouldFailAgain(first, e)
	if wouldFailAgain && !q.wouldFailAgainWanted() {
		return to
	}
	for _, entry := range a.entries {
		switch {
		case preCheck != nil && !preCheck(entry.Pod):
		case wouldFailAgain:
			q.tellWouldFailAgain(entry.Pod, Label(e.Resource, e.ActionType))
		default:
			to = append(to, calledPod{entry, how})
		}
	}
	return to
}

// calledByUnknown returns the pods gated by a plugin that their profile does not have, if
// the event is one of anything.
func (q *Queue) calledByUnknown(e *framework.Event, preCheck func(*object.Pod) bool) (called []calledPod) {
	if e.Resource != framework.WildCard {
		return nil
	}
	for e := range q.heaps[Gated].all() {
		if e.alike == nil && (preCheck == nil || preCheck(e.Pod)) {
			called = append(called, calledPod{e, afterBackoff})
		}
	}
	return called
}

// registered reports whether the plugin registered events like this.
func (p *plugin) registered(e *framework.Event) bool {
	return e.Resource == framework.WildCard || slices.ContainsFunc(p.events, func(w framework.ClusterEventWithHint) bool { return w.Matches(e) })
}

// strategyFor asks the plugins that rejected the pod about the event.
func (q *Queue) strategyFor(e *Entry, event *framework.Event) strategy {
	how := skip
	for _, r := range e.rejectors {
		how = q.strategyOf(r.plugin, r.pending, how, e.Pod, event)
	}
	return how
}

// strategyAfterUpdate asks them about changes of the pod itself, one by one: what
// they say at most, and to which change.
func (q *Queue) strategyAfterUpdate(e *Entry, old *object.Pod, changes framework.ActionType) (how strategy, action framework.ActionType) {
	event := framework.Event{Resource: framework.UnscheduledPod, OldPod: old, NewPod: e.Pod}
	for event.ActionType = range single(changes) {
		if answer := q.strategyFor(e, &event); answer > how {
			how, action = answer, event.ActionType
		}
	}
	return how, action
}

// strategyOf returns what the plugin says to the event, or what has been said so
// far if that is more.
func (q *Queue) strategyOf(p *plugin, pending bool, sofar strategy, pod *object.Pod, e *framework.Event) strategy {
	answer := afterBackoff
	if pending {
		answer = immediately
	}
	if sofar >= answer {
		return sofar
	}
	if e.Resource == framework.WildCard {
		return max(sofar, afterBackoff)
	}
	for i := range p.events {
		if w := &p.events[i]; w.Matches(e) && (w.QueueingHintFn == nil || q.runHint(p.name, w, pod, e)) {
			return answer
		}
	}
	return sofar
}

// runHint asks the queueing hint. One that panics calls the pod: no pod may wait
// forever because of it.
func (q *Queue) runHint(plugin string, w *framework.ClusterEventWithHint, p *object.Pod, e *framework.Event) (call bool) {
	defer func() {
		if r := recover(); r != nil {
			q.panics[plugin]++
			q.opts.HintPanicked(plugin, r)
			call = true
		}
	}()
	return w.QueueingHintFn(p, e)
}
