package object_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// Pending replicas of a Deployment have one template: what fits one fits the others. After a
// rollout began, those of the new version request more and have another.
func ExamplePod_AppendTemplate() {
	replica := func(name, node string, milliCPU int64) *object.Pod {
		return &object.Pod{UID: types.UID(name), Namespace: "default", Name: name, NominatedNode: node, Labels: map[string]string{"app": "web"},
			Demand: resource.Demand{Requests: resource.Vector{MilliCPU: milliCPU}}}
	}
	first := replica("web-1", "n1", 100)
	for _, p := range []*object.Pod{replica("web-2", "", 100), replica("web-3", "", 200)} {
		fmt.Printf("%s and %s have one template: %v\n", first.Key(), p.Key(), string(p.AppendTemplate(nil)) == string(first.AppendTemplate(nil)))
	}

	// Output:
	// default/web-1 and default/web-2 have one template: true
	// default/web-1 and default/web-3 have one template: false
}
