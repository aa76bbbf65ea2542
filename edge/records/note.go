package records

import (
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// Notes are written down when there are so many, and when somebody reads. There are
// never more than mostNotes and those of one step.
const (
	batchNotes = 256
	mostNotes  = 4096
)

// batch is notes in order.
type batch struct {
	notes    []note
	attempts []decision.Decision // of the notes that tell of one
	moves    []move              // the same
}

// note is what an entry of the log is made of.
type note struct {
	kind      byte
	forgets   bool // the pod does not wait any more
	now       int64
	queued    time.Time   // of an attempt
	pod       *object.Pod // of all but attempts and moves
	text      string
	preemptor *object.Pod
}

func (b *batch) add(n note) { b.notes = append(b.notes, n) }

func (b *batch) move(now int64, m move) {
	b.add(note{kind: kindMoved, now: now, forgets: m.to == queue.Nowhere})
	b.moves = append(b.moves, m)
}

// reset empties the batch. What one that grew took is given back.
func (b *batch) reset() {
	if cap(b.notes) > 2*batchNotes {
		*b = batch{}
		return
	}
	clear(b.notes)
	clear(b.attempts)
	clear(b.moves)
	b.notes, b.attempts, b.moves = b.notes[:0], b.attempts[:0], b.moves[:0]
}

// flush writes down what is noted.
func (r *Recorder) flush() {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.noting.Lock()
	b := r.notes
	r.notes, r.handed = r.spare, false
	r.noting.Unlock()
	attempts, moves := b.attempts, b.moves
	for i := range b.notes {
		switch n := &b.notes[i]; n.kind {
		case kindAttempt:
			r.writeAttempt(n, &attempts[0])
			attempts = attempts[1:]
		case kindMoved:
			r.writeMove(n, &moves[0])
			moves = moves[1:]
		default:
			r.write(n)
		}
	}
	r.log.show()
	b.reset()
	r.spare = b
}

func (r *Recorder) writeAttempt(n *note, d *decision.Decision) {
	at := r.log.append(r.encoder.attempt(n.now, d, n.queued))
	switch {
	case d.Result != decision.ResultScheduled:
		r.log.setLast(d.UID, at)
	case d.Attempt > 1 || len(r.log.last) > 0:
		r.log.dropLast(d.UID)
	}
}

func (r *Recorder) writeMove(n *note, m *move) {
	if n.forgets {
		r.forget(m.pod)
	}
	r.log.append(r.encoder.move(n.now, m))
}

func (r *Recorder) write(n *note) {
	e := &r.encoder
	e.beginPod(n.kind, n.now, n.pod)
	switch n.kind {
	case kindUnknown:
		e.str(n.text)
	case kindEvicted:
		e.str(n.text)
		e.str(n.preemptor.Key())
	}
	r.log.append(e.end())
	if n.forgets {
		r.forget(n.pod)
	}
}

// forget lets the last attempt of a pod go that does not wait any more.
func (r *Recorder) forget(p *object.Pod) {
	if len(r.log.last) > 0 {
		r.log.dropLast(p.UID)
	}
}
