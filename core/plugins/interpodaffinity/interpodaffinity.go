package interpodaffinity

import (
	"encoding/binary"
	"fmt"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// plugin is the plugin's configuration in one profile, and what all pods of the profile
// share.
type plugin struct {
	// hardWeight is what a required affinity term of a placed pod adds to the raw score.
	hardWeight int64
	// ignore is IgnorePreferredTermsOfExistingPods: terms of placed pods do not score nodes for
	// pods without preferred terms.
	ignore bool
	// layouts, standings and rooms are shared by the counts of all classes.
	layouts    domain.Layouts
	generation uint64                     // of the layouts and label keys that standings belong to
	standings  map[*table.About]*standing // by the terms that select the pods
	columns    int                        // a lower bound of the elements in all columns of standings
	rooms      domain.Rooms               // memory of columns, for reuse
	keys       []domain.Key               // scratch of newCounts
	rejected   []uint8                    // scratch of rejectedDomains
	about      keptTerms                  // for preemption: which terms of a pod select placed pods
}

// New returns the plugin; nil args stand for kube-scheduler's defaults. The error names the wrong
// fields.
func New(args *configv1.InterPodAffinityArgs) (framework.Plugin, error) {
	pl, err := newPlugin(args)
	if err != nil {
		return framework.Plugin{}, err
	}
	return pl.declare(), nil
}

// newPlugin returns the plugin's state; nil args stand for the defaults. The error names the wrong
// fields.
func newPlugin(args *configv1.InterPodAffinityArgs) (*plugin, error) {
	if err := ValidateArgs(nil, args).ToAggregate(); err != nil {
		return nil, err
	}
	args = WithDefaults(args)
	return &plugin{hardWeight: int64(*args.HardPodAffinityWeight), ignore: args.IgnorePreferredTermsOfExistingPods}, nil
}

// declare returns the plugin as the framework takes it.
func (pl *plugin) declare() framework.Plugin {
	return framework.Plugin{
		Name:             names.InterPodAffinity,
		EventsToRegister: eventsToRegister(),
		SignPlugin: framework.SignPlugin{
			Locality:     framework.Domains,
			SignRevision: signRevision,
			Sign:         pl.sign,
			Epoch:        domain.Epoch,
		},
		PreFilter: pl.preFilter,
		FilterPlugin: framework.FilterPlugin{
			CellFilter: &framework.CellFilter{Sync: sync, Cells: filterCells, Filter: verdict, Rows: rowVerdicts, Exchanged: exchanged, SetNominated: setNominated},
			Explain:    explain,
		},
		PreScore: pl.preScore,
		ScorePlugin: framework.ScorePlugin{
			CellScore:      &framework.CellScore{Sync: sync, Cells: scoreCells, Score: score, Rows: rowScores},
			NormalizeScore: normalize,
		},
	}
}

// sign appends to key what verdicts and scores depend on of the pod: its own terms, and which terms
// of other pods select it; nothing else of its labels. Terms that no placed pod has count too, as a
// nominated pod may be tried with one. It appends nothing for a pod without terms that no term
// selects.
func (pl *plugin) sign(key []byte, t *table.Table, p *object.Pod) []byte {
	pl.begin(t)
	others := pl.standingOf(t, p)
	if p.Affinity == nil && len(others.terms()) == 0 {
		return key
	}
	if a := p.Affinity; a != nil {
		key = append(append(key, '='), a.Key...)
		if matchesItself(t, p) {
			key = append(key, '+')
		}
		if a.SelectsNamespaces {
			key = binary.AppendUvarint(append(key, '~'), t.Namespaces().Revision())
		}
	}
	key = append(key, 0)
	if others == nil {
		return append(key, 0)
	}
	if others.live {
		key = append(key, '!')
	}
	key = append(append(key, others.keeping...), 0)
	if pl.pulled(p) {
		key = append(key, others.scoring...)
	}
	return key
}

// pulled reports whether terms of placed pods may affect the pod's score (see ignore).
func (pl *plugin) pulled(p *object.Pod) bool { return !pl.ignore || hasPreferredTerms(p) }

// signRevision returns a revision that changes when the signature may: that of the terms of all
// pods, and of namespace labels. known is always true.
func signRevision(t *table.Table, _ *object.Pod) (revision uint64, known bool) {
	return t.Terms().Revision() + t.Namespaces().Revision(), true
}

// hasPreferredTerms reports whether the pod has preferred affinity or anti-affinity.
func hasPreferredTerms(p *object.Pod) bool { return p.Affinity != nil && p.Affinity.Prefers }

// allTermsMatch reports whether every term of a pod to be placed selects a placed pod with these
// labels in that namespace. It is true if there are no terms.
func allTermsMatch(t *table.Table, terms []match.PodTerm, namespace string, labels map[string]string) bool {
	for i := range terms {
		if !terms[i].MatchesPlaced(namespace, t.Namespaces().Labels(namespace), labels) {
			return false
		}
	}
	return true
}

// matchesItself reports whether the pod has required affinity that selects the pod itself, so that
// it may be the first of its kind. p.Affinity must not be nil.
func matchesItself(t *table.Table, p *object.Pod) bool {
	return len(p.Affinity.Affinity) > 0 && allTermsMatch(t, p.Affinity.Affinity, p.Namespace, p.Labels)
}

// preFilter skips pods without required terms that no required anti-affinity term of a placed or
// nominated pod selects, and returns the counts for others. kube-scheduler also skips pods that
// only nominated pods' terms select. It rejects a pod whose affinity does not parse.
func (pl *plugin) preFilter(t *table.Table, p *object.Pod) framework.PreFilterResult {
	if p.Affinity != nil && p.Affinity.Invalid != nil {
		reason := fmt.Sprintf("parsing pod: %v", p.Affinity.Invalid)
		return framework.PreFilterResult{Status: &decision.Status{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reason}}}
	}
	pl.begin(t)
	others := pl.standingOf(t, p)
	live := others != nil && others.live
	own := p.Affinity != nil && len(p.Affinity.Affinity)+len(p.Affinity.AntiAffinity) > 0
	if !own && !live {
		return framework.PreFilterResult{Skip: true}
	}
	var required match.PodAffinity
	if own {
		required = *p.Affinity
	}
	away := others.countAway(t)
	c := pl.newCounts(t, away, required.Affinity, required.AntiAffinity)
	if own {
		c.self = matchesItself(t, p)
		c.addOwnTerms(t, p.Affinity.Affinity, affinity)
		c.addOwnTerms(t, p.Affinity.AntiAffinity, antiAffinity)
	}
	c.addExisting(away, existingAntiAffinity)
	return framework.PreFilterResult{State: c}
}

// preScore skips pods for which no term adds to a score, and returns the counts for others. A pod
// whose affinity does not parse gets an error, unless terms of placed pods are ignored for it.
func (pl *plugin) preScore(t *table.Table, p *object.Pod) framework.PreScoreResult {
	if !pl.pulled(p) {
		return framework.PreScoreResult{Skip: true}
	}
	if p.Affinity != nil && p.Affinity.Invalid != nil {
		err := fmt.Errorf("failed to parse pod: %w", p.Affinity.Invalid)
		return framework.PreScoreResult{Status: &decision.Status{Code: decision.Error, Err: err}}
	}
	var preferred []match.PodTerm
	if p.Affinity != nil {
		preferred = p.Affinity.Preferred
	}
	pl.begin(t)
	pull := pl.standingOf(t, p).countPull(t)
	if len(preferred) == 0 && pull == nil {
		return framework.PreScoreResult{Skip: true}
	}
	c := pl.newCounts(t, pull, preferred)
	c.addOwnTerms(t, preferred, ownScore)
	c.addExisting(pull, existingScore)
	return framework.PreScoreResult{State: c}
}
