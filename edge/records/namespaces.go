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
	mu    sync.RWMutex
	names map[string]bool
}

// observe remembers the namespace that the event is about, if any.
func (n *namespaces) observe(e machine.Event) {
	name := ""
	switch e := e.(type) {
	case machine.PodSet:
		name = e.Pod.Namespace
	case machine.NamespaceSet:
		name = e.Namespace.Name
	default:
		return
	}
	if n.names[name] || len(n.names) >= mostNamespaces {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[strings.Clone(name)] = true
}

// KnewNamespace reports whether the namespace is or was there since the recorder began. Of more
// than can be remembered it may be any.
func (r *Recorder) KnewNamespace(name string) bool {
	n := &r.namespaces
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.names[name] || len(n.names) >= mostNamespaces
}
