package interpodaffinity

import (
	"iter"
	"slices"

	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Required anti-affinity between the pod and one that is nominated to a node closes the
// domain of that node, as it will when the nominated pod is placed. kube-scheduler counts
// it on that node alone. Then the successor of a preempted pod goes to another node of the
// zone, and is preempted there, without end.

// setNominated opens the domains that the last call closed, and closes those that required
// anti-affinity between the pod and the nominated pods rules out for the pod. own is the row that
// the pod itself is nominated to, -1 if none: its domain stays open unless the nominated pod has a
// higher priority. What concerns one row alone is left to the engine (see close).
func setNominated(in *framework.Input, pod *object.Pod, own table.Row, nominated iter.Seq2[table.Row, *object.Pod]) {
	c := in.State.(*counts)
	c.openAll()
	expected := c.existing != nil && in.Table.Terms().AnyExpected()
	if !expected && len(c.by[antiAffinity]) == 0 {
		return
	}
	c.sync(in.Table)
	for r, p := range nominated {
		from := own
		if p.Priority > pod.Priority {
			from = -1
		}
		if expected && p.Affinity != nil {
			c.existing.sharesOf(in.Table.Terms().Of(p.Affinity), func(s share) { c.close(existingAntiAffinity, s, r, from) })
		}
		c.eachShare(in.Table, p, func(k kind, s share) {
			if k == antiAffinity {
				c.close(k, s, r, from)
			}
		})
	}
}

// openAll opens all domains that are closed.
func (c *counts) openAll() {
	for k := range c.by {
		for i := range c.by[k] {
			c.by[k][i].closed = c.by[k][i].closed[:0]
		}
	}
}

// close closes the domain of row r in the column of the share. A row that is a domain of its own
// stays open: the engine places the nominated pod there. The domain of row from stays open, too, -1
// meaning none: the pod at hand is nominated to that row, and two pods of equal priority must not
// keep each other out for ever.
func (c *counts) close(k kind, s share, r, from table.Row) {
	p := &c.by[k][s.column]
	d := p.Of()[r]
	switch {
	case d == domain.Missing, p.at == c.layout.UniquePerNode && c.layout.Owns()[r] != domain.None:
	case from >= 0 && p.Of()[from] == d, slices.Contains(p.closed, d):
	default:
		p.closed = append(p.closed, d)
	}
}
