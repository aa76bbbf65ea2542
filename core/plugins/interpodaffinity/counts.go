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
	wanted   kind = iota // pods that all required affinity terms are about
	unwanted             // pods that a required anti-affinity term is about
	kept                 // terms of pods there that keep the pod away
	kinds
)

// worth is the one thing that is counted to score.
const worth kind = 0

// How many kinds there are to filter, and to score.
const (
	filterKinds = int(kinds)
	scoreKinds  = 1
)

// noNode stands for the place of a row without a node, and is its cell.
const noNode = -1

// counts is what speaks for and against each domain, for a class of pods. It
// belongs to the table's owner; only sync writes to it.
type counts struct {
	size       int // how many kinds are counted
	topologies []topology
	// solitary is the topology by a label of which nodes have values of their
	// own, -1: there is none. What is on such a node is counted with the row.
	solitary int
	asks     []question
	heeds    map[string]share // by key of terms that placed pods have
	terms    []*table.Term    // these terms
	by       [kinds][]int     // the topologies in which each kind is counted
	total    sums             // over all domains, as often as a node is in one
	self     bool             // the pod may be the first that its affinity is about

	places places
	at     []int32 // by row, its place
	own    []int64 // by row and kind, what is on the node itself

	revision, placements uint64 // up to which the table's journals are read
	fresh                bool   // nothing is counted yet
	sites                []site // room for enter
	shares               []share
}

// question is terms of the class that must all be about a pod, for it to
// count in each of the topologies.
type question struct {
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
	return &counts{size: size, solitary: -1, heeds: map[string]share{}, fresh: true}
}

// ask has the class's own terms counted: those of required affinity together,
// as one pod must match them all, others each for itself.
func (c *counts) ask(terms []match.PodTerm, k kind) {
	if len(terms) > 0 && terms[0].Kind == match.RequiredAffinity {
		q := question{terms: terms}
		for i := range terms {
			if s := (share{c.topology(terms[i].TopologyKey, k), k, 1}); !slices.Contains(q.shares, s) {
				q.shares = append(q.shares, s)
			}
		}
		c.asks = append(c.asks, q)
		return
	}
	for i := range terms {
		n := int64(1)
		if terms[i].Kind == match.PreferredPods {
			n = terms[i].Weight
		}
		c.asks = append(c.asks, question{terms[i : i+1], []share{{c.topology(terms[i].TopologyKey, k), k, n}}})
	}
}

