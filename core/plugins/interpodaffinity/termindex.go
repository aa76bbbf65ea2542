package interpodaffinity

import (
	"k8s.io/apimachinery/pkg/selection"
)

// termIndex finds, of many sets of terms, those that select pods with some labels. A set
// whose first term asks a label to have certain values is looked at for these values alone.
type termIndex struct {
	n        int
	byValue  map[labelValue][]*termSet
	anyValue []*termSet
}

// labelValue is a label of a pod.
type labelValue struct{ key, value string }

// add adds a set of terms.
func (x *termIndex) add(q *termSet) {
	x.n++
	requirements, _ := q.terms[0].Selector.Requirements()
	for i := range requirements {
		switch requirements[i].Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			if x.byValue == nil {
				x.byValue = map[labelValue][]*termSet{}
			}
			for value := range requirements[i].Values() { // any order: each has a list of its own
				of := labelValue{requirements[i].Key(), value}
				x.byValue[of] = append(x.byValue[of], q)
			}
			return
		}
	}
	x.anyValue = append(x.anyValue, q)
}

// selecting calls visit with the sets that select pods with the labels, in no particular
// order.
func (x *termIndex) selecting(labels map[string]string, visit func(*termSet)) {
	each := func(sets []*termSet) {
		for _, q := range sets {
			if q.selects(labels) {
				visit(q)
			}
		}
	}
	each(x.anyValue)
	if len(x.byValue) == 0 {
		return
	}
	for key, value := range labels { // any order: so it says
		each(x.byValue[labelValue{key, value}])
	}
}
