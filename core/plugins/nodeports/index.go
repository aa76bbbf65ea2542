package nodeports

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// portSet is a set of host ports that pods have, by number.
type portSet uint64

const (
	mostPorts = 63 // that have numbers
	// otherPorts is in the set of a row with host ports without a number.
	otherPorts portSet = 1 << mostPorts
)

// portIndex numbers the host ports of placed pods, in the order of arrival. A number is
// never reused: once pods use more than a few different ports, the sets only say that
// there are others.
type portIndex struct {
	table *table.Table
	sets  []portSet         // by row
	ports []object.HostPort // by number
}

var index = table.Follow(func(t *table.Table) table.Follower[*portIndex] {
	x := &portIndex{table: t}
	return table.Follower[*portIndex]{Index: x, Came: x.came, Left: x.left, NodeChanged: x.grow, Check: x.check}
})

func (x *portIndex) grow(r table.Row, _, _ *object.Node) { x.sets = table.Reach(x.sets, r) }

func (x *portIndex) came(pl *table.Placed) { x.sets[pl.Row] |= x.set(pl.Pod.HostPorts) }

func (x *portIndex) left(pl *table.Placed) {
	if len(pl.Pod.HostPorts) > 0 {
		x.sets[pl.Row] = x.setOf(pl.Row)
	}
}

// setOf returns the set of the ports of the row's pods.
func (x *portIndex) setOf(r table.Row) (set portSet) {
	for _, pl := range x.table.Pods(r) {
		set |= x.set(pl.Pod.HostPorts)
	}
	return set
}

// set returns the set of the ports, and numbers those that are new.
func (x *portIndex) set(ports []object.HostPort) (set portSet) {
	for _, hp := range ports {
		set |= x.number(hp)
	}
	return set
}

// number returns the set of the port alone, or otherPorts where no number is left.
func (x *portIndex) number(hp object.HostPort) portSet {
	for i, known := range x.ports {
		if known == hp {
			return 1 << i
		}
	}
	if len(x.ports) == mostPorts {
		return otherPorts
	}
	x.ports = append(x.ports, hp)
	return 1 << (len(x.ports) - 1)
}

// conflicting returns the set of numbered ports that conflict with those wanted.
func (x *portIndex) conflicting(wanted []object.HostPort) (set portSet) {
	for i := range x.ports {
		if conflict(wanted, x.ports[i:i+1]) {
			set |= 1 << i
		}
	}
	return set
}

func (x *portIndex) check(*portIndex) error {
	for _, r := range x.table.All() {
		if want := x.setOf(r); x.sets[r] != want {
			return fmt.Errorf("node %q has the ports %b, recounted %b", x.table.Name(r), x.sets[r], want)
		}
	}
	return nil
}
