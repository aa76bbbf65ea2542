package machine

// goneByRead is the state of a pod that a read showed to be deleted, before the watch
// does. If the watch still shows the pod, it lags, or the deletion was undone because
// etcd was restored from a backup. Another read decides.
type goneByRead struct {
	lost    LostReply // counts the reads that failed
	reading bool
	// shown: the API has shown the pod there since the read was sent.
	shown bool
}

// exists reports whether the read found the pod, and it is not terminal.
func (e *ReadReply) exists() bool { return e.Pod != nil && e.Pod.UID == e.UID && !e.Pod.Terminal }

// endReadPod ends a pod that a read showed to be deleted. Only its name stays known until
// the watch shows the deletion.
func (w *podWatch) endReadPod(ps *podState) {
	w.endPod(ps)
	ps.goneByRead = &goneByRead{}
	w.pods.byUID[ps.pod.UID], w.pods.byName[ps.pod.NamespacedName()] = ps, ps
}

// shownAfterGone handles a pod that the watch shows although a read found it deleted: it
// reads the pod again.
func (r *reads) shownAfterGone(ps *podState) {
	g := ps.goneByRead
	if g.shown = true; !g.reading {
		r.readGoneAgain(ps)
	}
}

// readGoneAgain sends a read of a pod that a read showed to be deleted.
func (r *reads) readGoneAgain(ps *podState) {
	g := ps.goneByRead
	g.reading, g.shown = true, false
	r.emit(ReadPod{Pod: ps.pod, Delay: g.lost.Delay()})
}

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
