package records

// Follower follows the log as it is written. It belongs to one goroutine, and never
// holds up the writer.
type Follower struct {
	recorder *Recorder
	cursor   *cursor
	query    Query
	news     <-chan struct{}
	end      func()
}

// Follow returns a follower of what matches the query: from now on, or of what is there
// as well.
func (r *Recorder) Follow(q Query, fromNow bool) *Follower {
	f := &Follower{recorder: r, query: q}
	f.news, f.end = r.listen()
	if fromNow {
		f.cursor = r.log.tail()
	} else {
		f.cursor = r.log.head()
	}
	return f
}

// News gets a token when there may be more to read.
func (f *Follower) News() <-chan struct{} { return f.news }

// Next returns the next record that matches, if there is one now, and how many of the
// records before it are lost, whatever they said.
func (f *Follower) Next() (r Record, lost uint64, ok bool) {
	for {
		e, _, missed, more := f.cursor.read()
		lost += missed
		if !more {
			return Record{}, lost, false
		}
		if f.query.wants(e) {
			return f.query.shown(e), lost, true
		}
	}
}

// End ends the following.
func (f *Follower) End() {
	f.end()
	f.recorder.log.done()
}
