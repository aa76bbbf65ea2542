package conform

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/sim/generate"
)

// Side is a scheduler that is compared. It owns its copy of the cluster and is
// used by one goroutine.
type Side interface {
	// Decide makes one attempt for the pod and leaves the cluster as it is.
	// Record.Node is the choice when the result is Scheduled.
	Decide(*v1.Pod) oracle.Record
	// Assume places the pod on the node.
	Assume(pod *v1.Pod, node string) error
	// Apply makes a change to the cluster and tells, for each waiting pod, if
	// the change takes it out of the unschedulable pool.
	Apply(change generate.Change, waiting []oracle.Rejected) ([]bool, error)
	Stop()
}

// Start makes a side for the cluster of a world, with its configuration.
type Start func(generate.World) (Side, error)

// Upstream is kube-scheduler v1.36.3.
func Upstream(w generate.World) (Side, error) { return oracle.New(w) }
