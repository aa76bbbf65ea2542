package framework

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/object"
)

// Write is a change of an API object other than the binding, carried out by the edge before
// the pod is bound. It is refused if the object has changed since Object.Version. Objects
// that the scheduler creates have no UID and Version yet, and are identified by name.
type Write struct {
	Object      object.Meta // of the object to change
	Subresource string      // such as status, "" for none
	// Strategic is set if Patch is a strategic merge patch that is right for any state of
	// the object with this UID. It must do no harm to send it again.
	Strategic bool
	// Patch is the change, as a JSON merge patch; it marshals to an object.
	// The edge adds metadata.uid and, except for strategic ones,
	// metadata.resourceVersion.
	Patch map[string]any
	// Create is the whole object, if it is to be created instead of patched; nil otherwise.
	// Only the scheduler creates objects of its name: if one exists, an earlier reply was
	// lost.
	Create object.API
	// Delete is set if the object is to be deleted, in whatever state it is. An object that
	// is gone is a success.
	Delete bool
	// Result are the objects as they are expected to be once the write has had its effect,
	// including what controllers do then. Simulations apply them.
	Result []object.Object
}

// Describe returns the object's kind and key, for errors and logs.
func (w *Write) Describe() string { return fmt.Sprintf("%s %s", w.Object.Kind, w.Object.Key()) }
