package fix

import (
	"context"
	"errors"
	"fmt"
)

// Bounds of a search. Work is counted, so that the same input has the same fixes on every
// machine; the context bounds the time.
const (
	mostWork  = 1_000_000 // units, each about 10 µs of a core
	mostEdits = 128       // of a fix
)

// budget is the work that a search may still do.
type budget struct {
	ctx  context.Context
	left int // units
	cut  string
}

// spend takes units of work off the budget and reports whether the search goes on.
func (b *budget) spend(units int) bool {
	if b.cut != "" {
		return false
	}
	b.left -= units
	switch err := b.ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		b.cut = "the search for fixes was cut when its time was up: there may be others, and another run may find more"
	case err != nil:
		b.cut = "the search for fixes was cut: nobody waits for the answer"
	case b.left < 0:
		b.cut = fmt.Sprintf("the search for fixes was cut after %d units of work: there may be others", mostWork)
	}
	return b.cut == ""
}

// rowWork is the work of asking about one node with the edits made.
func (s *search) rowWork(edits []edit) int {
	return 5 + s.size + len(edits)/2
}

// variantWork is the work of looking at what a node lacks for the pod.
func (s *search) variantWork(node string) int {
	taints := 0
	if n := s.nodes[node]; n != nil {
		taints = len(n.Spec.Taints)
	}
	return 1 + len(s.selectorKeys)/100 + taints*(1+len(s.pod.Tolerations.List))/500
}

// tryWork is the work of a decision with the edits made.
func (s *search) tryWork(edits []edit) int {
	return s.rowWork(edits) + s.table.Live()/10
}
