package machine

import (
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// selectorOwnerChanged lets the queue know that a Service or controller came, went or
// selects other pods. v1.36 lets none of it wake a pod.
func (m *Machine) selectorOwnerChanged(old, now *object.SelectorOwner) {
	e := &framework.Event{Resource: framework.SelectorOwner, OldSelectorOwner: old, NewSelectorOwner: now}
	switch {
	case old == nil && now != nil:
		e.ActionType = framework.Add
	case old != nil && now == nil:
		e.ActionType = framework.Delete
	case old != nil && old.Key != now.Key:
		e.ActionType = framework.UpdateSelector
	}
	m.move(e)
}
