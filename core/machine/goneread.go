package machine

// goneByRead is about a pod that a read has shown to be gone, until the watch tells
// that it is. A watch that lags still shows it there: either that is older than the
// read, or the deletion was undone because etcd was restored from a backup. Another
// read decides.
type goneByRead struct {
	lost    LostReply // counts the reads that failed
	reading bool
	// shown: the API has shown the pod there since the read was sent.
	shown bool
}

// exists reports whether a read has found the pod, and that it takes room or waits.
func (e *ReadReply) exists() bool { return e.Pod != nil && e.Pod.UID == e.UID && !e.Pod.Terminal }

// endReadPod ends a pod that a read has shown to be gone. It stays known by its name
// until the watch tells, as little else of it.
func (m *Machine) endReadPod(ps *podState) {
	m.endPod(ps)
	ps.goneByRead = &goneByRead{}
	m.pods[ps.pod.UID], m.names[ps.pod.NamespacedName()] = ps, ps
}

// shownAfterGone takes in that the API shows a pod there of which a read said that it
// is gone.
func (m *Machine) shownAfterGone(ps *podState) {
	g := ps.goneByRead
	if g.shown = true; !g.reading {
		m.readGoneAgain(ps)
	}
}

func (m *Machine) readGoneAgain(ps *podState) {
	g := ps.goneByRead
	g.reading, g.shown = true, false
	m.emit(ReadPod{Pod: ps.pod, Delay: g.lost.Delay()})
}

func (m *Machine) goneReplied(ps *podState, e ReadReply) {
	g := ps.goneByRead
	g.reading = false
	switch {
	case e.Err != nil:
		g.lost.ReadFailed()
		m.readGoneAgain(ps)
	case e.exists():
		m.endPod(ps)
		m.podSet(e.Pod)
	case g.shown:
		g.lost = LostReply{}
		m.readGoneAgain(ps)
	default:
		g.lost = LostReply{}
	}
}
