package table

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// hosts counts the nodes by their label kubernetes.io/hostname. As a rule
// each node has its own; a plugin that relies on it looks here.
type hosts struct {
	nodes    map[string]int
	revision uint64
}

// HostNodes is the number of nodes whose hostname label has this value.
func (t *Table) HostNodes(hostname string) int { return t.hosts.nodes[hostname] }

// HostRevision changes whenever a node starts or ends to share its hostname
// label with another.
func (t *Table) HostRevision() uint64 { return t.hosts.revision }

func (t *Table) setHost(old, now *object.Node) {
	was, had := hostname(old)
	is, has := hostname(now)
	if had == has && was == is {
		return
	}
	if had {
		t.hosts.add(was, -1)
	}
	if has {
		t.hosts.add(is, 1)
	}
}

func (h *hosts) add(name string, n int) {
	before := h.nodes[name]
	h.nodes[name] = before + n
	if before+n == 0 {
		delete(h.nodes, name)
	}
	if (before > 1) != (before+n > 1) {
		h.revision++
	}
}

func hostname(n *object.Node) (string, bool) {
	if n == nil {
		return "", false
	}
	name, ok := n.Labels[v1.LabelHostname]
	return name, ok
}
