package framework

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/object"
)

// Write is a change of an API object other than the binding, carried out by
// the edge before the pod is bound. One of an object that has changed since
// Object.Version is refused. Objects that we make have no UID and no Version
// yet, and are known by name.
type Write struct {
	Object      object.Meta
	Subresource string // such as status, "" for none
	// Strategic: the patch is a strategic merge patch that holds for any state
	// of the object with this UID. It must do no harm to send it again.
	Strategic bool
	// Patch is the change, as a JSON merge patch; it marshals to an object.
	// The edge adds metadata.uid and, except for strategic ones,
	// metadata.resourceVersion.
	Patch map[string]any
	// Create is the whole object, to be made instead of patched; nil for none.
	// Nobody else makes one of its name: where one is, a reply was lost.
	Create object.API
	// Delete: the object is to go, in whatever state it is. One that is gone
	// will do.
	Delete bool
	// Result are the objects as they are expected to be once the write has had
	// its effect, whoever else has to do his part. Simulations set them.
	Result []object.Object
}

// Describe names the object, for errors and logs.
func (w *Write) Describe() string { return fmt.Sprintf("%s %s", w.Object.Kind, w.Object.Key()) }
