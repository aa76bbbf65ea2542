package machine

// unconfirmedBinding is the state of a pod that counts as bound, while the API may show
// it unbound. Either that state is older than the binding, or the binding was undone
// because etcd was restored from a backup. A read of the pod decides.
type unconfirmedBinding struct {
	lost LostReply // counts the reads that failed
	// confirmed: the API has shown the pod bound since the read was sent.
	confirmed bool
}

// reads are consistent reads of pods about which replies and the watch disagree, or leave a
// doubt.
type reads struct{ *step }

// recheck makes a placed pod be read again: at once, or when its binding cycle has
// ended.
func (r *reads) recheck(ps *podState) {
	if ps.unconfirmed == nil {
		ps.unconfirmed = &unconfirmedBinding{}
		if ps.binding == nil {
			r.sendUnconfirmed(ps)
		}
	}
}

func (r *reads) sendUnconfirmed(ps *podState) {
	switch d := ps.unconfirmed; {
	case d == nil:
	case d.confirmed:
		ps.unconfirmed = nil
	default:
		r.emit(ReadPod{Pod: r.table.Pod(ps.pod.UID).Pod, Delay: d.lost.Delay()})
	}
}

// readReplied finds out about a lost binding (LostReply): bound to our node, it
// was done; bound elsewhere or gone, the assumption ends; unbound, the same
// binding is sent again while its node is there, until one is refused and the pod
// still unbound after that.
func (w *podWatch) readReplied(e ReadReply) {
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

// recheckReplied handles the reply to a read of an assumed pod whose binding is in doubt.
// A pod that is unbound begins anew.
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

// rewound marks as doubtful everything known only from replies to writes, and reads it
// again, since etcd went back to an older state. The lists, which are read again, need
// not contradict it. A read under way is repeated.
func (w *podWatch) rewound() {
	w.table.Objects().ForgetReplies()
	clear(w.groups.asked)
	for _, ps := range w.pods.sorted() {
		ps.staleRead = ps.staleRead || ps.reading()
		if ps.unconfirmed != nil {
			ps.unconfirmed.confirmed = false
		}
		if ps.assumed {
			w.reads.recheck(ps)
		}
	}
	w.evictions.rewind()
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

// readAgain repeats the read whose reply is awaited.
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
