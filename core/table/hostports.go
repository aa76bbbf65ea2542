package table

import "github.com/berth-scheduler/berth/core/object"

// PortSet is a set of host ports that pods have, by number.
type PortSet uint64

const (
	mostPorts = 63 // that have numbers
	// OtherPorts is in the set of a row with host ports without a number.
	OtherPorts PortSet = 1 << mostPorts
)

// portNumbers numbers the host ports of placed pods, in the order of arrival. A number is
// never reused: once pods use more than a few different ports, the sets only say that
// there are others.
type portNumbers struct {
	ofRow []PortSet
	ports []object.HostPort // by number
}

// set returns the set of the ports, and numbers those that are new.
func (n *portNumbers) set(ports []object.HostPort) (set PortSet) {
	for _, hp := range ports {
		set |= n.number(hp)
	}
	return set
}

// number returns the set of the port alone, or OtherPorts where no number is left.
func (n *portNumbers) number(hp object.HostPort) PortSet {
	for i, known := range n.ports {
		if known == hp {
			return 1 << i
		}
	}
	if len(n.ports) == mostPorts {
		return OtherPorts
	}
	n.ports = append(n.ports, hp)
	return 1 << (len(n.ports) - 1)
}

// PortSets returns the column of the host ports taken. Read only.
func (t *Table) PortSets() []PortSet { return t.portNumbers.ofRow }

// NumberedPorts returns the host ports that have numbers, by number. Read only.
func (t *Table) NumberedPorts() []object.HostPort { return t.portNumbers.ports }
