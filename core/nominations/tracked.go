package nominations

import (
	"slices"

	"github.com/berth-scheduler/berth/core/index/volumes"
	"github.com/berth-scheduler/berth/core/table"
)

// Tracked records up to which revision the pod affinity terms and volumes of nominated pods
// are registered with the table. The zero value is ready to use.
type Tracked struct {
	revision uint64 // of the nominations
	swept    uint64 // how often the table had dropped unused terms and volumes
}

// Follow registers the pod affinity terms and volumes of nominated pods with the table.
// They then count in the signatures of other pods before a nominated pod is tried on a
// row. A nil Nominator changes nothing.
func (x *Tracked) Follow(t *table.Table, n Nominator) {
	if n == nil {
		return
	}
	nodes, now, known := changed(n, x.revision)
	if !known { // some may have ended
		nodes = slices.AppendSeq(slices.Clone(nodes), t.Terms().TrackedNominations())
		slices.Sort(nodes)
	}
	x.revision = now
	terms, attached := t.Terms(), volumes.Of(t)
	if swept := terms.Swept() + attached.Swept(); swept != x.swept {
		nodes, x.swept = slices.Concat(nodes, n.NominatedNodes()), swept
	}
	for _, node := range nodes {
		pods := n.NominatedTo(node)
		terms.TrackNominated(node, pods)
		for _, p := range pods {
			attached.Track(p)
		}
	}
}
