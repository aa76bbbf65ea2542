package shadow

import (
	"time"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

const (
	// window is how far apart the watch may show two bindings that were decided on in
	// the other order.
	window = time.Second
	// mostHeld bounds the differences that are kept at a time. More are told of as
	// they come.
	mostHeld = 1024
	// mostKept bounds the bindings, and the pods that are gone, that are remembered.
	mostKept = 4096
)

// order is a pod's place in the order of decisions: by priority, then by arrival.
type order struct {
	priority int32
	arrival  uint64
}

func (o order) after(p order) bool {
	if o.priority != p.priority {
		return o.priority < p.priority
	}
	return o.arrival > p.arrival
}

// placement is a pod on a node, and when the watch showed it there, or gone.
type placement struct {
	pod   *object.Pod
	node  string
	seen  time.Time
	order order
}

// difference is a choice of the live scheduler that Berth would not have made.
type difference struct {
	placement
	pod        *object.Pod // before it was bound
	waited     time.Duration
	comparison machine.Comparison
	verdict    verdict
}

// hold keeps a difference until the bindings around it are known.
func (s *Shadow) hold(d difference) {
	if len(s.held) >= mostHeld {
		s.tell(&d)
		return
	}
	s.held = append(s.held, d)
}

// settle tells of the differences around which all bindings are known.
func (s *Shadow) settle(now time.Time) {
	n := 0
	for n < len(s.held) && now.Sub(s.held[n].seen) >= window {
		d := &s.held[n]
		if s.wasBest(d) {
			d.verdict.Result = Stale
		}
		s.tell(d)
		n++
	}
	s.held = append(s.held[:0], s.held[n:]...)
	s.bound, s.gone = since(s.bound, now), since(s.gone, now)
}

// since drops what is too old to matter.
func since(list []placement, now time.Time) []placement {
	n := max(0, len(list)-mostKept)
	for n < len(list) && now.Sub(list[n].seen) > 2*window {
		n++
	}
	return list[n:]
}

// wasBest tells whether the node was among the best without the pods that were decided
// on later; and if not, with the pods that have gone since.
func (s *Shadow) wasBest(d *difference) bool {
	undo := s.without(d)
	defer undo()
	if _, v := s.judge(d.pod, d.node); !v.Result.differs() {
		return true
	}
	back, any := s.withGone(d)
	defer back()
	if !any {
		return false
	}
	_, v := s.judge(d.pod, d.node)
	return !v.Result.differs()
}

// without takes the pod, and those decided on later, off their nodes. It returns what
// puts them back.
func (s *Shadow) without(d *difference) (undo func()) {
	t := s.machine.Table()
	var taken []placement
	take := func(b *placement) {
		if pl := t.Pod(b.pod.UID); pl != nil {
			taken = append(taken, placement{pod: pl.Pod, node: t.Name(pl.Row)})
			t.Remove(b.pod.UID)
		}
	}
	take(&d.placement)
	for i := range s.bound {
		if b := &s.bound[i]; b.order.after(d.order) && d.seen.Sub(b.seen).Abs() <= window {
			take(b)
		}
	}
	return func() {
		for i := len(taken) - 1; i >= 0; i-- {
			t.Place(taken[i].pod, taken[i].node)
		}
	}
}

// withGone puts back the pods that went while the difference was kept, or just before.
// It returns what takes them away, and whether there are any.
func (s *Shadow) withGone(d *difference) (undo func(), any bool) {
	t := s.machine.Table()
	var put []placement
	for i := range s.gone {
		if g := &s.gone[i]; t.Pod(g.pod.UID) == nil && d.seen.Sub(g.seen) <= window {
			t.Place(g.pod, g.node)
			put = append(put, *g)
		}
	}
	return func() {
		for i := len(put) - 1; i >= 0; i-- {
			t.Remove(put[i].pod.UID)
		}
	}, len(put) > 0
}
