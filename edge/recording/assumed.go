package recording

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// assumption is in what an object, as it is assumed to be, differs from what the API showed
// or what is written of it. A time of the API has whole seconds.
type assumption struct {
	Claim        *object.ClaimReference `json:",omitempty"`
	ByController bool                   `json:",omitempty"`
	SelectedNode string                 `json:",omitempty"`
	Allocated    int64                  `json:",omitempty"` // Unix time, in nanoseconds
}

// assumedObject writes an object as it is assumed to be.
func (w *encoder) assumedObject(o object.Object) error {
	var a assumption
	text, m := o.Head().Recorded, o.Head()
	switch o := o.(type) {
	case *object.PersistentVolume:
		a.ByController = o.ByController
		if c := o.Claim; c != nil {
			a.Claim = &object.ClaimReference{Namespace: w.names.Of(c.Namespace), Name: w.names.Of(c.Name), UID: c.UID}
		}
	case *object.PersistentVolumeClaim:
		a.SelectedNode = w.names.Of(o.SelectedNode)
	case *object.ResourceClaim:
		text = NewObjects(w.names).write(o.API)
		if got := o.Allocation(); got != nil && got.AllocationTimestamp != nil {
			a.Allocated = got.AllocationTimestamp.UnixNano()
		}
	default:
		return fmt.Errorf("a record cannot hold %s %s as it is assumed to be", m.Kind, m.Key())
	}
	w.json(a)
	return w.shown(address{numberOf(m.Kind), m.Namespace, m.Name}, text)
}

// assumedObject reads what encoder.assumedObject wrote.
func (r *decoder) assumedObject() object.Object {
	var a assumption
	r.json(&a)
	e, ok := r.shown().(machine.ObjectSet)
	if !ok {
		r.fail(errors.New("an object that is assumed is missing"))
		return nil
	}
	switch o := e.Object.(type) {
	case *object.PersistentVolume:
		o.Claim, o.ByController = a.Claim, a.ByController
	case *object.PersistentVolumeClaim:
		o.SelectedNode = a.SelectedNode
	case *object.ResourceClaim:
		if got := o.Allocation(); got != nil && a.Allocated != 0 {
			got.AllocationTimestamp = &metav1.Time{Time: time.Unix(0, a.Allocated)}
		}
	default:
		r.fail(fmt.Errorf("%s cannot be assumed", e.Object.Head().Kind))
	}
	return e.Object
}

// assumed writes what the table assumes of objects.
func (w *encoder) assumed(s *machine.Snapshot) error {
	w.json(s.Table.Assumed)
	for _, a := range s.Table.Assumed {
		if err := w.assumedObject(a.Object); err != nil {
			return err
		}
	}
	return nil
}

func (r *decoder) assumed(s *machine.Snapshot) {
	r.json(&s.Table.Assumed)
	for i := range s.Table.Assumed {
		if r.err != nil {
			return
		}
		s.Table.Assumed[i].Object = r.assumedObject()
	}
}

// kept writes the objects that plugins keep of a pod.
func (w *encoder) kept(u *machine.SavedUnderway) error {
	for _, o := range keptOf(u) {
		if err := w.assumedObject(*o); err != nil {
			return err
		}
	}
	return nil
}

func (r *decoder) kept(u *machine.SavedUnderway) {
	for _, o := range keptOf(u) {
		if r.err != nil {
			return
		}
		*o = r.assumedObject()
	}
}

// keptOf lists the objects that plugins keep of a pod.
func keptOf(u *machine.SavedUnderway) (objects []*object.Object) {
	for _, b := range []*machine.SavedBinding{u.Binding, u.Ended} {
		if b == nil {
			continue
		}
		for _, k := range b.Kept {
			for i := range k.Objects {
				objects = append(objects, &k.Objects[i].Object)
			}
		}
	}
	return objects
}
