package shadow

import (
	"cmp"
	"slices"
	"time"

	"github.com/berth-scheduler/berth/core/object"
)

const (
	// reviewEvery is how often some of the pods that wait are looked at, and
	// reviewAtOnce how many of them.
	reviewEvery  = time.Second
	reviewAtOnce = 64
	// waitTimeout is how long a pod waits until it is looked at.
	waitTimeout = 10 * time.Second
)

// waiting is a pod that the live scheduler is to place.
type waiting struct {
	pod   *object.Pod
	since time.Time // when the shadow saw it first
	order order
	// fits is since when a node takes it in Berth's view, zero when none does.
	fits time.Time
	told bool
	over bool
}

// reviewWaiting looks at some of the pods that have waited for long, one round after
// the other: would Berth place them, each by itself?
func (s *Shadow) reviewWaiting(now time.Time) {
	if !s.options.Synced() || now.Sub(s.reviewed) < reviewEvery {
		return
	}
	s.reviewed = now
	if len(s.review) == 0 {
		for _, w := range s.waiting { // any order: sorted below
			if now.Sub(w.since) >= waitTimeout {
				s.review = append(s.review, w)
			}
		}
		slices.SortFunc(s.review, func(a, b *waiting) int { return cmp.Compare(b.order.arrival, a.order.arrival) })
	}
	for n := 0; n < reviewAtOnce && len(s.review) > 0; n++ {
		last := len(s.review) - 1
		w := s.review[last]
		s.review[last], s.review = nil, s.review[:last]
		switch {
		case w.over:
		case s.machine.Entry(w.pod.UID) == nil: // it went without a word
			s.endWait(now, w)
		default:
			s.reviewPod(now, w)
		}
	}
}

func (s *Shadow) reviewPod(now time.Time, w *waiting) {
	c := s.machine.Compare(w.pod, "")
	switch fits := c.Node != ""; {
	case fits && w.fits.IsZero():
		w.fits = now
		s.metrics.placeable.WithLabelValues(w.pod.SchedulerName).Inc()
		if !w.told {
			w.told = true
			s.log.info(now, "Live scheduler leaves a pod pending that Berth would place", "pod", w.pod.Key(),
				"berthNode", c.Node, "feasibleNodes", c.NodesFeasible, "waits", now.Sub(w.since).Round(time.Second))
		}
	case !fits && !w.fits.IsZero():
		s.endFit(now, w)
	}
}

// endFit ends the time in which Berth would have placed the pod.
func (s *Shadow) endFit(now time.Time, w *waiting) {
	s.metrics.placeable.WithLabelValues(w.pod.SchedulerName).Dec()
	s.metrics.placeableSeconds.WithLabelValues(w.pod.SchedulerName).Observe(now.Sub(w.fits).Seconds())
	w.fits = time.Time{}
}

// endWait forgets a pod that is bound or gone.
func (s *Shadow) endWait(now time.Time, w *waiting) {
	delete(s.waiting, w.pod.UID)
	w.over = true
	if !w.fits.IsZero() {
		s.endFit(now, w)
	}
}
