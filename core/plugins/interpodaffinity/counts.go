package interpodaffinity

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// kind says which terms or pods a column counts. The class is the pod to be placed, and all
// pods that the plugin cannot tell apart from it.
type kind uint8

const (
	affinity             kind = iota // placed pods that all required affinity terms of the class select
	antiAffinity                     // placed pods that a required anti-affinity term of the class selects
	existingAntiAffinity             // placed pods with a required anti-affinity term that selects the class
	kinds                            // the number of kinds
)

// Counts for Score use two of the kinds for sums of weights.
const (
	ownScore      = affinity             // of the class's preferred terms
	existingScore = existingAntiAffinity // of placed pods' terms that select the class
)

// noNode is the location (number of a combination of domains) of a row without a node. It is
// negative.
const noNode = domain.NoNode

// counts holds, for one class of pods (which the plugin cannot tell apart) and each topology
// domain, what Filter or Score read: how many pods the class's own terms select, and how many
// placed pods have terms that select the class; for Score, the sums of their weights. Only sync
// changes these.
type counts struct {
	pl        *plugin
	layout    *domain.Layout
	terms     []termSet             // the class's own terms
	naming    map[string][]int      // by namespace, indices in terms of those that name it
	selecting []int                 // indices in terms of those that select namespaces by labels
	by        [kinds][]place        // the columns, by kind
	own       [kinds]*domain.Column // by kind, the column in which each node is a domain; nil: none
	existing  *existing             // the placed pods' terms; nil: none selects the class
	self      bool                  // the class's required affinity selects its own pods

	counted domain.Follower // how far the placed pods are counted for the class's own terms
}

// place is a column of counts, by domain, in one topology of the layout.
type place struct {
	*domain.Column
	at     int             // index of the topology in the layout
	gone   int64           // scratch of leave: how much of a sum leaves with a node's victims
	closed []domain.Domain // the domains that setNominated closed for the pod at hand
}

// holds reports whether the column counts more than n in the domain, or the domain is closed.
func (p *place) holds(d domain.Domain, n int64) bool {
	return p.Sums[d] > n || slices.Contains(p.closed, d)
}

// termSet is terms of the class that count together: a placed pod that all of them
// select adds the shares to the columns of the kind.
type termSet struct {
	terms  []match.PodTerm
	kind   kind
	shares []share
}

// newCounts returns empty counts with a layout for the topologies of own, the terms of the class,
// and of others, the terms of placed pods; nil means that these have none. addOwnTerms and
// addExisting then count the terms.
func (pl *plugin) newCounts(t *table.Table, others *existing, own ...[]match.PodTerm) *counts {
	keys := pl.keys[:0]
	if others != nil {
		for _, col := range others.columns {
			keys = append(keys, col.Key)
		}
	}
	for _, terms := range own {
		for i := range terms {
			keys = addKey(keys, domain.LabelOf(t, terms[i].TopologyKey))
		}
	}
	pl.keys = keys
	return &counts{pl: pl, layout: pl.layouts.Layout(keys, true), naming: map[string][]int{}}
}

// addOwnTerms adds the class's own terms, counted in columns of kind k: a pod counts as 1 for a
// required term, and as the weight for a preferred one. Required affinity terms form one set, as
// one pod must match them all; others form a set each.
func (c *counts) addOwnTerms(t *table.Table, terms []match.PodTerm, k kind) {
	if len(terms) > 0 && terms[0].Kind == match.RequiredAffinity {
		q := termSet{terms: terms, kind: k}
		for i := range terms {
			if s := (share{c.placeOf(domain.LabelOf(t, terms[i].TopologyKey), k), 1}); !slices.Contains(q.shares, s) {
				q.shares = append(q.shares, s)
			}
		}
		c.addTermSet(q)
		return
	}
	for i := range terms {
		n := int64(1)
		if terms[i].Kind == match.PreferredPods {
			n = terms[i].Weight
		}
		c.addTermSet(termSet{terms[i : i+1], k, []share{{c.placeOf(domain.LabelOf(t, terms[i].TopologyKey), k), n}}})
	}
}

// addTermSet adds the set, and lists it in naming and selecting by the namespaces of
// its first term.
func (c *counts) addTermSet(q termSet) {
	at, first := len(c.terms), &q.terms[0]
	c.terms = append(c.terms, q)
	for _, name := range first.Namespaces {
		c.naming[name] = append(c.naming[name], at)
	}
	if first.NamespaceSelector != nil {
		c.selecting = append(c.selecting, at)
	}
}

// placeOf returns the index in c.by[k] of the column in the topology with the label key. It adds an
// empty column if there is none.
func (c *counts) placeOf(key string, k kind) int {
	if i := c.columnOf(key, k); i >= 0 {
		return i
	}
	at := c.topology(key)
	c.addColumn(&domain.Column{Topology: c.layout.Topologies[at]}, at, k)
	return len(c.by[k]) - 1
}

// columnOf returns the index in c.by[k] of the column in the topology with the label key, -1 if
// there is none.
func (c *counts) columnOf(key string, k kind) int {
	return slices.IndexFunc(c.by[k], func(p place) bool { return p.Label == key })
}

