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

// kind is a kind of terms that are counted by domain.
type kind uint8

const (
	affinity             kind = iota // pods that all required affinity terms are about
	antiAffinity                     // pods that a required anti-affinity term is about
	existingAntiAffinity             // terms of pods there that keep the pod away
	kinds
)

// What is counted to score takes the places of two of the kinds.
const (
	ownScore      = affinity             // what the pod's own terms weigh
	existingScore = existingAntiAffinity // what terms of pods there weigh
)

// noNode is the cell of a row without a node.
const noNode = domain.NoNode

// counts holds, for a class of pods and each domain, what counts for and against it: by
// the class's own terms, and by the terms of placed pods. It belongs to the table's
// owner; only sync writes to it.
type counts struct {
	pl        *plugin
	layout    *domain.Layout
	terms     []termSet
	naming    map[string][]int // of terms, those that name a namespace
	selecting []int            // of terms, those that select namespaces by labels
	by        [kinds][]place
	own       [kinds]*domain.Column // of by, those in which nodes are domains of their own
	existing  *existing             // nil: the terms of others say nothing
	self      bool                  // the pod may be the first that its affinity is about

	counted domain.Follower // by the class's own terms
}

// place is a column in one of the layout's topologies.
type place struct {
	*domain.Column
	at   int   // the topology
	gone int64 // what pods that leave a row take along, for exchanged
}

// termSet is terms of the class that must all be about a pod, for it to add
// the shares to columns of the kind.
type termSet struct {
	terms  []match.PodTerm
	kind   kind
	shares []share
}

// newCounts returns counts in the topologies of the class's own terms, and of others.
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

// addOwnTerms adds the class's own terms to those that are counted. Terms of required
// affinity count together, as one pod must match them all; others count each for itself.
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

// addTermSet adds the set, and lists it under the namespaces that its first term looks at.
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

// placeOf finds or makes the column of own terms of the kind in the topology.
func (c *counts) placeOf(key string, k kind) int {
	for i := range c.by[k] {
		if c.by[k][i].Label == key {
			return i
		}
	}
	at := c.topology(key)
	c.addColumn(&domain.Column{Topology: c.layout.Topologies[at]}, at, k)
	return len(c.by[k]) - 1
}

func (c *counts) topology(key string) int {
	return slices.IndexFunc(c.layout.Topologies, func(t *domain.Topology) bool { return t.Label == key })
}

// addColumn adds a column to those of the kind; at is the index of its topology in the layout.
// The kind's own column is the one in which each node is a domain.
func (c *counts) addColumn(col *domain.Column, at int, k kind) {
	c.by[k] = append(c.by[k], place{Column: col, at: at})
	if at == c.layout.UniquePerNode {
		c.own[k] = col
	}
}

// addExisting adds the terms of placed pods to those that are counted; nil adds none.
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

// sync brings the counts up to date.
func sync(in *framework.Input) { in.State.(*counts).sync(in.Table) }

// sync counts the pods that came or left. Where a node is in other domains than before, all
// is counted anew.
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
	c.counted.Follow(t, moved, func(p table.Placement, n int64) {
		c.eachShare(t, p.Pod, func(k kind, s share) { c.by[k][s.column].Add(p.Row, n*s.n) })
	}, func() (sets, rows int) { return c.countAll(t) })
}

// eachShare calls visit with what the pod adds by the class's own terms.
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

// countAll counts by the class's own terms anew. It returns how many sets of labels and of
// rows it counted.
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

// countNamespace counts the pods of the namespace.
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

// looksAt reports whether all terms select pods of the namespace.
func (q *termSet) looksAt(t *table.Table, namespace string) bool {
	for i := range q.terms {
		if !q.terms[i].SelectsNamespace(namespace, t.Namespaces().Labels(namespace)) {
			return false
		}
	}
	return true
}

// selects reports whether all terms select pods with the labels.
func (q *termSet) selects(of map[string]string) bool {
	for i := range q.terms {
		if !q.terms[i].Selector.Matches(labels.Set(of)) {
			return false
		}
	}
	return true
}

// totalOf returns what is counted of the kind in all domains, as often as a node is in one.
func (c *counts) totalOf(k kind) (sum int64) {
	for i := range c.by[k] {
		sum += c.by[k][i].Total()
	}
	return sum
}

// Release implements framework.Releaser.
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
