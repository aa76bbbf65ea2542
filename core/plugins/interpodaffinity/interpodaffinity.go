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

// plugin holds what the profile says.
type plugin struct {
	// hardWeight is what a required affinity term of a placed pod scores.
	hardWeight int64
	// ignore: preferences of placed pods do not count for pods that have none
	// themselves.
	ignore bool
	// nodes are what the counts of all classes share.
	nodes domain.Shared
}

// New returns the plugin; nil args stand for the defaults.
func New(args *configv1.InterPodAffinityArgs) (framework.Plugin, error) {
	if err := ValidateArgs(nil, args).ToAggregate(); err != nil {
		return framework.Plugin{}, err
	}
	args = WithDefaults(args)
	pl := &plugin{hardWeight: int64(*args.HardPodAffinityWeight), ignore: args.IgnorePreferredTermsOfExistingPods}
	return framework.Plugin{
		Name:             names.InterPodAffinity,
		EventsToRegister: eventsToRegister(),
		SignPlugin: framework.SignPlugin{
			Locality:     framework.Domains,
			SignRevision: signRevision,
			Sign:         pl.sign,
			Epoch:        (*table.Table).UniquePerNodeRevision,
		},
		PreFilter: pl.preFilter,
		FilterPlugin: framework.FilterPlugin{
			CellFilter:  &framework.CellFilter{Sync: sync, Cells: filterCells, Filter: verdict},
			WithoutPods: withoutPods,
			Explain:     explain,
		},
		PreScore: pl.preScore,
		ScorePlugin: framework.ScorePlugin{
			CellScore:      &framework.CellScore{Sync: sync, Cells: scoreCells, Score: score},
			NormalizeScore: normalize,
		},
	}, nil
}

// sign is the pod's own terms, and which terms of others are about it: of its
// labels no more than that is read. A term that no pod has yet may be tried
// with a nominated pod, so that any that is known counts for Filter.
func (pl *plugin) sign(key []byte, t *table.Table, p *object.Pod) []byte {
	about := t.TermsAbout(p)
	if p.Affinity == nil && len(about) == 0 {
		return key
	}
	if a := p.Affinity; a != nil {
		key = append(append(key, '='), a.Key...)
		if matchesItself(t, p) {
			key = append(key, '+')
		}
		if a.SelectsNamespaces {
			key = binary.AppendUvarint(append(key, '~'), t.NamespaceRevision())
		}
	}
	key = append(key, 0)
	keeping, live := existingAntiAffinityTerms(about)
	if live {
		key = append(key, '!')
	}
	for _, term := range keeping {
		key = binary.AppendUvarint(key, term.ID)
	}
	key = append(key, 0)
	for _, term := range pl.scoringTerms(p, about) {
		key = binary.AppendUvarint(key, term.ID)
	}
	return key
}

// signRevision is of the terms that may be about the pod, and of the namespaces that
// they and the pod's own terms select.
func signRevision(t *table.Table, _ *object.Pod) (revision uint64, known bool) {
	return t.TermsRevision() + t.NamespaceRevision(), true
}

// existingAntiAffinityTerms picks the terms of others that keep the pod away, and tells
// whether any of them does now.
func existingAntiAffinityTerms(about []*table.Term) (terms []*table.Term, live bool) {
	for _, term := range about {
		if term.Kind == match.RequiredAntiAffinity {
			terms, live = append(terms, term), live || term.Live()
		}
	}
	return terms, live
}

// scoringTerms picks the terms of others that make nodes better or worse for the
// pod.
func (pl *plugin) scoringTerms(p *object.Pod, about []*table.Term) (terms []*table.Term) {
	if pl.ignore && !hasPreferredTerms(p) {
		return nil
	}
	for _, term := range about {
		if term.Live() && pl.weight(term) != 0 {
			terms = append(terms, term)
		}
	}
	return terms
}

// weight is what a term of a placed pod scores where the pod is.
func (pl *plugin) weight(term *table.Term) int64 {
	switch term.Kind {
	case match.PreferredPods:
		return term.Weight
	case match.RequiredAffinity:
		return pl.hardWeight
	}
	return 0
}

func hasPreferredTerms(p *object.Pod) bool { return p.Affinity != nil && p.Affinity.Prefers }

// termMatches tells whether a term of the pod at hand is about pods with these labels
// in that namespace. v1.36.3 looks up which namespaces the selector matches,
// and then asks it about one without labels, too.
func termMatches(t *table.Table, term *match.PodTerm, namespace string, labels map[string]string) bool {
	return term.Matches(namespace, t.NamespaceLabels(namespace), labels) ||
		term.NamespaceSelector != nil && term.Matches(namespace, nil, labels)
}

func allTermsMatch(t *table.Table, terms []match.PodTerm, namespace string, labels map[string]string) bool {
	for i := range terms {
		if !termMatches(t, &terms[i], namespace, labels) {
			return false
		}
	}
	return true
}

// matchesItself tells whether the pod's required affinity is about pods like
// itself, so that it may be the first of them.
func matchesItself(t *table.Table, p *object.Pod) bool {
	return len(p.Affinity.Affinity) > 0 && allTermsMatch(t, p.Affinity.Affinity, p.Namespace, p.Labels)
}

// preFilter skips pods that nothing is asked of, by themselves or by others
// that are placed. v1.36 then leaves out nominated pods' terms, too.
func (pl *plugin) preFilter(t *table.Table, p *object.Pod) framework.PreFilterResult {
	if p.Affinity != nil && p.Affinity.Invalid != nil {
		reason := fmt.Sprintf("parsing pod: %v", p.Affinity.Invalid)
		return framework.PreFilterResult{Status: &decision.Status{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reason}}}
	}
	keeping, live := existingAntiAffinityTerms(t.TermsAbout(p))
	own := p.Affinity != nil && len(p.Affinity.Affinity)+len(p.Affinity.AntiAffinity) > 0
	if !own && !live {
		return framework.PreFilterResult{Skip: true}
	}
	var c *counts
	if own {
		c = pl.newCounts(t, filterKinds, keeping, p.Affinity.Affinity, p.Affinity.AntiAffinity)
		c.self = matchesItself(t, p)
		c.addOwnTerms(p.Affinity.Affinity, affinity)
		c.addOwnTerms(p.Affinity.AntiAffinity, antiAffinity)
	} else {
		c = pl.newCounts(t, filterKinds, keeping)
	}
	for _, term := range keeping {
		c.addExistingTerm(term, existingAntiAffinity, 1)
	}
	return framework.PreFilterResult{State: c}
}

func (pl *plugin) preScore(t *table.Table, p *object.Pod) framework.PreScoreResult {
	if pl.ignore && !hasPreferredTerms(p) {
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
	existing := pl.scoringTerms(p, t.TermsAbout(p))
	if len(preferred)+len(existing) == 0 {
		return framework.PreScoreResult{Skip: true}
	}
	c := pl.newCounts(t, scoreKinds, existing, preferred)
	c.addOwnTerms(preferred, topologyScore)
	for _, term := range existing {
		c.addExistingTerm(term, topologyScore, pl.weight(term))
	}
	return framework.PreScoreResult{State: c}
}
