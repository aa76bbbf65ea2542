package interpodaffinity

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/table"
)

// existing holds sums, by topology domain, over placed pods that have certain terms: how
// many keep others away, or how much they add to a score. All pods that these terms select
// share it.
type existing struct {
	pl      *plugin
	weight  func(*table.Term) int64 // what each placed pod with the term adds
	columns []*domain.Column        // one for each topology
	terms   []existingTerm          // sorted by ID

	counted domain.Follower // how far the placed pods are counted
	users   int             // number of counts that use it; while it is not 0, terms stays as it is
}

// existingTerm is a term of placed pods. Each pod with the term adds share to the sum of its
// domain.
type existingTerm struct {
	*table.Term
	share share
}

// share is what one pod adds to the sums of one topology: to the sum of the domain in which
// the pod is.
type share struct {
	column int // index of the topology's column in counts.by of the kind, or in existing.columns
	n      int64
}

// with returns sums over exactly the listed terms, sorted by ID. It returns e itself if e has these
// terms. Otherwise it changes e to them, or a copy of e if the state of some pod refers to e.
func (e *existing) with(t *table.Table, list []*table.Term) *existing {
	if len(e.terms) == len(list) && e.hasTerms(list) {
		return e
	}
	if e.sync(t); e.users > 0 {
		e = e.copy()
	}
	e.set(t, list)
	return e
}

// hasTerms reports whether the sums are over exactly the terms of the list, in its order.
// The list must have as many.
func (e *existing) hasTerms(list []*table.Term) bool {
	for i := range list {
		if e.terms[i].Term != list[i] {
			return false
		}
	}
	return true
}

// copy returns a copy with columns of its own and no users.
func (e *existing) copy() *existing {
	c := *e
	c.users, c.terms, c.columns = 0, slices.Clone(e.terms), nil
	for _, of := range e.columns {
		c.columns = append(c.columns, of.Copy(&e.pl.rooms))
		e.pl.columns += len(of.Sums)
	}
	return &c
}

// set replaces the terms by the listed ones, sorted by ID, and updates the sums: terms that leave
// are subtracted, new ones are counted. e must be up to date with the table and have no users.
func (e *existing) set(t *table.Table, list []*table.Term) {
	same := 0
	for same < min(len(e.terms), len(list)) && e.terms[same].Term == list[same] {
		same++
	}
	old := slices.Clone(e.terms[same:])
	e.terms = e.terms[:same]
	for _, term := range list[same:] {
		for ; len(old) > 0 && old[0].ID < term.ID; old = old[1:] {
			e.takeOff(&old[0])
		}
		if len(old) > 0 && old[0].Term == term {
			e.terms, old = append(e.terms, old[0]), old[1:]
			continue
		}
		added := existingTerm{term, share{e.columnOf(t, domain.LabelOf(t, term.TopologyKey)), e.weight(term)}}
		e.terms = append(e.terms, added)
		e.count(&added)
		e.counted.AddRows(len(added.Rows()))
	}
	for i := range old {
		e.takeOff(&old[i])
	}
}

// sync counts the pods that came or left since the last call, or all pods if a node has
// changed its domain.
func (e *existing) sync(t *table.Table) {
	if e.counted.Current(t) {
		return
	}
	moved := false
	for _, c := range e.columns {
		moved = c.Follow(t, &e.pl.rooms) || moved
	}
	e.counted.Follow(t, moved, func(p table.PodChange, n int64) {
		e.sharesOf(p.Terms, func(s share) { e.columns[s.column].Add(p.Row, n*s.n) })
	}, e.countAll)
}

// sharesOf calls visit with each share that a placed pod with these terms adds. Terms that e does
// not count add none.
func (e *existing) sharesOf(terms []*table.Term, visit func(share)) {
	for _, term := range terms {
		at, counts := slices.BinarySearchFunc(e.terms, term.ID, func(m existingTerm, id uint64) int { return cmp.Compare(m.ID, id) })
		if counts {
			visit(e.terms[at].share)
		}
	}
}

// countAll counts all placed pods with the terms again. It returns its cost as
// domain.Follower.Follow measures it: the number of rows, and 0 label sets of pods, as it
// looks up pods by term instead.
func (e *existing) countAll() (sets, rows int) {
	for _, c := range e.columns {
		c.Clear()
	}
	for i := range e.terms {
		e.count(&e.terms[i])
		rows += len(e.terms[i].Rows())
	}
	return 0, rows
}

// count adds the share of each placed pod with the term to the sum of its domain.
func (e *existing) count(term *existingTerm) {
	e.columns[term.share.column].AddCounts(term.Rows(), term.share.n)
}

// takeOff subtracts the share of each placed pod with the term from the sum of its domain. It does
// not remove the term from e.terms.
func (e *existing) takeOff(term *existingTerm) {
	e.columns[term.share.column].AddCounts(term.Rows(), -term.share.n)
}

// columnOf returns the index in e.columns of the column in the topology with the label key. It adds
// an empty column if there is none.
func (e *existing) columnOf(t *table.Table, key string) int {
	i := slices.IndexFunc(e.columns, func(c *domain.Column) bool { return c.Label == key })
	if i < 0 {
		i = len(e.columns)
		c := &domain.Column{Topology: e.pl.layouts.Topology(domain.Key{Label: key})}
		c.Follow(t, &e.pl.rooms)
		c.Clear()
		e.columns = append(e.columns, c)
		e.pl.columns += c.Len()
	}
	return i
}

// release gives back the memory of the columns for reuse. No state of a pod may refer to e
// any more.
func (e *existing) release() {
	for _, c := range e.columns {
		e.pl.rooms.Give(c)
	}
	e.columns = nil
}
