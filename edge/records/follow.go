package records

// Follower reads the log as it is written. Records have numbers, from 0, in the order in which
// they were written. A Follower may be slower than the writer: a record that is gone before it was
// read is lost, and counted. It belongs to one goroutine, and holds nothing of the log between two
// calls.
type Follower struct {
	log   *log
	query Query
	next  uint64 // the number of the next record

	// What was read last: a segment, the bytes of it, and the number of the entry after them.
	segment, at int
	number      uint64
}

// Numbered is a record with its number.
type Numbered struct {
	Record
	Number uint64
}

// Follow returns a follower of what matches the query, from the record with that number on.
func (r *Recorder) Follow(q Query, next uint64) *Follower {
	return &Follower{log: r.log, query: q, next: next, segment: -1}
}

// Oldest returns the number of the oldest record there is.
func (r *Recorder) Oldest() uint64 {
	defer r.log.done()
	return r.log.read()[0].first
}

// Next returns the number that the next record will have.
func (r *Recorder) Next() uint64 {
	defer r.log.done()
	list := r.log.read()
	s := list[len(list)-1]
	next := s.first
	s.each(func(e entry) bool {
		if !e.kept() {
			next++
		}
		return true
	})
	return next
}

// Next returns the number of the next record that is read.
func (f *Follower) Next() uint64 { return f.next }

// Read returns the next records that match, at most that many, and how many were lost before
// them, whatever they said. It returns fewer only if there are no more for now.
func (f *Follower) Read(most int) (found []Numbered, lost uint64) {
	f.each(func(e entry, number, missed uint64) bool {
		lost += missed
		if f.query.wants(e) {
			found = append(found, Numbered{f.query.shown(e), number})
		}
		return len(found) < most
	})
	return found, lost
}

// each calls visit for each record that was not read yet, with how many were lost before it,
// until visit returns false.
func (f *Follower) each(visit func(e entry, number, lost uint64) bool) {
	defer f.log.done()
	list := f.log.read()
	for i, s := range list {
		if i+1 < len(list) && list[i+1].first <= f.next {
			continue // nothing of it is wanted
		}
		if s.number != f.segment {
			f.segment, f.at, f.number = s.number, 0, s.first
		}
		for shown := int(s.shown.Load()); f.at < shown; {
			e := entryAt(s.data, f.at)
			if f.at += len(e); e.kept() {
				continue
			}
			number := f.number
			if f.number++; number < f.next {
				continue
			}
			lost := number - f.next
			if f.next = f.number; !visit(e, number, lost) {
				return
			}
		}
	}
}
