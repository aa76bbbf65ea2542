package machine

import (
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// overcommits counts pods that the API shows bound to a node that lacks resources for
// them. Two schedulers that decide at one moment may cause that. No filter passes such a
// node for another pod.
type overcommits struct {
	*step
	pods     int
	counting bool // from the first decision on: what was there before is history
}

// check counts and emits an Overcommitted effect if the node lacks resources for the
// pod, which was just bound to it.
func (o *overcommits) check(node string, p *object.Pod) {
	row, ok := o.table.Find(node)
	if !ok || !o.counting {
		return
	}
	if e, over := o.table.Excess(row, p); over {
		o.pods++
		o.emit(Overcommitted{Pod: p, Node: node, Excess: e})
	}
}

// Overcommitted reports a pod that the API shows bound to a node that lacks resources for
// it. Nothing can be done about it.
type Overcommitted struct {
	Pod  *object.Pod
	Node string
	table.Excess
}

func (Overcommitted) effect() {}
