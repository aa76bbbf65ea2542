package records

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/loop"
)

// Recorder writes records. Watch and Observe belong to the loop's goroutine; any
// goroutine may read.
type Recorder struct {
	log     *log
	encoder encoder
	// notes are what was observed and is not yet in the log.
	notes []note
	// Of the step at hand: the pod that was popped, and since when it was in the queue;
	// the first pod that left the queue; all other moves, in order.
	popped *object.Pod
	queued time.Time
	left   *object.Pod
	from   queue.Place // that it left
	moves  []move
	// stayEnd tells until when a pod stays where it is in the queue.
	stayEnd func(*queue.Entry) time.Time

	namespaces namespaces
	others     others
}

// move is a move of a pod in the queue, as it was when it happened.
type move struct {
	pod      *object.Pod
	from, to queue.Place
	event    string
	queued   time.Time // when the pod came to the queue, of one that was popped
	until    time.Time
	gate     *decision.Status
}

// keptMoves is the largest room for moves of one step that is kept for the next.
const keptMoves = 1024

// New returns a recorder that takes at most that many bytes, and no less than
// LeastBytes.
func New(limit int) *Recorder {
	return &Recorder{log: newLog(limit), namespaces: namespaces{goneAt: map[string]uint64{}}}
}

// Watch has the machine's queue tell the recorder of its moves, before the first step.
func (r *Recorder) Watch(m *machine.Machine) {
	r.stayEnd = m.Queue().StayEnd
	r.others.profiles = map[string]bool{}
	for _, name := range m.Profiles() {
		r.others.profiles[name] = true
	}
	m.Listen(&queue.Listener{Moved: r.moved})
}

// moved takes in a move in the queue. Observe writes it down, at the end of the step.
// That a pod becomes active when it enters the queue is not worth a record of its own:
// the record of its attempt tells since when it was there.
func (r *Recorder) moved(e *queue.Entry, from queue.Place, event string) {
	to := e.Place()
	switch {
	case to == from, from == queue.Nowhere && to == queue.Active:
		return
	case to == queue.InFlight && r.popped == nil:
		r.popped, r.queued = e.Pod, e.Timestamp
		return
	case to == queue.Nowhere && r.left == nil:
		r.left, r.from = e.Pod, from
		return
	}
	m := move{pod: e.Pod, from: from, to: to, event: event}
	switch to {
	case queue.Gated:
		m.gate, m.until = e.State().PreEnqueueStatus, r.stayEnd(e)
	case queue.Backoff, queue.ErrorBackoff, queue.Unschedulable:
		m.until = r.stayEnd(e)
	case queue.InFlight:
		m.queued = e.Timestamp
	}
	r.moves = append(r.moves, m)
}

// note is an attempt that placed its pod, or a pod that is bound: what nearly all
// steps come to.
type note struct {
	attempt *decision.Decision // nil: pod is bound
	pod     *object.Pod
	now     int64
	queued  int64 // of an attempt, in nanoseconds; 0: unknown
}

// mostNotes are kept until they are written: to write many at a time costs less than
// half of what it costs to write each after its step, when the processor's caches hold
// the code and the data of the step.
const mostNotes = 64

// Observe takes in what a step did. What the step did to pods that are placed may stand
// in the log only after as many steps, or after Flush.
func (r *Recorder) Observe(s loop.Step) {
	r.namespaces.observe(s.Event)
	r.others.observe(s.Now, s.Event)
	now := s.Now.UnixNano()
	for _, effect := range s.Effects {
		switch e := effect.(type) {
		case machine.AttemptDone:
			r.attempt(now, e.Decision)
		case machine.Evict:
			to := r.next()
			to.beginPod(kindEvicted, now, e.Victim)
			to.str(e.Node)
			to.str(e.Preemptor.Key())
			r.log.append(to.end())
		case machine.PublishEvent:
			if e.Reason == machine.ReasonScheduled {
				r.bound(now, e.Pod)
			}
		case machine.ReadPod:
			if reply, ok := s.Event.(machine.BindReply); ok && reply.Err != nil {
				to := r.next()
				to.beginPod(kindUnknown, now, e.Pod)
				to.str(reply.Err.Error())
				r.log.append(to.end())
			}
		}
	}
	if r.popped != nil || r.left != nil || len(r.moves) > 0 {
		r.writeMoves(now)
	}
	switch {
	case len(r.notes) >= mostNotes:
		r.Flush()
	case len(r.notes) == 0:
		r.log.show()
	}
}

// Flush writes what was observed to the log. It is for the time when the loop has
// nothing to do.
func (r *Recorder) Flush() {
	r.write()
	r.log.show()
}

// write writes the notes to the log.
func (r *Recorder) write() {
	notes := r.notes
	r.notes = notes[:0] // first: should this panic, they are not kept
	for i := range notes {
		n := &notes[i]
		if n.attempt != nil {
			r.placed(n)
			continue
		}
		to := r.room()
		to.beginPod(kindBound, n.now, n.pod)
		r.log.append(to.end())
		r.forget(n.pod.UID)
	}
	clear(notes)
}

func (r *Recorder) placed(n *note) {
	d := n.attempt
	r.log.append(r.room().attempt(n.now, d, n.queued))
	r.forget(d.UID)
}

// next is the encoder of the next entry, after the notes.
func (r *Recorder) next() *encoder {
	r.write()
	return r.room()
}

func (r *Recorder) room() *encoder {
	r.encoder.b = r.log.room()
	return &r.encoder
}

func (r *Recorder) attempt(now int64, d *decision.Decision) {
	queued := int64(0)
	if r.popped != nil && r.popped.UID == d.UID {
		r.popped, queued = nil, nanoseconds(r.queued)
	}
	if d.Result == decision.ResultScheduled {
		r.notes = append(r.notes, note{now: now, attempt: d, queued: queued})
		return
	}
	r.log.setLast(d.UID, r.log.append(r.next().attempt(now, d, queued)))
}

func (r *Recorder) bound(now int64, p *object.Pod) {
	r.notes = append(r.notes, note{now: now, pod: p})
	if r.left != nil && r.left.UID == p.UID {
		r.left = nil
	}
}

// writeMoves writes down the moves that no other record of the step tells of.
func (r *Recorder) writeMoves(now int64) {
	if p := r.popped; p != nil {
		r.popped = nil
		r.move(now, &move{pod: p, from: queue.Active, to: queue.InFlight, event: "PodPopped", queued: r.queued})
	}
	if p := r.left; p != nil {
		r.left = nil
		r.move(now, &move{pod: p, from: r.from, event: "Delete"})
	}
	for i := range r.moves {
		r.move(now, &r.moves[i])
	}
	clear(r.moves)
	if r.moves = r.moves[:0]; cap(r.moves) > keptMoves {
		r.moves = nil
	}
}

func (r *Recorder) move(now int64, m *move) {
	if m.to == queue.Nowhere {
		r.forget(m.pod.UID)
	}
	r.log.append(r.next().move(now, m))
}

// forget lets the last attempt of a pod go that does not wait any more.
func (r *Recorder) forget(uid types.UID) {
	if len(r.log.last) > 0 {
		r.log.dropLast(uid)
	}
}
