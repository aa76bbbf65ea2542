package coscheduling

import (
	"cmp"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// plugin is the plugin of one profile.
type plugin struct {
	gang framework.Plugin // a GangScheduling, whose rules are those of any group
	wait time.Duration    // bounds the wait in Permit of a pod whose PodGroup sets no bound
}

// New returns the plugin. It takes the rules from gang, a GangScheduling, and the search for
// victims of a group from preemption.
//
// It is at each extension point at which the plugin of sigs.k8s.io/scheduler-plugins is, so
// that a configuration may name it there.
func New(args Args, gang framework.Plugin, preemption func(*framework.PodGroupPostFilterCall) framework.PodGroupPostFilterResult) (*framework.Plugin, error) {
	wait, rules, err := args.parse()
	if err != nil {
		return nil, err
	}
	pl := plugin{gang, wait}
	return &framework.Plugin{
		Name:             names.Coscheduling,
		Reads:            framework.Reads{Kinds: []object.Kind{object.CoschedulingGroups}, Groups: rules},
		EventsToRegister: pl.events(),
		Less:             less,
		PreEnqueue: func(t *table.Table, p *object.Pod) *decision.Status {
			if !ours(p) {
				return nil
			}
			return gang.PreEnqueue(t, p)
		},
		PreFilter: func(*table.Table, *object.Pod) framework.PreFilterResult {
			return framework.PreFilterResult{Skip: true}
		},
		PostFilter: func(*framework.PostFilterCall) framework.PostFilterResult {
			return framework.PostFilterResult{KeepNomination: true}
		},
		PostFilterMay: func(*table.Table, *object.Pod) framework.Remedy { return framework.NoRemedy },
		ReservePlugin: framework.ReservePlugin{
			Reserve:   func(*table.Table, *object.Pod, string) *decision.Status { return nil },
			Unreserve: func(*table.Table, *object.Pod, string) {},
		},
		Permit:   pl.permit,
		PodGroup: &framework.PodGroupPlugin{PlacementFeasible: pl.placementFeasible, PostFilter: preemption},
	}, nil
}

// ours reports whether the pod is in a group that is not Kubernetes' own.
func ours(p *object.Pod) bool { return p.PodGroup() != "" && p.KubernetesGroup() == "" }

// events returns the events that may help a pod that the plugin rejected. Changes of a group's
// object are not among them: the machine tells the queue of these.
func (pl *plugin) events() []framework.ClusterEventWithHint {
	sameGroup := func(p *object.Pod, other *object.Pod) bool { return ours(p) && p.GroupKey() == other.GroupKey() }
	added := func(p *object.Pod, e *framework.Event) bool { return sameGroup(p, e.NewPod) }
	return []framework.ClusterEventWithHint{
		{Resource: framework.AssignedPod, ActionType: framework.Add, QueueingHintFn: added},
		{Resource: framework.UnscheduledPod, ActionType: framework.Add, QueueingHintFn: added},
		{Resource: framework.TargetPod, ActionType: framework.UpdatePodLabel},
		{Resource: framework.AssignedPod, ActionType: framework.Delete | framework.UpdatePodScaleDown, QueueingHintFn: freed},
		{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeAllocatable, QueueingHintFn: freed},
	}
}

// permit holds the pod until enough pods of its group have a node: within the group's cycle,
// or while others of it could not be assumed. It approves pods that are in no group, or in one of
// Kubernetes' own.
func (pl *plugin) permit(t *table.Table, p *object.Pod, node string) framework.PermitResult {
	if !ours(p) {
		return framework.PermitResult{}
	}
	result := pl.gang.Permit(t, p, node)
	if result.Status != nil && result.Status.Code == decision.Wait {
		result.Timeout = cmp.Or(table.PodGroup(t, p.GroupKey()).PermitTimeout, pl.wait)
	}
	return result
}

// placementFeasible returns nil if as many pods of the group have a node as it requires, Wait if
// those that remain may be enough, and Unschedulable if not. Before the first is tried, the group's
// MinResources must be free. It returns nil for one of Kubernetes' own groups.
func (pl *plugin) placementFeasible(t *table.Table, g *object.PodGroup, p framework.PlacementProgress) *decision.Status {
	if g.Source == "" {
		return nil
	}
	if p.Tried == 0 && g.Fault == "" {
		if why := lacking(t, g); why != "" {
			return &decision.Status{Code: decision.Unschedulable, Reasons: []string{why}}
		}
	}
	return pl.gang.PodGroup.PlacementFeasible(t, g, p)
}

// less reports whether pod or group a comes before b: by priority, then half-bound gangs first (as
// in PrioritySort), then by the time that since returns, the earlier first. The queue keeps equals
// in the order in which they came. Their names do not count: a record may have others
// (recording.Names).
func less(a, b *framework.QueuedPodInfo) bool {
	if a.Priority() == b.Priority() && a.HalfBound != b.HalfBound {
		return a.HalfBound
	}
	return cmp.Or(cmp.Compare(b.Priority(), a.Priority()), since(a).Compare(since(b))) < 0
}

// since returns when the group was created, if it is an object. Else it returns when the pod
// was active for the first time; for one that was not, and for the group that it stands for,
// when it entered the queue.
func since(i *framework.QueuedPodInfo) time.Time {
	switch {
	case i.Group != nil && !i.Group.Created.IsZero():
		return i.Group.Created
	case i.Group == nil && !i.FirstActive.IsZero():
		return i.FirstActive
	}
	return i.Timestamp
}
