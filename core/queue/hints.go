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

// queue returns the queue that the strategy names, as queue_incoming_pods_total calls it: a
// pod whose backoff is over goes to active although afterBackoff names backoff.
func (s strategy) queue() string {
	return [...]string{skip: "unschedulable", afterBackoff: "backoff", immediately: "active"}[s]
}

// plugin is a plugin of a profile, with the events that may help pods that it rejected, and
// the unschedulable and gated pods among these.
type plugin struct {
	profile, name string
	events        []framework.ClusterEventWithHint
	members       []member // in deterministic, but no particular order
	named         named    // members by the objects that they name
}

// member is a set of equal pods that wait for a plugin.
type member struct {
	*peers
	pending bool // the plugin answered Pending
	sized   bool // size is known
	size    Size // what each of them needs of a node at least
}

// rejector is a plugin that rejected a pod in its last attempt: an event that its hints
// accept moves the pod.
type rejector struct {
	plugin  *plugin
	pending bool // with code Pending
}

// pluginIndex finds the plugins for which pods wait. A plugin is added when it first
// rejects a pod, and stays.
type pluginIndex struct {
	eventsToRegister func(profile, plugin string) ([]framework.ClusterEventWithHint, bool)
	plugins          []*plugin                      // sorted by profile, then name
	byKey            map[string]*peers              // peers by their key
	byNamespace      map[string]map[*peers]struct{} // peers by their pods' namespace
}

// newPluginIndex returns an index without plugins.
func newPluginIndex(eventsToRegister func(profile, plugin string) ([]framework.ClusterEventWithHint, bool)) pluginIndex {
	return pluginIndex{eventsToRegister: eventsToRegister, byKey: map[string]*peers{}, byNamespace: map[string]map[*peers]struct{}{}}
}

// find returns the plugin of the profile (a pod's SchedulerName), nil if the profile does
// not have it. It adds the plugin at first use.
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

// resolve sets the pod's rejectors to the plugins that rejected it (rejectedBy) or
// answered Pending (pendingBy), sorted by name, each once. Names that the profile does not
// have go to unknown; the attempt then counts as an error.
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

// MoveAllToActiveOrBackoff moves pods that an event in the cluster may help. An unschedulable pod
// moves if a queueing hint of a plugin that rejected it says so: to backoff, to active if its
// backoff is over, or to active at once if that plugin answered Pending. Gated pods whose gate it
// may open run PreEnqueue again. For pods in flight the event is kept; it must not be changed any
// more.
//
// One event may have several actions. One on framework.WildCard moves all pods. Pods that preCheck
// excludes stay; nil excludes none. So do unschedulable pods that Options.Foresight excludes. It
// returns the number of pods that it moved; those that moved only with their group do not count.
func (q *Queue) MoveAllToActiveOrBackoff(now time.Time, e *framework.Event, preCheck func(*object.Pod) bool) int {
	if q.inFlight.len() > 0 {
		q.events.add(e)
	}
	if q.heaps[Unschedulable].len()+q.heaps[Gated].len() == 0 {
		return 0
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
		if m.group != nil {
			m.group.how = max(m.group.how, m.how)
		}
	}
	for _, m := range moved {
		how := m.how
		if m.group != nil {
			how, m.group.how = m.group.how, skip
		}
		if how != skip {
			q.moveToActiveOrBackoff(now, m.Entry, how, label)
		}
	}
	if q.listeners.skipsWanted() {
		q.listeners.notifySkipped(&q.heaps[Unschedulable], label, preCheck)
	}
	return len(moved)
}

