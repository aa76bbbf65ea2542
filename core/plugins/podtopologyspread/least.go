package podtopologyspread

import (
	"math"

	"github.com/berth-scheduler/berth/core/domain"
)

// least is the least number of matching pods in a domain with nodes that count. It is computed on
// demand and kept as long as a domain has that number.
type least struct {
	pods  int64
	ties  int  // how many domains have that number
	known bool // false: to be computed
}

// move updates the minimum after a domain's number of pods changed. It marks the minimum as unknown
// if no domain has it any more. It does nothing while the minimum is unknown.
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

// leastPods returns the least number of matching pods in a domain with nodes that count. It is 0 if
// there are fewer such domains than the constraint's minDomains (domains), and else math.MaxInt32
// if there are none.
func (col *column) leastPods(domains int32) int64 {
	if col.eligible.domains < int(domains) {
		return 0
	}
	if !col.least.known {
		col.findLeast()
	}
	return col.least.pods
}

// findLeast computes least from all domains with nodes that count.
func (col *column) findLeast() {
	l := least{pods: math.MaxInt32, known: true} // kube-scheduler's least of none
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
