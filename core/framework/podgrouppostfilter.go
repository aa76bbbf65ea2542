package framework

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// PodGroupPostFilterCall is the input of a plugin that may preempt pods for a pod group
// that does not fit (PodGroupPostFilterPlugin).
type PodGroupPostFilterCall struct {
	Now   time.Time
	Table *table.Table
	Group *object.PodGroup
	Pods  []*object.Pod // those of the group that are to be placed
	// Constrained is set if the pods must be placed in one topology domain.
	Constrained bool
	// Leaving is set if pods that were preempted for the group are on their way out, or others of
	// lower priority that are evicted from a node to which one of its pods is nominated.
	Leaving bool
	// Try tries to place the group on the table as it is now, and leaves the table
	// unchanged. If the group fits, the status is nil, and each pod that fits has an
	// assignment, in the order in which they were placed.
	Try func() ([]GroupAssignment, *decision.Status)
	// Fits reports whether the filters accept the pod of an assignment on its row, as the
	// table is now.
	Fits func(a GroupAssignment) bool
	// Rooms returns how much room rows have for the group's pods, by the sums of the filters, on
	// the table as it is now. If Rooms is nil, nothing is known of that.
	Rooms func() GroupRooms
	// Budgets are all PodDisruptionBudgets, sorted by namespace, then name.
	Budgets []*object.Budget
	// Strict is set if no victim's eviction may violate a budget.
	Strict bool
	// Quotas is how the profile counts ElasticQuotas; nil: it does not follow them.
	Quotas *QuotaRules
	// Nominated are the pods nominated to nodes, those of the group included.
	Nominated quota.Nominated
	// Evicting reports whether the pod is a victim of an earlier preemption whose eviction was
	// requested and has not failed.
	Evicting func(types.UID) bool
	// Searched is set if the result of a plugin before this one has Searched set.
	Searched bool
}

// GroupAssignment is the node that was found for a pod of a group.
type GroupAssignment struct {
	Assignment
	// Local is set if the filters' answer for the pod on a node depends on that node and its
	// pods alone.
	Local bool
	// Place places the pod on the row as if it were assumed, and Remove undoes that.
	Place, Remove func()
}

// GroupRooms is how much room rows have for the pods of a group, by the sums of the filters.
type GroupRooms struct {
	Classes []GroupClass // of equal pods; none: nothing is known
	// Domains are the sets of rows of which one must take all pods of the group; nil: all
	// rows are one set.
	Domains [][]table.Row
}

// GroupClass is the equal pods of a group, and what there is for them on each row.
type GroupClass struct {
	Pods []*object.Pod
	Sums []sums.Sum // what one of the pods requests
	// Free is, by row and then by index in Sums, what is free beside the pods there and those
	// nominated to it; nil for a row that takes none of the pods, whoever leaves it.
	Free [][]int64
	// Rejected is set, by row, if the row takes none of the pods before somebody leaves it.
	Rejected []bool
	Alone    bool // a row takes one of the pods at most
}

// PodGroupPostFilterResult names the pods to evict for the group, or the reason why there
// are none in Status.
type PodGroupPostFilterResult struct {
	Victims []*object.Pod // the most important first
	// Assignments are the nodes for the group's pods once the victims are gone.
	Assignments []Assignment
	// Unnominated are pods of the group whose nomination ends.
	Unnominated []*object.Pod
	// Status, which is not nil, is Success, also if no pod need go, or the reason why not.
	Status *decision.Status
	// Searched is set if victims were searched by Berth's own rules, so that another search
	// finds none either.
	Searched bool
}
