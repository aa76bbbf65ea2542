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
	// Number is the call's own; 0: nobody waits for a result that comes later.
	Number uint64

	Filters     FilterResults
	Nominations Nominations
	Disruption  Disruption

	// HasExtenders is set if extenders take part in preemption. A plugin then returns its
	// Candidates instead of a choice.
	HasExtenders bool
	// Cache is storage for the plugin, for its next call about a pod with the same
	// signature. It is emptied whenever the filters' verdicts may have changed on rows
	// that did not. nil means that nothing is kept for the pod's class.
	Cache *any
	// Draw returns a seeded, uniform number in [0, n).
	Draw func(n int) int
	// Check asks the plugin to compare each result of a short cut with the long way.
	Check bool
}

// FilterResults answers what the filters return for the pod now, and would return after
// changes. It mirrors upstream's NodeToStatusReader and the Handle's
// RunFilterPluginsWithNominatedPods.
type FilterResults struct {
	// PreFilter is set when a PreFilter plugin rejected the pod as a whole.
	PreFilter *decision.Status
	// Code returns how the filters rejected the node at a row: Unschedulable
	// where removing pods may help, UnschedulableAndUnresolvable where nothing
	// will.
	Code func(table.Row) decision.Code
	// AppendUnschedulable, when set, appends the rows with that Code, in order.
	AppendUnschedulable func(rows []table.Row) []table.Row
	// Unschedulable is the number of nodes with that Code.
	Unschedulable func() int
	// Rows are the only ones with a Code other than
	// UnschedulableAndUnresolvable, where the pod is limited to a few nodes;
	// nil: any may have.
	Rows []table.Row
	// Run runs the profile's filters for the pod on one row of the table as it
	// stands (under a checkpoint, say), pods nominated there with at least its
	// priority counted as placed. nil: the pod fits.
	Run func(table.Row) *decision.Blocker
	// RunWithoutLower returns the row's blocker for the case that the pods of lower
	// priority leave it; nil if the pod would fit. known is false if only a trial
	// placement can tell, or a filter fails.
	RunWithoutLower func(r table.Row) (b *decision.Blocker, known bool)
	// Local: the answer of Run depends on nothing but the row and the pods
	// nominated to it.
	Local bool
	// Shortfall appends what the pod lacks on the row as it stands, as far as additive
	// filters know. Frees appends as many amounts: what a pod there frees by leaving. If
	// the pods that leave do not free all of the shortfall, the pod does not fit.
	Shortfall func(r table.Row, shortfall []int64) []int64
	Frees     func(p *object.Pod, frees []int64) []int64
}

// Nominations returns which pods are nominated to which nodes. It mirrors upstream's
// PodNominator.
type Nominations struct {
	// NodeName is the node that the pod is nominated to, "" for none.
	NodeName string
	// PreemptedNodeName is the node that victims are leaving because this pod
	// preempted them, or else NodeName.
	PreemptedNodeName string
	// PodsForNode lists the pods nominated to a node, in no particular order.
	PodsForNode func(node string) []*object.Pod
	// ChangedSince lists the nodes whose nominations changed after the
	// revision, and the revision now; false when that is not known any more.
	ChangedSince func(revision uint64) (nodes []string, now uint64, known bool)
}

// Disruption holds what limits the eviction of pods.
type Disruption struct {
	// Budgets are all disruption budgets, sorted by namespace, then name.
	Budgets []*object.Budget
	// Evicting reports whether the pod is a victim of an earlier preemption whose
	// eviction was requested and has not failed.
	Evicting func(types.UID) bool
}

// Candidate is a node and the pods that would have to leave it.
type Candidate struct {
	Node    string
	Victims []*object.Pod
	// NumPDBViolations is how many victims a disruption budget protects.
	NumPDBViolations int
}

// PostFilterResult is what the plugin answers. The zero value: nothing done,
// nothing to say.
type PostFilterResult struct {
	// Message is appended to the pod's condition when nothing was found.
	Message string
	// Preemption: the plugin tried to find pods to preempt.
	Preemption bool
	// Writes are carried out before the pod is tried again. Where one fails, PostFilter
	// failed. A plugin that was Pending writes for itself.
	Writes []Write
	// NotHelpful counts, over all nodes, the reasons why the pod would not fit even
	// without any pod of lower priority; nil if that is unknown.
	NotHelpful []decision.Tally
	// Resolved ends the run of PostFilter plugins.
	Resolved bool
	// Failed ends it, too: Message says why, and alone is appended. The pod's
	// nomination stays.
	Failed bool
	// NominatedNodeName is the node that the pod is nominated to; Victims are
	// to be evicted from it.
	NominatedNodeName string
	Victims           []types.UID
	// ClearNominations lists pods whose nomination to the node ends.
	ClearNominations []types.UID
	// Candidates, when not empty, go to the extenders. Choose is then called
	// with what they leave of them, or why they could not be asked, and with a
	// call of that time.
	Candidates []Candidate
	Choose     func(c *PostFilterCall, left []Candidate, err error) PostFilterResult
	// KeepNomination leaves the pod's present nomination as it is; otherwise
	// it becomes NominatedNodeName, which may be "".
	KeepNomination bool
	// Pending is set if the plugin continues outside of the loop. The result then comes
	// later, with the call's number, and the other fields are empty.
	Pending bool
}
