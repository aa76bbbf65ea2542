package table

import (
	"iter"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
)

// Term is a term of pod affinity or anti-affinity of pods that are placed, nominated or
// tracked. All pods with equal terms share one. It belongs to the table.
type Term struct {
	match.PodTerm
	// ID is unique; it is never used again.
	ID   uint64
	rows podsByRow // number of pods with the term, by row
	live int       // number of pods with the term on nodes that have its topology key
	// expected is the number of nominated pods that have the term as required anti-affinity.
	expected int
}

// Live reports whether a placed pod that has the term is on a node that has its topology
// key. A term that is not live admits or excludes no node, so plugins skip it.
func (m *Term) Live() bool { return m.live > 0 }

// Expected reports whether a pod that is nominated to a node has the term as required
// anti-affinity. The term counts once that pod is placed.
func (m *Term) Expected() bool { return m.expected > 0 }

// used reports whether a placed pod has the term, or a nominated pod has it as required
// anti-affinity. If not the term may be removed.
func (m *Term) used() bool { return len(m.rows.list) > 0 || m.Expected() }

// Rows returns the rows that have pods with the term, and how many, in no particular order.
// It is valid until the next change. Read only.
func (m *Term) Rows() []RowCount { return m.rows.list }

// Terms holds the affinity terms of placed, nominated and tracked pods. Terms that no placed or
// nominated pod needs are removed when they are many.
type Terms struct {
	byKey map[string]*Term
	list  []*Term // all, ascending by ID
	last  uint64  // the last ID given
	idle  int     // number of terms in list that are not used
	swept uint64  // number of sweeps
	// revision changes whenever a term is added or removed, or Live or Expected changes.
	revision uint64
	expected map[string][]*Term // required anti-affinity of nominated pods, by node
	// labels are the label keys that selectors of terms look at; other labels of a pod do
	// not decide which terms select it.
	labels     map[string]bool
	about      map[string]*About // by keyBuf, which appendKey sets
	keyBuf     []byte            // the result of appendKey
	keys       []string          // scratch of appendKey
	namespaces *Namespaces
	// recent is the last argument of Of, ofRecent what Of returned for it; nil: none.
	recent   *match.PodAffinity
	ofRecent []*Term
}

// About lists the terms that select pods of one namespace with certain labels. It belongs
// to the table. Terms are only ever appended: when terms are removed, or the labels of a
// namespace change, the table makes another About.
type About struct {
	terms    []*Term // ascending by ID
	upTo     uint64  // ID of the last term that was compared
	revision uint64  // of the namespaces' labels, when it was made
}

// Terms returns the terms, ascending by ID; of a nil About there are none. Read only.
func (a *About) Terms() []*Term {
	if a == nil {
		return nil
	}
	return a.terms
}

// Bounds of what is kept although nothing may need it any more.
const (
	termsKept  = 1 << 10 // unused terms; more may stay while most terms are used
	aboutsKept = 1 << 14 // Abouts; at this number all are dropped
)

// Terms returns the affinity terms of the table's placed and nominated pods.
func (t *Table) Terms() *Terms { return &t.terms }

// newTerms returns an empty store. n holds the namespaces' labels, for namespace selectors.
func newTerms(n *Namespaces) Terms {
	return Terms{byKey: map[string]*Term{}, expected: map[string][]*Term{}, labels: map[string]bool{}, about: map[string]*About{}, namespaces: n}
}

// Track adds the terms of a pod that is not placed but may be tried on a row while another
// pod is decided on, so that other pods' signatures include them already.
func (l *Terms) Track(p *object.Pod) {
	if p.Affinity == nil {
		return
	}
	for i := range p.Affinity.Terms {
		l.add(&p.Affinity.Terms[i])
	}
}

// TrackNominated replaces the pods that are recorded as nominated to the named node. Their
// required anti-affinity is Expected; their other terms are tracked.
func (l *Terms) TrackNominated(node string, pods []*object.Pod) {
	var now []*Term
	for _, p := range pods {
		if l.Track(p); p.Affinity == nil {
			continue
		}
		for i := range p.Affinity.AntiAffinity {
			now = append(now, l.add(&p.Affinity.AntiAffinity[i]))
		}
	}
	before := l.expected[node]
	if slices.Equal(before, now) {
		return
	}
	for _, term := range now {
		l.addExpected(term, 1)
	}
	for _, term := range before {
		l.addExpected(term, -1)
	}
	if l.expected[node] = now; len(now) == 0 {
		delete(l.expected, node)
	}
}

// TrackedNominations returns the nodes to which pods with required anti-affinity are
// recorded as nominated, in no particular order.
func (l *Terms) TrackedNominations() iter.Seq[string] { return maps.Keys(l.expected) }

// AnyExpected reports whether some term is Expected.
func (l *Terms) AnyExpected() bool { return len(l.expected) > 0 }

// addExpected adds pods, which may be negative, to the number of nominated pods that have m
// as required anti-affinity.
func (l *Terms) addExpected(m *Term, pods int) {
	was, used := m.Expected(), m.used()
	if m.expected += pods; m.Expected() != was {
		l.revision++
	}
	l.countIdle(m, used)
}

// Swept returns the number of sweeps. A sweep removes all terms that no placed pod has and
// that are not Expected, so what Track added has to be added again.
func (l *Terms) Swept() uint64 { return l.swept }