// heed has pods counted that have the term.
func (c *counts) heed(term *table.Term, k kind, n int64) {
	c.heeds[term.Key] = share{c.topology(term.TopologyKey, k), k, n}
	c.terms = append(c.terms, term)
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
		c.solitary = slices.IndexFunc(c.topologies, func(at topology) bool { return t.Solitary(at.key) })
	}
	for len(c.at) < t.Rows() {
		c.at = append(c.at, noNode)
	}
	if c.solitary >= 0 && len(c.own) < t.Rows()*c.size {
		c.own = append(c.own, make([]int64, t.Rows()*c.size-len(c.own))...)
	}
	recount := c.fresh || !t.PlacementsAfter(c.placements, func(p table.Placement) {
		if c.at[p.Row] != noNode {
			c.count(t, p.Row, p.Pod, sign(p.Came))
		}
	})
	t.NodesChanged(c.revision, func(r table.Row) bool {
		if !recount {
			c.countRow(t, r, -1)
		}
		c.leave(r)
		c.enter(t, r)
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

func sign(came bool) int64 {
	if came {
		return 1
	}
	return -1
}

// countRow counts the pods on the row (sign 1) or takes them off (-1).
func (c *counts) countRow(t *table.Table, r table.Row, sign int64) {
	if c.at[r] == noNode {
		return
	}
	for _, pl := range t.Pods(r) {
		c.count(t, r, pl.Pod, sign)
	}
}

func (c *counts) count(t *table.Table, r table.Row, p *object.Pod, sign int64) {
	for _, s := range c.answers(t, p.Namespace, p.Labels) {
		c.add(r, s, sign)
	}
	if p.Affinity == nil || len(c.heeds) == 0 {
		return
	}
	for i := range p.Affinity.Terms {
		if s, ok := c.heeds[p.Affinity.Terms[i].Key]; ok {
			c.add(r, s, sign)
		}
	}
}

// answers is what pods with these labels add, by the class's own terms. It is
// valid until the next call.
func (c *counts) answers(t *table.Table, namespace string, labels map[string]string) []share {
	c.shares = c.shares[:0]
	for i := range c.asks {
		if q := &c.asks[i]; seesAll(t, q.terms, namespace, labels) {
			c.shares = append(c.shares, q.shares...)
		}
	}
	return c.shares
}

// add counts a share on the row n times.
func (c *counts) add(r table.Row, s share, n int64) {
	if c.at[r] == noNode {
		return
	}
	n *= s.n
	switch id := c.places.ids.At(c.at[r]).sites[s.topology]; id {
	case missing:
		return
	case own:
		c.own[int(r)*c.size+int(s.kind)] += n
	default:
		c.topologies[s.topology].domains.At(id)[s.kind] += n
	}
	c.total[s.kind] += n
}

// recount counts all anew. Places and domains stay, so that rows keep their
// cells' meaning.
func (c *counts) recount(t *table.Table) {
	c.total = sums{}
	clear(c.own)
	for i := range c.topologies {
		for id := range c.topologies[i].domains.Room() {
			*c.topologies[i].domains.At(int32(id)) = sums{}
		}
	}
	for _, term := range c.terms {
		s := c.heeds[term.Key]
		term.Rows(func(r table.Row, pods int) { c.add(r, s, int64(pods)) })
	}
	crowd := func(crowd *table.Crowd) {
		shares := c.answers(t, crowd.Namespace, crowd.Labels)
		if len(shares) == 0 {
			return
		}
		for _, pl := range crowd.Pods() {
			for _, s := range shares {
				c.add(pl.Row, s, 1)
			}
		}
	}
	names, all := c.namespaces()
	if all {
		t.AllCrowds(crowd)
		return
	}
	for _, name := range names {
		t.Crowds(name, crowd)
	}
}

// namespaces are those that the class's own terms look at.
func (c *counts) namespaces() (names []string, all bool) {
	for i := range c.asks {
		for k := range c.asks[i].terms {
			term := &c.asks[i].terms[k]
			all = all || term.NamespaceSelector != nil
			names = append(names, term.Namespaces...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), all
}

// enter gives the row the place of its node. Pods are not counted yet.
func (c *counts) enter(t *table.Table, r table.Row) {
	n := t.Node(r)
	if n == nil {
		return
	}
	c.sites = c.sites[:0]
	for i := range c.topologies {
		value, ok := n.Labels[c.topologies[i].key]
		switch {
		case !ok:
			c.sites = append(c.sites, missing)
		case i == c.solitary && t.NodesWith(c.topologies[i].key, value) == 1:
			c.sites = append(c.sites, own)
		default:
			id, _ := c.topologies[i].domains.Hold(value)
			c.sites = append(c.sites, id)
		}
	}
	c.at[r] = c.places.join(c.sites)
}

// leave takes the row, whose pods are not counted any more, off its place.
func (c *counts) leave(r table.Row) {
	id := c.at[r]
	if id == noNode {
		return
	}
	for i, s := range c.places.ids.At(id).sites {
		if s >= 0 {
			c.topologies[i].domains.Release(s)
		}
	}
	c.places.ids.Release(id)
	c.at[r] = noNode
}

// ownOf is what of the kind is on the row's node itself.
func (c *counts) ownOf(r table.Row, k kind) int64 {
	if c.solitary < 0 {
		return 0
	}
	return c.own[int(r)*c.size+int(k)]
}
