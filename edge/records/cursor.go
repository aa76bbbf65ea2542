package records

// cursor reads the log as it is written. It may be slower than the
// writer: a record that is gone before it was read is lost, and counted. The owner of
// a cursor calls its log's done in the end.
type cursor struct {
	log     *log
	segment *segment
	at      int
	next    uint64 // the number of the next entry
}

// tail is a cursor behind all that was written by now.
func (l *log) tail() *cursor {
	list := l.read()
	c := &cursor{log: l, segment: list[len(list)-1]}
	c.next = c.segment.first
	for {
		if _, ok := c.inSegment(); !ok {
			return c
		}
	}
}

// head is a cursor before the oldest entry.
func (l *log) head() *cursor {
	s := l.read()[0]
	return &cursor{log: l, segment: s, next: s.first}
}

// read returns the next entry, if there is one, and how many before it were lost.
func (c *cursor) read() (e entry, number, lost uint64, ok bool) {
	for {
		if e, ok := c.inSegment(); ok {
			return e, c.next - 1, lost, true
		}
		after := c.after()
		if after == nil {
			return nil, 0, lost, false
		}
		if e, ok := c.inSegment(); ok { // it was written before the segment was full
			return e, c.next - 1, lost, true
		}
		lost += after.first - c.next
		c.segment, c.at, c.next = after, 0, after.first
	}
}

// inSegment returns the next entry of the segment that was not read before in another.
func (c *cursor) inSegment() (entry, bool) {
	for c.at < int(c.segment.shown.Load()) {
		e := entryAt(c.segment.data, c.at)
		if c.at += len(e); !e.kept() {
			c.next++
			return e, true
		}
	}
	return nil, false
}

// after is the oldest segment there is after the one at hand.
func (c *cursor) after() *segment {
	for _, s := range c.log.snapshot() {
		if s.number > c.segment.number {
			return s
		}
	}
	return nil
}
