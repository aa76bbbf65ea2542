package interpodaffinity

import (
	"k8s.io/apimachinery/pkg/selection"
)

// termIndex finds, of many sets of terms, those that select pods with some labels. A set
// whose first term asks a label to have certain values is looked at for these values alone.
type termIndex struct {
	sets     []indexedSet
	byValue  map[labelValue]int32 // the last of sets for the value
	anyValue []*termSet
}

// indexedSet is one of the sets for a value, and the place of the one before it; -1: none.
type indexedSet struct {
	*termSet
	before int32
}

// labelValue is a label of a pod.
type labelValue struct{ key, value string }

// newTermIndex returns an empty index that is about to get n sets.
func newTermIndex(n int) *termIndex { return &termIndex{byValue: make(map[labelValue]int32, n)} }

// add adds a set of terms.
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

// selecting calls visit with the sets that select pods with the labels, in no particular
// order.
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
