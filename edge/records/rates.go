package records

import (
	"cmp"
	"slices"
	"time"
)

// Rates count what happened in a while.
type Rates struct {
	// Seconds is how long the while is: shorter than asked for where the records do
	// not reach back so far.
	Seconds  float64        `json:"seconds"`
	Attempts map[string]int `json:"attempts"` // by result
	Bound    int            `json:"bound"`
	Evicted  int            `json:"evicted"`
	Requeued map[string]int `json:"requeued"` // pods, by event
	// Binding is the time from the decision until the binding is confirmed, of the pods
	// that were bound.
	Binding Times `json:"binding"`
	// Preemptions lists the pods for which others were evicted, those with most victims first.
	Preemptions []Preemption `json:"preemptions,omitempty"`
}

// Times are quantiles of times in seconds.
type Times struct {
	Pods int     `json:"pods"` // whose times are known
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
}

// Preemption is a pod for which others were evicted.
type Preemption struct {
	For     string   `json:"for"`
	Node    string   `json:"node"` // of the victim that was evicted first
	Evicted int      `json:"evicted"`
	Victims []string `json:"victims"` // the first few
}

// Bounds of what is said of preemptions.
const (
	mostPreemptions = 20
	mostVictims     = 5
)

// Rates counts what happened since.
func (r *Recorder) Rates(now time.Time, since time.Duration) Rates {
	out := Rates{Attempts: map[string]int{}, Requeued: map[string]int{}}
	from := now.Add(-since).UnixNano()
	oldest := now.UnixNano()
	bound := map[string]int64{} // nanosecond, by UID
	preemptions := map[string]*Preemption{}
	r.log.each(func(e entry) bool {
		if e.kept() {
			return true
		}
		if oldest = min(oldest, e.nanosecond()); e.nanosecond() < from {
			return true
		}
		switch e.kind() {
		case kindBound:
			bound[string(e.uid())] = e.nanosecond()
		case kindEvicted:
			evicted := e.record()
			add(preemptions, &evicted)
		}
		out.count(e)
		return true
	})
	out.Seconds = time.Duration(now.UnixNano() - max(oldest, from)).Seconds()
	out.Binding = r.bindingTimes(bound)
	out.Preemptions = most(preemptions)
	return out
}

func (c *Rates) count(e entry) {
	switch e.kind() {
	case kindBound:
		c.Bound++
	case kindEvicted:
		c.Evicted++
	case kindAttempt:
		c.Attempts[string(results[e.result()])]++
	case kindMoved:
		if r := e.record(); (r.From == "unschedulable" || r.From == "gated") && r.To != "nowhere" {
			c.Requeued[r.Event]++
		}
	}
}

// bindingTimes returns how long the bindings of pods took, which were confirmed at these
// times. The last attempt before that was the one that placed the pod.
func (r *Recorder) bindingTimes(bound map[string]int64) Times {
	decided := map[string]int64{}
	r.log.each(func(e entry) bool {
		if e.kind() == kindAttempt {
			if until, is := bound[string(e.uid())]; is && e.nanosecond() <= until {
				decided[string(e.uid())] = max(decided[string(e.uid())], e.nanosecond())
			}
		}
		return true
	})
	times := make([]int64, 0, len(decided))
	for uid, at := range decided { // any order: sorted below
		times = append(times, bound[uid]-at)
	}
	slices.Sort(times)
	return Times{Pods: len(times), P50: quantile(times, 50), P99: quantile(times, 99)}
}

// quantile returns, in seconds, the smallest of the sorted times that so many of a hundred
// do not exceed; 0 if there is none.
func quantile(sorted []int64, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return time.Duration(sorted[(len(sorted)*percent+99)/100-1]).Seconds()
}

// add counts a victim.
func add(to map[string]*Preemption, victim *Record) {
	p := to[victim.For]
	if p == nil {
		p = &Preemption{For: victim.For, Node: victim.Node}
		to[victim.For] = p
	}
	p.Evicted++
	if len(p.Victims) < mostVictims {
		p.Victims = append(p.Victims, victim.Pod)
	}
}

// most returns the preemptions with most victims.
func most(of map[string]*Preemption) []Preemption {
	var all []Preemption
	for _, p := range of { // any order: sorted below
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b Preemption) int { return cmp.Or(cmp.Compare(b.Evicted, a.Evicted), cmp.Compare(a.For, b.For)) })
	return all[:min(mostPreemptions, len(all))]
}