// topology returns the index in the layout of the topology with the label key, -1 if the layout
// lacks it.
func (c *counts) topology(key string) int {
	return slices.IndexFunc(c.layout.Topologies, func(t *domain.Topology) bool { return t.Label == key })
}

// addColumn adds a column to those of the kind; at is the index of its topology in the layout. If
// each node is a domain there, the column becomes the kind's own column, too.
func (c *counts) addColumn(col *domain.Column, at int, k kind) {
	c.by[k] = append(c.by[k], place{Column: col, at: at})
	if at == c.layout.UniquePerNode {
		c.own[k] = col
	}
}

// addExisting adds the columns of placed pods' terms as columns of kind k, and makes c a user of e.
// It does nothing if e is nil.
func (c *counts) addExisting(e *existing, k kind) {
	if e == nil {
		return
	}
	for _, col := range e.columns {
		c.addColumn(col, c.topology(col.Label), k)
	}
	c.existing = e
	e.users++
}

// sync brings the counts in the plugin's state up to date. The framework calls it
// before the cells are read.
func sync(in *framework.Input) { in.State.(*counts).sync(in.Table) }

// sync counts the pods that came or left since the last call, for the class's own terms and for
// c.existing. If a node has moved to other domains, it counts all pods again.
func (c *counts) sync(t *table.Table) {
	if c.existing != nil {
		c.existing.sync(t)
	}
	if c.counted.Current(t) {
		return
	}
	c.layout.Follow(t)
	moved := false
	for k := range existingAntiAffinity {
		for i := range c.by[k] {
			moved = c.by[k][i].Follow(t, &c.pl.rooms) || moved
		}
	}
	c.counted.Follow(t, moved, func(p table.PodChange, n int64) {
		c.eachShare(t, p.Pod, func(k kind, s share) { c.by[k][s.column].Add(p.Row, n*s.n) })
	}, func() (sets, rows int) { return c.countAll(t) })
}

// eachShare calls visit with each kind and share that the pod p adds by the class's own terms, once
// it is placed.
func (c *counts) eachShare(t *table.Table, p *object.Pod, visit func(kind, share)) {
	for i := range c.terms {
		q := &c.terms[i]
		if !allTermsMatch(t, q.terms, p.Namespace, p.Labels) {
			continue
		}
		for _, s := range q.shares {
			visit(q.kind, s)
		}
	}
}

// countAll counts all placed pods again by the class's own terms. It returns its cost as
// domain.Follower.Follow measures it: how many label sets of pods and how many rows it went
// through.
func (c *counts) countAll(t *table.Table) (sets, rows int) {
	for k := range existingAntiAffinity {
		for i := range c.by[k] {
			c.by[k][i].Clear()
		}
	}
	count := func(name string) {
		moreSets, moreRows := c.countNamespace(t, name)
		sets, rows = sets+moreSets, rows+moreRows
	}
	if len(c.selecting) > 0 {
		t.PodNamespaces(count)
		return sets, rows
	}
	for name := range c.naming { // any order: sums
		count(name)
	}
	return sets, rows
}

// countNamespace counts the placed pods of the namespace by the class's own terms. It returns how
// many label sets of pods and how many rows it went through.
func (c *counts) countNamespace(t *table.Table, namespace string) (sets, rows int) {
	index := newTermIndex(len(c.naming[namespace]) + len(c.selecting)) // that look at the namespace
	look := func(at int) {
		if q := &c.terms[at]; q.looksAt(t, namespace) {
			index.add(q)
		}
	}
	for _, at := range c.naming[namespace] {
		look(at)
	}
	for _, at := range c.selecting {
		if !c.terms[at].terms[0].Names(namespace) {
			look(at)
		}
	}
	if index.empty() {
		return 0, 0
	}
	t.PodsByLabels(namespace, func(same *table.PodsWithLabels) {
		sets++
		index.selecting(same.Labels, func(q *termSet) {
			for _, s := range q.shares {
				c.by[q.kind][s.column].AddRows(same.Rows(), s.n)
				rows += len(same.Rows())
			}
		})
	})
	return sets, rows
}

// looksAt reports whether the namespaces of all terms include this one.
func (q *termSet) looksAt(t *table.Table, namespace string) bool {
	for i := range q.terms {
		if !q.terms[i].SelectsNamespace(namespace, t.Namespaces().Labels(namespace)) {
			return false
		}
	}
	return true
}

// selects reports whether the label selectors of all terms match the labels. It does not look at
// the terms' namespaces.
func (q *termSet) selects(of map[string]string) bool {
	for i := range q.terms {
		if !q.terms[i].Selector.Matches(labels.Set(of)) {
			return false
		}
	}
	return true
}

// totalOf returns the sum of the kind's columns over all domains. A pod counts once for each column
// that counts it.
func (c *counts) totalOf(k kind) (sum int64) {
	for i := range c.by[k] {
		sum += c.by[k][i].Total()
	}
	return sum
}

// Release implements framework.Releaser: it gives back the columns' memory when the class is
// dropped. c is empty afterwards, and no user of existing any more.
func (c *counts) Release() {
	for k := range existingAntiAffinity {
		for i := range c.by[k] {
			c.pl.rooms.Give(c.by[k][i].Column)
		}
	}
	if c.existing != nil {
		c.existing.users--
	}
	*c = counts{}
}
