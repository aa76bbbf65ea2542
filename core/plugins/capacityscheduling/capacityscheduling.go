package capacityscheduling

import (
	"encoding/json"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// plugin is the plugin of one profile.
type plugin struct{ rules framework.QuotaRules }

// New returns the plugin with its arguments as JSON, nil for none. Its PostFilter is that of
// preemption, a DefaultPreemption: package preempt knows the quotas.
func New(raw json.RawMessage, preemption framework.Plugin) (*framework.Plugin, error) {
	args, err := parse(raw)
	if err != nil {
		return nil, err
	}
	pl := plugin{framework.QuotaRules{UnlistedZero: args.Unlisted == "zero"}}
	return &framework.Plugin{
		Name:  names.CapacityScheduling,
		Reads: framework.Reads{Kinds: append(slices.Clone(preemption.Reads.Kinds), object.ElasticQuotas), Quotas: &pl.rules},
		EventsToRegister: []framework.ClusterEventWithHint{
			{Resource: framework.AssignedPod, ActionType: framework.Delete | framework.UpdatePodScaleDown, QueueingHintFn: pl.podLeft},
			{Resource: framework.ResourceOf(object.ElasticQuotas), ActionType: framework.Add | framework.Delete | framework.UpdateOther, QueueingHintFn: pl.quotaChanged},
			{Resource: framework.TargetPod, ActionType: framework.UpdatePodScaleDown},
		},
		// Without it, a machine that cannot list ElasticQuotas would place pods.
		PreFilter: func(*table.Table, *object.Pod) framework.PreFilterResult { return framework.PreFilterResult{} },
		RejectPod: pl.rejectPod,

		PostFilter:    preemption.PostFilter,
		PostFilterMay: preemption.PostFilterMay,
		PodGroup:      preemption.PodGroup,
	}, nil
}

// ask returns the question whether the pod may be placed.
func (pl *plugin) ask(p *object.Pod, nominated quota.Nominated) *quota.Ask {
	return &quota.Ask{Pod: p, Nominated: nominated, UnlistedZero: pl.rules.UnlistedZero}
}

// rejectPod rejects a pod that would exceed the max of its queue or of an ancestor, or the
// sum of all mins. depends is true if the pod has a queue.
func (pl *plugin) rejectPod(t *table.Table, p *object.Pod, nominated quota.Nominated) (why *decision.Status, depends bool) {
	queues := quota.Of(t)
	if queues.Queue(p.Namespace) == nil {
		return nil, false
	}
	if e := queues.Exceeded(pl.ask(p, nominated)); e != nil {
		return rejection(p, e), true
	}
	return nil, true
}

// rejection returns the status of a pod that would exceed a limit: the reason in the words
// of sigs.k8s.io/scheduler-plugins, then the amounts. If an ElasticQuota cannot be read, the
// reason has Berth's own words.
func rejection(p *object.Pod, e *quota.Excess) *decision.Status {
	what, limit, list, whose := "total ElasticQuota used is more than min", "guaranteed", "no spec.min names", "all ElasticQuotas"
	if e.Queue != nil {
		what, limit, list, whose = fmt.Sprintf("ElasticQuota %s is more than Max", e.Queue.Quota.Namespace), "at most", "spec.max does not name", "ElasticQuota "+e.Queue.Quota.Key()
	}
	if e.Resource == "" {
		return &decision.Status{Code: decision.Unschedulable, Reasons: []string{
			fmt.Sprintf("Pod %s is rejected in PreFilter because %s cannot be read: %s", p.Key(), whose, e.Queue.Quota.Unreadable),
		}}
	}
	if e.Unlisted {
		limit += ", as " + list + " it"
	}
	amount := func(n int64) string { return resource.Quantity(e.Resource, n).String() }
	kept := ""
	if e.Nominated > 0 {
		kept = fmt.Sprintf(", %s kept for nominated pods", amount(e.Nominated))
	}
	return &decision.Status{Code: decision.Unschedulable, Reasons: []string{
		fmt.Sprintf("Pod %s is rejected in PreFilter because %s", p.Key(), what),
		fmt.Sprintf("%s: of %s %s used%s, %s requested, %s %s", whose, shown(e.Resource), amount(e.Used), kept, amount(e.Requested), amount(e.Limit), limit),
	}}
}

// shown returns the resource's name as people write it.
func shown(name v1.ResourceName) string {
	if name == v1.ResourceCPU {
		return "CPU"
	}
	return string(name)
}

// podLeft reports whether the pod would be let through, or may preempt others, now that another
// one left a node or requests less. It returns false if that one has no queue, as it used nothing
// that quotas bound.
func (pl *plugin) podLeft(p *object.Pod, e *framework.Event) bool {
	if e.Table == nil {
		return true
	}
	queues, ask := quota.Of(e.Table), pl.ask(p, quota.Nominated{})
	return queues.Queue(e.OldPod.Namespace) != nil && (queues.Exceeded(ask) == nil || queues.Reclaim(ask, nil).Entitled())
}

// quotaChanged reports whether no limit rejects the pod now that an ElasticQuota came, went or
// changed. Its status does not matter, and its max matters to its own pods and those of its parts.
// Whether the pod may preempt others now is not asked here (see quota.Relief). Nominations are
// ignored.
func (pl *plugin) quotaChanged(p *object.Pod, e *framework.Event) bool {
	old, _ := e.OldObject.(*object.ElasticQuota)
	now, _ := e.NewObject.(*object.ElasticQuota)
	switch changed := old != nil && now != nil; {
	case changed && old.Alike(now):
		return false
	case e.Table == nil:
		return true
	case changed && old.Parent == now.Parent && slices.Equal(old.Min, now.Min) && slices.Equal(old.Parts, now.Parts) && !isPart(quota.Of(e.Table).Queue(p.Namespace), now):
		return false
	}
	return quota.Of(e.Table).Exceeded(pl.ask(p, quota.Nominated{})) == nil
}

// isPart reports whether the queue is that of the ElasticQuota, or a part of it at any depth.
func isPart(q *quota.Queue, of *object.ElasticQuota) bool {
	for ; q != nil; q = q.Parent() {
		if q.Quota == of {
			return true
		}
	}
	return false
}
