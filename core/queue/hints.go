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
	*peers
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
	byKey            map[string]*peers // by key
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

// resolve sets the pod's rejectors to the plugins of these names; unknown ones are listed
// apart.
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

// MoveAllToActiveOrBackoff moves pods that an event in the cluster may help. An
// unschedulable pod moves if a queueing hint of a plugin that rejected it says so: to
// backoff, to active if its backoff is over, or to active at once if that plugin answered
// Pending. Gated pods whose gate it may open run PreEnqueue again. For pods in flight the
// event is kept; it must not be changed any more.
//
// One event may have several actions. One on AnyResource moves all pods. Pods that
// preCheck excludes stay; nil excludes none. So do unschedulable pods that
// Options.Foresight excludes. It returns the number of pods moved.
func (q *Queue) MoveAllToActiveOrBackoff(now time.Time, e *framework.Event, preCheck func(*object.Pod) bool) int {
	if q.inFlight.len() > 0 {
		q.events.add(e)
	}
	var called, spared []*peers
	var question Question
	wanted := q.listeners.wouldFailAgainWanted()
	for _, p := range q.plugins.plugins {
		if len(p.members) == 0 || !p.registered(e) {
			continue
		}
		if question == nil {
			question = q.opts.Foresight.About(e)
		}
		for _, m := range p.concerned(e) {
			if m.sized && question.TooLarge(m.size) {
				if wanted {
					spared = append(spared, m.peers)
				}
				continue
			}
			first := m.first(preCheck)
			if first == nil {
				continue
			}
			skipped := m.strategy == skip
			if m.strategy = q.hints.strategyOf(p, m.pending, m.strategy, first.Pod, e); skipped && m.strategy != skip {
				called = append(called, m.peers)
			}
		}
	}
	label, moved := Label(e.Resource, e.ActionType), q.calledByUnknown(e, preCheck)
	q.listeners.notifySpared(spared, label, preCheck)
	for _, a := range called {
		moved = q.call(moved, a, question, label, preCheck)
	}
	slices.SortFunc(moved, func(a, b calledPod) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, m := range moved {
		q.moveToActiveOrBackoff(now, m.Entry, m.how, label)
	}
	if q.listeners.skipsWanted() {
		q.listeners.notifySkipped(&q.heaps[Unschedulable], label, preCheck)
	}
	return len(moved)
}

// calledPod is a pod that an event calls.
type calledPod struct {
	*Entry
	how strategy
}

// call appends the peers, which the event may help, to the pods to move. It leaves them
// out if the event could not help them, as Options.Foresight knows.
func (q *Queue) call(to []calledPod, a *peers, question Question, event string, preCheck func(*object.Pod) bool) []calledPod {
	how, first := a.strategy, a.first(preCheck)
	a.strategy = skip
	wouldFailAgain := first.place == Unschedulable && !question.CouldHelp(first)
	if wouldFailAgain && !q.listeners.wouldFailAgainWanted() {
		return to
	}
	for _, entry := range a.entries {
		switch {
		case preCheck != nil && !preCheck(entry.Pod):
		case wouldFailAgain:
			q.listeners.notifyWouldFailAgain(entry.Pod, event)
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
		if e.peers == nil && (preCheck == nil || preCheck(e.Pod)) {
			called = append(called, calledPod{e, afterBackoff})
		}
	}
	return called
}

// registered reports whether the plugin registered for such events.
func (p *plugin) registered(e *framework.Event) bool {
	return e.Resource == framework.WildCard || slices.ContainsFunc(p.events, func(w framework.ClusterEventWithHint) bool { return w.Matches(e) })
}

// hints calls queueing hints, and counts those that panic.
type hints struct {
	opts   *Options
	panics map[string]int // by plugin
}

// strategyFor returns the strongest answer to the event of the plugins that rejected the
// pod.
func (h *hints) strategyFor(e *Entry, event *framework.Event) strategy {
	how := skip
	for _, r := range e.rejectors {
		how = h.strategyOf(r.plugin, r.pending, how, e.Pod, event)
	}
	return how
}

// strategyAfterUpdate returns the strongest answer, of the plugins that rejected the pod,
// to changes of the pod itself, and the change that caused it.
func (h *hints) strategyAfterUpdate(e *Entry, old *object.Pod, changes framework.ActionType) (how strategy, action framework.ActionType) {
	event := framework.Event{Resource: framework.UnscheduledPod, OldPod: old, NewPod: e.Pod}
	for event.ActionType = range single(changes) {
		if answer := h.strategyFor(e, &event); answer > how {
			how, action = answer, event.ActionType
		}
	}
	return how, action
}

// strategyOf returns the plugin's answer to the event, or sofar if that is stronger.
func (h *hints) strategyOf(p *plugin, pending bool, sofar strategy, pod *object.Pod, e *framework.Event) strategy {
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
		if w := &p.events[i]; w.Matches(e) && (w.QueueingHintFn == nil || h.run(p.name, w, pod, e)) {
			return answer
		}
	}
	return sofar
}

// run calls the queueing hint. If it panics, the event moves the pod, as no pod may
// wait forever because of a panic.
func (h *hints) run(plugin string, w *framework.ClusterEventWithHint, p *object.Pod, e *framework.Event) (call bool) {
	defer func() {
		if r := recover(); r != nil {
			h.panics[plugin]++
			h.opts.HintPanicked(plugin, r)
			call = true
		}
	}()
	return w.QueueingHintFn(p, e)
}
