package records

import (
	"strings"
	"sync"

	"github.com/berth-scheduler/berth/core/machine"
)

// mostNamespaces bounds the namespaces that are remembered.
const mostNamespaces = 20_000

// namespaces are the names of those that are or were there. The loop's goroutine alone writes.
type namespaces struct {
	mu     sync.RWMutex
	goneAt map[string]uint64 // when each went, by how many went until then; 0: it is there
	gone   uint64            // how many went
	missed bool              // more are there than can be remembered
}

// observe remembers the namespace that the event is about, if any. The event of a pod does not bring one
// back that is gone: it may be late.
func (n *namespaces) observe(e machine.Event) {
	switch e := e.(type) {
	case machine.PodSet:
		if _, known := n.goneAt[e.Pod.Namespace]; !known {
			n.add(e.Pod.Namespace)
		}
	case machine.NamespaceSet:
		if at, known := n.goneAt[e.Namespace.Name]; !known || at != 0 {
			n.add(e.Namespace.Name)
		}
	case machine.NamespaceGone:
		if at, known := n.goneAt[e.Name]; known && at == 0 {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.gone++
			n.goneAt[e.Name] = n.gone
		}
	}
}

// add records that the namespace is there. Where too many are remembered it forgets the one that went
// first.
func (n *namespaces) add(name string) {
	if n.missed {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.goneAt[name]; !known && len(n.goneAt) >= mostNamespaces {
		first, when := "", n.gone+1
		for other, at := range n.goneAt { // any order: the least counts
			if at != 0 && at < when {
				first, when = other, at
			}
		}
		if when > n.gone {
			n.missed = true
			return
		}
		delete(n.goneAt, first)
	}
	n.goneAt[strings.Clone(name)] = 0
}

// KnewNamespace reports whether the namespace is or was there since the recorder began. Of those that
// are gone it knows the last ones. If more are there than can be remembered it may be any.
func (r *Recorder) KnewNamespace(name string) bool {
	n := &r.namespaces
	n.mu.RLock()
	defer n.mu.RUnlock()
	_, known := n.goneAt[name]
	return known || n.missed
}
