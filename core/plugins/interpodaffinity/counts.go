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

// noNode is the cell of a row without a node.
const noNode = domain.NoNode

// counts is what speaks for and against each domain, for a class of pods. It
// belongs to the table's owner; only sync writes to it.
type counts struct {
	size          int // how many kinds are counted
	ownTerms      []termSet
	existing      []existingTerm   // terms that placed pods have
	existingByKey map[string]share // by their keys; nil: not asked for so far
	by            [kinds][]int     // the topologies in which each kind is counted
	total         sums             // over all domains, as often as a node is in one
	self          bool             // the pod may be the first that its affinity is about

	nodes *domain.Nodes
	sums  [][]sums // by topology and domain
	own   []int64  // by row and kind, what is on the node itself

	revision, placements, moves uint64 // up to which all is counted
	counted                     bool
	shares                      []share
	found                       []int64 // room for addRows
	left                        left    // room for leave
}

// sums is what there is of each kind.
type sums [kinds]int64

// termSet is terms of the class that must all be about a pod, for it to
// count in each of the topologies.
type termSet struct {
	terms  []match.PodTerm
	shares []share
}

// existingTerm is a term that placed pods have, and what each of them adds.
type existingTerm struct {
	*table.Term
	share share
}

// share is what a pod adds to the domains that it is in.
type share struct {
	topology int
	kind     kind
	n        int64
}

// newCounts returns counts of that many kinds, in the topologies of the terms.
func (pl *plugin) newCounts(t *table.Table, size int, existing []*table.Term, own ...[]match.PodTerm) *counts {
	var keys []string
	add := func(key string) {
		if !slices.Contains(keys, key) { // they are few, the terms may be many
			keys = append(keys, key)
		}
	}
	for _, terms := range own {
		for i := range terms {
			add(terms[i].TopologyKey)
		}
	}
	for _, term := range existing {
		add(term.TopologyKey)
	}
	c := &counts{size: size, nodes: pl.nodes.Nodes(t, keys)}
	c.sums = make([][]sums, len(c.nodes.Topologies))
	return c
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
	c.existing = append(c.existing, existingTerm{term, share{c.topology(term.TopologyKey, k), k, n}})
}

// existingShare is what a pod adds that has the term.
func (c *counts) existingShare(term *match.PodTerm) (s share, counts bool) {
	if c.existingByKey == nil {
		c.existingByKey = make(map[string]share, len(c.existing))
		for _, e := range c.existing {
			c.existingByKey[e.Key] = e.share
		}
	}
	s, counts = c.existingByKey[term.Key]
	return s, counts
}

// topology finds the one with the key, in which the kind is counted.
func (c *counts) topology(key string, k kind) int {
	i := slices.IndexFunc(c.nodes.Topologies, func(t domain.Topology[struct{}]) bool { return t.Key == key })
	if !slices.Contains(c.by[k], i) {
		c.by[k] = append(c.by[k], i)
	}
	return i
}

// sync brings the counts up to date.
func sync(in *framework.Input) { in.State.(*counts).sync(in.Table) }

// sync reads the journal of placements. Where that does not reach back far enough,
// or a node is in other domains than before, all is counted anew.
func (c *counts) sync(t *table.Table) {
	if c.counted && c.revision == t.Revision() {
		return
	}
	c.nodes.Follow(t)
	for i := range c.sums {
		if room := c.nodes.Topologies[i].Domains.Len(); len(c.sums[i]) < room {
			c.sums[i] = append(c.sums[i], make([]sums, room-len(c.sums[i]))...)
		}
	}
	if c.nodes.UniquePerNode >= 0 && len(c.own) < t.Rows()*c.size {
		c.own = append(c.own, make([]int64, t.Rows()*c.size-len(c.own))...)
	}
	if !c.counted || c.moves != c.nodes.Moves || !t.PlacementsAfter(c.placements, func(p table.Placement) { c.countPlacement(t, p) }) {
		c.countAll(t)
	}
	c.revision, c.placements, c.moves, c.counted = t.Revision(), t.PlacementCount(), c.nodes.Moves, true
}

