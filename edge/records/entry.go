package records

import (
	"encoding/binary"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/queue"
)

// entry is a record as it stands in the log. It is never changed.
type entry []byte

func (e entry) kind() byte        { return e[4] &^ kindKept }
func (e entry) kept() bool        { return e[4]&kindKept != 0 }
func (e entry) nanosecond() int64 { return int64(binary.LittleEndian.Uint64(e[5:])) } // #nosec G115 -- bits

// uid and pod are the entry's own bytes.
func (e entry) uid() []byte {
	d := decoder{e[headBytes:]}
	return d.bytes()
}

func (e entry) pod() []byte {
	d := decoder{e[headBytes:]}
	d.bytes()
	return d.bytes()
}

// attempt writes the record of an attempt.
func (e *encoder) attempt(now int64, r *decision.Decision, queued int64) []byte {
	e.cut = false
	e.begin(kindAttempt, now, string(r.UID), r.Pod.Namespace, r.Pod.Name)
	b := append(e.b, byte(slices.Index(results[:], r.Result))) // a local: this is the path of every pod
	b = appendNumber(appendBits(b, queued), int64(r.Attempt))
	b = appendString(appendString(b, r.Profile), r.Node)
	b = appendNumber(appendNumber(b, r.Score), int64(r.Ties))
	e.b = appendNumber(appendNumber(b, int64(r.NodesTotal)), int64(r.NodesFeasible))
	if r.Result == decision.ResultScheduled {
		return e.end()
	}
	e.str(explain.Message(r))
	e.str(r.NominatedNode)
	e.strs(r.RejectedBy)
	e.strs(r.PendingBy)
	e.list(len(r.Tallies), func(i int) {
		t := &r.Tallies[i]
		e.str(t.Plugin)
		e.b = append(e.b, byte(t.Code))
		e.number(int64(t.Nodes))
		e.strs(t.Reasons)
	})
	e.list(len(r.Victims), func(i int) { e.name(r.Victims[i]) })
	if e.cut {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
	return e.end()
}

// waits tells of an attempt whether its pod still waits after it.
func (e entry) waits() bool { return results[e.result()] != decision.ResultScheduled }

// result returns the index, in results, of how an attempt ended.
func (e entry) result() byte {
	d := decoder{e[headBytes:]}
	d.bytes()
	d.bytes()
	return d.b[0]
}

// record decodes the entry.
func (e entry) record() Record {
	d := &decoder{e[headBytes:]}
	r := Record{Time: timeOf(e.nanosecond()), UID: d.str(), Pod: d.str()}
	switch e.kind() {
	case kindAttempt:
		r.Type = Attempt
		d.attempt(&r)
	case kindMoved:
		r.Type = Moved
		d.move(&r)
	case kindBound:
		r.Type = Bound
	case kindUnknown:
		r.Type, r.Message = BindingUnknown, d.str()
	case kindEvicted:
		r.Type, r.Node, r.For = Evicted, d.str(), d.str()
	}
	return r
}

func (d *decoder) attempt(r *Record) {
	r.Result = string(results[d.b[0]])
	d.b = d.b[1:]
	r.Queued = d.time()
	r.Attempt = int(d.number())
	r.Profile, r.Node = d.str(), d.str()
	r.Score, r.Ties = d.number(), int(d.number())
	r.NodesTotal, r.NodesFeasible = int(d.number()), int(d.number())
	if len(d.b) == 0 {
		return
	}
	r.Message, r.NominatedNode = d.str(), d.str()
	r.RejectedBy, r.PendingBy = d.strs(), d.strs()
	for d.flag() {
		b := Blocker{Plugin: d.str(), Code: decision.Code(d.b[0]).String()}
		d.b = d.b[1:]
		b.Nodes, b.Reasons = int(d.number()), append([]string{}, d.strs()...)
		r.Blockers = append(r.Blockers, b)
	}
	r.Victims = d.strs()
	r.Cut = d.flag()
}

// move writes the record of a move.
func (e *encoder) move(now int64, m *move) []byte {
	e.beginPod(kindMoved, now, m.pod)
	e.b = append(e.b, byte(m.from), byte(m.to))
	e.str(m.event)
	e.time(m.until)
	e.time(m.queued)
	if m.gate != nil {
		e.str(m.gate.Plugin)
		e.str(explain.Message(&decision.Decision{Result: decision.ResultGated, PreEnqueueStatus: m.gate}))
	}
	return e.end()
}

func (d *decoder) move(r *Record) {
	r.From, r.To = queue.Place(d.b[0]).String(), queue.Place(d.b[1]).String()
	d.b = d.b[2:]
	r.Event = d.str()
	r.Until, r.Queued = d.time(), d.time()
	if len(d.b) > 0 {
		r.Plugin, r.Message = d.str(), d.str()
	}
}
