package framework

import (
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// PodGroupPostFilterCall is the input of a plugin that may preempt pods for a pod group
// that does not fit (v1.36, PodGroupPostFilterPlugin).
type PodGroupPostFilterCall struct {
	Now   time.Time
	Table *table.Table
	Group *object.PodGroup
	Pods  []*object.Pod // those of the group that are to be placed
	// Try tries to place the group on the table as it is now, without PostFilter plugins,
	// and leaves the table unchanged. It returns nil if the group fits.
	Try func() *decision.Status
	// Budgets are all PodDisruptionBudgets, sorted by namespace, then name.
	Budgets []*object.Budget
}

// PodGroupPostFilterResult names the pods to evict for the group, or the reason why there
// are none in Status.
type PodGroupPostFilterResult struct {
	Victims []*object.Pod // the most important first
	Status  *decision.Status
}
