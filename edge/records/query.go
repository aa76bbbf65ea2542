package records

import (
	"cmp"
	"iter"
	"maps"
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
	// View returns what the reader may see of a record, nil: all of it. The reason is looked for
	// in that.
	View func(Record) Record
}

// shown decodes an entry for the reader.
func (q *Query) shown(e entry) Record {
	if q.View == nil {
		return e.record()
	}
	return q.View(e.record())
}

// Found are records that match a query, in the order of time. They are decoded one by one.
// Until End the log keeps what they stand in, so whoever reads them does so within a
// bounded time.
type Found struct {
	log     *log
	query   Query
	entries []entry
	// More is set if there are older records that match.
	More bool
}

// Find returns the records that match. The caller calls End. It reads the log from its end, and
// only as far back as it must.
func (r *Recorder) Find(q Query) *Found {
	f := &Found{log: r.log, query: q}
	var found [][]entry // of each segment, the newest segment first
	fresh := 0
	for _, s := range slices.Backward(r.log.read()) {
		of := q.matching(s)
		found = append(found, of)
		// Entries that were written again are older than all others. One record more than are
		// wanted tells that there are more.
		for _, e := range of {
			if !e.kept() {
				fresh++
			}
		}
		if q.Most > 0 && fresh > q.Most {
			break
		}
	}
	slices.Reverse(found)
	f.entries = slices.Concat(found...)
	f.cut(q.Most)
	return f
}

// matching returns the entries of the segment that match.
func (q *Query) matching(s *segment) (found []entry) {
	s.each(func(e entry) bool {
		if q.wants(e) {
			found = append(found, e)
		}
		return true
	})
	return found
}

// cut sorts the records and drops all but the newest n; 0 drops none.
func (f *Found) cut(n int) {
	slices.SortStableFunc(f.entries, func(a, b entry) int { return cmp.Compare(a.nanosecond(), b.nanosecond()) })
	if n > 0 && len(f.entries) > n {
		f.entries = slices.Delete(f.entries, 0, len(f.entries)-n)
		f.More = true
	}
}

// Len returns how many records there are.
func (f *Found) Len() int { return len(f.entries) }

// All decodes each record when it is its turn.
func (f *Found) All() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for _, e := range f.entries {
			if !yield(f.query.shown(e)) {
				return
			}
		}
	}
}

// End lets the log drop what the records stand in.
func (f *Found) End() { f.log.done() }

// wants reports whether the entry matches.
func (q *Query) wants(e entry) bool {
	at := e.nanosecond()
	switch {
	case !q.Since.IsZero() && at < q.Since.UnixNano(), !q.Until.IsZero() && at > q.Until.UnixNano():
		return false
	case q.Pod != "" && string(e.pod()) != q.Pod:
		return false
	case q.Node == "" && q.Reason == "":
		return true
	}
	r := q.shown(e)
	return (q.Node == "" || r.Node == q.Node || r.NominatedNode == q.Node) && (q.Reason == "" || r.Has(q.Reason))
}

// Has tells whether the words are a part, in any case, of the record's type, result,
// event, plugins, reasons or cause as Rank names it.
func (r *Record) Has(words string) bool {
	part := strings.ToLower(words)
	is := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(w), part) })
	}
	if _, cause := r.mainReason(); is(cause, withoutNames(cause)) {
		return true
	}
	return is(string(r.Type), r.Result, r.Event, r.Plugin, r.FailedBy()) || is(r.RejectedBy...) || is(r.PendingBy...) ||
		slices.ContainsFunc(r.Blockers, func(b Blocker) bool { return is(b.Plugin) || is(b.Reasons...) })
}

// Lasts are the last attempts of pods that wait, by UID. Until End the log keeps what
// they stand in.
type Lasts struct {
	log     *log
	uids    map[string]bool // nil means all pods
	entries map[string]lastEntry
	newest  lastEntry // of all attempts that were seen
}

// lastEntry is the last attempt so far, and the number of its segment.
type lastEntry struct {
	entry
	segment int
}

// precedes reports whether the entry of a segment comes behind this one.
func (l lastEntry) precedes(e entry, segment int) bool {
	return l.entry == nil || cmp.Or(cmp.Compare(l.nanosecond(), e.nanosecond()), cmp.Compare(l.segment, segment)) <= 0
}

// Lasts returns the last attempts of the pods with these UIDs; nil means all pods. The
// caller calls End.
func (r *Recorder) Lasts(uids map[string]bool) *Lasts {
	l := &Lasts{log: r.log, uids: uids, entries: map[string]lastEntry{}}
	for _, s := range r.log.read() {
		s.each(func(e entry) bool { return l.see(e, s.number) })
	}
	return l.end()
}

// see takes an attempt of a segment, if it is later than what was seen. It is true: more are wanted.
func (l *Lasts) see(e entry, segment int) bool {
	if e.kind() != kindAttempt {
		return true
	}
	if l.newest.precedes(e, segment) {
		l.newest = lastEntry{e, segment}
	}
	uid := e.uid()
	if (l.uids == nil || l.uids[string(uid)]) && l.entries[string(uid)].precedes(e, segment) {
		l.entries[string(uid)] = lastEntry{e, segment}
	}
	return true
}

// end drops the pods that do not wait.
func (l *Lasts) end() *Lasts {
	maps.DeleteFunc(l.entries, func(_ string, e lastEntry) bool { return !e.waits() })
	return l
}

// Overview is what the log says of now, which one pass over it finds.
type Overview struct {
	*Lasts
	Rates Rates
	// LastAttempt is the attempt that was made last, nil if there is no record of one.
	LastAttempt *Record
}

// Overview returns the last attempts of the pods with these UIDs, the last attempt of all, and what
// happened since. The caller calls End.
func (r *Recorder) Overview(uids map[string]bool, now time.Time, since time.Duration) *Overview {
	l, c := &Lasts{log: r.log, uids: uids, entries: map[string]lastEntry{}}, newCounter(now, since)
	for _, s := range slices.Backward(r.log.read()) {
		counted := c.complete
		s.each(func(e entry) bool {
			if !counted {
				c.see(e)
			}
			return l.see(e, s.number)
		})
		if !counted {
			c.endSegment()
		}
	}
	o := &Overview{Lasts: l.end(), Rates: c.end()}
	if l.newest.entry != nil {
		attempt := l.newest.record()
		o.LastAttempt = &attempt
	}
	return o
}

// Of decodes the last attempt of a pod, if the pod was tried and waits.
func (l *Lasts) Of(uid string) (Record, bool) {
	e, tried := l.entries[uid]
	if !tried {
		return Record{}, false
	}
	return e.record(), true
}

// All decodes each last attempt when it is its turn, in any order.
func (l *Lasts) All() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for _, e := range l.entries { // any order: who asks for one counts or sorts
			if !yield(e.record()) {
				return
			}
		}
	}
}

// End lets the log drop what the attempts stand in.
func (l *Lasts) End() { l.log.done() }

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
