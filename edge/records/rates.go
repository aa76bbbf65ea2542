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

// Rates counts what happened since. It reads the log from its end, and only as far back as it must.
func (r *Recorder) Rates(now time.Time, since time.Duration) Rates {
	defer r.log.done()
	c := newCounter(now, since)
	for _, s := range slices.Backward(r.log.read()) {
		if c.complete {
			break
		}
		s.each(c.see)
		c.endSegment()
	}
	return c.end()
}

// counter counts what happened in a while. It sees the entries of one segment of the log after the other,
// the newest segment first.
type counter struct {
	Rates
	now, from, oldest int64            // nanoseconds
	bound             map[string]int64 // when pods were bound whose decision was not seen yet, by UID
	times             []int64          // that bindings took
	attempts, evicted []entry          // of the segment that is being seen
	evictions         [][]entry        // of the segments that were seen
	before            bool             // an entry of before the while was seen
	// complete is set once no older segment can count.
	complete bool
}

func newCounter(now time.Time, since time.Duration) *counter {
	at := now.UnixNano()
	return &counter{Rates: Rates{Attempts: map[string]int{}, Requeued: map[string]int{}}, now: at, from: now.Add(-since).UnixNano(), oldest: at, bound: map[string]int64{}}
}

// see counts an entry. It is true: more are wanted.
func (c *counter) see(e entry) bool {
	if e.kind() == kindAttempt {
		c.attempts = append(c.attempts, e)
	}
	if e.kept() {
		return true
	}
	if c.oldest = min(c.oldest, e.nanosecond()); e.nanosecond() < c.from {
		c.before = true
		return true
	}
	switch e.kind() {
	case kindBound:
		c.bound[string(e.uid())] = e.nanosecond()
	case kindEvicted:
		c.evicted = append(c.evicted, e)
	}
	c.count(e)
	return true
}

// endSegment finds the decisions of the pods that were bound: the last attempt before that is the one that
// placed the pod.
func (c *counter) endSegment() {
	if len(c.bound) > 0 {
		for _, e := range slices.Backward(c.attempts) {
			if at, is := c.bound[string(e.uid())]; is && e.nanosecond() <= at {
				c.times = append(c.times, at-e.nanosecond())
				delete(c.bound, string(e.uid()))
			}
		}
	}
	c.evictions = append(c.evictions, c.evicted)
	c.attempts, c.evicted = c.attempts[:0], nil
	c.complete = c.before && len(c.bound) == 0
}

// end returns the rates.
func (c *counter) end() Rates {
	c.Seconds = time.Duration(c.now - max(c.oldest, c.from)).Seconds()
	slices.Sort(c.times)
	c.Binding = Times{Pods: len(c.times), P50: quantile(c.times, 50), P99: quantile(c.times, 99)}
	preemptions := map[string]*Preemption{}
	for _, of := range slices.Backward(c.evictions) {
		for _, e := range of {
			victim := e.record()
			add(preemptions, &victim)
		}
	}
	c.Preemptions = most(preemptions)
	return c.Rates
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
