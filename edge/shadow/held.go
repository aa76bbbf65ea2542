package shadow

import (
	"cmp"
	"slices"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

const (
	// window is how late the watch may show a binding: others that were decided on
	// after it may have been shown so long before.
	window = 10 * time.Second
	// reportEvery is how often differences are looked at again.
	reportEvery = time.Second
	// mostHeld bounds the differences that are kept at a time. More are reported as
	// they come.
	mostHeld = 4096
	// mostKept bounds the pods that are remembered of those that came to a node, or
	// went, of late.
	mostKept = 16384
)

// order is a pod's place in the order of decisions: by priority, then by arrival.
type order struct {
	priority int32
	arrival  uint64 // 0: it was bound long ago
}

func (o order) compare(p order) int {
	if o.arrival == 0 || p.arrival == 0 {
		return cmp.Compare(o.arrival, p.arrival)
	}
	return cmp.Or(cmp.Compare(p.priority, o.priority), cmp.Compare(o.arrival, p.arrival))
}

// placement is a pod that came to a node, or went, of late.
type placement struct {
	pod   *object.Pod
	node  string
	order order
	seen  time.Time // when the watch showed it on the node
	gone  time.Time // when the watch showed it gone; zero: it is there
	there bool      // it takes room at the moment
}

// lastChange is when the watch showed something of it.
func (p *placement) lastChange() time.Time {
	if p.gone.IsZero() {
		return p.seen
	}
	return p.gone
}

// difference is a choice of the live scheduler that Berth would not have made.
type difference struct {
	pod        *object.Pod // before it was bound
	node       string
	order      order
	seen       time.Time
	waited     time.Duration
	comparison machine.Comparison
	finding    finding
}

// hold keeps a difference until the bindings around it are known.
func (s *Shadow) hold(d difference) {
	if len(s.held) >= mostHeld {
		s.report(&d)
		return
	}
	s.held = append(s.held, d)
}

// reportDue reports the differences around which the bindings are known.
func (s *Shadow) reportDue(now time.Time) {
	if now.Sub(s.lastReport) < reportEvery {
		return
	}
	s.lastReport = now
	n := 0
	for n < len(s.held) && now.Sub(s.held[n].seen) >= window {
		n++
	}
	due := slices.Clone(s.held[:n])
	s.held = slices.Delete(s.held, 0, n)
	s.findStale(due)
	for i := range due {
		s.report(&due[i])
	}
	s.forgetOld(now)
}

// findStale finds the differences that are none in the order of decisions.
func (s *Shadow) findStale(due []difference) {
	inOrder := make([]*difference, len(due))
	for i := range due {
		inOrder[i] = &due[i]
	}
	slices.SortFunc(inOrder, func(a, b *difference) int { return a.order.compare(b.order) })
	t := s.machine.Table()
	for _, p := range s.recent {
		if pl := t.Pod(p.pod.UID); pl != nil {
			p.pod, p.node, p.there = pl.Pod, t.Name(pl.Row), true
		} else {
			p.there = false
		}
	}
	defer s.arrange(func(p *placement) bool { return p.gone.IsZero() })
	for _, lag := range lags { // all differences for each: from one to the next little moves
		for _, d := range inOrder {
			if d.finding.Result != Stale {
				s.reclassify(d, lag)
			}
		}
		if !slices.ContainsFunc(s.recent, func(p *placement) bool { return !p.gone.IsZero() }) {
			return // longer lags show the same
		}
	}
}

// lags are how long before the binding was shown the live scheduler may have decided.
// Pods that have gone since were there.
var lags = []time.Duration{0, window / 20, window / 5, window / 2, window}

// reclassify classifies the choice as of so long before, with the pods there that were
// decided on earlier. What the sample explains then, it explains.
func (s *Shadow) reclassify(d *difference, lag time.Duration) {
	s.arrange(func(p *placement) bool {
		return p.order.compare(d.order) < 0 && (p.gone.IsZero() || p.gone.After(d.seen.Add(-lag)))
	})
	switch c, f := s.classify(d.pod, d.node); {
	case !f.Result.differs():
		d.finding.Result = Stale
	case f.Result == Sampled && d.finding.Result != Sampled:
		d.comparison, d.finding = c, f
	}
}

// arrange has the pods on their nodes that are to be there, and the others not.
func (s *Shadow) arrange(there func(*placement) bool) {
	t := s.machine.Table()
	for _, p := range s.recent {
		switch want := there(p); {
		case want == p.there:
			continue
		case want:
			t.AddPod(p.pod, p.node)
		default:
			t.RemovePod(p.pod.UID)
		}
		p.there = !p.there
	}
}

// forgetOld drops what is too old to matter.
func (s *Shadow) forgetOld(now time.Time) {
	excess := len(s.recent) - mostKept
	s.recent = slices.DeleteFunc(s.recent, func(p *placement) bool {
		excess--
		if old := now.Sub(p.lastChange()) > 2*window; !old && excess < 0 {
			return false
		}
		delete(s.placements, p.pod.UID)
		return true
	})
}

// placed remembers that the watch showed the pod on a node.
func (s *Shadow) placed(now time.Time, p *object.Pod, o order) {
	s.remember(&placement{pod: p, node: p.NodeName, order: o, seen: now})
}

// wentAway remembers that a pod on a node is gone.
func (s *Shadow) wentAway(now time.Time, p *object.Pod, node string) {
	if known := s.placements[p.UID]; known != nil {
		known.gone = now
		return
	}
	s.remember(&placement{pod: p, node: node, gone: now})
}

func (s *Shadow) remember(p *placement) {
	s.recent = append(s.recent, p)
	s.placements[p.pod.UID] = p
}
