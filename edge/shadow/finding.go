package shadow

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// Result is what a choice of the live scheduler is to Berth.
type Result string

const (
	// Same: Berth would have chosen the same node.
	Same Result = "same"
	// Tie: another node of the same score. It is no difference.
	Tie Result = "tie"
	// Nominated: the pod was bound to the node that it was nominated to, for which
	// pods were preempted. Nothing was left to choose.
	Nominated Result = "nominated"
	// Stale: the node was among the best in the order in which the live scheduler
	// decided, which the watch did not show.
	Stale Result = "stale"
	// Sampled: the node fits and scores less, and more nodes fit than the live
	// scheduler looks for (percentageOfNodesToScore).
	Sampled Result = "sampled"
	// Lower: the node fits and scores less, and the sample does not explain it.
	Lower Result = "lower"
	// Infeasible: a filter of Berth rejects the node; others fit.
	Infeasible Result = "infeasible"
	// Unschedulable: no node fits the pod.
	Unschedulable Result = "unschedulable"
	// NotCompared: Berth could not decide on the pod, or an extender has a say.
	NotCompared Result = "not_compared"
)

func (r Result) differs() bool {
	switch r {
	case Same, Tie, Nominated, NotCompared:
		return false
	}
	return true
}

// finding is a result and the plugin that it is about: the one that rejects the node,
// or by whose score the node loses most; "" where it is about none.
type finding struct {
	Result Result
	Plugin string
}

// classify compares the node with the one that Berth would choose now.
func (s *Shadow) classify(p *object.Pod, node string) (machine.Comparison, finding) {
	if p.NominatedNode == node {
		return machine.Comparison{}, finding{Result: Nominated}
	}
	c := s.machine.Compare(p, node)
	switch {
	case c.Err != nil:
		return c, finding{Result: NotCompared}
	case c.Node == node:
		return c, finding{Result: Same}
	case !c.Other.Feasible:
		f := finding{Result: Infeasible, Plugin: c.Other.Blockers[0].Plugin}
		if c.Node == "" {
			f.Result = Unschedulable
		}
		return c, f
	case c.Other.Total >= c.Best.Total:
		return c, finding{Result: Tie}
	}
	f := finding{Result: Lower, Plugin: lossOf(&c)[0].Plugin}
	if c.NodesFeasible > sampleSize(s.options.Config, p.SchedulerName, c.NodesTotal) {
		f.Result = Sampled
	}
	return c, f
}

// loss is how much the live scheduler's node loses by one plugin's score, weighted. It
// is negative where it wins.
type loss struct {
	Plugin string `json:"plugin"`
	Weight int64  `json:"weight"`
	Node   int64  `json:"node"`
	Best   int64  `json:"best"`
}

// lossOf lists the scores that differ, the greatest loss first.
func lossOf(c *machine.Comparison) []loss {
	at := func(scores []decision.Score, plugin string) int64 {
		i := slices.IndexFunc(scores, func(s decision.Score) bool { return s.Plugin == plugin })
		if i < 0 {
			return 0
		}
		return scores[i].Score
	}
	var all []loss
	for _, s := range c.Best.Scores {
		if other := at(c.Other.Scores, s.Plugin); other != s.Score {
			all = append(all, loss{s.Plugin, s.Weight, other, s.Score})
		}
	}
	slices.SortStableFunc(all, func(a, b loss) int {
		return cmp.Compare((b.Best-b.Node)*b.Weight, (a.Best-a.Node)*a.Weight)
	})
	return all
}
