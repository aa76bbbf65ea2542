package machine

import (
	"fmt"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/recovered"
	"github.com/berth-scheduler/berth/core/table"
)

// step is what all parts of a machine share: the table, the queue, whether this process leads, and
// the step under way.
type step struct {
	table *table.Table
	queue *queue.Queue
	leads bool // a ScheduleOne has come; before the first one another process may be the leader

	now     time.Time
	number  uint64   // of the step, from 1
	news    uint64   // steps so far whose event was not a Tick
	effects []Effect // of the step so far
	changed Change   // the first change of the step
}

// begin starts a step at time now for the event.
func (s *step) begin(now time.Time, e Event) {
	s.now, s.effects, s.changed = now, nil, Change{}
	s.number++
	s.table.SetNow(now)
	if _, tick := e.(Tick); !tick {
		s.news++
	}
}

// orderGroups updates the queue's order for groups whose pods changed in the step: the queue asks
// again whether they are half bound. It also ends that a gang is Raised if it is whole now. It is
// called at the end of the step, when no group is being tried.
func (s *step) orderGroups() {
	for _, name := range s.table.Groups().TakeChanged() {
		s.table.Groups().Named(name).Complete(table.PodGroup(s.table, name))
		s.queue.UpdateHalfBound(name)
	}
}

// end returns the effects of the step and clears them.
func (s *step) end() []Effect {
	effects := s.effects
	s.effects = nil
	return effects
}

// emit appends an effect to those of the step.
func (s *step) emit(e Effect) { s.effects = append(s.effects, e) }

// moveAll passes the event to the queue, which moves the pods that it may help to the active queue
// or to backoff. It also records the event as a change of the step. It ignores an event without an
// action.
func (s *step) moveAll(e *framework.Event) {
	if e.ActionType != 0 {
		s.recordChange(e.Resource, e.ActionType)
		e.Table = s.table
		s.queue.MoveAllToActiveOrBackoff(s.now, e, nil)
	}
}

// Change is what a step changed in the cluster, as a resource and an action.
type Change struct {
	Resource framework.EventResource
	Action   framework.ActionType // 0: nothing
	// Bound is set if the change is that a pending pod of one of the profiles is bound now.
	Bound bool
}

// recordChange records what the step changed in the cluster, if nothing was recorded in the step
// yet.
func (s *step) recordChange(r framework.EventResource, a framework.ActionType) {
	if s.changed.Action == 0 {
		s.changed.Resource, s.changed.Action = r, a
	}
}

// profiles holds the profiles by schedulerName.
type profiles map[string]*profile.Profile

// eventsToRegister returns the events that may help pods that a plugin of the profile with this
// name has rejected; false if the profile has no such plugin. Extenders count as one plugin, which
// registers all events. Strict budgets count as one, too, without events: their changes are no
// events (budgetChanged).
func (l profiles) eventsToRegister(name, plugin string) ([]framework.ClusterEventWithHint, bool) {
	if p := l[name]; p != nil && p.Plugins[plugin] != nil {
		return p.Plugins[plugin].EventsToRegister, true
	}
	switch plugin {
	case engine.Extender:
		return allEvents, true
	case framework.PreemptionBudgets:
		return nil, l[name] != nil && l[name].StrictBudgets
	}
	return nil, false
}

// allEvents matches every event: any may help a pod that extenders rejected.
var allEvents = []framework.ClusterEventWithHint{{Resource: framework.WildCard, ActionType: framework.All}}

// endAttempt tells the host of hosted plugins, if the profile has one, that the pod's
// attempt is over.
func (l profiles) endAttempt(p *object.Pod) {
	if of := l[p.SchedulerName]; of != nil && of.Host != nil {
		of.Host.End(p.UID)
	}
}

// guard runs plugins and turns their panics into errors, so that only the pod at hand
// fails.
type guard struct {
	table     *table.Table
	engine    *engine.Engine
	options   *Options
	contained int // panics so far
}

// report calls Options.Panicked, if it is set.
func (g *guard) report(p *recovered.Panic) {
	if g.options.Panicked != nil {
		g.options.Panicked(p)
	}
}

// run runs f. If f panics, run undoes open trials in the table and returns an error
// that names the point and the plugin ("" if it is not known).
func (g *guard) run(point, plugin string, f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = g.contain(point, plugin, r)
		}
	}()
	f()
	return nil
}

// each runs f for each of the plugins until f returns false. It returns the last plugin for which f
// was run. If f panics, it undoes open trials in the table and returns an error that names the
// point and the plugin.
func (g *guard) each(point string, plugins []*framework.Plugin, f func(*framework.Plugin) bool) (at *framework.Plugin, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = g.contain(point, at.Name, r)
		}
	}()
	for _, at = range plugins {
		if !f(at) {
			break
		}
	}
	return at, nil
}

// contain handles the value of a recovered panic of a plugin: it counts the panic, undoes open
// trials in the table, resets the engine, reports the panic, and returns it as an error.
func (g *guard) contain(point, plugin string, value any) error {
	g.contained++
	g.table.Rollback()
	g.engine.Reset()
	p := recovered.From(calling(point, plugin), value)
	g.report(p)
	return p
}

// calling returns a text like `running Filter plugin "NodeName"`; just the point for "".
func calling(point, plugin string) string {
	if plugin == "" {
		return point
	}
	return fmt.Sprintf("running %s plugin %q", point, plugin)
}

// unlistedKinds holds the list error of each kind whose objects cannot be listed. A pod is not
// scheduled while a plugin needs such a kind: it is in Reads.Kinds, Reads.Optional is not set, and
// PreFilter does not skip the pod. Nor is a pod scheduled that names a PodGroup of such a kind.
type unlistedKinds map[object.Kind]error

// hides returns an error if a kind that the plugin needs cannot be listed from the API, so that the
// plugin would decide on too little; else nil. A plugin with Reads.Optional needs none.
func (l unlistedKinds) hides(pl *framework.Plugin) error {
	if len(l) == 0 || pl.Reads.Optional {
		return nil
	}
	for _, kind := range pl.Reads.Kinds {
		if err, is := l[kind]; is {
			return errUnlisted(kind, err)
		}
	}
	return nil
}

// errUnlisted returns the error of pods that need objects of the kind. why is the error of its
// list.
func errUnlisted(kind object.Kind, why error) error {
	return fmt.Errorf("the objects of the kind %s cannot be listed: %w", kind, why)
}

// undecidable returns an error status if a PreFilter plugin of the profile needs objects that
// cannot be listed and does not skip the pod, or if the pod names a PodGroup of a kind that cannot
// be listed. It returns nil otherwise.
func (l unlistedKinds) undecidable(t *table.Table, of *profile.Profile, p *object.Pod) *decision.Status {
	if len(l) == 0 {
		return nil
	}
	if err := l.group(p); err != nil {
		return &decision.Status{Code: decision.Error, Err: err}
	}
	for _, pl := range of.PreFilter {
		if err := l.hides(pl); err != nil && !pl.PreFilter(t, p).Skip {
			return attribute(&decision.Status{Code: decision.Error, Err: err}, "PreFilter", pl.Name)
		}
	}
	return nil
}

// group returns an error if the pod names a PodGroup of a kind that cannot be listed; else nil.
func (l unlistedKinds) group(p *object.Pod) error {
	kind, _, ok := object.GroupObject(p.PodGroup())
	if err, is := l[kind]; is && ok {
		return errUnlisted(kind, err)
	}
	return nil
}
