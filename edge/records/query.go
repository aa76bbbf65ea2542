package records

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Query says which records are wanted. What is empty excludes none.
type Query struct {
	Pod  string // namespace/name
	Node string
	// Reason is a part, in any case, of a type, a result, a plugin, an event or a
	// reason.
	Reason       string
	Since, Until time.Time
	// Most records, the newest; 0 is no bound.
	Most int
}

// Find returns the records that match, in the order of time, and whether there were
// more of them.
func (r *Recorder) Find(q Query) (found []Record, more bool) {
	found = []Record{}
	r.log.each(func(e entry) bool {
		if record, ok := q.match(e); ok {
			found = append(found, record)
		}
		if q.Most > 0 && len(found) >= 2*q.Most {
			q.newest(&found)
			more = true
		}
		return true
	})
	slices.SortStableFunc(found, byTime)
	if q.Most > 0 && len(found) > q.Most {
		return found[len(found)-q.Most:], true
	}
	return found, more
}

// newest leaves out all but the newest records.
func (q *Query) newest(found *[]Record) {
	slices.SortStableFunc(*found, byTime)
	n := copy(*found, (*found)[len(*found)-q.Most:])
	clear((*found)[n:])
	*found = (*found)[:n]
}

func byTime(a, b Record) int { return a.Time.Compare(b.Time) }

// match decodes the entry if the query wants it.
func (q *Query) match(e entry) (Record, bool) {
	at := e.nanosecond()
	switch {
	case !q.Since.IsZero() && at < q.Since.UnixNano(), !q.Until.IsZero() && at > q.Until.UnixNano():
		return Record{}, false
	case q.Pod != "" && string(e.pod()) != q.Pod:
		return Record{}, false
	}
	r := e.record()
	return r, (q.Node == "" || r.Node == q.Node || r.NominatedNode == q.Node) && (q.Reason == "" || r.Has(q.Reason))
}

// Has tells whether the words are a part, in any case, of the record's type, result,
// event, plugins or reasons.
func (r *Record) Has(words string) bool {
	part := strings.ToLower(words)
	is := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(w), part) })
	}
	return is(string(r.Type), r.Result, r.Event, r.Plugin) || is(r.RejectedBy...) || is(r.PendingBy...) ||
		slices.ContainsFunc(r.Blockers, func(b Blocker) bool { return is(b.Plugin) || is(b.Reasons...) })
}

// Lasts are the last attempts of pods, by UID.
func (r *Recorder) Lasts() map[string]Record {
	at := map[string]entry{}
	defer r.log.done()
	for _, s := range r.log.read() {
		s.each(func(e entry) bool {
			if e.kind() != kindAttempt {
				return true
			}
			uid := string(e.uid())
			if before, known := at[uid]; !known || before.nanosecond() <= e.nanosecond() {
				at[uid] = e
			}
			return true
		})
	}
	last := make(map[string]Record, len(at))
	for uid, e := range at { // any order: each by itself
		if e.waits() {
			last[uid] = e.record()
		}
	}
	return last
}

// Rates count what happened in a while.
type Rates struct {
	// Seconds is how long the while is: shorter than asked for where the records do
	// not reach back so far.
	Seconds  float64        `json:"seconds"`
	Attempts map[string]int `json:"attempts"` // by result
	Bound    int            `json:"bound"`
	Evicted  int            `json:"evicted"`
	Requeued map[string]int `json:"requeued"` // pods, by event
}

// Rates counts what happened since.
func (r *Recorder) Rates(now time.Time, since time.Duration) Rates {
	out := Rates{Attempts: map[string]int{}, Requeued: map[string]int{}}
	from := now.Add(-since).UnixNano()
	oldest := now.UnixNano()
	r.log.each(func(e entry) bool {
		if e.kept() {
			return true
		}
		if oldest = min(oldest, e.nanosecond()); e.nanosecond() >= from {
			out.count(e)
		}
		return true
	})
	out.Seconds = time.Duration(now.UnixNano() - max(oldest, from)).Seconds()
	return out
}

func (c *Rates) count(e entry) {
	switch e.kind() {
	case kindBound:
		c.Bound++
	case kindEvicted:
		c.Evicted++
	case kindAttempt:
		c.Attempts[e.record().Result]++
	case kindMoved:
		if r := e.record(); (r.From == "unschedulable" || r.From == "gated") && r.To != "nowhere" {
			c.Requeued[r.Event]++
		}
	}
}

// Blocking is what blocks pods that wait, and how many of them.
type Blocking struct {
	Plugin string `json:"plugin"`
	Reason string `json:"reason"`
	Pods   int    `json:"pods"`
}

// Rank ranks the reasons of last attempts: for each pod those that came first on
// some node. A pod may count for several.
func Rank(last []Record) []Blocking {
	counts := map[[2]string]int{}
	for i := range last {
		r := &last[i]
		seen := map[[2]string]bool{}
		for _, b := range r.Blockers {
			for _, reason := range b.Reasons {
				seen[[2]string{b.Plugin, reason}] = true
			}
		}
		if len(r.Blockers) == 0 {
			seen[[2]string{strings.Join(r.RejectedBy, ", "), r.Message}] = true
		}
		for key := range seen { // any order: sums
			counts[key]++
		}
	}
	ranked := []Blocking{}
	for key, n := range counts { // any order: sorted below
		ranked = append(ranked, Blocking{key[0], key[1], n})
	}
	slices.SortFunc(ranked, func(a, b Blocking) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Reason, b.Reason))
	})
	return ranked
}

// Size tells of the log itself.
type Size struct {
	Bytes int `json:"bytes"`
	Limit int `json:"limit"`
	// Oldest is the time of the oldest record.
	Oldest *time.Time `json:"oldest,omitempty"`
	// Unprotected counts last attempts for which there was no room to keep them until
	// their pods are placed or gone.
	Unprotected int64 `json:"unprotected"`
}

// Size returns how large the log is.
func (r *Recorder) Size() Size {
	s := Size{Bytes: r.log.size(), Limit: r.log.limit, Unprotected: r.log.unprotected.Load()}
	r.log.each(func(e entry) bool {
		at := timeOf(e.nanosecond())
		s.Oldest = &at
		return e.kept()
	})
	return s
}
