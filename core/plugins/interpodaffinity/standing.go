package interpodaffinity

import (
	"encoding/binary"
	"slices"

	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/index/nodelabels"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// standing says which affinity and anti-affinity terms of other pods select pods of one
// namespace with certain labels, and so keep them away from nodes or score nodes for them.
// All pods that the same terms select share it.
type standing struct {
	about    *table.About // the terms that select these pods
	revision uint64       // of all terms and of namespace labels, when look was last called
	// keeping are the IDs of the terms that keep the pods away (required anti-affinity), even if
	// no pod has them any more, as bytes of signatures; scoring those of terms of placed pods
	// that score nodes for them.
	keeping, scoring []byte
	live             bool // a placed or nominated pod has one of keeping

	looked                 int           // how many of about's terms look has seen
	weighty                []*table.Term // terms that score nodes if a placed pod has them
	away, pull             []*table.Term // the terms of keeping and scoring, sorted by ID
	awayCounts, pullCounts *existing     // their sums, as of when a pod last needed them
}

// Bounds of what is kept of standings. With more, begin drops all.
const (
	standingsKept = 1 << 12 // standings
	columnsKept   = 1 << 21 // elements of all columns of standings
)

// standingOf returns the standing of the pod, with up-to-date lists of terms, a new one if there is
// none yet; nil if no term of any pod selects the pod. begin must have been called.
func (pl *plugin) standingOf(t *table.Table, p *object.Pod) *standing {
	about := t.Terms().About(p)
	if about == nil {
		return nil
	}
	s := pl.standings[about]
	if s == nil {
		s = &standing{about: about, awayCounts: &existing{pl: pl, weight: keepsAway}, pullCounts: &existing{pl: pl, weight: pl.weight}}
		pl.standings[about] = s
	}
	if now := t.Terms().Revision() + t.Namespaces().Revision() + 1; s.revision != now {
		s.revision = now
		pl.look(s)
	}
	return s
}

// terms returns the terms that select the pods; none for nil.
func (s *standing) terms() []*table.Term {
	if s == nil {
		return nil
	}
	return s.about.Terms()
}

// countAway returns, by domain, the number of placed pods whose required anti-affinity keeps the
// pods of s away (a pod counts once for each term); nil if no such term is known. It is for Filter.
// s may be nil: no terms.
func (s *standing) countAway(t *table.Table) *existing {
	if s == nil || len(s.away) == 0 {
		return nil
	}
	s.awayCounts = s.awayCounts.with(t, s.away)
	return s.awayCounts
}

// countPull returns, by domain, the weights of terms of placed pods that score nodes for the pods
// of s, summed; nil if no placed pod has such a term. It is for Score. s may be nil: no terms.
func (s *standing) countPull(t *table.Table) *existing {
	if s == nil || len(s.pull) == 0 {
		return nil
	}
	s.pullCounts = s.pullCounts.with(t, s.pull)
	return s.pullCounts
}

// begin must be called before standings and layouts are used. It drops the standings if
// they are too many or too large, or refer to outdated topologies. Classes keep those
// that they use.
func (pl *plugin) begin(t *table.Table) {
	generation := pl.layouts.Prepare(t) + nodelabels.Of(t).KeysRevision()
	if pl.standings != nil && generation == pl.generation && len(pl.standings) < standingsKept && pl.columns < columnsKept {
		return
	}
	for _, s := range pl.standings { // any order: the room of one is as good as another's
		for _, e := range []*existing{s.awayCounts, s.pullCounts} {
			if e.users == 0 {
				e.release()
			}
		}
	}
	pl.standings, pl.columns, pl.generation = map[*table.About]*standing{}, 0, generation
}

// look updates the standing's lists of terms. There may be very many, and new ones come
// last: it reads only the new ones, and of the others whether a pod still has them.
func (pl *plugin) look(s *standing) {
	for _, term := range s.about.Terms()[s.looked:] {
		if term.Kind == match.RequiredAntiAffinity {
			s.keeping, s.away = binary.AppendUvarint(s.keeping, term.ID), append(s.away, term)
		} else if pl.weight(term) != 0 {
			s.weighty = append(s.weighty, term)
		}
	}
	s.looked = len(s.about.Terms())
	s.live = slices.ContainsFunc(s.away, func(t *table.Term) bool { return t.Live() || t.Expected() })
	s.scoring, s.pull = s.scoring[:0], s.pull[:0]
	for _, term := range s.weighty {
		if term.Live() {
			s.scoring, s.pull = binary.AppendUvarint(s.scoring, term.ID), append(s.pull, term)
		}
	}
}

// addKey returns keys with the topology of this label, appended unless it is there.
func addKey(keys []domain.Key, label string) []domain.Key {
	for i := range keys {
		if keys[i].Label == label {
			return keys
		}
	}
	return append(keys, domain.Key{Label: label})
}

// keepsAway is the weight of a required anti-affinity term in the sums of existing: each
// placed pod that has it counts as 1, so that a positive sum closes the domain.
func keepsAway(*table.Term) int64 { return 1 }

// weight returns what a term of a placed pod adds to the raw score of the nodes in the
// pod's domain; 0 for terms that do not score.
func (pl *plugin) weight(term *table.Term) int64 {
	switch term.Kind {
	case match.PreferredPods:
		return term.Weight
	case match.RequiredAffinity:
		return pl.hardWeight
	}
	return 0
}
