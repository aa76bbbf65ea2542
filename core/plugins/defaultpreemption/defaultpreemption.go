package defaultpreemption

import (
	"fmt"

	config "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/preempt"
	"github.com/berth-scheduler/berth/core/table"
)

// New returns the plugin; nil args stand for the defaults.
//
// It rejects no pod, and so registers no events: pods that preempt come back with the
// events of the plugins that rejected them. The event that kube-scheduler registers (a pod's
// deletion, never worth a try) ends its own gating, which is not needed here.
func New(args *config.DefaultPreemptionArgs, f feature.Features) (framework.Plugin, error) {
	if err := ValidateArgs(nil, args).ToAggregate(); err != nil {
		return framework.Plugin{}, err
	}
	limits, finder := limitsOf(args), &preempt.Finder{}
	pl := framework.Plugin{
		Name:          names.DefaultPreemption,
		PostFilter:    func(c *framework.PostFilterCall) framework.PostFilterResult { return postFilter(c, finder, limits) },
		PostFilterMay: remedy,
	}
	if f.GenericWorkload {
		pl.Reads.Kinds = []object.Kind{object.PodGroups}
		pl.PodGroup = &framework.PodGroupPlugin{PostFilter: preempt.ForGroup}
	}
	return pl, nil
}

// remedy returns Preemption, or NoRemedy if the pod's preemptionPolicy is Never.
func remedy(_ *table.Table, p *object.Pod) framework.Remedy {
	if p.NeverPreempts {
		return framework.NoRemedy
	}
	return framework.Preemption
}

// postFilter returns the result of a preemption for the pod. It keeps the pod's
// nomination if the pod may not preempt now, or if another plugin that does the same has
// searched already, and ends it if preemption cannot help.
func postFilter(c *framework.PostFilterCall, finder *preempt.Finder, limits preempt.Limits) framework.PostFilterResult {
	if c.Searched {
		return framework.PostFilterResult{KeepNomination: true}
	}
	if why := preempt.NotEligible(c); why != "" {
		return keep(refusal(why))
	}
	if c.HasExtenders {
		return review(c, limits)
	}
	plan, refused, err := finder.Find(c, limits)
	if err != nil || plan == nil {
		return nothing(c, refused, err)
	}
	return result(plan)
}

// review returns the candidates for the extenders, and a function that chooses among
// those that they accept.
func review(c *framework.PostFilterCall, limits preempt.Limits) framework.PostFilterResult {
	candidates, refused, err := preempt.Candidates(c, limits)
	if err != nil || len(candidates) == 0 {
		return nothing(c, refused, err)
	}
	choose := func(c *framework.PostFilterCall, left []framework.Candidate, err error) framework.PostFilterResult {
		if err != nil {
			return nothing(c, nil, err)
		}
		if left = preempt.Left(c, left); len(left) == 0 {
			return keep(refusal("no candidate node for preemption"))
		}
		return result(preempt.Best(c, left))
	}
	return framework.PostFilterResult{Candidates: candidates, Choose: choose}
}

// nothing returns the result if nobody is to be preempted: a failure if err is not nil, else the
// reasons by node. The reasons end the pod's nomination; a failure leaves it.
func nothing(c *framework.PostFilterCall, refused []decision.Tally, err error) framework.PostFilterResult {
	if err != nil {
		failed := refusal(err.Error())
		failed.Failed = true
		return failed
	}
	none := refusal(explain.Message(&decision.Decision{
		Result: decision.ResultUnschedulable, NodesTotal: c.Table.Live(), Tallies: refused,
	}))
	none.NotHelpful = refused
	return none
}

// result returns the plan as the plugin's result: the plan's node is to be nominated and its
// victims evicted.
func result(plan *preempt.Plan) framework.PostFilterResult {
	result := framework.PostFilterResult{NominatedNodeName: plan.Node, Resolved: true, Preemption: true,
		Message: fmt.Sprintf("preemption: found a potential placement for pod on node %s, preempting %d victims", plan.Node, len(plan.Victims))}
	for _, p := range plan.Victims {
		result.Victims = append(result.Victims, p.UID)
	}
	for _, p := range plan.NominationsToClear {
		result.ClearNominations = append(result.ClearNominations, p.UID)
	}
	return result
}

// refusal returns the result of a preemption that finds no node, with the reason.
func refusal(why string) framework.PostFilterResult {
	return framework.PostFilterResult{Message: "preemption: " + why, Preemption: true}
}

// keep returns the result with the pod's nomination left as it is.
func keep(r framework.PostFilterResult) framework.PostFilterResult {
	r.KeepNomination = true
	return r
}
