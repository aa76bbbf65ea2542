package table

import (
	"iter"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
)

// Term is a term of pod affinity of placed pods. All pods with equal terms share one. It
// belongs to the table.
type Term struct {
	match.PodTerm
	// ID is of no other term, ever.
	ID   uint64
	rows podsByRow
	live int // pods that have the term, on nodes that have its topology key
	// expected is how many nominated pods have it, if it is required anti-affinity.
	expected int
}

// Live reports whether a pod that has the term is on a node that has its topology key.
// Other terms affect no node.
func (m *Term) Live() bool { return m.live > 0 }

// Expected reports whether a pod that is nominated to a node has the term as required
// anti-affinity. The term counts once that pod is placed.
func (m *Term) Expected() bool { return m.expected > 0 }

// used reports whether a placed pod has the term, or a nominated pod has it as required
// anti-affinity.
func (m *Term) used() bool { return len(m.rows.list) > 0 || m.Expected() }

// Rows lists the rows that have pods with the term, and how many, in no particular order.
// It is valid until the next change. Read only.
func (m *Term) Rows() []RowCount { return m.rows.list }

// Terms are the terms of pod affinity that the table has heard of. One that no placed pod
// has any more is forgotten some time later.
type Terms struct {
	byKey map[string]*Term
	list  []*Term // by ID
	last  uint64
	idle  int // of the list, terms that are not used
	swept uint64
	// revision changes whenever a term comes, goes, or is Live or Expected or no more.
	revision uint64
	expected map[string][]*Term // of nominated pods, by node
	// labels are the keys that selectors look at; other labels of a pod do not
	// decide which terms are about it.
	labels     map[string]bool
	about      map[string]*About
	keyBuf     []byte
	keys       []string
	namespaces *Namespaces
	// recent is the last pod's affinity whose terms are ofRecent; nil: none.
	recent   *match.PodAffinity
	ofRecent []*Term
}

// About is the terms that are about pods of one namespace and some labels. It belongs to
// the table. Terms join it at the end, and none ever leaves it: when terms are forgotten, or
// the labels of a namespace change, the table makes another.
type About struct {
	terms    []*Term // by ID
	upTo     uint64  // the last ID that was looked at
	revision uint64  // of the namespaces
}

// Terms returns the terms, by ID; of nil there are none. Read only.
func (a *About) Terms() []*Term {
	if a == nil {
		return nil
	}
	return a.terms
}

// Bounds of what is kept although nobody may need it any more.
const (
	termsKept  = 1 << 10
	aboutsKept = 1 << 14
)

// Terms returns the terms of pod affinity of the table's pods.
func (t *Table) Terms() *Terms { return &t.terms }

func newTerms(n *Namespaces) Terms {
	return Terms{byKey: map[string]*Term{}, expected: map[string][]*Term{}, labels: map[string]bool{}, about: map[string]*About{}, namespaces: n}
}

// Track records the terms of a pod that is not placed yet, but may be placed for a trial
// while another pod is decided on.
func (l *Terms) Track(p *object.Pod) {
	if p.Affinity == nil {
		return
	}
	for i := range p.Affinity.Terms {
		l.add(&p.Affinity.Terms[i])
	}
}

// TrackNominated records the pods that are nominated to the node, in place of those that were
// before. Their required anti-affinity is Expected.
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

// TrackedNominations returns the nodes for which TrackNominated last recorded required
// anti-affinity, in no particular order.
func (l *Terms) TrackedNominations() iter.Seq[string] { return maps.Keys(l.expected) }

// addExpected adds pods, which may be negative, to the nominated pods that have m as required
// anti-affinity.
func (l *Terms) addExpected(m *Term, pods int) {
	was, used := m.Expected(), m.used()
	if m.expected += pods; m.Expected() != was {
		l.revision++
	}
	l.countIdle(m, used)
}

// Swept returns the number of sweeps. A sweep removes the terms that no placed pod has,
// those of Track included.
func (l *Terms) Swept() uint64 { return l.swept }

// add returns the table's Term for in. A new one is unused until its users are counted.
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

// Revision changes whenever a term comes, goes, or is Live or Expected or no more: for the
// same namespaces, TermsAbout then returns the same terms.
func (l *Terms) Revision() uint64 { return l.revision }

// About returns the terms that are about the pod; nil: there are no terms at all.
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
		if term.Matches(p.Namespace, l.namespaces.labels[p.Namespace], p.Labels) {
			a.terms = append(a.terms, term)
		}
	}
	a.upTo = l.last
	return a
}

// appendKey writes the pod's namespace, and its labels as far as selectors look
// at them, to keyBuf.
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

// count counts the terms of a pod that came to a node (sign 1) or left it (-1); nil if the
// node is unknown.
func (l *Terms) count(pl *Placed, n *object.Node, sign int) {
	if pl.Pod.Affinity == nil {
		return
	}
	if pl.terms == nil {
		pl.terms = l.of(pl.Pod.Affinity)
	}
	for _, term := range pl.terms {
		l.addPods(term, pl.Row, int32(sign))
		if hasLabel(n, term.TopologyKey) {
			l.addLive(term, sign)
		}
	}
}

// of returns the terms of a pod. Pods with equal terms, one after the other, share the
// list, as do the assumed and the bound state of a pod. Read only.
func (l *Terms) of(a *match.PodAffinity) []*Term {
	if l.recent == nil || l.recent.Key != a.Key {
		list := make([]*Term, len(a.Terms))
		for i := range a.Terms {
			list[i] = l.add(&a.Terms[i])
		}
		l.recent, l.ofRecent = a, list
	}
	return l.ofRecent
}

// addPods adds to the number of pods on the row that have the term; pods may be negative.
func (l *Terms) addPods(m *Term, r Row, pods int32) {
	used := m.used()
	m.rows.add(r, pods)
	l.countIdle(m, used)
}

// countIdle updates the number of unused terms after a change of the term's users.
// wasUsed is whether the term was used before.
func (l *Terms) countIdle(m *Term, wasUsed bool) {
	switch used := m.used(); {
	case used && !wasUsed:
		l.idle--
	case wasUsed && !used:
		l.idle++
	}
}

func (l *Terms) addLive(m *Term, pods int) {
	was := m.Live()
	if m.live += pods; m.Live() != was {
		l.revision++
	}
}

// relabel counts the terms of a node's pods anew, as the node changed; nil for none.
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

func hasLabel(n *object.Node, key string) bool {
	if n == nil {
		return false
	}
	_, ok := n.Labels[key]
	return ok
}

// sweep forgets terms that are not used, if there are many.
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
