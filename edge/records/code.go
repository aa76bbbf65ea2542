package records

import (
	"encoding/binary"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
)

// Bounds of one record.
const (
	mostBytes  = 4 << 10 // of a record; its names come on top
	mostString = 1 << 10 // bytes of a string in it
	mostList   = 64      // elements of a list in it
)

// headBytes are the length of a record and its kind and time, which stand first.
const headBytes = 4 + 1 + 8

// kinds of records, as they stand in the log.
const (
	kindAttempt byte = iota + 1
	kindMoved
	kindBound
	kindUnknown
	kindEvicted
	// kindKept is added to an attempt that was written again, because its pod waits
	// and the log was full.
	kindKept byte = 1 << 7
)

// encoder writes a record into a buffer.
type encoder struct {
	b   []byte
	cut bool
}

func (e *encoder) begin(kind byte, now int64, uid string, namespace, name string) {
	b := append(e.b[:0], 0, 0, 0, 0, kind)
	b = appendString(appendBits(b, now), uid)
	if length := len(namespace) + 1 + len(name); length <= mostString {
		b = appendLength(b, length)
		b = append(append(append(b, namespace...), '/'), name...)
	} else {
		b = appendString(b, namespace+"/"+name)
	}
	e.b = b
}

func (e *encoder) beginPod(kind byte, now int64, p *object.Pod) {
	e.begin(kind, now, string(p.UID), p.Namespace, p.Name)
}

// end sets the length.
func (e *encoder) end() []byte {
	binary.LittleEndian.PutUint32(e.b, uint32(len(e.b))) // #nosec G115 -- at most mostBytes
	return e.b
}

func (e *encoder) str(s string) { e.b = appendString(e.b, s) }

func (e *encoder) number(n int64) { e.b = appendNumber(e.b, n) }

func (e *encoder) time(t time.Time) { e.b = appendBits(e.b, nanoseconds(t)) }

func (e *encoder) name(n types.NamespacedName) { e.str(n.String()) }

func appendNumber(b []byte, n int64) []byte {
	if n >= 0 && n < 1<<6 { // most are: the same byte, faster
		return append(b, byte(n<<1))
	}
	return binary.AppendVarint(b, n)
}

// appendBits writes a number that is mostly large.
func appendBits(b []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(b, uint64(n)) // #nosec G115 -- bits
}

// nanoseconds of a time, which may be zero.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func appendString(b []byte, s string) []byte {
	if len(s) > mostString {
		s = s[:mostString]
	}
	return append(appendLength(b, len(s)), s...)
}

func appendLength(b []byte, n int) []byte {
	if n < 1<<7 { // the same byte, faster
		return append(b, byte(n))
	}
	return binary.AppendUvarint(b, uint64(n)) // #nosec G115 -- of a string
}

// list writes as many elements as there is room for, and then their number.
func (e *encoder) list(n int, element func(i int)) {
	for i := range n {
		start := len(e.b)
		e.b = append(e.b, 1)
		element(i)
		if len(e.b) > mostBytes-mostString || i >= mostList {
			e.b, e.cut = e.b[:start], true
			break
		}
	}
	e.b = append(e.b, 0)
}

func (e *encoder) strs(list []string) {
	e.list(len(list), func(i int) { e.str(list[i]) })
}

// decoder reads a record. What it reads was written by an encoder.
type decoder struct{ b []byte }

func (d *decoder) number() int64 {
	n, size := binary.Varint(d.b)
	d.b = d.b[size:]
	return n
}

func (d *decoder) time() *time.Time {
	n := int64(binary.LittleEndian.Uint64(d.b)) // #nosec G115 -- bits
	if d.b = d.b[8:]; n == 0 {
		return nil
	}
	t := timeOf(n)
	return &t
}

func (d *decoder) bytes() []byte {
	n, size := binary.Uvarint(d.b)
	s := d.b[size : size+int(n)] // #nosec G115 -- at most mostString
	d.b = d.b[size+int(n):]      // #nosec G115 -- the same
	return s
}

func (d *decoder) str() string { return string(d.bytes()) }

func (d *decoder) flag() bool {
	f := d.b[0] != 0
	d.b = d.b[1:]
	return f
}

func (d *decoder) strs() (list []string) {
	for d.flag() {
		list = append(list, d.str())
	}
	return list
}

// results in the order of their codes.
var results = [...]decision.Result{decision.ResultScheduled, decision.ResultUnschedulable, decision.ResultPreempting,
	decision.ResultGated, decision.ResultWaiting, decision.ResultError}

func timeOf(nanoseconds int64) time.Time { return time.Unix(0, nanoseconds).UTC() }
