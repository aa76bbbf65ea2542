package machine

import (
	"time"

	"github.com/berth-scheduler/berth/core/object"
)

// unconfirmedBinding is the state of a pod that counts as bound, while the API may show
// it unbound. Either that state is older than the binding, or the binding was undone
// because etcd was restored from a backup. A read of the pod decides.
type unconfirmedBinding struct {
	lost LostReply // counts the reads that failed
	// confirmed is set if the watch has shown the pod bound since the read was sent.
	confirmed bool
}

// reads emits reads of pods about which replies and the watch disagree, or leave a doubt.
type reads struct{ *step }

// recheck makes a placed pod be read from the API, unless it already is: at once, or
// when its binding cycle has ended.
func (r *reads) recheck(ps *podState) {
	if ps.unconfirmed == nil {
		ps.unconfirmed = &unconfirmedBinding{}
		if ps.binding == nil {
			r.sendUnconfirmed(ps)
		}
	}
}

// sendUnconfirmed emits the read of a pod whose binding is unconfirmed, if the watch
// has not confirmed it meanwhile.
func (r *reads) sendUnconfirmed(ps *podState) {
	switch d := ps.unconfirmed; {
	case d == nil:
	case d.confirmed:
		ps.unconfirmed = nil
	default:
		r.emit(ReadPod{Pod: r.table.Pod(ps.pod.UID).Pod, Delay: d.lost.Delay()})
	}
}

// readReplied handles the reply to a read of a pod, by what the read was sent for: a group's
// status, a pod that a read showed gone, an unconfirmed binding, or a binding whose reply was
// lost. A read that failed, or that was under way when etcd was restored, is sent again.
//
// For a lost reply: a pod bound to our node counts as bound. If it is bound elsewhere or gone,
// the assumption ends. If it is unbound, the same binding is sent again, or counts as refused if
// the API refused it when resent, or after maxReads reads. While the node is gone it is only read
// again.
func (w *podWatch) readReplied(e ReadReply) {
	if w.statuses.replied(e) {
		return
	}
	ps := w.pods.byUID[e.UID]
	if ps == nil {
		return
	}
	if ps.staleRead {
		ps.staleRead = false
		w.readAgain(ps)
		return
	}
	if ps.goneByRead != nil {
		w.goneReplied(ps, e)
		return
	}
	c := ps.binding
	if c == nil || c.phase != readSent {
		w.recheckReplied(ps, e)
		return
	}
	if e.Err != nil {
		c.lost.ReadFailed()
		w.bindings.readPod(c) // without evidence the room stays taken
		return
	}
	c.lost.NotShown()
	switch {
	case !e.exists():
		w.endReadPod(ps)
	case e.Pod.NodeName != "":
		w.podSet(e.Pod)
	default:
		w.bindings.notBound(c)
	}
}

// recheckReplied handles the reply to a read of a pod whose binding is unconfirmed. It does nothing
// if the watch has confirmed the binding meanwhile. A pod that is unbound is queued anew, and its
// binding counts as undone.
func (w *podWatch) recheckReplied(ps *podState, e ReadReply) {
	d := ps.unconfirmed
	if d == nil || ps.binding != nil {
		return
	}
	if e.Err != nil && !d.confirmed {
		d.lost.ReadFailed()
		w.reads.sendUnconfirmed(ps)
		return
	}
	ps.unconfirmed = nil
	switch {
	case d.confirmed:
	case !e.exists():
		w.endReadPod(ps)
	case e.Pod.NodeName != "":
		w.podSet(e.Pod)
	default:
		w.undone++
		w.endPod(ps)
		w.podSet(e.Pod)
	}
}

// rewound handles a restore of etcd to an older state: everything known only from
// replies to writes is read again, since the new lists need not contradict it. Reads
// under way are repeated.
func (w *podWatch) rewound() {
	w.table.Objects().ForgetReplies()
	clear(w.groups.asked)
	w.statuses.rewound()
	for _, ps := range w.pods.sorted() {
		ps.staleRead = ps.staleRead || ps.reading()
		if ps.unconfirmed != nil {
			ps.unconfirmed.confirmed = false
		}
		if ps.assumed {
			w.reads.recheck(ps)
		}
		if ps.entry != nil && ps.pod.Scheduled.Status == "" { // it may be on its way
			w.stateAgain(ps.pod)
		}
	}
	w.evictions.rewind()
}

