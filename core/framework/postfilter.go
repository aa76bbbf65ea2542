package framework

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// PostFilterCall is what a PostFilter plugin is given for a pod that fits no
// node.
type PostFilterCall struct {
	Now   time.Time
	Table *table.Table
	Pod   *object.Pod
	// Code returns how the filters rejected the node at a row: Unschedulable
	// where removing pods may help, UnschedulableAndUnresolvable where nothing will.
	Code func(table.Row) decision.Code
	// Rows are the only ones with a Code other than Unresolvable, where the pod
	// is narrowed to a few nodes; nil: any may have.
	Rows []table.Row
	// Refit runs the profile's filters for the pod on one row of the table as
	// it stands (under a checkpoint, say), pods nominated there with at least
	// its priority counted as placed. nil: it fits.
	Refit func(table.Row) *decision.Blocker
	// Lack appends what the pod is short of on the row as it stands, as far as
	// sums over the pods there tell, in as many amounts as Gives appends of what
	// a pod there takes up: where the pods that go do not give back all that is
	// lacking, the pod does not fit.
	Lack  func(r table.Row, lack []int64) []int64
	Gives func(p *object.Pod, gives []int64) []int64
	// Local: Refit's answer depends on nothing but the row and the pods
	// nominated to it.
	Local bool
	// Kept is for the plugin to leave something in for its next call about a
	// pod of this class. It is empty again whenever what the class's filters say
	// of rows that did not change may have changed.
	Kept *any
	// Rejected is set when a PreFilter plugin rejected the pod as a whole.
	Rejected *decision.Status
	// Nomination is the node that pods leave because this one preempted them, or
	// else the one that it is nominated to; "" for none.
	Nomination string
	// Holds is the node that the pod is among those nominated to, "" for none.
	Holds string
	// Nominated lists the pods nominated to a node, in no particular order.
	Nominated func(node string) []*object.Pod
	// Renominated lists the nodes whose nominations changed after the revision,
	// and the revision now; false when that is not known any more.
	Renominated func(since uint64) (nodes []string, now uint64, known bool)
	// Evicting tells whether the pod is a victim of an earlier preemption
	// whose eviction was asked for and has not failed.
	Evicting func(types.UID) bool
	// Budgets are all disruption budgets, sorted by namespace, then name.
	Budgets []*object.Budget
	// Check: what is found by a short cut is to be compared with the long way.
	Check bool
	// Draw returns a seeded, uniform number in [0, n).
	Draw func(n int) int
	// Reviewed: extenders have a say in whom the pod preempts. A plugin then
	// returns its Candidates instead of a choice.
	Reviewed bool
}

// Candidate is a node and who would have to go from it.
type Candidate struct {
	Node    string
	Victims []*object.Pod
	// Violations is how many victims a disruption budget protects.
	NumPDBViolations int
}

// PostFilterResult is what the plugin answers. The zero value: nothing done,
// nothing to say.
type PostFilterResult struct {
	// Message is appended to the pod's condition when nothing was found.
	Message string
	// Writes are carried out; nothing waits for them.
	Writes []Write
	// Resolved ends the run of PostFilter plugins.
	Resolved bool
	// Failed ends it, too: Message says why, and alone is appended. The pod's
	// nomination stays.
	Failed bool
	// Node is nominated for the pod; Victims are to be evicted from it.
	NominatedNodeName string
	Victims           []types.UID
	// ClearNominations lists pods whose nomination to Node ends.
	ClearNominations []types.UID
	// Candidates, when not empty, go to the extenders. Choose is then called
	// with what they leave of them, or why they could not be asked, and with a
	// call of that time.
	Candidates []Candidate
	Choose     func(c *PostFilterCall, left []Candidate, err error) PostFilterResult
	// KeepNomination leaves the pod's present nomination as it is; otherwise
	// it becomes Node, which may be "".
	KeepNomination bool
}
