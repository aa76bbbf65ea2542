package compat

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/resource"
)

// amounts is a fwk.Resource: an amount of each resource. Memory and storage are in bytes.
type amounts struct {
	milliCPU, memory, ephemeralStorage int64
	pods                               int
	scalars                            map[v1.ResourceName]int64
}

// GetMilliCPU returns thousandths of a CPU.
func (a *amounts) GetMilliCPU() int64 { return a.milliCPU }

// GetMemory returns bytes.
func (a *amounts) GetMemory() int64 { return a.memory }

// GetEphemeralStorage returns bytes.
func (a *amounts) GetEphemeralStorage() int64 { return a.ephemeralStorage }

// GetAllowedPodNumber returns the number of pods that a node takes; 0 for requests.
func (a *amounts) GetAllowedPodNumber() int { return a.pods }

// GetScalarResources returns the extended and other resources by name. The map is shared.
func (a *amounts) GetScalarResources() map[v1.ResourceName]int64 { return a.scalars }

// SetMaxResource raises each amount to that in the list, if the list has more, except for the
// number of pods.
func (a *amounts) SetMaxResource(list v1.ResourceList) {
	v := resource.FromList(list)
	a.milliCPU, a.memory = max(a.milliCPU, v.MilliCPU), max(a.memory, v.Memory)
	a.ephemeralStorage = max(a.ephemeralStorage, v.EphemeralStorage)
	for _, s := range v.Scalars {
		a.setScalar(s.Name, max(a.scalars[s.Name], s.Value))
	}
}

// setScalar sets the amount of a scalar resource.
func (a *amounts) setScalar(name v1.ResourceName, n int64) {
	if a.scalars == nil {
		a.scalars = map[v1.ResourceName]int64{}
	}
	a.scalars[name] = n
}

// add adds sign (1 or -1) times b, except for the number of pods.
func (a *amounts) add(b fwk.Resource, sign int64) {
	a.milliCPU += sign * b.GetMilliCPU()
	a.memory += sign * b.GetMemory()
	a.ephemeralStorage += sign * b.GetEphemeralStorage()
	for name, n := range b.GetScalarResources() { // any order: a sum
		a.setScalar(name, a.scalars[name]+sign*n)
	}
}

// clone returns a deep copy.
func (a *amounts) clone() *amounts {
	c := *a
	c.scalars = maps.Clone(a.scalars)
	return &c
}

// amountsOf converts core's vector of resources. The number of pods is 0.
func amountsOf(v resource.Vector) amounts {
	a := amounts{milliCPU: v.MilliCPU, memory: v.Memory, ephemeralStorage: v.EphemeralStorage}
	for _, s := range v.Scalars {
		a.setScalar(s.Name, s.Value)
	}
	return a
}
