package interpodaffinity

import (
	"k8s.io/apimachinery/pkg/selection"
)

// termIndex finds those of many term sets that select pods with given labels. A set
// whose first term requires a label to have one of certain values is looked at only for
// pods with one.
type termIndex struct {
	sets     []indexedSet
	byValue  map[labelValue]int32 // index of the last of sets for the value
	anyValue []*termSet           // sets whose first term requires no label value
}

// indexedSet is a term set for one label value, and the index of the set before it for
// the same value; -1: none.
type indexedSet struct {
	*termSet
	before int32
}

// labelValue is a label with its value, by which termIndex finds the terms that require it.
type labelValue struct{ key, value string }

// newTermIndex returns an empty index with room for about n sets.
func newTermIndex(n int) *termIndex { return &termIndex{byValue: make(map[labelValue]int32, n)} }

// add adds a set of terms, by the values that the first requirement with operator In (or =) of the
// set's first term lists.
func (x *termIndex) add(q *termSet) {
	requirements, _ := q.terms[0].Selector.Requirements()
	for i := range requirements {
		switch requirements[i].Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			for _, value := range requirements[i].ValuesUnsorted() { // any order: each has a list of its own
				x.addForValue(labelValue{requirements[i].Key(), value}, q)
			}
			return
		}
	}
	x.anyValue = append(x.anyValue, q)
}

// addForValue adds q to the sets that are checked for pods with the label value v. It
// skips a value that a selector lists twice.
func (x *termIndex) addForValue(v labelValue, q *termSet) {
	before, known := x.byValue[v]
	switch {
	case !known:
		before = -1
	case x.sets[before].termSet == q: // a value that is listed twice
		return
	}
	x.byValue[v] = int32(len(x.sets)) // #nosec G115 -- fewer than the bytes of a pod
	x.sets = append(x.sets, indexedSet{q, before})
}

// empty reports whether no set was added.
func (x *termIndex) empty() bool { return len(x.sets)+len(x.anyValue) == 0 }

// selecting calls visit with each set of terms whose label selectors all match the labels, in no
// particular order. It does not look at the terms' namespaces.
func (x *termIndex) selecting(labels map[string]string, visit func(*termSet)) {
	for _, q := range x.anyValue {
		if q.selects(labels) {
			visit(q)
		}
	}
	if len(x.byValue) == 0 {
		return
	}
	for key, value := range labels { // any order: so it says
		at, known := x.byValue[labelValue{key, value}]
		for ; known && at >= 0; at = x.sets[at].before {
			if x.sets[at].selects(labels) {
				visit(x.sets[at].termSet)
			}
		}
	}
}
