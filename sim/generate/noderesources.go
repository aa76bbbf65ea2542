package generate

import (
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// nodeResources has devices take of their node's resources, and containers use claims.
var nodeResources = feature{world: takingWorld}

func takingWorld(b *builder, w *World) {
	b.taking = map[string]taking{}
	shared := map[string]bool{} // by all that are called so
	for _, o := range w.Objects {
		if s, ok := o.(*resourcev1.ResourceSlice); ok {
			for i := range s.Spec.Devices {
				d := &s.Spec.Devices[i]
				known, others := shared[nameInPool(s, d)]
				shared[nameInPool(s, d)] = d.AllowMultipleAllocations != nil && (known || !others)
			}
		}
	}
	for _, o := range w.Objects {
		if s, ok := o.(*resourcev1.ResourceSlice); ok {
			for i := range s.Spec.Devices {
				name := nameInPool(s, &s.Spec.Devices[i])
				if _, made := b.taking[name]; !made {
					b.taking[name] = taking{}
					if b.chance(60) {
						b.taking[name] = someTaking(b, shared[name])
					}
				}
			}
			b.haveTake(s)
		}
	}
	for _, p := range w.Pending {
		useClaims(b, p)
	}
}

// taking is what a device takes.
type taking map[v1.ResourceName]resourcev1.NodeAllocatableResource

// nameInPool is the name by which kube-scheduler finds a device: it does not look at the
// pool's generation.
func nameInPool(s *resourcev1.ResourceSlice, d *resourcev1.Device) string {
	return s.Spec.Driver + "/" + s.Spec.Pool.Name + "/" + d.Name
}

// haveTake has all devices of one name in a driver's pools of one name take the same.
func (b *builder) haveTake(s *resourcev1.ResourceSlice) {
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		d.NodeAllocatableResources = b.taking[nameInPool(s, d)]
	}
}

func someTaking(b *builder, shared bool) taking {
	taken := taking{}
	if b.chance(80) {
		taken[v1.ResourceCPU] = someNodeResource(b, each(b, "1", "500m", "2", "1500m"), "250m", "1")
	}
	if b.chance(50) {
		m := each(b, "256Mi", "1Gi", "100M")
		if shared {
			m = &resourcev1.NodeAllocatableMapping{CapacityKey: new(resourcev1.QualifiedName(b.word("memory", "memory", "lanes"))),
				CapacityMultiplier: quantityOf(b, "1", "0.01", "0.003")}
		} else if b.chance(1) {
			m = &resourcev1.NodeAllocatableMapping{CapacityKey: new(resourcev1.QualifiedName("memory")), // which no claim of such a device consumes
				CapacityMultiplier: m.DeviceMultiplier}
		}
		taken[v1.ResourceMemory] = someNodeResource(b, m, "64Mi", "512Mi")
	}
	if b.chance(10) {
		taken["hugepages-2Mi"] = someNodeResource(b, each(b, "2Mi", "64Mi"), "2Mi")
	}
	if b.chance(10) {
		taken[v1.ResourceEphemeralStorage] = someNodeResource(b, each(b, "1Gi", "100Gi"), "1Gi")
	}
	return taken
}

// someNodeResource returns what a device takes of one resource: the mapping, an overhead
// of one of the amounts for each pod, each container or both, or the mapping and the overhead.
func someNodeResource(b *builder, m *resourcev1.NodeAllocatableMapping, amounts ...string) resourcev1.NodeAllocatableResource {
	taken := resourcev1.NodeAllocatableResource{}
	overhead := b.chance(40)
	if !overhead || b.chance(30) {
		taken.Mapping = m
	}
	if overhead {
		taken.Overhead = &resourcev1.NodeAllocatableOverhead{}
		perPod := b.chance(60)
		if perPod {
			taken.Overhead.PerPod = quantityOf(b, amounts...)
		}
		if !perPod || b.chance(50) {
			taken.Overhead.PerContainer = quantityOf(b, amounts...)
		}
	}
	return taken
}

// each returns a mapping of one of the amounts for each device.
func each(b *builder, amounts ...string) *resourcev1.NodeAllocatableMapping {
	return &resourcev1.NodeAllocatableMapping{DeviceMultiplier: quantityOf(b, amounts...)}
}

func quantityOf(b *builder, words ...string) *resource.Quantity {
	return new(resource.MustParse(b.word(words...)))
}

// useClaims has containers use the pod's claims, some of them several, and has some
// pods request resources as a whole.
func useClaims(b *builder, p *v1.Pod) {
	lists := [2][]v1.Container{p.Spec.InitContainers, p.Spec.Containers}
	for _, claim := range p.Spec.ResourceClaims {
		for _, list := range lists {
			for i := range list {
				if b.chance(85) {
					list[i].Resources.Claims = append(list[i].Resources.Claims, v1.ResourceClaim{Name: claim.Name})
				}
			}
		}
	}
	if len(p.Spec.ResourceClaims) > 0 && b.chance(15) {
		// Of several resources of which a pod requests too little kube-scheduler names any.
		name, sum := v1.ResourceCPU, *quantityOf(b, "0", "0", "1", "2")
		if b.chance(50) {
			name, sum = v1.ResourceMemory, *quantityOf(b, "0", "0", "1Gi", "2Gi")
		}
		for _, list := range lists {
			for i := range list {
				sum.Add(list[i].Resources.Requests[name])
			}
		}
		if sum.IsZero() {
			return
		}
		p.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{name: sum}}
	}
}
