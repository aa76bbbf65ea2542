package nodeaffinity

import (
	config "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/index/selected"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

const (
	reasonPod      = "node(s) didn't match Pod's node affinity/selector"
	reasonEnforced = "node(s) didn't match scheduler-enforced node affinity"
	reasonConflict = "pod affinity terms conflict"
)

const (
	enforced  framework.Verdict = 1 + iota // the profile's added affinity does not match the node
	unmatched                              // the pod's node selector or affinity does not match the node
)

// plugin is the profile's addedAffinity, which applies to all of its pods beside their own; nil
// fields: none.
type plugin struct {
	required  *match.NodeSelector
	preferred *match.PreferredNodes
}

// New returns the plugin. Nil args add no affinity. The error names the fields of added terms that
// do not parse.
func New(args *config.NodeAffinityArgs) (framework.Plugin, error) {
	if err := ValidateArgs(nil, args).ToAggregate(); err != nil {
		return framework.Plugin{}, err
	}
	var pl plugin
	if args != nil && args.AddedAffinity != nil {
		if required := args.AddedAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			pl.required = match.NewNodeSelector(nil, required)
		}
		pl.preferred = match.NewPreferredNodes(args.AddedAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return framework.Plugin{
		Name: names.NodeAffinity,
		EventsToRegister: []framework.ClusterEventWithHint{
			{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeLabel, QueueingHintFn: pl.nodeMatches},
		},
		SignPlugin:   framework.SignPlugin{Locality: framework.NodeOnly, Sign: sign},
		PreFilter:    pl.preFilter,
		FilterPlugin: framework.FilterPlugin{Filter: pl.filter, Explain: explain},
		PreScore:     pl.preScore,
		ScorePlugin:  framework.ScorePlugin{Score: pl.score, NormalizeScore: normalize},
	}, nil
}

// sign appends the pod's node selector and affinity to key.
func sign(key []byte, _ *table.Table, p *object.Pod) []byte {
	if p.RequiredNodes != nil {
		key = append(key, p.RequiredNodes.Key...)
	}
	if p.PreferredNodes != nil {
		key = append(key, p.PreferredNodes.Key...)
	}
	return key
}

// admits reports whether the profile's and the pod's required affinity match the node.
func (pl plugin) admits(p *object.Pod, n *object.Node) bool {
	return pl.required.Matches(n.Subject()) && p.RequiredNodes.Matches(n.Subject())
}

// nodeMatches reports whether the required affinity of the profile and of the pod matches the node
// now, and the node is new or did not match before.
func (pl plugin) nodeMatches(p *object.Pod, e *framework.Event) bool {
	return pl.admits(p, e.NewNode) && (e.OldNode == nil || !pl.admits(p, e.OldNode))
}

// preFilter skips pods without a node selector or required affinity, if the profile has none
// either. If each term of the pod's affinity names nodes by metadata.name, it returns these as the
// only nodes to look at, or rejects the pod if the names in each term contradict each other. Else
// it returns the nodes that match as the state for Filter.
func (pl plugin) preFilter(t *table.Table, p *object.Pod) framework.PreFilterResult {
	if pl.required == nil && p.RequiredNodes == nil {
		return framework.PreFilterResult{Skip: true}
	}
	nodes, pinned := p.RequiredNodes.Names()
	if pinned && len(nodes) == 0 {
		return framework.PreFilterResult{Status: &decision.Status{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reasonConflict}}}
	}
	if pinned { // a few nodes are looked at
		return framework.PreFilterResult{NodeNames: nodes}
	}
	return framework.PreFilterResult{State: &requiredNodes{selected.Of(t).Select(pl.required), selected.Of(t).Select(p.RequiredNodes)}}
}

// requiredNodes is the nodes that the required affinity of the profile matches, and those that the
// pod's matches, as an index keeps them.
type requiredNodes struct{ byProfile, byPod selected.Selection }

// filter rejects the rows whose node the required affinity of the profile (enforced), or else of
// the pod (unmatched), does not match.
func (pl plugin) filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	selected, _ := in.State.(*requiredNodes)
	for i, r := range rows {
		out[i] = framework.Fits
		if selected != nil {
			if enforces, known := selected.byProfile.Admits(in.Table, r); known {
				if admits, _ := selected.byPod.Admits(in.Table, r); !enforces {
					out[i] = enforced
				} else if !admits {
					out[i] = unmatched
				}
				continue
			}
		}
		n := in.Table.Node(r)
		switch {
		case n == nil:
		case !pl.required.Matches(n.Subject()):
			out[i] = enforced
		case !in.Pod.RequiredNodes.Matches(n.Subject()):
			out[i] = unmatched
		}
	}
}

// explain returns the code and reason of a verdict.
func explain(_ *framework.Input, _ table.Row, v framework.Verdict) decision.Blocker {
	if v == enforced {
		return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reasonEnforced}}
	}
	return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reasonPod}}
}

// preScore fails if the pod's preferred terms cannot be parsed, as in kube-scheduler. It skips pods
// without preferred terms if the profile has none either. Else it returns the nodes that the terms
// match as the state for Score.
func (pl plugin) preScore(t *table.Table, p *object.Pod) framework.PreScoreResult {
	if p.PreferredNodes != nil && p.PreferredNodes.Invalid != nil {
		return framework.PreScoreResult{Status: &decision.Status{Code: decision.Error, Err: p.PreferredNodes.Invalid}}
	}
	if pl.preferred == nil && p.PreferredNodes == nil {
		return framework.PreScoreResult{Skip: true}
	}
	return framework.PreScoreResult{State: &preferredNodes{append(selected.Of(t).SelectPreferred(pl.preferred), selected.Of(t).SelectPreferred(p.PreferredNodes)...)}}
}

// preferredNodes is the nodes that each preferred term of the profile and the pod
// matches, as an index keeps them, with the term's weight.
type preferredNodes struct{ terms []selected.WeightedSelection }

// score writes the sum of the weights of the preferred terms that match each row's node.
func (pl plugin) score(in *framework.Input, rows []table.Row, out []int64) {
	selected, _ := in.State.(*preferredNodes)
	for i, r := range rows {
		score, known := selected.score(in.Table, r)
		if n := in.Table.Node(r); !known && n != nil {
			score = pl.preferred.Score(n.Subject()) + in.Pod.PreferredNodes.Score(n.Subject())
		}
		out[i] = score
	}
}

// score returns the sum of the weights of the terms that match the row's node. known is false if
// the index has no answer for one of the terms, or if p is nil.
func (p *preferredNodes) score(t *table.Table, r table.Row) (sum int64, known bool) {
	if p == nil {
		return 0, false
	}
	for i := range p.terms {
		counts, known := p.terms[i].Admits(t, r)
		if !known {
			return 0, false
		}
		if counts {
			sum += p.terms[i].Weight
		}
	}
	return sum, true
}

// normalize scales raw scores so that the highest (most) becomes 100. If the highest is 0, all stay
// 0.
func normalize(raw, _, most int64) int64 {
	if most <= 0 {
		return 0
	}
	return 100 * raw / most
}
