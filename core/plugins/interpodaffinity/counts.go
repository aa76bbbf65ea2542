package interpodaffinity

import (
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// kind is what is counted in a domain.
type kind uint8

const (
	affinity             kind = iota // pods that all required affinity terms are about
	antiAffinity                     // pods that a required anti-affinity term is about
	existingAntiAffinity             // terms of pods there that keep the pod away
	kinds
)

// topologyScore is the one thing that is counted to score.
const topologyScore kind = 0

// How many kinds there are to filter, and to score.
const (
	filterKinds = int(kinds)
	scoreKinds  = 1
)

// noNode stands for the location of a row without a node, and is its cell.
const noNode = -1

// counts is what speaks for and against each domain, for a class of pods. It
// belongs to the table's owner; only sync writes to it.
type counts struct {
	size       int // how many kinds are counted
	topologies []topology
	// uniquePerNode is the topology by a label of which nodes have values of their
	// own, -1: there is none. What is on such a node is counted with the row.
	uniquePerNode int
	ownTerms      []termSet
	existingTerms map[string]share // by key of terms that placed pods have
	existingRows  []*table.Term    // these terms
	by            [kinds][]int     // the topologies in which each kind is counted
	total         sums             // over all domains, as often as a node is in one
	self          bool             // the pod may be the first that its affinity is about

	locations locations
	location  []int32 // the location of each row
	own       []int64 // by row and kind, what is on the node itself

	revision, placements uint64     // up to which the table's journals are read
	fresh                bool       // nothing is counted yet
	domains              []domainID // room for enter
	shares               []share
}

// question is terms of the class that must all be about a pod, for it to
// count in each of the topologies.
type termSet struct {
	terms  []match.PodTerm
	shares []share
}

// share is what a pod adds to the domains that it is in.
type share struct {
	topology int
	kind     kind
	n        int64
}

func newCounts(size int) *counts {
	return &counts{size: size, uniquePerNode: -1, existingTerms: map[string]share{}, fresh: true}
}

// addOwnTerms has the class's own terms counted: those of required affinity together,
// as one pod must match them all, others each for itself.
func (c *counts) addOwnTerms(terms []match.PodTerm, k kind) {
	if len(terms) > 0 && terms[0].Kind == match.RequiredAffinity {
		q := termSet{terms: terms}
		for i := range terms {
			if s := (share{c.topology(terms[i].TopologyKey, k), k, 1}); !slices.Contains(q.shares, s) {
				q.shares = append(q.shares, s)
			}
		}
		c.ownTerms = append(c.ownTerms, q)
		return
	}
	for i := range terms {
		n := int64(1)
		if terms[i].Kind == match.PreferredPods {
			n = terms[i].Weight
		}
		c.ownTerms = append(c.ownTerms, termSet{terms[i : i+1], []share{{c.topology(terms[i].TopologyKey, k), k, n}}})
	}
}

// addExistingTerm has the pods counted that have the term.
func (c *counts) addExistingTerm(term *table.Term, k kind, n int64) {
	c.existingTerms[term.Key] = share{c.topology(term.TopologyKey, k), k, n}
	c.existingRows = append(c.existingRows, term)
}

// topology finds or makes the one with the key, in which the kind is counted.
func (c *counts) topology(key string, k kind) int {
	i := slices.IndexFunc(c.topologies, func(t topology) bool { return t.key == key })
	if i < 0 {
		i = len(c.topologies)
		c.topologies = append(c.topologies, topology{key: key})
	}
	if !slices.Contains(c.by[k], i) {
		c.by[k] = append(c.by[k], i)
	}
	return i
}

// sync brings the counts up to date: placements first, on the rows as they
// were, then the rows whose node changed. Where the journal does not reach
// back far enough all is counted anew.
func sync(in *framework.Input) { in.State.(*counts).sync(in.Table) }

func (c *counts) sync(t *table.Table) {
	if c.revision == t.Revision() && !c.fresh {
		return
	}
	if c.fresh {
		c.uniquePerNode = slices.IndexFunc(c.topologies, func(at topology) bool { return t.UniquePerNode(at.key) })
	}
	for len(c.location) < t.Rows() {
		c.location = append(c.location, noNode)
	}
	if c.uniquePerNode >= 0 && len(c.own) < t.Rows()*c.size {
		c.own = append(c.own, make([]int64, t.Rows()*c.size-len(c.own))...)
	}
	recount := c.fresh || !t.PlacementsAfter(c.placements, func(p table.Placement) {
		if c.location[p.Row] != noNode {
			c.count(t, p.Row, p.Pod, deltaOf(p.Came))
		}
	})
	t.NodesChanged(c.revision, func(r table.Row) bool {
		if !recount {
			c.countRow(t, r, -1)
		}
		c.removeRow(r)
		c.addRow(t, r)
		if !recount {
			c.countRow(t, r, 1)
		}
		return true
	})
	if recount {
		c.recount(t)
	}
	c.fresh, c.revision, c.placements = false, t.Revision(), t.PlacementCount()
}

func deltaOf(came bool) int64 {
	if came {
		return 1
	}
	return -1
}

// countRow counts the pods on the row (delta 1) or takes them off (-1).
func (c *counts) countRow(t *table.Table, r table.Row, delta int64) {
	if c.location[r] == noNode {
		return
	}
	for _, pl := range t.Pods(r) {
		c.count(t, r, pl.Pod, delta)
	}
}

func (c *counts) count(t *table.Table, r table.Row, p *object.Pod, delta int64) {
	for _, s := range c.sharesOf(t, p.Namespace, p.Labels) {
		c.add(r, s, delta)
	}
	if p.Affinity == nil || len(c.existingTerms) == 0 {
		return
	}
	for i := range p.Affinity.Terms {
		if s, ok := c.existingTerms[p.Affinity.Terms[i].Key]; ok {
			c.add(r, s, delta)
		}
	}
}

// sharesOf is what pods with these labels add, by the class's own terms. It is
// valid until the next call.
func (c *counts) sharesOf(t *table.Table, namespace string, labels map[string]string) []share {
	c.shares = c.shares[:0]
	for i := range c.ownTerms {
		if q := &c.ownTerms[i]; allTermsMatch(t, q.terms, namespace, labels) {
			c.shares = append(c.shares, q.shares...)
		}
	}
	return c.shares
}

// add counts a share on the row n times.
func (c *counts) add(r table.Row, s share, n int64) {
	if c.location[r] == noNode {
		return
	}
	n *= s.n
	switch id := c.locations.ids.At(c.location[r]).domains[s.topology]; id {
	case missing:
		return
	case own:
		c.own[int(r)*c.size+int(s.kind)] += n
	default:
		c.topologies[s.topology].domains.At(id)[s.kind] += n
	}
	c.total[s.kind] += n
}

// recount counts all anew. Locations and domains stay, so that rows keep their
// cells' meaning.
func (c *counts) recount(t *table.Table) {
	c.total = sums{}
	clear(c.own)
	for i := range c.topologies {
		for id := range c.topologies[i].domains.Room() {
			*c.topologies[i].domains.At(int32(id)) = sums{}
		}
	}
	for _, term := range c.existingRows {
		s := c.existingTerms[term.Key]
		term.Rows(func(r table.Row, pods int) { c.add(r, s, int64(pods)) })
	}
	visit := func(same *table.PodsWithLabels) {
		shares := c.sharesOf(t, same.Namespace, same.Labels)
		if len(shares) == 0 {
			return
		}
		for _, pl := range same.Pods() {
			for _, s := range shares {
				c.add(pl.Row, s, 1)
			}
		}
	}
	names, all := c.namespaces()
	if all {
		t.AllPodsByLabels(visit)
		return
	}
	for _, name := range names {
		t.PodsByLabels(name, visit)
	}
}

// namespaces are those that the class's own terms look at.
func (c *counts) namespaces() (names []string, all bool) {
	for i := range c.ownTerms {
		for k := range c.ownTerms[i].terms {
			term := &c.ownTerms[i].terms[k]
			all = all || term.NamespaceSelector != nil
			names = append(names, term.Namespaces...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), all
}

// addRow gives the row the location of its node. Pods are not counted yet.
func (c *counts) addRow(t *table.Table, r table.Row) {
	n := t.Node(r)
	if n == nil {
		return
	}
	c.domains = c.domains[:0]
	for i := range c.topologies {
		value, ok := n.Labels[c.topologies[i].key]
		switch {
		case !ok:
			c.domains = append(c.domains, missing)
		case i == c.uniquePerNode && t.NodesWith(c.topologies[i].key, value) == 1:
			c.domains = append(c.domains, own)
		default:
			id, _ := c.topologies[i].domains.Hold(value)
			c.domains = append(c.domains, id)
		}
	}
	c.location[r] = c.locations.join(c.domains)
}

// removeRow takes the row, whose pods are not counted any more, off its location.
func (c *counts) removeRow(r table.Row) {
	id := c.location[r]
	if id == noNode {
		return
	}
	for i, s := range c.locations.ids.At(id).domains {
		if s >= 0 {
			c.topologies[i].domains.Release(s)
		}
	}
	c.locations.ids.Release(id)
	c.location[r] = noNode
}

// ownOf is what of the kind is on the row's node itself.
func (c *counts) ownOf(r table.Row, k kind) int64 {
	if c.uniquePerNode < 0 {
		return 0
	}
	return c.own[int(r)*c.size+int(k)]
}
