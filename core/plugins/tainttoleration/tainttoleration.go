package tainttoleration

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

const reason = "node(s) had untolerated taint(s)"

const untolerated framework.Verdict = 1

// plugin holds the gate TaintTolerationComparisonOperators.
type plugin struct {
	comparisons bool // the gate TaintTolerationComparisonOperators
}

// New returns the plugin.
func New(f feature.Features) framework.Plugin {
	pl := plugin{comparisons: f.TaintTolerationComparisonOperators}
	return framework.Plugin{
		Name: names.TaintToleration,
		EventsToRegister: []framework.ClusterEventWithHint{
			{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeTaint, QueueingHintFn: pl.nodeTolerated},
			{
				Resource:       framework.UnscheduledPod,
				ActionType:     framework.UpdatePodToleration,
				QueueingHintFn: func(p *object.Pod, e *framework.Event) bool { return e.NewPod.UID == p.UID },
			},
		},
		SignPlugin: framework.SignPlugin{
			Locality: framework.NodeOnly,
			Sign:     func(key []byte, _ *table.Table, p *object.Pod) []byte { return append(key, p.Tolerations.Key...) },
		},
		FilterPlugin: framework.FilterPlugin{
			Filter: pl.filter,
			Explain: func(*framework.Input, table.Row, framework.Verdict) decision.Blocker {
				return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reason}}
			},
		},
		// There is nothing to prepare; the point is there to be configured.
		PreScore:    func(*table.Table, *object.Pod) framework.PreScoreResult { return framework.PreScoreResult{} },
		ScorePlugin: framework.ScorePlugin{Score: pl.score, NormalizeScore: normalize},
	}
}

// nodeTolerated: the node admits the pod and did not before.
func (pl plugin) nodeTolerated(p *object.Pod, e *framework.Event) bool {
	admitted := e.OldNode != nil && p.Tolerations.Admits(e.OldNode.Taints, pl.comparisons)
	return !admitted && p.Tolerations.Admits(e.NewNode.Taints, pl.comparisons)
}

func (pl plugin) filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	var known answers[framework.Verdict]
	for i, r := range rows {
		out[i] = framework.Fits
		if list := in.Table.TaintList(r); list != 0 {
			a := known.of(list)
			if a.list != list {
				a.list, a.is = list, framework.Fits
				if !in.Pod.Tolerations.Admits(in.Table.Node(r).Taints, pl.comparisons) {
					a.is = untolerated
				}
			}
			out[i] = a.is
		}
	}
}

// score is the number of soft taints that the pod does not tolerate.
func (pl plugin) score(in *framework.Input, rows []table.Row, out []int64) {
	var known answers[int64]
	for i, r := range rows {
		out[i] = 0
		if list := in.Table.TaintList(r); list != 0 {
			a := known.of(list)
			if a.list != list {
				a.list, a.is = list, pl.soft(in.Pod.Tolerations, in.Table.Node(r).Taints)
			}
			out[i] = a.is
		}
	}
}

// answers are those for some lists of taints, by number. Another list may take an
// answer's place.
type answers[T any] [64]answer[T]

type answer[T any] struct {
	list int32
	is   T
}

func (a *answers[T]) of(list int32) *answer[T] { return &a[list%int32(len(a))] }

func (pl plugin) soft(tolerations match.Tolerations, taints []v1.Taint) int64 {
	var count int64
	for i := range taints {
		if taints[i].Effect == v1.TaintEffectPreferNoSchedule && !tolerations.Tolerates(&taints[i], pl.comparisons) {
			count++
		}
	}
	return count
}

// normalize turns the count round: none is 100, the most is 0.
func normalize(raw, _, most int64) int64 {
	if most == 0 {
		return 100
	}
	return 100 - 100*raw/most
}
