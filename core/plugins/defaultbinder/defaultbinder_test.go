package defaultbinder

import (
	"testing"

	"github.com/berth-scheduler/berth/core/object"
)

// The default binder binds every pod.
func TestEveryPodIsClaimed(t *testing.T) {
	if !New().Bind(&object.Pod{}, "a") {
		t.Error("the last of the binders leaves a pod to nobody")
	}
}