// add returns the table's Term equal to in. If there is none, it adds one, which counts as
// unused until pods are counted.
func (l *Terms) add(in *match.PodTerm) *Term {
	if known := l.byKey[in.Key]; known != nil {
		return known
	}
	l.last++
	l.idle++
	l.revision++
	term := &Term{PodTerm: *in, ID: l.last}
	l.byKey[in.Key] = term
	l.list = append(l.list, term)
	requirements, _ := in.Selector.Requirements()
	for i := range requirements {
		if key := requirements[i].Key(); !l.labels[key] {
			l.labels[key] = true
			clear(l.about)
		}
	}
	return term
}

// Revision returns a number that changes whenever a term is added or removed, or Live or
// Expected changes. While it and the namespaces' labels stay, About returns the same terms.
func (l *Terms) Revision() uint64 { return l.revision }

// About returns the terms that select the pod by its namespace and labels; nil if the table has
// no terms at all.
func (l *Terms) About(p *object.Pod) *About {
	if len(l.list) == 0 {
		return nil
	}
	l.appendKey(p)
	a := l.about[string(l.keyBuf)]
	if a == nil || a.revision != l.namespaces.revision {
		if len(l.about) >= aboutsKept {
			clear(l.about)
		}
		a = &About{revision: l.namespaces.revision}
		l.about[string(l.keyBuf)] = a
	}
	if a.upTo == l.last {
		return a
	}
	from, _ := slices.BinarySearchFunc(l.list, a.upTo+1, func(m *Term, id uint64) int { return int(int64(m.ID - id)) })
	for _, term := range l.list[from:] {
		if term.MatchesPending(p.Namespace, l.namespaces.labels[p.Namespace], p.Labels) {
			a.terms = append(a.terms, term)
		}
	}
	a.upTo = l.last
	return a
}

// appendKey sets keyBuf to a key that is equal for pods which the same terms select: the
// namespace, and the labels that selectors look at.
func (l *Terms) appendKey(p *object.Pod) {
	l.keys = l.keys[:0]
	for key := range p.Labels { // any order: sorted below
		if l.labels[key] {
			l.keys = append(l.keys, key)
		}
	}
	slices.Sort(l.keys)
	l.keyBuf = match.AppendField(l.keyBuf[:0], p.Namespace)
	for _, key := range l.keys {
		l.keyBuf = match.AppendField(match.AppendField(l.keyBuf, key), p.Labels[key])
	}
}

// count adds a pod that was placed on node n (sign 1) to the counts of its affinity terms, or
// subtracts one that was removed (-1). It sets the terms of a pod that is counted first. n is
// nil if the node is unknown.
func (l *Terms) count(pl *Placed, n *object.Node, sign int) {
	if pl.Pod.Affinity == nil {
		return
	}
	if pl.terms == nil {
		pl.terms = l.Of(pl.Pod.Affinity)
	}
	for _, term := range pl.terms {
		l.addPods(term, pl.Row, int32(sign))
		if hasLabel(n, term.TopologyKey) {
			l.addLive(term, sign)
		}
	}
}

// Of returns the table's terms for an affinity, and adds those that it does not have.
// Consecutive pods with equal terms share the slice. Read only.
func (l *Terms) Of(a *match.PodAffinity) []*Term {
	if l.recent == nil || l.recent.Key != a.Key {
		list := make([]*Term, len(a.Terms))
		for i := range a.Terms {
			list[i] = l.add(&a.Terms[i])
		}
		l.recent, l.ofRecent = a, list
	}
	return l.ofRecent
}

// addPods adds pods, which may be negative, to the number of pods on the row that have the
// term.
func (l *Terms) addPods(m *Term, r Row, pods int32) {
	used := m.used()
	m.rows.add(r, pods)
	l.countIdle(m, used)
}

// countIdle updates the number of unused terms after the users of m changed. wasUsed is
// m.used() before.
func (l *Terms) countIdle(m *Term, wasUsed bool) {
	switch used := m.used(); {
	case used && !wasUsed:
		l.idle--
	case wasUsed && !used:
		l.idle++
	}
}

// addLive adds pods, which may be negative, to the number of pods that have the term on
// nodes with its topology key.
func (l *Terms) addLive(m *Term, pods int) {
	was := m.Live()
	if m.live += pods; m.Live() != was {
		l.revision++
	}
}

// relabel counts anew which of the pods' terms are on a node with the topology key, as the
// node changed from old to now; nil stands for no node.
func (l *Terms) relabel(pods []*Placed, old, now *object.Node) {
	for _, pl := range pods {
		for _, term := range pl.terms {
			if hasLabel(old, term.TopologyKey) {
				l.addLive(term, -1)
			}
			if hasLabel(now, term.TopologyKey) {
				l.addLive(term, 1)
			}
		}
	}
}

// hasLabel reports whether the node has the label key; false if n is nil.
func hasLabel(n *object.Node, key string) bool {
	if n == nil {
		return false
	}
	_, ok := n.Labels[key]
	return ok
}

// sweep removes the terms that are not used, if they are many. Every About is dropped then, as
// it may list such terms.
func (l *Terms) sweep() {
	if l.idle <= max(termsKept, len(l.list)/2) {
		return
	}
	unused := func(m *Term) bool { return !m.used() }
	l.list = slices.DeleteFunc(l.list, unused)
	maps.DeleteFunc(l.byKey, func(_ string, m *Term) bool { return unused(m) })
	clear(l.labels)
	for _, m := range l.list {
		requirements, _ := m.Selector.Requirements()
		for i := range requirements {
			l.labels[requirements[i].Key()] = true
		}
	}
	clear(l.about)
	l.recent, l.ofRecent = nil, nil
	l.idle = 0
	l.swept++
	l.revision++
}
