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

// step is what all parts of a machine share: the cluster, the pods that wait, and the step
// that is under way, with its time and its effects so far.
type step struct {
	table *table.Table
	queue *queue.Queue

	now     time.Time
	number  uint64 // of the step
	news    uint64 // steps that were no Tick
	effects []Effect
	changed Change
}

// begin begins a step for the event.
func (s *step) begin(now time.Time, e Event) {
	s.now, s.effects, s.changed = now, nil, Change{}
	s.number++
	s.table.SetNow(now)
	if _, tick := e.(Tick); !tick {
		s.news++
	}
}

// end returns the effects of the step. What is left by then is of a step that panicked.
func (s *step) end() []Effect {
	effects := s.effects
	s.effects = nil
	return effects
}

// emit adds an effect of the step.
func (s *step) emit(e Effect) { s.effects = append(s.effects, e) }

// moveAll passes the event to the queue, which moves the pods that it may help.
func (s *step) moveAll(e *framework.Event) {
	if e.ActionType != 0 {
		s.recordChange(e.Resource, e.ActionType)
		s.queue.MoveAllToActiveOrBackoff(s.now, e, nil)
	}
}

// Change is what an event changed in the cluster, as a resource and an action.
type Change struct {
	Resource framework.EventResource
	Action   framework.ActionType // 0: nothing
	// Bound: it is a pod of one of our profiles, which was seen without a node before.
	Bound bool
}

// recordChange records what the step changed in the cluster, if nothing was recorded yet.
func (s *step) recordChange(r framework.EventResource, a framework.ActionType) {
	if s.changed.Action == 0 {
		s.changed.Resource, s.changed.Action = r, a
	}
}

// profiles holds the profiles by name, which is the schedulerName of their pods.
type profiles map[string]*profile.Profile

// eventsToRegister returns the events that may help pods that a plugin of the profile
// rejected. It returns false if the profile has no such plugin.
func (l profiles) eventsToRegister(name, plugin string) ([]framework.ClusterEventWithHint, bool) {
	if p := l[name]; p != nil && p.Plugins[plugin] != nil {
		return p.Plugins[plugin].EventsToRegister, true
	}
	if plugin == engine.Extender {
		return allEvents, true
	}
	return nil, false
}

// allEvents may help a pod that extenders rejected: they do not say what may.
var allEvents = []framework.ClusterEventWithHint{{Resource: framework.WildCard, ActionType: framework.All}}

// endAttempt ends the pod's attempt at the host of its profile.
func (l profiles) endAttempt(p *object.Pod) {
	if of := l[p.SchedulerName]; of != nil && of.Host != nil {
		of.Host.End(p.UID)
	}
}

// guard contains panics of plugins to the pod at hand.
type guard struct {
	table     *table.Table
	engine    *engine.Engine
	options   *Options
	contained int // panics
}

// report reports a contained panic to Options.Panicked.
func (g *guard) report(p *recovered.Panic) {
	if g.options.Panicked != nil {
		g.options.Panicked(p)
	}
}

// run runs f for the pod and contains a panic to it: the error names where
// it happened. State that a half-done try left behind is undone.
func (g *guard) run(point, plugin string, f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = g.contain(point, plugin, r)
		}
	}()
	f()
	return nil
}

// each runs f for each of the plugins until it returns false, and contains a panic
// as guard does. It returns the last plugin that f was run for.
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

// contain handles a panic of a plugin that was recovered: it undoes what a half-done
// trial left behind, reports the panic, and returns it as an error.
func (g *guard) contain(point, plugin string, value any) error {
	g.contained++
	g.table.Rollback()
	g.engine.Reset()
	p := recovered.From(calling(point, plugin), value)
	g.report(p)
	return p
}

// calling returns where a guarded call was; plugin "" is none.
func calling(point, plugin string) string {
	if plugin == "" {
		return point
	}
	return fmt.Sprintf("running %s plugin %q", point, plugin)
}

// unlistedKinds holds the kinds whose objects cannot be listed, and why. A pod is not
// decided on while a plugin that has a say about it does not see what it needs.
type unlistedKinds map[object.Kind]error

// hides returns why the plugin does not see all that it needs, nil if it does.
func (l unlistedKinds) hides(pl *framework.Plugin) error {
	if len(l) == 0 || pl.Reads.Optional {
		return nil
	}
	for _, kind := range pl.Reads.Kinds {
		if err, is := l[kind]; is {
			return fmt.Errorf("the objects of the kind %s cannot be listed: %w", kind, err)
		}
	}
	return nil
}

// undecidable returns an error status if a plugin of the profile has a say about the pod
// and does not see what it needs, else nil.
func (l unlistedKinds) undecidable(t *table.Table, of *profile.Profile, p *object.Pod) *decision.Status {
	if len(l) == 0 {
		return nil
	}
	for _, pl := range of.PreFilter {
		if err := l.hides(pl); err != nil && !pl.PreFilter(t, p).Skip {
			return attribute(&decision.Status{Code: decision.Error, Err: err}, "PreFilter", pl.Name)
		}
	}
	return nil
}
