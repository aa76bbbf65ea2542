package generate

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// managedResource is an extended resource that an extender manages in the
// scheduler's stead.
const managedResource = "extender.example/seats"

// ExtenderAddress begins the address of each extender in a configuration. Who
// plays a world puts the address of a service in its place that answers
// whatever it likes, as long as it always answers the same.
const ExtenderAddress = "http://extenders/"

// extenders names one to three extenders, and has some pods ask for the
// resource that one of them manages.
var extenders = feature{config: func(b *builder, p *profile) {
	salt := b.Uint32()
	for i := range b.pick(1, 1, 2, 3) {
		x := map[string]any{"urlPrefix": fmt.Sprintf("%s%x/%d", ExtenderAddress, salt, i), "ignorable": b.chance(25)}
		if b.chance(75) {
			x["filterVerb"] = "filter"
		}
		if b.chance(60) {
			x["prioritizeVerb"], x["weight"] = "prioritize", b.pick(1, 1, 2, 7)
		}
		if b.chance(50) {
			x["preemptVerb"] = "preempt"
		}
		if capable := b.chance(75); capable {
			x["nodeCacheCapable"] = true
		} else {
			p.plugins["score"] = withoutRoom
		}
		if !b.managed && b.chance(35) {
			b.managed = true
			x["managedResources"] = []any{map[string]any{"name": managedResource, "ignoredByScheduler": true}}
		}
		p.extenders = append(p.extenders, x)
	}
}, pod: func(b *builder, p *v1.Pod) {
	if b.managed && b.chance(50) {
		r := &p.Spec.Containers[0].Resources
		if b.chance(30) && len(p.Spec.InitContainers) > 0 {
			r = &p.Spec.InitContainers[0].Resources
		}
		for name, q := range list(managedResource, "1") {
			if r.Requests == nil {
				r.Requests = v1.ResourceList{}
			}
			r.Requests[name] = q
			r.Limits = v1.ResourceList{name: q}
		}
	}
}}

// withoutRoom leaves out the plugins that score what is on a node. Of a node
// that an extender sent back as a whole kube-scheduler believes that nothing is
// on it.
var withoutRoom = map[string]any{"disabled": []any{
	map[string]any{"name": "NodeResourcesFit"}, map[string]any{"name": "NodeResourcesBalancedAllocation"}, map[string]any{"name": "ImageLocality"},
}}
