package nodeports

import (
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// reason is kube-scheduler's text for rejected nodes.
const reason = "node(s) didn't have free ports for the requested pod ports"

// anyAddress is a host IP that conflicts with every other. The IPv6 one (::) does not,
// as in kube-scheduler.
const anyAddress = "0.0.0.0"

// New returns the plugin.
func New() framework.Plugin {
	return framework.Plugin{
		Name: names.NodePorts,
		EventsToRegister: []framework.ClusterEventWithHint{
			{Resource: framework.AssignedPod, ActionType: framework.Delete, QueueingHintFn: freed},
			{Resource: framework.Node, ActionType: framework.Add},
		},
		SignPlugin: framework.SignPlugin{Locality: framework.NodeAndPods, Sign: sign},
		PreFilter: func(_ *table.Table, p *object.Pod) framework.PreFilterResult {
			if len(p.HostPorts) == 0 {
				return framework.PreFilterResult{Skip: true}
			}
			wanted := &ports{list: p.HostPorts}
			conflicts := func(other *object.Pod) bool { return wanted.conflict(other.HostPorts) }
			return framework.PreFilterResult{Rules: framework.Rules{Conflicts: conflicts}}
		},
		FilterPlugin: framework.FilterPlugin{
			Filter: filter,
			Explain: func(*framework.Input, table.Row, framework.Verdict) decision.Blocker {
				return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{reason}}
			},
		},
	}
}

// sign appends the pod's host ports to key.
func sign(key []byte, _ *table.Table, p *object.Pod) []byte {
	for _, hp := range p.HostPorts {
		key = fmt.Appendf(key, "%q%q%d,", hp.IP, hp.Protocol, hp.Port)
	}
	return key
}

// freed reports whether the deleted pod had a host port that conflicts with one that the rejected
// pod p wants.
func freed(p *object.Pod, e *framework.Event) bool {
	return conflict(p.HostPorts, e.OldPod.HostPorts)
}

// filter rejects the rows with a pod that has a host port which conflicts with one that the pod to
// be placed wants.
func filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	x, wanted := index.Of(in.Table), ports{list: in.Pod.HostPorts}
	conflicting := x.conflicting(wanted.list)
	for i, r := range rows {
		out[i] = framework.Fits
		if set := x.sets[r]; set&conflicting != 0 || set&otherPorts != 0 && wanted.conflictWithPods(in.Table.Pods(r)) {
			out[i] = framework.Conflict
		}
	}
}

// conflict reports whether one of the wanted host ports conflicts with one of the used.
// Ports within one list do not conflict.
func conflict(wanted, used []object.HostPort) bool {
	w := ports{list: wanted}
	return w.conflict(used)
}

// fewPorts bounds the shorter of two lists of ports that are compared pairwise; longer ones are
// looked up in a map.
const fewPorts = 16

// ports is the host ports of one pod, of which there may be thousands.
type ports struct {
	list []object.HostPort
	// known holds each of the ports, and each with IP ""; nil until it is needed.
	known map[object.HostPort]struct{}
}

// conflictWithPods reports whether one of the ports conflicts with a host port of one
// of these pods.
func (p *ports) conflictWithPods(pods []*table.Placed) bool {
	return slices.ContainsFunc(pods, func(pl *table.Placed) bool { return p.conflict(pl.Pod.HostPorts) })
}

// conflict reports whether a port of p and one of others have one number and protocol, and either one
// address or anyAddress on one side.
func (p *ports) conflict(others []object.HostPort) bool {
	if min(len(p.list), len(others)) > fewPorts {
		return p.conflictKnown(others)
	}
	for i := range p.list {
		for j := range others {
			w, u := &p.list[i], &others[j]
			if w.Port == u.Port && w.Protocol == u.Protocol && (w.IP == u.IP || w.IP == anyAddress || u.IP == anyAddress) {
				return true
			}
		}
	}
	return false
}

// conflictKnown returns the same as conflict, by a look-up of each of the others in known, which is
// faster for many ports. It fills known when it is first called.
func (p *ports) conflictKnown(others []object.HostPort) bool {
	if p.known == nil {
		p.known = make(map[object.HostPort]struct{}, 2*len(p.list))
		for _, hp := range p.list {
			p.known[hp] = struct{}{}
			hp.IP = ""
			p.known[hp] = struct{}{}
		}
	}
	for _, u := range others {
		same, somewhere, everywhere := u, u, u
		somewhere.IP, everywhere.IP = "", anyAddress
		_, conflicts := p.known[same]
		if !conflicts {
			_, conflicts = p.known[everywhere]
		}
		if !conflicts && u.IP == anyAddress {
			_, conflicts = p.known[somewhere]
		}
		if conflicts {
			return true
		}
	}
	return false
}
