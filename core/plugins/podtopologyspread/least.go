package podtopologyspread

import (
	"math"

	"github.com/berth-scheduler/berth/core/domain"
)

// least holds the least number of matching pods in a domain that has nodes which count,
// and how many domains have it. It is computed on demand, and kept while some domain has
// it.
type least struct {
	pods  int64
	ties  int
	known bool
}

// move updates the minimum for a domain that went from one number of pods to another.
func (l *least) move(from, to int64) {
	if !l.known || from == to {
		return
	}
	if from == l.pods {
		l.ties--
	}
	switch {
	case to < l.pods:
		l.pods, l.ties = to, 1
	case to == l.pods:
		l.ties++
	}
	l.known = l.ties > 0
}

// leastPods returns the least number of matching pods in a domain. With fewer domains than
// there should be it is 0.
func (col *column) leastPods(domains int32) int64 {
	if col.eligible.domains < int(domains) {
		return 0
	}
	if !col.least.known {
		col.findLeast()
	}
	return col.least.pods
}

func (col *column) findLeast() {
	l := least{pods: math.MaxInt32, known: true} // v1.36's least of none
	for d, n := range col.eligible.nodes[domain.Unnamed:] {
		if n == 0 {
			continue
		}
		switch pods := col.Sums[int(domain.Unnamed)+d]; {
		case pods < l.pods:
			l.pods, l.ties = pods, 1
		case pods == l.pods:
			l.ties++
		}
	}
	col.least = l
}
