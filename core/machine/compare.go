package machine

import (
	"errors"
	"fmt"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/object"
)

// Comparison is how a node that another scheduler chose for a pod does beside the
// best node.
type Comparison struct {
	// Node is the node that an attempt would choose now, "" where there is none.
	// Ties is how many nodes have its score.
	Node                      string
	Ties                      int
	NodesFeasible, NodesTotal int
	// Best is the answer for Node, Other that for the other's choice. They are filled
	// where the two nodes differ, and Best only where there is a node.
	Best, Other decision.Node
	// Err is why the pod cannot be decided on; nothing else is known then.
	Err error
}

// Compare compares the best node for the pod with another, as the cluster is now. A
// nomination of the pod itself does not count, and no extender is asked. It changes
// nothing.
func (q *Assessor) Compare(p *object.Pod, other string) Comparison {
	c := Comparison{NodesTotal: q.table.Live()}
	if err := q.guard.run("scheduling cycle", "", func() { q.compare(p, other, &c) }); err != nil {
		return Comparison{Err: err}
	}
	return c
}

func (q *Assessor) compare(p *object.Pod, other string, c *Comparison) {
	of := q.profiles[p.SchedulerName]
	switch {
	case of == nil:
		c.Err = fmt.Errorf("no profile has the schedulerName %q", p.SchedulerName)
		return
	case q.extenders.of(p) != nil:
		c.Err = errors.New("an extender is interested in the pod")
		return
	}
	if p.NominatedNode != "" {
		free := *p
		free.NominatedNode, p = "", &free
	}
	if s := q.unlisted.undecidable(q.table, of, p); s != nil {
		c.Err = s.Err
		return
	}
	if s := q.gate(of, p); s != nil {
		c.Other = decision.Node{Name: other, Blockers: []decision.Blocker{{Plugin: s.Plugin, Code: s.Code, Reasons: s.Reasons}}}
		return
	}
	o := q.engine.Decide(engine.For(of, p), q.nominations)
	defer q.engine.Reuse(o)
	if o.Rejected != nil && !o.Rejected.Code.Rejects() {
		c.Err = o.Rejected.Err
		return
	}
	c.NodesFeasible, c.Ties = o.Feasible, max(o.Ties, min(o.Feasible, 1))
	if o.Row >= 0 {
		c.Node = q.table.Name(o.Row)
	}
	if c.Node == other {
		return
	}
	if o.Row >= 0 {
		c.Best = o.Node(o.Row)
	}
	if row, known := q.table.Find(other); known {
		c.Other = o.Node(row)
	} else {
		c.Other = decision.Node{Name: other, Blockers: []decision.Blocker{{Reasons: []string{"the node is not known"}}}}
	}
}