// countPlacement counts one pod that came or left.
func (c *counts) countPlacement(t *table.Table, p table.Placement) {
	sign := 1
	if !p.Came {
		sign = -1
	}
	c.count(t, p.Row, p.Pod, sign)
}

func (c *counts) count(t *table.Table, r table.Row, p *object.Pod, sign int) {
	if c.nodes.LocationOf(r) == noNode {
		return
	}
	for _, s := range c.sharesOfPod(t, p) {
		c.add(r, s, int64(sign))
	}
}

// sharesOfPod is what the pod adds, by the class's terms and by its own. It is valid
// until the next call.
func (c *counts) sharesOfPod(t *table.Table, p *object.Pod) []share {
	shares := c.sharesOf(t, p.Namespace, p.Labels)
	if p.Affinity == nil || len(c.existing) == 0 {
		return shares
	}
	for i := range p.Affinity.Terms {
		if s, ok := c.existingShare(&p.Affinity.Terms[i]); ok {
			shares = append(shares, s)
		}
	}
	c.shares = shares
	return shares
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
	if c.nodes.LocationOf(r) == noNode {
		return
	}
	n *= s.n
	switch d := c.nodes.Domains(c.nodes.LocationOf(r))[s.topology]; d {
	case domain.Missing:
		return
	case domain.Own:
		c.own[int(r)*c.size+int(s.kind)] += n
	default:
		c.sums[s.topology][d.ID()][s.kind] += n
	}
	c.total[s.kind] += n
}

// countAll counts all anew.
func (c *counts) countAll(t *table.Table) {
	c.total = sums{}
	clear(c.own)
	for i := range c.sums {
		clear(c.sums[i])
	}
	for _, e := range c.existing {
		e.Rows(func(r table.Row, pods int) { c.add(r, e.share, int64(pods)) })
	}
	visit := func(same *table.PodsWithLabels) {
		shares := c.sharesOf(t, same.Namespace, same.Labels)
		if len(shares) == 0 {
			return
		}
		c.addRows(same.Rows(), shares)
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

// addRows counts the shares on each of the rows. Many rows are first counted by where
// they are.
func (c *counts) addRows(rows []table.Row, shares []share) {
	if len(rows) < c.nodes.Len() {
		for _, r := range rows {
			for _, s := range shares {
				c.add(r, s, 1)
			}
		}
		return
	}
	c.found = append(c.found[:0], make([]int64, c.nodes.Len())...)
	for _, r := range rows {
		if at := c.nodes.LocationOf(r); at != noNode {
			c.found[at]++
		}
	}
	for at, n := range c.found {
		if n == 0 {
			continue
		}
		domains := c.nodes.Domains(int32(at))
		for _, s := range shares {
			switch d := domains[s.topology]; d {
			case domain.Missing:
				continue
			case domain.Own:
			default:
				c.sums[s.topology][d.ID()][s.kind] += n * s.n
			}
			c.total[s.kind] += n * s.n
		}
	}
	for _, s := range shares {
		c.addOwn(rows, s)
	}
}

// addOwn counts the share with each of the rows, where it is counted there.
func (c *counts) addOwn(rows []table.Row, s share) {
	if s.topology != c.nodes.UniquePerNode {
		return
	}
	for _, r := range rows {
		if at := c.nodes.LocationOf(r); at != noNode && c.nodes.Domains(at)[s.topology] == domain.Own {
			c.own[int(r)*c.size+int(s.kind)] += s.n
		}
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

// ownOf is what of the kind is on the row's node itself.
func (c *counts) ownOf(r table.Row, k kind) int64 {
	if c.nodes.UniquePerNode < 0 {
		return 0
	}
	return c.own[int(r)*c.size+int(k)]
}
