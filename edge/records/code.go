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

func (e *encoder) begin(kind byte, now int64, uid string) {
	e.b = append(e.b[:0], 0, 0, 0, 0, kind)
	e.b = binary.LittleEndian.AppendUint64(e.b, uint64(now)) // #nosec G115 -- bits
	e.str(uid)
}

func (e *encoder) beginPod(kind byte, now int64, p *object.Pod) {
	e.begin(kind, now, string(p.UID))
	e.b = binary.AppendUvarint(e.b, uint64(len(p.Namespace)+1+len(p.Name)))
	e.b = append(e.b, p.Namespace...)
	e.b = append(e.b, '/')
	e.b = append(e.b, p.Name...)
}

// end sets the length.
func (e *encoder) end() []byte {
	binary.LittleEndian.PutUint32(e.b, uint32(len(e.b))) // #nosec G115 -- at most mostBytes
	return e.b
}

func (e *encoder) number(n int64) { e.b = binary.AppendVarint(e.b, n) }

// time writes a time, which may be zero.
func (e *encoder) time(t time.Time) {
	if t.IsZero() {
		e.number(0)
		return
	}
	e.number(t.UnixNano())
}

// name writes namespace/name as str does.
func (e *encoder) name(n types.NamespacedName) {
	length := len(n.Namespace) + 1 + len(n.Name)
	if length > mostString {
		e.str(n.String())
		return
	}
	e.b = binary.AppendUvarint(e.b, uint64(length))
	e.b = append(append(append(e.b, n.Namespace...), '/'), n.Name...)
}

func (e *encoder) str(s string) {
	if len(s) > mostString {
		s = s[:mostString]
	}
	e.b = binary.AppendUvarint(e.b, uint64(len(s)))
	e.b = append(e.b, s...)
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
	n := d.number()
	if n == 0 {
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
var results = []decision.Result{decision.ResultScheduled, decision.ResultUnschedulable, decision.ResultPreempting,
	decision.ResultGated, decision.ResultWaiting, decision.ResultError}

func timeOf(nanoseconds int64) time.Time { return time.Unix(0, nanoseconds).UTC() }
