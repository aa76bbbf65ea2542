package podtopologyspread

import "math"

// minTracker counts domains by their number of matching pods, so that the least is
// known without a look at the domains. The zero value is for those who do not
// ask: it counts nothing.
type minTracker struct {
	domainsByPods map[int]int // domains with that many pods
	domains       int
	least         int
}

// min is the least number of pods in a domain. With fewer domains than there
// should be it is 0.
func (t *minTracker) min(domains int32) int {
	if t.domains < int(domains) {
		return 0
	}
	return t.least
}

func (t *minTracker) reset() {
	t.domainsByPods, t.domains, t.least = map[int]int{}, 0, math.MaxInt32 // v1.36's least of none
}

// insertDomain notes a new domain with that many pods.
func (t *minTracker) insertDomain(pods int) {
	if t.domainsByPods == nil {
		return
	}
	t.domainsByPods[pods]++
	t.domains++
	t.least = min(t.least, pods)
}

// removeDomain notes that a domain with that many pods is gone.
func (t *minTracker) removeDomain(pods int) {
	if t.domainsByPods == nil {
		return
	}
	t.domains--
	t.drop(pods)
	if pods == t.least && t.domainsByPods[pods] == 0 {
		t.search()
	}
}

// move notes that a domain went from one number of pods to another.
func (t *minTracker) move(from, to int) {
	if from == to || t.domainsByPods == nil {
		return
	}
	t.domainsByPods[to]++
	t.drop(from)
	switch {
	case to < t.least:
		t.least = to
	case from > t.least || t.domainsByPods[from] > 0:
	case to == from+1:
		t.least = to
	default:
		t.search()
	}
}

func (t *minTracker) drop(pods int) {
	if t.domainsByPods[pods]--; t.domainsByPods[pods] == 0 {
		delete(t.domainsByPods, pods)
	}
}

func (t *minTracker) search() {
	t.least = math.MaxInt32
	for pods := range t.domainsByPods { // any order: takes the least
		t.least = min(t.least, pods)
	}
}
