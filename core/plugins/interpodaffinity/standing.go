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

// standing holds what the terms of placed pods mean for some pods: those of one namespace
// whose labels agree as far as selectors read them.
type standing struct {
	about    *table.About
	revision uint64 // of the terms and the namespaces
	// keeping are the IDs of the terms that keep the pods away, as a part of
	// signatures, scoring those of terms that make nodes better or worse for them.
	keeping, scoring []byte
	live             bool // one of keeping does so now, or once a nominated pod is placed

	looked                 int           // how many of the terms about the pods look has seen
	weighty                []*table.Term // those that make nodes better or worse while they are live
	away, pull             []*table.Term // the terms of keeping and of scoring, by ID
	awayCounts, pullCounts *existing     // as of when a class last asked
}

// Bounds of what is kept of standings.
const (
	standingsKept = 1 << 12
	columnsKept   = 1 << 21 // elements of columns
)

// standingOf returns the standing of the pod, up to date; nil if no term selects it.
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

// terms returns the terms that are about the pods; of nil, none.
func (s *standing) terms() []*table.Term {
	if s == nil {
		return nil
	}
	return s.about.Terms()
}

// countAway returns what the terms of keeping come to, countPull what those of scoring do; nil:
// there are none.
func (s *standing) countAway(t *table.Table) *existing {
	if s == nil || len(s.away) == 0 {
		return nil
	}
	s.awayCounts = s.awayCounts.with(t, s.away)
	return s.awayCounts
}

func (s *standing) countPull(t *table.Table) *existing {
	if s == nil || len(s.pull) == 0 {
		return nil
	}
	s.pullCounts = s.pullCounts.with(t, s.pull)
	return s.pullCounts
}

// begin must be called before standings and layouts are asked for. It drops the standings
// if they are many or large, or refer to outdated topologies. Classes that use one keep
// it.
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

// look finds the terms that count now. Terms join those about the pods at the end, and
// there may be very many: it looks at the new ones, and which of the others are live.
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

// addKey adds the topology to the keys, which are few, while the terms may be many.
func addKey(keys []domain.Key, label string) []domain.Key {
	for i := range keys {
		if keys[i].Label == label {
			return keys
		}
	}
	return append(keys, domain.Key{Label: label})
}

// keepsAway returns what a pod with a term adds to what keeps others away.
func keepsAway(*table.Term) int64 { return 1 }

// weight returns what a term of a placed pod scores where the pod is.
func (pl *plugin) weight(term *table.Term) int64 {
	switch term.Kind {
	case match.PreferredPods:
		return term.Weight
	case match.RequiredAffinity:
		return pl.hardWeight
	}
	return 0
}
