package machine

import (
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
)

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
