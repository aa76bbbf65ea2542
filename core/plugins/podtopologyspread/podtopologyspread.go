package podtopologyspread

import (
	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// plugin is the plugin's configuration in one profile, and what its classes of pods share.
type plugin struct {
	// defaults are the constraints of pods that have none of their own; nil: there are no such
	// constraints.
	defaults *match.Spread
	// system is set if defaults are kube-scheduler's own (defaultingType System).
	system bool
	// comparisons is the gate TaintTolerationComparisonOperators.
	comparisons bool
	// matchLabelKeys is the gate MatchLabelKeysInPodTopologySpread.
	matchLabelKeys bool
	// The rest is shared by the counts of all classes.
	layouts    domain.Layouts
	generation uint64                // that of layouts when the following were last dropped
	taints     uint64                // the taintState at that time
	inclusions map[string]*inclusion // by the key that inclusionOf makes
	censuses   map[censusKey]*census
	elements   int               // about how many elements inclusions and censuses hold together
	rooms      domain.Rooms      // memory of dropped columns, for reuse
	idle       []*counts         // released, for reuse
	keys       []domain.Key      // scratch of newCounts
	columns    map[columnKey]int // scratch for newCounts
	key        []byte            // scratch of inclusionOf
	seen       []bool            // scratch of noneSeen
}

// system is kube-scheduler's own default constraints. They apply if the arguments have
// defaultingType System, or no type.
var system = []v1.TopologySpreadConstraint{
	{TopologyKey: v1.LabelHostname, WhenUnsatisfiable: v1.ScheduleAnyway, MaxSkew: 3},
	{TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.ScheduleAnyway, MaxSkew: 5},
}

// New returns the plugin; nil args stand for the defaults. Without the gate
// MatchLabelKeysInPodTopologySpread, it ignores the matchLabelKeys of constraints. The error names
// the wrong fields of args.
func New(args *configv1.PodTopologySpreadArgs, f feature.Features) (framework.Plugin, error) {
	if err := ValidateArgs(nil, args).ToAggregate(); err != nil {
		return framework.Plugin{}, err
	}
	pl := &plugin{system: true, comparisons: f.TaintTolerationComparisonOperators, matchLabelKeys: f.MatchLabelKeysInPodTopologySpread}
	list := system
	if args = WithDefaults(args); args.DefaultingType == configv1.ListDefaulting {
		pl.system, list = false, args.DefaultConstraints
	}
	pl.defaults = match.NewSpread(list, nil)
	return framework.Plugin{
		Name:             names.PodTopologySpread,
		EventsToRegister: pl.eventsToRegister(),
		SignPlugin: framework.SignPlugin{
			Locality:     framework.Domains,
			SignRevision: pl.signRevision,
			Sign:         pl.sign,
			Epoch:        domain.Epoch,
		},
		PreFilter: pl.preFilter,
		FilterPlugin: framework.FilterPlugin{
			CellFilter: &framework.CellFilter{Sync: sync, Cells: cells, Filter: verdict, Exchanged: exchanged},
			Explain:    explain,
		},
		PreScore: pl.preScore,
		ScorePlugin: framework.ScorePlugin{
			CellScore:      &framework.CellScore{Sync: sync, Cells: cells, FeasibleNodes: countDomains, Score: score},
			NormalizeScore: normalize,
		},
	}, nil
}

// sign appends to key what verdicts and scores depend on of the pod: its constraints, and which
// nodes and pods they count. It appends nothing for a pod to which no constraints apply: it has
// none of its own, and either the profile has none or no Service or controller selects it.
func (pl *plugin) sign(key []byte, t *table.Table, p *object.Pod) []byte {
	spread := pl.spread(p)
	switch {
	case spread != nil:
		key = match.AppendField(append(key, '='), spread.Key)
	case pl.defaults != nil:
		f := defaultSelectorOf(t, p)
		if f.empty() {
			return key
		}
		spread, key = pl.defaults, f.appendKey(append(key, '~'), p)
	default:
		return key
	}
	affinity, taints := honors(spread)
	if affinity && p.RequiredNodes != nil {
		key = match.AppendField(append(key, 'a'), p.RequiredNodes.Key)
	}
	if taints {
		key = match.AppendField(append(key, 't'), p.Tolerations.Key)
	}
	return match.AppendField(append(key, 'n'), p.Namespace)
}

// signRevision returns a revision that changes when the pod's signature may: that of Services and
// controllers for a pod without constraints of its own, if the profile has defaults; else 0. known
// is always true.
func (pl *plugin) signRevision(t *table.Table, p *object.Pod) (revision uint64, known bool) {
	if pl.spread(p) != nil || pl.defaults == nil {
		return 0, true
	}
	return t.SelectorOwners().Revision(), true
}

// spread returns the pod's own constraints, without matchLabelKeys if the gate is off;
// nil if it has none.
func (pl *plugin) spread(p *object.Pod) *match.Spread {
	if s := p.Spread; s != nil && s.Keyless != nil && !pl.matchLabelKeys {
		return s.Keyless
	}
	return p.Spread
}

// honors reports whether a constraint of s, hard or soft, has nodeAffinityPolicy Honor (affinity),
// and whether one has nodeTaintsPolicy Honor (taints).
func honors(s *match.Spread) (affinity, taints bool) {
	for _, list := range [][]match.SpreadConstraint{s.Hard, s.Soft} {
		for i := range list {
			affinity, taints = affinity || list[i].HonorAffinity, taints || list[i].HonorTaints
		}
	}
	return affinity, taints
}

// preFilter returns, as the state for Filter, counts for the pod's hard constraints, or for the
// profile's if the pod has no constraints. It skips pods without hard constraints. It fails if a
// selector of a hard constraint does not parse.
func (pl *plugin) preFilter(t *table.Table, p *object.Pod) framework.PreFilterResult {
	var constraints []match.SpreadConstraint
	if spread := pl.spread(p); spread == nil {
		constraints = pl.byDefault(t, p, false)
	} else if err := spread.HardInvalid; err != nil {
		return framework.PreFilterResult{Status: decision.Failed("get constraints from pod: obtaining pod's hard topology spread constraints: %w", err)}
	} else {
		constraints = spread.Hard
	}
	if len(constraints) == 0 {
		return framework.PreFilterResult{Skip: true}
	}
	return framework.PreFilterResult{State: pl.newCounts(t, p, constraints, hard)}
}

// preScore returns, as the state for Score, counts for the pod's soft constraints, or for the
// profile's if the pod has no constraints. It skips pods without soft constraints. It fails if a
// selector of a soft constraint does not parse.
func (pl *plugin) preScore(t *table.Table, p *object.Pod) framework.PreScoreResult {
	var constraints []match.SpreadConstraint
	kind := soft
	if spread := pl.spread(p); spread == nil {
		constraints = pl.byDefault(t, p, true)
		if pl.system {
			kind = lenient
		}
	} else if err := spread.SoftInvalid; err != nil {
		return framework.PreScoreResult{Status: decision.Failed("calculating preScoreState: obtaining pod's soft topology spread constraints: %w", err)}
	} else {
		constraints = spread.Soft
	}
	if len(constraints) == 0 {
		return framework.PreScoreResult{Skip: true}
	}
	return framework.PreScoreResult{State: pl.newCounts(t, p, constraints, kind)}
}
