package machine

import "time"

// maxReads is how many reads in a row, each followed by another try, may show
// that a request whose reply was lost was not carried out, before it counts as
// refused.
const maxReads = 8

// LostReply is what is known of a request whose reply was lost: a binding, or a
// write of a plugin. The object is read. If the read does not show the request,
// the same request is sent again, so that an earlier one that is still under way
// can only do the same. The zero value is a request that was sent once.
type LostReply struct {
	// reads counts the reads that did not show the request, failed those that
	// failed since: they show nothing.
	reads, failed int
	// Refusal is why the API turned down a request that was sent again. Of the
	// one before, whose reply was lost, that says nothing.
	Refusal error
}

// Delay returns how long to wait before the next read.
func (l *LostReply) Delay() time.Duration {
	n := l.reads + l.failed
	if n == 0 {
		return 0
	}
	return min(time.Second<<min(n-1, 4), 10*time.Second)
}

// ReadFailed records a read that failed.
func (l *LostReply) ReadFailed() { l.failed++ }

// NotShown records a read that did not show the effect of the request.
func (l *LostReply) NotShown() {
	l.reads++
	l.failed = 0
}

// Reads returns how many reads did not show the request.
func (l *LostReply) Reads() int { return l.reads }

// Exhausted reports whether so many reads did not show the request that it counts as
// refused.
func (l *LostReply) Exhausted() bool { return l.reads >= maxReads }
