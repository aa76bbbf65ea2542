package machine

import (
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

func (m *Machine) objectSet(o object.Object) {
	if m.table.Overtaken(o) {
		return
	}
	e := &framework.Event{Resource: framework.ResourceOf(o.Head().Kind), ActionType: framework.Add, NewObject: o}
	if e.OldObject = m.table.SetObject(o); e.OldObject != nil {
		e.ActionType = framework.UpdateOther
	}
	m.move(e)
	m.awaitAgain("")
}

// objectReplied takes in the object as the reply to a write of ours shows it.
func (m *Machine) objectReplied(o object.Object) {
	if m.table.Overtakes(o) {
		m.objectSet(o)
		m.table.Replied(o)
	}
}

func (m *Machine) objectGone(e ObjectGone) {
	if old := m.table.RemoveObject(e.Kind, e.Namespace, e.Name); old != nil {
		m.move(&framework.Event{Resource: framework.ResourceOf(e.Kind), ActionType: framework.Delete, OldObject: old})
		m.awaitAgain("")
	}
}
