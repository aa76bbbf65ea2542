package machine

// doubt is about a pod that is held for bound, while the API may show it
// unbound: either that is older than the binding, or the binding was undone
// because etcd was restored from a backup. A read of the pod decides.
type doubt struct {
	lost LostReply // counts the reads that failed
	// confirmed: the API has shown the pod bound since the read was sent.
	confirmed bool
}

// doubtBinding has a placed pod read. One that is in a binding cycle is read when
// that has ended.
func (m *Machine) doubtBinding(ps *podState) {
	if ps.doubt == nil {
		ps.doubt = &doubt{}
		if ps.binding == nil {
			m.readDoubted(ps)
		}
	}
}

func (m *Machine) readDoubted(ps *podState) {
	switch d := ps.doubt; {
	case d == nil:
	case d.confirmed:
		ps.doubt = nil
	default:
		m.emit(ReadPod{Pod: m.table.Pod(ps.pod.UID).Pod, Delay: d.lost.Delay()})
	}
}

// doubtedReplied takes in what the read says. A pod that is unbound is new to us.
func (m *Machine) doubtedReplied(ps *podState, e ReadReply) {
	d := ps.doubt
	if d == nil || ps.binding != nil {
		return
	}
	if e.Err != nil && !d.confirmed {
		d.lost.ReadFailed()
		m.readDoubted(ps)
		return
	}
	ps.doubt = nil
	switch {
	case d.confirmed:
	case e.Pod == nil || e.Pod.UID != e.UID:
		m.endPod(ps)
	case e.Pod.NodeName != "":
		m.podSet(e.Pod)
	default:
		m.undone++
		m.endPod(ps)
		m.podSet(e.Pod)
	}
}

// rewound doubts what only replies have told: the lists, which are taken in
// again, need not contradict it. Evictions are asked for again.
func (m *Machine) rewound() {
	m.table.ForgetReplies()
	states := m.sortedStates()
	for _, ps := range states {
		if ps.assumed {
			m.doubtBinding(ps)
		}
	}
	for _, ps := range states {
		if ps.eviction != nil {
			ps.eviction.replied = false
		}
	}
	m.evictAgain(states)
}
