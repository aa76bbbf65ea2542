package nodeports

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// portSet is a set of host ports: bit i is set for the port with number i in a portIndex.
type portSet uint64

const (
	mostPorts = 63 // ports that get a number
	// otherPorts is in the set of a row whose pods have host ports without a number.
	otherPorts portSet = 1 << mostPorts
)

// portIndex follows the host ports that placed pods use on each row. Different ports
// get numbers in the order of their arrival, which are never reused; those after the
// first mostPorts get none.
type portIndex struct {
	table *table.Table
	sets  []portSet         // by row
	ports []object.HostPort // by number
}

// index returns the portIndex of a table, which the table keeps up to date.
var index = table.Follow(func(t *table.Table) table.Follower[*portIndex] {
	x := &portIndex{table: t}
	return table.Follower[*portIndex]{Index: x, Came: x.came, Left: x.left, NodeChanged: x.grow, Check: x.check}
})

// grow extends sets to the row. The table calls it when the row's node changes, and for each new
// row.
func (x *portIndex) grow(r table.Row, _, _ *object.Node) { x.sets = table.Reach(x.sets, r) }

// came adds the ports of a pod to its row's set. The table calls it when it placed the pod.
func (x *portIndex) came(pl *table.Placed) { x.sets[pl.Row] |= x.set(pl.Pod.HostPorts) }

// left computes the row's set of ports again. The table calls it after it removed the pod.
func (x *portIndex) left(pl *table.Placed) {
	if len(pl.Pod.HostPorts) > 0 {
		x.sets[pl.Row] = x.setOf(pl.Row)
	}
}

// setOf computes the set of ports of all pods on the row.
func (x *portIndex) setOf(r table.Row) (set portSet) {
	for _, pl := range x.table.Pods(r) {
		set |= x.set(pl.Pod.HostPorts)
	}
	return set
}

// set returns the ports as a set. It gives numbers to those that are new.
func (x *portIndex) set(ports []object.HostPort) (set portSet) {
	for _, hp := range ports {
		set |= x.number(hp)
	}
	return set
}

// number returns the set with just the port hp. It gives the port a number if it is new. It returns
// otherPorts for a port without a number, when all numbers are taken.
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

// conflicting returns the set of those numbered ports that conflict with one of the
// wanted ports.
func (x *portIndex) conflicting(wanted []object.HostPort) (set portSet) {
	for i := range x.ports {
		if conflict(wanted, x.ports[i:i+1]) {
			set |= 1 << i
		}
	}
	return set
}

// check returns an error if a row's set differs from that of its pods, counted anew.
func (x *portIndex) check(*portIndex) error {
	for _, r := range x.table.All() {
		if want := x.setOf(r); x.sets[r] != want {
			return fmt.Errorf("node %q has the ports %b, recounted %b", x.table.Name(r), x.sets[r], want)
		}
	}
	return nil
}
