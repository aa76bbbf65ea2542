package framework

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/table"
)

// PostFilterCall is the input of a PostFilter plugin, for a pod that fits no node.
type PostFilterCall struct {
	Now   time.Time
	Table *table.Table
	Pod   *object.Pod
	// Number identifies the call for a result that comes later (PostFilterResult.Pending);
	// 0: such a result is not accepted.
	Number uint64

	Filters     FilterResults
	Nominations Nominations
	Disruption  Disruption

	// Quotas is how the profile counts ElasticQuotas; nil: it does not follow them.
	Quotas *QuotaRules
	// Searched is set if a PostFilter plugin before this one has searched for pods to preempt,
	// in vain.
	Searched bool

	// HasExtenders is set if extenders take part in preemption. A plugin then returns its
	// Candidates instead of a choice.
	HasExtenders bool
	// Cache is a variable whose value the plugin finds again in its next call about a pod with
	// the same signature. It is emptied whenever the filters' verdicts may have changed on rows
	// that did not. nil means that nothing is kept for the pod's class.
	Cache *any
	// Draw returns a number in [0, n), the same for the same seed, pod and attempt.
	Draw func(n int) int
	// Check is set if the plugin is to compare each result of a short cut with a full
	// computation, and to panic if they differ.
	Check bool
}

// FilterResults returns the filters' verdicts for the pod, as of the decision, now, or
// after changes. It is like upstream's NodeToStatusReader and the Handle's
// RunFilterPluginsWithNominatedPods.
type FilterResults struct {
	// PreFilter is set when a PreFilter plugin rejected the pod as a whole.
	PreFilter *decision.Status
	// Code returns how the filters rejected the row's node in the decision: Unschedulable
	// if removing pods may help, UnschedulableAndUnresolvable if it cannot.
	Code func(table.Row) decision.Code
	// AppendUnschedulable, when set, appends the rows with Code Unschedulable, ascending.
	AppendUnschedulable func(rows []table.Row) []table.Row
	// Unschedulable returns the number of nodes with Code Unschedulable.
	Unschedulable func() int
	// Rows, when not nil, are the only rows that the pod is limited to; others are
	// UnschedulableAndUnresolvable.
	Rows []table.Row
	// Run runs the profile's filters for the pod on one row of the table as it is now, also
	// under a checkpoint, with pods nominated there of at least its priority counted as
	// placed. nil means that the pod fits.
	Run func(table.Row) *decision.Blocker
	// RunWithoutLower, when set, returns the row's blocker if all pods of lower priority left it,
	// except those in kept; nil if the pod would fit. known is false if only a trial placement can
	// tell, or a filter fails.
	RunWithoutLower func(r table.Row, kept []*object.Pod) (b *decision.Blocker, known bool)
	// Local is set if the result of Run depends only on the row and the pods nominated to
	// it.
	Local bool
	// Shortfall appends by how much the pod exceeds what is free on the row, for each
	// resource that filters compare. Frees appends, in the same order, what the pod p would
	// free by leaving. Unless the pods that leave free all of the shortfall, the pod does
	// not fit.
	Shortfall func(r table.Row, shortfall []int64) []int64
	Frees     func(p *object.Pod, frees []int64) []int64
}

// Nominations returns which pods are nominated to which nodes (like upstream's
// PodNominator).
type Nominations struct {
	// NodeName is the node that the pod is nominated to, "" for none.
	NodeName string
	// PreemptedNodeName is the node from which this pod preempted victims that are still
	// leaving, else NodeName.
	PreemptedNodeName string
	// Leaving are the victims that this pod preempted and that are still leaving, on any node.
	Leaving []*object.Pod
	// PodsForNode returns the pods nominated to the node, in no particular order.
	PodsForNode func(node string) []*object.Pod
	// All are the pods nominated to nodes.
	All quota.Nominated
	// ChangedSince returns the nodes whose nominations changed after the revision, and the
	// present revision; false if changes so old are not known any more.
	ChangedSince func(revision uint64) (nodes []string, now uint64, known bool)
}

// PreemptionBudgets is not a plugin. It is the name in pluginConfig of the arguments that say
// whether preemption may violate a PodDisruptionBudget. If a budget keeps victims, this is the
// plugin that the reason names.
const PreemptionBudgets = "PreemptionBudgets"

// Disruption holds what PostFilter has to respect when it evicts pods: the budgets, and the
// evictions under way.
type Disruption struct {
	// Budgets are all PodDisruptionBudgets, sorted by namespace, then name.
	Budgets []*object.Budget
	// Strict is set if no victim's eviction may violate a budget.
	Strict bool
	// Evicting reports whether the pod is a victim of an earlier preemption whose
	// eviction was requested and has not failed.
	Evicting func(types.UID) bool
}

// Candidate is a node and the pods that would have to leave it.
type Candidate struct {
	Node    string
	Victims []*object.Pod
	// NumPDBViolations is the number of victims whose eviction violates a
	// PodDisruptionBudget.
	NumPDBViolations int
}

// PostFilterResult is what PostFilter returns. The zero value means that nothing was done,
// without a message.
type PostFilterResult struct {
	// Message is appended to the pod's condition. If the plugin found a node, it stands
	// there alone.
	Message string
	// Preemption is set if the plugin searched for pods to preempt.
	Preemption bool
	// Writes are carried out before the pod is tried again. If one fails, PostFilter
	// failed. A plugin whose result was Pending writes for itself.
	Writes []Write
	// NotHelpful counts, over all nodes, the reasons why the pod would not fit even
	// without any pod of lower priority; nil if that is unknown.
	NotHelpful []decision.Tally
	// Resolved ends the run of PostFilter plugins: the plugin made the pod schedulable. A
	// NominatedNodeName ends it, too.
	Resolved bool
	// Failed ends the run, too: Message is the reason, and the only message appended. The
	// pod's nomination stays.
	Failed bool
	// NominatedNodeName is the node that the pod is nominated to. Victims are to be evicted, so
	// that it fits there; some may be on other nodes.
	NominatedNodeName string
	Victims           []types.UID
	// ClearNominations are the pods whose nomination to the node ends.
	ClearNominations []types.UID
	// Candidates, when not empty, are passed to the extenders. Choose is then called with
	// those that they leave, or with an error if they could not be asked, and with a call
	// made at that time.
	Candidates []Candidate
	Choose     func(c *PostFilterCall, left []Candidate, err error) PostFilterResult
	// KeepNomination leaves the pod's present nomination as it is; otherwise
	// it becomes NominatedNodeName, which may be "".
	KeepNomination bool
	// Pending is set if the plugin continues outside of the loop. The result comes later,
	// with the call's Number, and the other fields are empty now.
	Pending bool
}

// Messages returns Message as a list, nil if it is "".
func (r *PostFilterResult) Messages() []string {
	if r.Message == "" {
		return nil
	}
	return []string{r.Message}
}
