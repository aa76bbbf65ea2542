package manifest

import (
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/edge/decode"
)

// Event is what an event of the cluster says about an object.
type Event struct {
	Kind, Namespace, Name string // of the object
	UID                   string // of the object, "" where the event does not say
	Reason, Message       string
	Last                  time.Time // when it was seen last
	// Related is the other pod that the event is about, such as a preemptor; zero for none.
	Related types.NamespacedName
}

// Events are the kinds of events.
var Events = []decode.Kind{
	controllerKind(v1.SchemeGroupVersion, "Event", "events", func() metav1.Object { return &v1.Event{} }),
	controllerKind(eventsv1.SchemeGroupVersion, "Event", "events", func() metav1.Object { return &eventsv1.Event{} }),
}

// eventOf returns the event that the object is; false for other objects.
func eventOf(o metav1.Object) (Event, bool) {
	switch o := o.(type) {
	case *v1.Event:
		of := &o.InvolvedObject
		e := Event{of.Kind, of.Namespace, of.Name, string(of.UID), o.Reason, o.Message, latest(o.LastTimestamp, o.EventTime, o.FirstTimestamp), relatedPod(o.Related)}
		if o.Series != nil {
			e.Last = latest(metav1.NewTime(e.Last), o.Series.LastObservedTime, metav1.Time{})
		}
		return e, true
	case *eventsv1.Event:
		of := &o.Regarding
		e := Event{of.Kind, of.Namespace, of.Name, string(of.UID), o.Reason, o.Note, latest(o.DeprecatedLastTimestamp, o.EventTime, o.DeprecatedFirstTimestamp), relatedPod(o.Related)}
		if o.Series != nil {
			e.Last = latest(metav1.NewTime(e.Last), o.Series.LastObservedTime, metav1.Time{})
		}
		return e, true
	}
	return Event{}, false
}

// relatedPod returns the name of the object if it is a pod.
func relatedPod(o *v1.ObjectReference) types.NamespacedName {
	if o == nil || o.Kind != "Pod" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

func latest(last metav1.Time, exact metav1.MicroTime, first metav1.Time) time.Time {
	t := first.Time
	for _, other := range []time.Time{last.Time, exact.Time} {
		if other.After(t) {
			t = other
		}
	}
	return t.UTC()
}
