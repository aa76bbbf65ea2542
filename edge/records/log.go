package records

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
)

// LeastBytes is the least size of a log.
const LeastBytes = 1 << 20

// Of a log of the least size a segment is 16 KiB, of a large one 1 MiB.
const segments, largestSegment = 64, 1 << 20

// lastBytes is what it takes to know where the last attempt of a pod is.
const lastBytes = 128

// log is entries in the order in which they were written, in segments. The oldest
// segments go when there is no room. One goroutine writes; any may read, and what is
// read never changes.
type log struct {
	limit, segmentBytes int

	// What follows is the writer's.
	open *segment
	// last is where the last attempts of pods are that wait. They are written again
	// before their segment goes. Together with their entries they take at most half
	// of the limit: what is beyond that is unprotected.
	last        map[types.UID]location
	lastCost    int
	mostLast    int          // entries that last had since it was made: maps do not shrink
	lastBytes   atomic.Int64 // for them
	unprotected atomic.Int64

	spare []byte // of a segment that is gone and that nobody reads

	mu      sync.Mutex
	list    []*segment // oldest first; open is the last
	bytes   int
	readers int // that may hold segments
}

// segment is a piece of the log.
type segment struct {
	data   []byte
	number int          // of the segment
	first  uint64       // the number of its first entry
	shown  atomic.Int64 // bytes that are there to be read

	// What follows is the writer's.
	written int    // bytes
	next    uint64 // the number of the next entry; what is kept has none
	last    int    // of the entries are last attempts of pods that wait
	read    bool   // somebody may have it who reads, though it is off the log
}

// location is where an entry is.
type location struct {
	segment *segment
	at      int
}

func (l location) entry() entry { return entryAt(l.segment.data, l.at) }

func entryAt(data []byte, at int) entry {
	return entry(data[at : at+int(binary.LittleEndian.Uint32(data[at:]))])
}

func newLog(limit int) *log {
	limit = max(limit, LeastBytes)
	l := &log{limit: limit, segmentBytes: min(limit/segments, largestSegment), last: map[types.UID]location{}}
	l.add()
	return l
}

// room is where the next entry will stand, if it fits: to write it there saves a copy.
func (l *log) room() []byte { return l.open.data[l.open.written:l.open.written] }

// append takes in an entry and returns where it is. It is copied unless it was written
// where it belongs.
func (l *log) append(e entry) location {
	if s := l.open; s.written < len(s.data) && &s.data[s.written] == &e[0] {
		at := s.written
		s.written += len(e)
		s.next++
		return location{s, at}
	}
	for !l.open.fits(e) {
		l.roll()
	}
	l.open.next++
	return location{l.open, l.open.write(e)}
}

func (s *segment) fits(e entry) bool { return s.written+len(e) <= len(s.data) }

func (s *segment) write(e entry) (at int) {
	at = s.written
	s.written += copy(s.data[at:], e)
	return at
}

// show lets what was written be read. Nothing of that changes any more.
func (l *log) show() {
	if written := int64(l.open.written); written != l.open.shown.Load() { // to store costs more
		l.open.shown.Store(written)
	}
}

// setLast notes where the last attempt of a pod that waits is.
func (l *log) setLast(uid types.UID, at location) {
	l.dropLast(uid)
	if cost := lastBytes + len(at.entry()); l.lastCost+cost <= l.limit/2 {
		l.lastCost += cost
		at.segment.last++
		l.last[uid] = at
		l.sizeLast(max(l.mostLast, len(l.last)))
		for l.over(0) {
			l.retire(l.drop())
		}
		return
	}
	l.unprotected.Add(1)
}

// dropLast forgets the last attempt of a pod.
func (l *log) dropLast(uid types.UID) {
	at, known := l.last[uid]
	if !known {
		return
	}
	l.lastCost -= lastBytes + len(at.entry())
	at.segment.last--
	delete(l.last, uid)
	if l.mostLast > 1024 && len(l.last) < l.mostLast/4 {
		smaller := make(map[types.UID]location, len(l.last))
		for uid, at := range l.last { // any order: each by itself
			smaller[uid] = at
		}
		l.last = smaller
		l.sizeLast(len(smaller))
	}
}

func (l *log) sizeLast(entries int) {
	l.mostLast = entries
	l.lastBytes.Store(int64(entries) * lastBytes)
}

// over tells whether the log would be over its limit with that many bytes more.
func (l *log) over(more int) bool {
	return l.bytes+more+l.mostLast*lastBytes > l.limit && len(l.list) > 1
}

// roll opens the next segment. What goes for it is looked through first.
func (l *log) roll() {
	l.show()
	var gone []*segment
	for l.over(l.segmentBytes) {
		gone = append(gone, l.drop())
	}
	l.add()
	for _, s := range gone {
		l.retire(s)
	}
}

// retire is the end of a segment that is off the log.
func (l *log) retire(s *segment) {
	l.rescue(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !s.read {
		l.spare = s.data
	}
}

// add opens a segment.
func (l *log) add() {
	s := &segment{data: l.spare}
	if l.spare = nil; s.data == nil {
		s.data = make([]byte, l.segmentBytes)
	}
	if l.open != nil {
		s.number, s.first, s.next = l.open.number+1, l.open.next, l.open.next
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list, l.bytes, l.open = append(l.list, s), l.bytes+len(s.data), s
}

// drop takes the oldest segment off the log.
func (l *log) drop() *segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.list[0]
	s.read = l.readers > 0
	l.list[0] = nil
	l.list, l.bytes = l.list[1:], l.bytes-len(s.data)
	return s
}

// rescue writes the last attempts again that are in a segment which is gone.
func (l *log) rescue(s *segment) {
	for at := 0; s.last > 0; {
		e := entryAt(s.data, at)
		here := location{s, at}
		at += len(e)
		if e.kind() != kindAttempt || l.last[types.UID(e.uid())] != here {
			continue
		}
		uid := types.UID(e.uid())
		for !l.open.fits(e) {
			l.roll()
		}
		to := l.open.write(e)
		l.open.data[to+4] |= kindKept
		s.last--
		l.open.last++
		l.last[uid] = location{l.open, to}
	}
}

// read begins to read: what it returns is the segments that there are now, the oldest
// first. They stay as they are until as many have called done.
func (l *log) read() []*segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers++
	return append([]*segment(nil), l.list...)
}

func (l *log) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers--
}

// each calls f for each entry that has been written by now, the oldest segment first,
// until it returns false.
func (l *log) each(f func(entry) bool) {
	defer l.done()
	for _, s := range l.read() {
		if !s.each(f) {
			return
		}
	}
}

// size is how many bytes the log takes.
func (l *log) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes + int(l.lastBytes.Load())
}

// each calls f for each entry that has been written by now, until it returns false.
func (s *segment) each(f func(entry) bool) bool {
	data := s.data[:s.shown.Load()]
	for at := 0; at < len(data); {
		e := entryAt(data, at)
		if !f(e) {
			return false
		}
		at += len(e)
	}
	return true
}
