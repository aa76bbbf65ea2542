package podtopologyspread

import (
	"encoding/binary"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/index/nodetaints"
	"github.com/berth-scheduler/berth/core/index/selected"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// policy is a set of node inclusion policies: those that a node meets, or that a
// constraint needs.
type policy uint8

const (
	topologyLabels policy = 1 << iota // the node has the topology labels of all constraints
	affinity                          // the pod's node selector and required affinity match the node
	taints                            // the pod tolerates the node's taints

	policies = 1 << iota // the number of different sets
)

// needs returns the policies that nodes must meet to count for the constraint c. If c is by
// hostname and k is for Score, that is topologyLabels alone: nodeAffinityPolicy and
// nodeTaintsPolicy are ignored, as in kube-scheduler.
func needs(c *match.SpreadConstraint, k kind) policy {
	p := topologyLabels
	if k != hard && byHost(*c) {
		return p
	}
	if c.HonorAffinity {
		p |= affinity
	}
	if c.HonorTaints {
		p |= taints
	}
	return p
}

// inclusion holds which nodes meet the inclusion policies of pods with one node
// selector and one set of tolerated taints. Classes of pods share it.
type inclusion struct {
	any         policy              // the policies to evaluate: affinity, taints
	required    *match.NodeSelector // the pods' node selector and affinity; nil: none, or ignored
	tolerations match.Tolerations   // of the pods, if taints are evaluated
	comparisons bool                // plugin.comparisons
	// rejected is the numbers of the NoSchedule and NoExecute taints that the pods do not tolerate.
	// It is used only if numbered is set: every taint of a node has a number.
	rejected nodetaints.Set
	numbered bool

	met []policy // by row, the policies in the field any that its node meets
	// moves grows whenever a node meets other policies than before.
	moves    uint64
	revision uint64 // of the table, up to which met is computed
}

// inclusionOf returns the inclusion that evaluates the policies in any for pods like p. It adds one
// if there is none. The caller must have called begin.
func (pl *plugin) inclusionOf(t *table.Table, any policy, p *object.Pod) *inclusion {
	in := inclusion{any: any, comparisons: pl.comparisons}
	key := append(pl.key[:0], byte(any))
	if any&taints != 0 {
		if in.tolerations, in.numbered = p.Tolerations, !nodetaints.Of(t).AnyOthers(); in.numbered {
			in.rejected = rejectedTaints(t, p.Tolerations, pl.comparisons)
			key = binary.AppendUvarint(key, uint64(in.rejected))
		} else {
			key = match.AppendField(key, in.tolerations.Key)
		}
	}
	if any&affinity != 0 && p.RequiredNodes != nil {
		in.required = p.RequiredNodes
		key = append(append(key, '='), in.required.Key...)
	}
	pl.key = key
	known := pl.inclusions[string(key)]
	if known == nil {
		known = &in
		known.evaluate(t)
		pl.inclusions[string(key)] = known
		pl.elements += t.Rows()
	}
	return known
}

// rejectedTaints returns the numbers of the NoSchedule and NoExecute taints of nodes that the
// tolerations do not tolerate. It leaves out taints that have no number. comparisons is the gate
// TaintTolerationComparisonOperators.
func rejectedTaints(t *table.Table, tolerations match.Tolerations, comparisons bool) (set nodetaints.Set) {
	for i, taint := range nodetaints.Of(t).Numbered() {
		hard := taint.Effect == v1.TaintEffectNoSchedule || taint.Effect == v1.TaintEffectNoExecute
		if hard && !tolerations.Tolerates(&taint, comparisons) {
			set |= 1 << i
		}
	}
	return set
}

// taintState returns a number that changes whenever a taint number begins to stand for another
// taint, and whenever nodes begin or cease to have taints without a number.
func taintState(t *table.Table) uint64 {
	state := nodetaints.Of(t).Revision() << 1
	if nodetaints.Of(t).AnyOthers() {
		state++
	}
	return state
}

// evaluate computes met for all rows, as of the table's revision.
func (in *inclusion) evaluate(t *table.Table) {
	in.met, in.revision = make([]policy, t.Rows()), t.Revision()
	if in.any&taints != 0 && !in.numbered {
		for _, r := range t.All() {
			in.met[r] = in.of(t, r)
		}
		return
	}
	if in.any&affinity != 0 {
		admitted := func(table.Row) bool { return true }
		if in.required != nil {
			selection := selected.Of(t).Select(in.required)
			admitted = func(r table.Row) bool { admits, _ := selection.Admits(t, r); return admits }
		}
		for _, r := range t.All() {
			if admitted(r) {
				in.met[r] |= affinity
			}
		}
	}
	if in.any&taints != 0 {
		for r, set := range nodetaints.Of(t).Sets() {
			if set&in.rejected == 0 {
				in.met[r] |= taints
			}
		}
	}
}

// of returns the policies of in.any that the node on the row meets; none without a node.
func (in *inclusion) of(t *table.Table, r table.Row) (p policy) {
	n := t.Node(r)
	if n == nil {
		return 0
	}
	if in.any&affinity != 0 && in.required.Matches(n.Subject()) {
		p |= affinity
	}
	if in.any&taints != 0 && in.tolerations.Admits(n.Taints, in.comparisons) {
		p |= taints
	}
	return p
}

// follow evaluates the policies again for the nodes that changed since the last call, and adds to
// moves the number of nodes that meet other policies than before.
func (in *inclusion) follow(t *table.Table) {
	if n := t.Rows() - len(in.met); n > 0 {
		in.met = append(in.met, make([]policy, n)...)
	}
	if t.NodeRevision() <= in.revision {
		return
	}
	t.NodesChanged(in.revision, func(r table.Row) bool {
		if now := in.of(t, r); now != in.met[r] {
			in.met[r] = now
			in.moves++
		}
		return true
	})
	in.revision = t.Revision()
}
