package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/sim"
)

// load is what pods take and what there is, of one node or of all.
type load struct {
	pods, allowed int64
	taken, there  map[v1.ResourceName]int64
}

func newLoad() *load {
	return &load{taken: map[v1.ResourceName]int64{}, there: map[v1.ResourceName]int64{}}
}

// usage returns the load of each node and of all together.
func usage(c *sim.Cluster) (map[string]*load, *load) {
	byNode, total := map[string]*load{}, newLoad()
	for _, n := range c.Nodes() {
		l := newLoad()
		byNode[n.Name] = l
		for _, sum := range []*load{l, total} {
			sum.allowed = resource.Add(sum.allowed, n.AllowedPods)
			add(sum.there, n.Allocatable)
		}
	}
	for _, p := range c.Pods() {
		l := byNode[p.NodeName]
		if l == nil {
			continue
		}
		for _, sum := range []*load{l, total} {
			sum.pods++
			add(sum.taken, p.Demand.Usage)
		}
	}
	return byNode, total
}

func add(sum map[v1.ResourceName]int64, v resource.Vector) {
	for name, amount := range amounts(v) {
		sum[name] = resource.Add(sum[name], amount)
	}
}

func amounts(v resource.Vector) map[v1.ResourceName]int64 {
	m := map[v1.ResourceName]int64{
		v1.ResourceCPU: v.MilliCPU, v1.ResourceMemory: v.Memory, v1.ResourceEphemeralStorage: v.EphemeralStorage,
	}
	for _, s := range v.Scalars {
		m[s.Name] = s.Value
	}
	return m
}

// offered lists the resources that some node offers: CPU and memory first.
func offered(nodes []*object.Node) []v1.ResourceName {
	some := map[v1.ResourceName]bool{}
	for _, n := range nodes {
		for name, amount := range amounts(n.Allocatable) {
			if amount > 0 {
				some[name] = true
			}
		}
	}
	first := []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory}
	rest := slices.DeleteFunc(slices.Sorted(maps.Keys(some)), func(n v1.ResourceName) bool { return slices.Contains(first, n) })
	return append(first, rest...)
}

// share is "taken/there (percent)".
func (l *load) share(name v1.ResourceName) string {
	taken, there := l.taken[name], l.there[name]
	s := amount(name, taken) + "/" + amount(name, there)
	if there > 0 {
		s += fmt.Sprintf(" (%.0f%%)", 100*float64(taken)/float64(there))
	}
	return s
}

// amount writes a number as people write it in manifests, to three digits.
func amount(name v1.ResourceName, n int64) string {
	switch name {
	case v1.ResourceCPU:
		return digits(float64(n) / 1000)
	case v1.ResourceMemory, v1.ResourceEphemeralStorage:
		value, unit := float64(n), ""
		for _, u := range []string{"Ki", "Mi", "Gi", "Ti", "Pi"} {
			if value < 1024 {
				break
			}
			value, unit = value/1024, u
		}
		return digits(value) + unit
	}
	return strconv.FormatInt(n, 10)
}

func digits(f float64) string {
	if f >= 100 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}