// MoveInNamespaces moves unschedulable pods to active or backoff, whatever plugins rejected them:
// the pods for which helps returns true, in the namespaces for which concerned returns true. helps
// is asked once for equal pods. event names the cause. Pods in flight do not become unschedulable
// when they come back.
func (q *Queue) MoveInNamespaces(now time.Time, event string, concerned func(namespace string) bool, helps func(*object.Pod) bool) {
	q.events.calls++
	var moved []*Entry
	for namespace, waiting := range q.plugins.byNamespace { // any order: sorted below
		if !concerned(namespace) {
			continue
		}
		for a := range waiting { // any order: sorted below
			if a.entries[0].place == Unschedulable && helps(a.entries[0].Pod) {
				moved = append(moved, a.entries...)
			}
		}
	}
	slices.SortFunc(moved, func(a, b *Entry) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, e := range moved {
		if e.place == Unschedulable { // else with its group
			q.moveToActiveOrBackoff(now, e, afterBackoff, event)
		}
	}
}

// calledPod is a pod that is to move because of an event.
type calledPod struct {
	*Entry
	how strategy
}

// call appends the pods of a, which a hint wants to move, to the slice to and returns it. If the
// event could not help them (Options.Foresight), it appends none and tells listeners. Pods that
// preCheck excludes are left out. It resets a.strategy.
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

// calledByUnknown returns, for an event on any resource (WildCard), the gated pods that are listed
// under no plugin, as their profile does not have the plugin that gates them. It returns nil for
// any other event.
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

// registered reports whether the plugin registered for events like e, so that pods that it
// rejected may move. An event on any resource (WildCard) counts for all.
func (p *plugin) registered(e *framework.Event) bool {
	return e.Resource == framework.WildCard || slices.ContainsFunc(p.events, func(w framework.ClusterEventWithHint) bool { return w.Matches(e) })
}

// hints calls queueing hints, and counts those that panicked.
type hints struct {
	opts   *Options
	panics map[string]int // by plugin, since the start
}

// strategyFor returns the strongest answer of the hints of the plugins that rejected the
// pod to the event.
func (h *hints) strategyFor(e *Entry, event *framework.Event) strategy {
	how := skip
	for _, r := range e.rejectors {
		how = h.strategyOf(r.plugin, r.pending, how, e.Pod, event)
	}
	return how
}

// strategyAfterUpdate returns the strongest answer of the hints of the plugins that
// rejected the pod to an update of the pod itself, and the change that caused the answer.
// old is the pod before.
func (h *hints) strategyAfterUpdate(e *Entry, old *object.Pod, changes framework.ActionType) (how strategy, action framework.ActionType) {
	event := framework.Event{Resource: framework.TargetPod, OldPod: old, NewPod: e.Pod}
	for event.ActionType = range single(changes) {
		if answer := h.strategyFor(e, &event); answer > how {
			how, action = answer, event.ActionType
		}
	}
	return how, action
}

// strategyOf returns the answer of the plugin's hints to the event, or sofar if that is at least as
// strong; hints are not called if they cannot change the result. pending means that the plugin
// answered Pending for the pod, which then moves at once. An event on any resource (WildCard) is
// answered with afterBackoff.
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

// run calls the queueing hint and returns whether the event may help the pod. If the hint
// panics it returns true, as no pod may wait forever because of a panic.
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

// peers are waiting pods that wait for the same plugins, and that neither a queueing hint
// nor Question.CouldHelp can tell apart (Class.Key). Both are called once for all of them:
// of 10,000 replicas that fit nowhere, an event costs one question.
type peers struct {
	key       string // "" for a single pod without peers
	namespace string
	entries   []*Entry
	slots     []slot   // place in the list of each plugin that they wait for
	strategy  strategy // during MoveAllToActiveOrBackoff: the strongest answer so far
}

// slot is the place of the peers in the list of one plugin.
type slot struct {
	plugin *plugin
	at     int          // index in plugin.members
	names  []objectName // objects by which plugin.named finds them
}

// first returns the first pod for which preCheck, unless nil, is true; nil if there is
// none.
func (a *peers) first(preCheck func(*object.Pod) bool) *Entry {
	for _, e := range a.entries {
		if preCheck == nil || preCheck(e.Pod) {
			return e
		}
	}
	return nil
}

// add lists the pod under the plugins that rejected it: with its peers of class c if there are
// some, else as new peers. It sets e.peers.
func (x *pluginIndex) add(e *Entry, c Class, rejectors ...rejector) {
	a := x.byKey[string(c.Key)]
	if a == nil {
		a = &peers{key: string(c.Key)}
		for _, r := range rejectors {
			names := r.plugin.namesOf(e.Pod)
			r.plugin.named.add(a, names)
			a.slots = append(a.slots, slot{r.plugin, len(r.plugin.members), names})
			r.plugin.members = append(r.plugin.members, member{peers: a, pending: r.pending, sized: r.plugin.name == c.SizedBy, size: c.Size})
		}
		if a.key != "" {
			x.byKey[a.key] = a
		}
		a.namespace = e.Pod.Namespace
		if x.byNamespace[a.namespace] == nil {
			x.byNamespace[a.namespace] = map[*peers]struct{}{}
		}
		x.byNamespace[a.namespace][a] = struct{}{}
	}
	e.peers, e.peerIndex = a, len(a.entries)
	a.entries = append(a.entries, e)
}

// lists reports whether the peers are found by their namespace.
func (x *pluginIndex) lists(a *peers) bool {
	_, listed := x.byNamespace[a.namespace][a]
	return listed
}

// classOf returns the class of an unschedulable pod. Pods with equal Keys are peers, for
// which hints are asked once; so the names of the plugins that rejected the pod are part
// of the Key. The Key is valid until the next call.
func (q *Queue) classOf(e *Entry) Class {
	c := q.opts.Foresight.Class(q.keyBuf[:0], e)
	if len(c.Key) > 0 {
		for _, r := range e.rejectors {
			c.Key = append(append(c.Key, 0), r.plugin.name...)
			if r.pending {
				c.Key = append(c.Key, 1)
			}
		}
	}
	q.keyBuf = c.Key
	return c
}

// remove removes the pod from its peers, and the peers from the plugins' lists if it was
// the last. It does nothing for a pod that is not listed.
func (x *pluginIndex) remove(e *Entry) {
	a := e.peers
	if a == nil {
		return
	}
	last := len(a.entries) - 1
	a.entries[e.peerIndex], a.entries[last].peerIndex = a.entries[last], e.peerIndex
	a.entries = slices.Delete(a.entries, last, last+1)
	if e.peers = nil; len(a.entries) > 0 {
		return
	}
	delete(x.byKey, a.key)
	if delete(x.byNamespace[a.namespace], a); len(x.byNamespace[a.namespace]) == 0 {
		delete(x.byNamespace, a.namespace)
	}
	for _, s := range a.slots {
		s.plugin.remove(a, s)
	}
}

// remove removes the peers, which are at slot s, from the plugin's members.
func (p *plugin) remove(a *peers, s slot) {
	p.named.remove(a, s.names)
	last := len(p.members) - 1
	moved := p.members[last]
	p.members[s.at] = moved
	p.members[last] = member{}
	p.members = p.members[:last]
	for i := range moved.slots {
		if moved.slots[i].plugin == p {
			moved.slots[i].at = s.at
		}
	}
}

// objectName identifies an API object that a pod names, such as a claim.
type objectName struct {
	resource        framework.EventResource
	namespace, name string
}

// named finds the members of a plugin that name an object, for events that say how
// (framework.ClusterEventWithHint.Names): of 10,000 pods that each wait for a claim of
// their own, an event about a claim concerns one.
type named map[objectName]map[*peers]struct{}

// add lists the peers under each of the objects that they name, so that an event about one
// finds them.
func (n named) add(a *peers, names []objectName) {
	for _, name := range names {
		if n[name] == nil {
			n[name] = map[*peers]struct{}{}
		}
		n[name][a] = struct{}{}
	}
}

// remove removes the peers from the objects.
func (n named) remove(a *peers, names []objectName) {
	for _, name := range names {
		if delete(n[name], a); len(n[name]) == 0 {
			delete(n, name)
		}
	}
}

// namesOf returns the objects that the pod names, according to the plugin's events.
func (p *plugin) namesOf(pod *object.Pod) (names []objectName) {
	for i := range p.events {
		if w := &p.events[i]; w.Names != nil {
			for _, name := range w.Names(pod) {
				names = append(names, objectName{w.Resource, pod.Namespace, name})
			}
		}
	}
	return names
}

// concerned returns the members that the event may concern, in the order of members: those that
// name its object. It returns all if the event is about no API object, or if a registered event
// does not say which objects pods name.
func (p *plugin) concerned(e *framework.Event) []member {
	about, ok := objectOf(e)
	if !ok || slices.ContainsFunc(p.events, func(w framework.ClusterEventWithHint) bool { return w.Matches(e) && w.Names == nil }) {
		return p.members
	}
	at := make([]int, 0, len(p.named[about]))
	for a := range p.named[about] { // any order: sorted below
		at = append(at, a.slots[slices.IndexFunc(a.slots, func(s slot) bool { return s.plugin == p })].at)
	}
	slices.Sort(at)
	members := make([]member, len(at))
	for i := range at {
		members[i] = p.members[at[i]]
	}
	return members
}

// objectOf returns the API object that the event is about; false if it is about something
// else, such as a node or pod.
func objectOf(e *framework.Event) (objectName, bool) {
	o := cmp.Or(e.NewObject, e.OldObject)
	if o == nil {
		return objectName{}, false
	}
	m := o.Head()
	return objectName{e.Resource, m.Namespace, m.Name}, true
}
