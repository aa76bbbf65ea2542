package classes_test

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/classes"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// The pods of the package's comment. What is kept for the class of a is known of b, too.
func Example() {
	reads := func(what string, read func(p *object.Pod) string) *framework.Plugin {
		return &framework.Plugin{Name: what, SignPlugin: framework.SignPlugin{
			Sign: func(key []byte, _ *table.Table, p *object.Pod) []byte { return append(key, read(p)...) },
		}}
	}
	p := &profile.Profile{Name: "default", Filter: []*framework.Plugin{
		reads("Requests", func(p *object.Pod) string { return fmt.Sprint(p.Demand.Requests.MilliCPU, "m") }),
		reads("Tolerations", func(p *object.Pod) string { return string(p.Tolerations.Key) }),
	}}
	set := classes.New[string](table.New())
	for _, pod := range []*object.Pod{podOf("a", "x", 100), podOf("b", "y", 100), podOf("c", "y", 200)} {
		var known classes.Pod[string]
		c := set.Of(p, pod, &known)
		if c.Kept == nil {
			c.Kept = new("what is known of " + pod.Name)
		}
		fmt.Printf("%s: %q has %s\n", pod.Name, c.Signature, *c.Kept)
	}

	// Output:
	// a: "default\x00\x04\x00\x00\x00100m\x00\x00\x00\x00" has what is known of a
	// b: "default\x00\x04\x00\x00\x00100m\x00\x00\x00\x00" has what is known of a
	// c: "default\x00\x04\x00\x00\x00200m\x00\x00\x00\x00" has what is known of c
}

func podOf(name, app string, milliCPU int64) *object.Pod {
	return &object.Pod{Name: name, Labels: map[string]string{"app": app}, Demand: resource.Demand{Requests: resource.Vector{MilliCPU: milliCPU}}}
}
