package podtopologyspread

import "math"

// tally counts domains by their number of matching pods, so that the least is
// known without a look at the domains. The zero value is for those who do not
// ask: it counts nothing.
type tally struct {
	having  map[int]int // domains with so many pods
	domains int
	least   int
}

// min is the least number of pods in a domain. With fewer domains than there
// should be it is 0.
func (t *tally) min(domains int32) int {
	if t.domains < int(domains) {
		return 0
	}
	return t.least
}

func (t *tally) reset() {
	t.having, t.domains, t.least = map[int]int{}, 0, math.MaxInt32 // v1.36's least of none
}

func (t *tally) insert(pods int) {
	if t.having == nil {
		return
	}
	t.having[pods]++
	t.domains++
	t.least = min(t.least, pods)
}

func (t *tally) remove(pods int) {
	if t.having == nil {
		return
	}
	t.domains--
	t.drop(pods)
	if pods == t.least && t.having[pods] == 0 {
		t.search()
	}
}

// move notes that a domain went from one number of pods to another.
func (t *tally) move(from, to int) {
	if from == to || t.having == nil {
		return
	}
	t.having[to]++
	t.drop(from)
	switch {
	case to < t.least:
		t.least = to
	case from > t.least || t.having[from] > 0:
	case to == from+1:
		t.least = to
	default:
		t.search()
	}
}

func (t *tally) drop(pods int) {
	if t.having[pods]--; t.having[pods] == 0 {
		delete(t.having, pods)
	}
}

func (t *tally) search() {
	t.least = math.MaxInt32
	for pods := range t.having { // any order: takes the least
		t.least = min(t.least, pods)
	}
}
