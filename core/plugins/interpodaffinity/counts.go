package interpodaffinity

import (
	"slices"

	"github.com/berth-scheduler/berth/core/domain"
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
	size          int // how many kinds are counted
	ownTerms      []termSet
	existingTerms map[string]share // by key of terms that placed pods have
	existingRows  []*table.Term    // these terms
	by            [kinds][]int     // the topologies in which each kind is counted
	total         sums             // over all domains, as often as a node is in one
	self          bool             // the pod may be the first that its affinity is about

	locations domain.Locations[sums]
	location  []int32 // the location of each row
	own       []int64 // by row and kind, what is on the node itself

	follower table.Follower
	domains  []domain.Domain // room for SetNode
	shares   []share
}

// sums is what there is of each kind.
type sums [kinds]int64

// termSet is terms of the class that must all be about a pod, for it to
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
	return &counts{size: size, locations: domain.Locations[sums]{UniquePerNode: -1}, existingTerms: map[string]share{}}
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
	list := &c.locations.Topologies
	i := slices.IndexFunc(*list, func(t domain.Topology[sums]) bool { return t.Key == key })
	if i < 0 {
		i = len(*list)
		*list = append(*list, domain.Topology[sums]{Key: key})
	}
	if !slices.Contains(c.by[k], i) {
		c.by[k] = append(c.by[k], i)
	}
	return i
}

// sync brings the counts up to date.
func sync(in *framework.Input) { in.State.(*counts).sync(in.Table) }

func (c *counts) sync(t *table.Table) {
	if c.follower.Current(t) {
		return
	}
	if c.location == nil {
		c.locations.UniquePerNode = slices.IndexFunc(c.locations.Topologies, func(at domain.Topology[sums]) bool { return t.UniquePerNode(at.Key) })
	}
	for len(c.location) < t.Rows() {
		c.location = append(c.location, noNode)
	}
	if c.locations.UniquePerNode >= 0 && len(c.own) < t.Rows()*c.size {
		c.own = append(c.own, make([]int64, t.Rows()*c.size-len(c.own))...)
	}
	c.follower.Follow(t, c)
}

// CountPlacement counts one pod that came or left.
func (c *counts) CountPlacement(t *table.Table, p table.Placement) {
	sign := 1
	if !p.Came {
		sign = -1
	}
	c.count(t, p.Row, p.Pod, sign)
}

// CountRow counts the pods on the row (sign 1) or takes them off (-1).
func (c *counts) CountRow(t *table.Table, r table.Row, sign int) {
	for _, pl := range t.Pods(r) {
		c.count(t, r, pl.Pod, sign)
	}
}

func (c *counts) count(t *table.Table, r table.Row, p *object.Pod, sign int) {
	if c.location[r] == noNode {
		return
	}
	for _, s := range c.sharesOf(t, p.Namespace, p.Labels) {
		c.add(r, s, int64(sign))
	}
	if p.Affinity == nil || len(c.existingTerms) == 0 {
		return
	}
	for i := range p.Affinity.Terms {
		if s, ok := c.existingTerms[p.Affinity.Terms[i].Key]; ok {
			c.add(r, s, int64(sign))
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
	switch d := c.locations.Domains(c.location[r])[s.topology]; d {
	case domain.Missing:
		return
	case domain.Own:
		c.own[int(r)*c.size+int(s.kind)] += n
	default:
		c.locations.Count(s.topology, d)[s.kind] += n
	}
	c.total[s.kind] += n
}

// CountAll counts all anew. Locations and domains stay, so that rows keep their
// cells' meaning.
func (c *counts) CountAll(t *table.Table) {
	c.total = sums{}
	clear(c.own)
	for i := range c.locations.Topologies {
		domains := &c.locations.Topologies[i].Domains
		for id := range domains.Room() {
			*domains.At(int32(id)) = sums{}
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

// SetNode puts the row, whose pods are not counted, where its node is now.
func (c *counts) SetNode(t *table.Table, r table.Row) {
	if c.location[r] != noNode {
		c.locations.Leave(c.location[r])
		c.location[r] = noNode
	}
	n := t.Node(r)
	if n == nil {
		return
	}
	c.domains = c.domains[:0]
	for i := range c.locations.Topologies {
		c.domains = append(c.domains, c.locations.DomainOf(t, n, i))
	}
	c.location[r] = c.locations.Join(c.domains)
}

// ownOf is what of the kind is on the row's node itself.
func (c *counts) ownOf(r table.Row, k kind) int64 {
	if c.locations.UniquePerNode < 0 {
		return 0
	}
	return c.own[int(r)*c.size+int(k)]
}