// stateAgain lets the group of the pod be tried again, after its backoff, as etcd was restored and
// the API shows no condition of the pod any more. Only an attempt of the group can tell what keeps
// the pod waiting. It does nothing for a pod without a group.
func (w *podWatch) stateAgain(p *object.Pod) {
	if w.groups.has(p) {
		w.queue.PodGroupChanged(w.now, p.GroupKey())
	}
}

// reading reports whether a read of the pod is under way.
func (ps *podState) reading() bool {
	switch {
	case ps.goneByRead != nil:
		return ps.goneByRead.reading
	case ps.binding != nil:
		return ps.binding.phase == readSent
	}
	return ps.unconfirmed != nil
}

// readAgain repeats the read of the pod whose reply is awaited; it does nothing if there is none.
func (w *podWatch) readAgain(ps *podState) {
	switch {
	case !ps.reading():
	case ps.goneByRead != nil:
		w.reads.readGoneAgain(ps)
	case ps.binding != nil:
		w.bindings.readPod(ps.binding)
	default:
		w.reads.sendUnconfirmed(ps)
	}
}

// goneByRead is the state of a pod that a read showed to be deleted, before the watch
// does. If the watch still shows the pod, it lags, or the deletion was undone because
// etcd was restored from a backup. Another read decides.
type goneByRead struct {
	lost    LostReply // counts the reads that failed
	reading bool      // a read is under way
	// shown is set if the watch has shown the pod since the read was sent.
	shown bool
}

// exists reports whether the read found the pod, with the same UID and not terminal.
func (e *ReadReply) exists() bool { return e.Pod != nil && e.Pod.UID == e.UID && !e.Pod.Terminal }

// endReadPod ends everything under way for a pod that a read showed to be deleted. The pod
// stays known, by UID and by name, until the watch shows the deletion or another read finds
// it.
func (w *podWatch) endReadPod(ps *podState) {
	w.endPod(ps)
	ps.goneByRead = &goneByRead{}
	w.pods.byUID[ps.pod.UID], w.pods.byName[ps.pod.NamespacedName()] = ps, ps
}

// shownAfterGone handles a pod that the watch shows although a read found it deleted. It sends
// another read, unless one is under way. The read decides whether the watch lags or the pod is
// there again.
func (r *reads) shownAfterGone(ps *podState) {
	g := ps.goneByRead
	if g.shown = true; !g.reading {
		r.readGoneAgain(ps)
	}
}

// readGoneAgain sends another read of a pod that a read showed to be deleted, because the
// watch shows it, or the read failed. It waits longer after each failure.
func (r *reads) readGoneAgain(ps *podState) {
	g := ps.goneByRead
	g.reading, g.shown = true, false
	r.emit(ReadPod{Pod: ps.pod, Delay: g.lost.Delay()})
}

// goneReplied handles the reply to a read of a pod that an earlier read had shown to be deleted. If
// the pod exists after all, it is handled as a new pod. If it is gone but the watch has shown it
// since the read was sent, it is read again.
func (w *podWatch) goneReplied(ps *podState, e ReadReply) {
	g := ps.goneByRead
	g.reading = false
	switch {
	case e.Err != nil:
		g.lost.ReadFailed()
		w.reads.readGoneAgain(ps)
	case e.exists():
		w.endPod(ps)
		w.podSet(e.Pod)
	case g.shown:
		g.lost = LostReply{}
		w.reads.readGoneAgain(ps)
	default:
		g.lost = LostReply{}
	}
}

// maxReads is how many reads, each followed by another try, may show that a request
// whose reply was lost was not carried out, before it counts as refused.
const maxReads = 8

// LostReply is the state of a request whose reply was lost: a binding or a plugin's
// write. The object is read; if the read does not show the request's effect, the same
// request is sent again, so that an earlier one under way can only do the same. The
// zero value is a request that was sent once.
type LostReply struct {
	// reads counts the reads that did not show the request's effect, failed those that
	// failed since.
	reads, failed int
	// Refusal is why the API refused the request when it was sent again. The request
	// before, whose reply was lost, may still have been carried out.
	Refusal error
}

// Delay returns how long to wait before the next read: 0 before the first, then 1 s, doubled with
// each read up to 10 s.
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

// Reads returns how many reads did not show the request's effect.
func (l *LostReply) Reads() int { return l.reads }

// Exhausted reports whether maxReads reads did not show the request's effect, so that
// it counts as refused.
func (l *LostReply) Exhausted() bool { return l.reads >= maxReads }
