package machine

import (
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// familyChanged lets the queue know that a Service or controller came, went or
// selects other pods. v1.36 lets none of it wake a pod.
func (m *Machine) familyChanged(old, now *object.Family) {
	e := &framework.Event{Resource: framework.Family, OldFamily: old, NewFamily: now}
	switch {
	case old == nil && now != nil:
		e.Action = framework.Add
	case old != nil && now == nil:
		e.Action = framework.Delete
	case old != nil && old.Key != now.Key:
		e.Action = framework.UpdateFamilySelector
	}
	m.move(e)
}
