package queue

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// verdict is what the wake rules say to a change.
type verdict uint8

const (
	sleep        verdict = iota // no help
	afterBackoff                // worth a try
	atOnce                      // worth a try, backoff or not
)

// group is a plugin of a profile, with its wake rules and the unschedulable
// or gated pods that it holds, in no particular but a deterministic order.
type group struct {
	profile, plugin string
	rules           []framework.ClusterEventWithHint
	members         []member
}

type member struct {
	*entry
	pending bool
}

// rejector is a plugin that rejected a pod.
type rejector struct {
	group   *group
	pending bool
}

// slot is where a group has a pod.
type slot struct {
	group *group
	at    int
}

// index finds the pods that a plugin holds. Groups are made at first use and
// stay; there are as many as plugins that have rejected a pod, at most.
type index struct {
	wakes  func(profile, plugin string) ([]framework.ClusterEventWithHint, bool)
	groups []*group // by profile, then plugin
}

// group returns the plugin's group, nil when the plugin is not known.
func (x *index) group(profile, plugin string) *group {
	at, ok := slices.BinarySearchFunc(x.groups, plugin, func(g *group, plugin string) int {
		return cmp.Or(cmp.Compare(g.profile, profile), cmp.Compare(g.plugin, plugin))
	})
	if ok {
		return x.groups[at]
	}
	rules, known := x.wakes(profile, plugin)
	if !known {
		return nil
	}
	g := &group{profile: profile, plugin: plugin, rules: rules}
	x.groups = slices.Insert(x.groups, at, g)
	return g
}

// resolve notes the outcome's plugins as the pod's rejectors.
func (x *index) resolve(e *entry, o Outcome) {
	e.rejectors, e.unknown = nil, nil
	plugins := slices.Concat(o.RejectedBy, o.PendingBy)
	slices.Sort(plugins)
	for _, plugin := range slices.Compact(plugins) {
		g := x.group(e.Pod.SchedulerName, plugin)
		if g == nil {
			e.unknown = append(e.unknown, plugin)
			continue
		}
		e.rejectors = append(e.rejectors, rejector{g, slices.Contains(o.PendingBy, plugin)})
	}
}

func (x *index) add(e *entry, rejectors ...rejector) {
	for _, r := range rejectors {
		e.slots = append(e.slots, slot{r.group, len(r.group.members)})
		r.group.members = append(r.group.members, member{e, r.pending})
	}
}

func (x *index) remove(e *entry) {
	for _, s := range e.slots {
		last := len(s.group.members) - 1
		moved := s.group.members[last]
		s.group.members[s.at] = moved
		s.group.members[last] = member{}
		s.group.members = s.group.members[:last]
		for i := range moved.slots {
			if moved.slots[i].group == s.group {
				moved.slots[i].at = s.at
			}
		}
	}
	e.slots = e.slots[:0]
}

// Move tells the queue of a change in the cluster. Unschedulable pods that it
// may help, says a wake rule of a plugin that rejected them, go to backoff or,
// when their backoff is over, become active; where a plugin that answered
// Pending says so, at once. Pods whose gate it may open are looked at again.
// For pods in flight the event is kept: it may not be changed any more. One
// event may carry several actions. One on AnyResource calls all pods. It
// returns the number of pods called.
func (q *Queue) Move(now time.Time, e *framework.Event) int {
	return q.move(now, e, func(*object.Pod) bool { return true })
}

// MoveOthers is Move for all pods but one: the one whose own rejection after
// it was assumed is the event.
func (q *Queue) MoveOthers(now time.Time, e *framework.Event, not types.UID) int {
	return q.move(now, e, func(p *object.Pod) bool { return p.UID != not })
}

// MoveUpTo is Move for pods of at most the given priority, for a change that
// can help no others: a nomination that ends, say. The pod whose own it was
// (the event's OldPod) is left alone, too.
func (q *Queue) MoveUpTo(now time.Time, e *framework.Event, priority int32) int {
	return q.move(now, e, func(p *object.Pod) bool {
		return p.Priority <= priority && (e.OldPod == nil || e.OldPod.UID != p.UID)
	})
}

func (q *Queue) move(now time.Time, e *framework.Event, may func(*object.Pod) bool) int {
	if q.inFlight > 0 {
		q.log.add(e)
	}
	var called []*entry
	for _, g := range q.index.groups {
		if len(g.members) == 0 || !g.interested(e) {
			continue
		}
		for _, m := range g.members {
			if !may(m.Pod) {
				continue
			}
			asleep := m.called == sleep
			if m.called = q.askPlugin(g, m.pending, m.called, m.Pod, e); asleep && m.called != sleep {
				called = append(called, m.entry)
			}
		}
	}
	if e.Resource == framework.WildCard {
		called = q.callUnheld(called, may)
	}
	for _, m := range called {
		how := m.called
		m.called = sleep
		q.wake(now, m, how, Label(e.Resource, e.ActionType))
	}
	return len(called)
}

// callUnheld adds the gated pods that no known plugin holds.
func (q *Queue) callUnheld(called []*entry, may func(*object.Pod) bool) []*entry {
	for e := range q.heaps[Gated].all() {
		if len(e.slots) == 0 && may(e.Pod) {
			e.called = afterBackoff
			called = append(called, e)
		}
	}
	return called
}

// interested tells whether a rule of the plugin is for events like this.
func (g *group) interested(e *framework.Event) bool {
	return e.Resource == framework.WildCard || slices.ContainsFunc(g.rules, func(w framework.ClusterEventWithHint) bool { return concerns(&w, e) })
}

func concerns(w *framework.ClusterEventWithHint, e *framework.Event) bool {
	return (w.Resource == e.Resource || w.Resource == framework.WildCard) && w.ActionType&e.ActionType != 0
}

// ask asks the plugins that rejected the pod what they say to the event.
func (q *Queue) ask(e *entry, event *framework.Event) verdict {
	how := sleep
	for _, r := range e.rejectors {
		how = q.askPlugin(r.group, r.pending, how, e.Pod, event)
	}
	return how
}

// askOwn asks them about changes of the pod itself, one by one: what they say
// at most, and to which change.
func (q *Queue) askOwn(e *entry, old *object.Pod, changes framework.ActionType) (how verdict, action framework.ActionType) {
	event := framework.Event{Resource: framework.UnscheduledPod, OldPod: old, NewPod: e.Pod}
	for event.ActionType = range single(changes) {
		if answer := q.ask(e, &event); answer > how {
			how, action = answer, event.ActionType
		}
	}
	return how, action
}

// askPlugin returns what the plugin says, or what has been said so far if that
// is more.
func (q *Queue) askPlugin(g *group, pending bool, sofar verdict, p *object.Pod, e *framework.Event) verdict {
	answer := afterBackoff
	if pending {
		answer = atOnce
	}
	if sofar >= answer {
		return sofar
	}
	if e.Resource == framework.WildCard {
		return max(sofar, afterBackoff)
	}
	for i := range g.rules {
		if w := &g.rules[i]; concerns(w, e) && (w.QueueingHintFn == nil || q.hint(g.plugin, w, p, e)) {
			return answer
		}
	}
	return sofar
}

// hint asks the rule's hint; one that panics is taken for a call, so that no
// pod sleeps on because of it.
func (q *Queue) hint(plugin string, w *framework.ClusterEventWithHint, p *object.Pod, e *framework.Event) (call bool) {
	defer func() {
		if recover() != nil {
			q.panics[plugin]++
			call = true
		}
	}()
	return w.QueueingHintFn(p, e)
}
