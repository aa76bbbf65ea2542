package tainttoleration

import (
	"encoding/binary"
	"math/bits"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/index/nodetaints"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// reason is kube-scheduler's text for rejected nodes.
const reason = "node(s) had untolerated taint(s)"

// untolerated is the verdict on a node with a NoSchedule or NoExecute taint that the
// pod does not tolerate.
const untolerated framework.Verdict = 1

// plugin is the plugin's configuration.
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
			{Resource: framework.TargetPod, ActionType: framework.UpdatePodToleration},
		},
		SignPlugin: framework.SignPlugin{
			Locality: framework.NodeOnly,
			Sign:     pl.sign,
			SignRevision: func(t *table.Table, _ *object.Pod) (uint64, bool) {
				return nodetaints.Of(t).Revision(), true
			},
		},
		// There is nothing to prepare; PreFilter and PreScore are there to be configured.
		PreFilter: func(*table.Table, *object.Pod) framework.PreFilterResult { return framework.PreFilterResult{} },
		FilterPlugin: framework.FilterPlugin{
			Filter: pl.filter,
			Explain: func(*framework.Input, table.Row, framework.Verdict) decision.Blocker {
				return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reason}}
			},
		},
		PreScore:    func(*table.Table, *object.Pod) framework.PreScoreResult { return framework.PreScoreResult{} },
		ScorePlugin: framework.ScorePlugin{Score: pl.score, NormalizeScore: normalize},
	}
}

// sign appends to key the numbers of the taints that the pod does not tolerate, with
// the revision of the numbers. If not all taints have a number it appends the
// tolerations, which are equal for fewer pods.
func (pl plugin) sign(key []byte, t *table.Table, p *object.Pod) []byte {
	if nodetaints.Of(t).AnyOthers() {
		return append(append(key, '='), p.Tolerations.Key...)
	}
	hard, soft := pl.untolerated(t, p)
	key = binary.AppendUvarint(append(key, '#'), nodetaints.Of(t).Revision())
	return binary.LittleEndian.AppendUint64(key, uint64(hard|soft))
}

// nodeTolerated reports whether the pod tolerates the node's NoSchedule and NoExecute taints now,
// and the node is new or had one that the pod does not tolerate.
func (pl plugin) nodeTolerated(p *object.Pod, e *framework.Event) bool {
	admitted := e.OldNode != nil && p.Tolerations.Admits(e.OldNode.Taints, pl.comparisons)
	return !admitted && p.Tolerations.Admits(e.NewNode.Taints, pl.comparisons)
}

// untolerated returns the numbers of the taints that the pod does not tolerate: hard with effect
// NoSchedule or NoExecute, soft with PreferNoSchedule. Taints without a number are left out.
func (pl plugin) untolerated(t *table.Table, p *object.Pod) (hard, soft nodetaints.Set) {
	taints := nodetaints.Of(t).Numbered()
	for i := range taints {
		if one := taints[i : i+1]; !p.Tolerations.Admits(one, pl.comparisons) {
			hard |= 1 << i
		} else if pl.soft(p.Tolerations, one) > 0 {
			soft |= 1 << i
		}
	}
	return hard, soft
}

// byNumber reports whether the rows are so many that it is faster to first compute, for
// each numbered taint, whether the pod tolerates it.
func byNumber(in *framework.Input, rows []table.Row) bool {
	return len(rows) >= len(nodetaints.Of(in.Table).Numbered())
}

// filter rejects the rows with a NoSchedule or NoExecute taint that the pod does not tolerate.
func (pl plugin) filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	hard, others := nodetaints.Set(0), ^nodetaints.Set(0)
	if byNumber(in, rows) {
		hard, _ = pl.untolerated(in.Table, in.Pod)
		others = nodetaints.Others
	}
	sets := nodetaints.Of(in.Table).Sets()
	for i, r := range rows {
		taints, v := sets[r], framework.Fits
		if taints&hard != 0 { // a move, and no branch: which it is cannot be foretold
			v = untolerated
		}
		if taints&others != 0 && !in.Pod.Tolerations.Admits(in.Table.Node(r).Taints, pl.comparisons) {
			v = untolerated
		}
		out[i] = v
	}
}

// score writes the number of PreferNoSchedule taints of each row that the pod does not
// tolerate.
func (pl plugin) score(in *framework.Input, rows []table.Row, out []int64) {
	soft, others := nodetaints.Set(0), ^nodetaints.Set(0)
	if byNumber(in, rows) {
		_, soft = pl.untolerated(in.Table, in.Pod)
		others = nodetaints.Others
	}
	sets := nodetaints.Of(in.Table).Sets()
	for i, r := range rows {
		taints := sets[r]
		if out[i] = int64(bits.OnesCount64(uint64(taints & soft))); taints&others != 0 {
			out[i] = pl.soft(in.Pod.Tolerations, in.Table.Node(r).Taints)
		}
	}
}

// soft returns the number of PreferNoSchedule taints that the tolerations do not tolerate.
func (pl plugin) soft(tolerations match.Tolerations, taints []v1.Taint) int64 {
	var count int64
	for i := range taints {
		if taints[i].Effect == v1.TaintEffectPreferNoSchedule && !tolerations.Tolerates(&taints[i], pl.comparisons) {
			count++
		}
	}
	return count
}

// normalize inverts raw scores: no taint becomes 100, the most taints on a node (most) 0.
func normalize(raw, _, most int64) int64 {
	if most == 0 {
		return 100
	}
	return 100 - 100*raw/most
}
