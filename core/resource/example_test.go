package resource_test

import (
	"fmt"
	"math"

	v1 "k8s.io/api/core/v1"
	api "k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-scheduler/berth/core/resource"
)

// A pod needs room for its init containers, which run one after the other before its containers,
// or for its containers, which run at the same time: whichever is more, by resource.
func Example() {
	container := func(cpu, memory string) v1.Container {
		requests := v1.ResourceList{}
		for name, text := range map[v1.ResourceName]string{v1.ResourceCPU: cpu, v1.ResourceMemory: memory} {
			if text != "" {
				requests[name] = api.MustParse(text)
			}
		}
		return v1.Container{Resources: v1.ResourceRequirements{Requests: requests}}
	}
	pod := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{container("1500m", "100Mi"), container("1", "64Mi")},
		Containers:     []v1.Container{container("500m", "300Mi"), container("0.25", "200Mi"), container("", "")},
	}}
	d := resource.OfPod(pod)
	show := func(what string, v resource.Vector) {
		fmt.Printf("%s: cpu %v, memory %v\n", what, resource.Quantity(v1.ResourceCPU, v.MilliCPU), resource.Quantity(v1.ResourceMemory, v.Memory))
	}
	show("must fit", d.Requests)
	show("with defaults, for scores", d.NonZero)

	fmt.Println("0.1u of a CPU is rounded up:", resource.Milli(api.MustParse("0.1u")), "millicore")
	fmt.Println("a sum stays at the end of int64:", resource.Add(math.MaxInt64, 1) == math.MaxInt64)

	// Output:
	// must fit: cpu 1500m, memory 500Mi
	// with defaults, for scores: cpu 1500m, memory 700Mi
	// 0.1u of a CPU is rounded up: 1 millicore
	// a sum stays at the end of int64: true
}
