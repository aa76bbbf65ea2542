package conform

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/sim/generate"
)

// Side is a scheduler that is compared. It owns its copy of the cluster and is
// used by one goroutine.
type Side interface {
	// Decide makes one attempt for the pod and leaves the cluster as it is.
	// Record.Node is the choice when the result is Scheduled. A pod that names
	// a node in its spec is evaluated all the same; then only Record.Nodes counts.
	Decide(*v1.Pod) oracle.Record
	// Assume places the pod on the node.
	Assume(pod *v1.Pod, node string) error
	// Apply makes a change to the cluster and tells, for each waiting pod, if
	// the change takes it out of the unschedulable pool.
	Apply(change generate.Change, waiting []oracle.Rejected) ([]bool, error)
	// Order is the order in which the queue hands out pods that come in the
	// order given, all before the first is decided. Gated ones are left out.
	Order([]*v1.Pod) ([]*v1.Pod, error)
}

// sparing is a side that leaves pods where they are, against a queueing hint, when an
// attempt would be in vain.
type sparing interface {
	// Spared tells whether the last change did so with the pod.
	Spared(types.UID) bool
}

// Start makes a side for the cluster of a world, with its configuration. It
// lives until the context ends.
type Start func(context.Context, generate.World) (Side, error)

// Upstream is kube-scheduler.
func Upstream(ctx context.Context, w generate.World) (Side, error) {
	w.Config = reachable(w.Config)
	s, err := oracle.New(w)
	if err == nil {
		context.AfterFunc(ctx, s.Stop)
	}
	return s, err
}
