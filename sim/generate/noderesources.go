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
type taking map[v1.ResourceName]resourcev1.NodeAllocatableResourceMapping

// nameInPool is the name by which kube-scheduler finds a device: it looks neither at the
// driver nor at the pool's generation.
func nameInPool(s *resourcev1.ResourceSlice, d *resourcev1.Device) string {
	return s.Spec.Pool.Name + "/" + d.Name
}

// haveTake has all devices of one name in pools of one name take the same.
func (b *builder) haveTake(s *resourcev1.ResourceSlice) {
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		d.NodeAllocatableResourceMappings = b.taking[nameInPool(s, d)]
	}
}

func someTaking(b *builder, shared bool) taking {
	taken := taking{}
	if b.chance(80) {
		taken[v1.ResourceCPU] = resourcev1.NodeAllocatableResourceMapping{AllocationMultiplier: quantityOf(b, "1", "500m", "2", "1500m")}
	}
	if b.chance(50) {
		m := resourcev1.NodeAllocatableResourceMapping{AllocationMultiplier: quantityOf(b, "256Mi", "1Gi", "100M")}
		if shared {
			m = resourcev1.NodeAllocatableResourceMapping{CapacityKey: new(resourcev1.QualifiedName(b.word("memory", "memory", "lanes"))),
				AllocationMultiplier: quantityOf(b, "1", "0.01", "0.003")}
		} else if b.chance(1) {
			m.CapacityKey = new(resourcev1.QualifiedName("memory")) // which no claim of such a device consumes
		}
		taken[v1.ResourceMemory] = m
	}
	if b.chance(10) {
		taken["hugepages-2Mi"] = resourcev1.NodeAllocatableResourceMapping{AllocationMultiplier: quantityOf(b, "2Mi", "64Mi")}
	}
	if b.chance(10) {
		taken[v1.ResourceEphemeralStorage] = resourcev1.NodeAllocatableResourceMapping{AllocationMultiplier: quantityOf(b, "1Gi", "100Gi")}
	}
	return taken
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
