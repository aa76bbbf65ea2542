package fix

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// mostPorts is how many ports are tried in the place of one that is taken.
const mostPorts = 200

// movePorts gives host ports that are taken on the row's node another number.
func (s *search) movePorts(row table.Row) [][]edit {
	own, taken := map[int32]bool{}, s.takenPorts(row)
	for _, hp := range s.pod.HostPorts {
		own[hp.Port] = true
	}
	var moved []edit
	move := func(list string, containers []v1.Container) {
		for i := range containers {
			for j := range containers[i].Ports {
				if len(moved) > mostEdits {
					return
				}
				if e, ok := s.movedPort(&containers[i], at("/spec/%s/%d/ports/%d", list, i, j), j, own, taken); ok {
					moved = append(moved, e)
				}
			}
		}
	}
	move("containers", s.spec.Containers)
	move("initContainers", s.spec.InitContainers)
	if len(moved) == 0 {
		return nil
	}
	return s.someOf(moved, row, names.NodePorts)
}

// movedPort is the port with the next number that is free.
func (s *search) movedPort(c *v1.Container, path string, j int, own, taken map[int32]bool) (edit, bool) {
	p := &c.Ports[j]
	port := p.HostPort
	if port == 0 && s.spec.HostNetwork {
		port = p.ContainerPort
	}
	if port == 0 || !own[port] || !taken[port] {
		return edit{}, false
	}
	for next := port + 1; next <= port+mostPorts && next <= 65535; next++ {
		if own[next] || taken[next] {
			continue
		}
		own[next] = true
		e := edit{kind: changePort, say: fmt.Sprintf("change host port %d of container %q to %d", port, c.Name, next)}
		if p.HostPort != 0 {
			e.ops = append(e.ops, Op{Op: "replace", Path: path + "/hostPort", Value: next})
		}
		if s.spec.HostNetwork {
			e.ops = append(e.ops, Op{Op: "replace", Path: path + "/containerPort", Value: next})
		}
		return e, true
	}
	return edit{}, false
}

// takenPorts are the ports that anybody has on the row's node, by any protocol and
// address.
func (s *search) takenPorts(row table.Row) map[int32]bool {
	taken := map[int32]bool{}
	for _, pl := range s.table.Pods(row) {
		for _, hp := range pl.Pod.HostPorts {
			taken[hp.Port] = true
		}
	}
	for _, p := range s.machine.Nominator().NominatedTo(s.table.Name(row)) {
		if p.UID == s.pod.UID {
			continue
		}
		for _, hp := range p.HostPorts {
			taken[hp.Port] = true
		}
	}
	return taken
}

// selectorText is a label selector in kubectl's words.
func selectorText(l *metav1.LabelSelector) string { return metav1.FormatLabelSelector(l) }
