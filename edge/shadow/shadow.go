package shadow

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
)

// Options of a Shadow.
type Options struct {
	Logger klog.Logger
	// Config says how many nodes the live scheduler looks at.
	Config *config.Config
	// Register registers the metrics.
	Register func(...basemetrics.Registerable)
	// Synced tells whether the machine knows the cluster. Nothing is compared before.
	Synced func() bool
	// File, when set, gets each difference as a line of JSON.
	File *File
}

// Shadow is a loop.Machine that only watches. It belongs to the loop's goroutine.
type Shadow struct {
	machine *machine.Machine
	options Options
	metrics *metrics
	log     *limitedLog

	choices  map[Choices]int // so far
	arrivals uint64
	waiting  map[types.UID]*waiting
	review   []*waiting // that are still to be looked at in this round
	reviewed time.Time

	recent     []*placement
	placements map[types.UID]*placement // the same
	held       []difference             // the oldest first
	lastReport time.Time
	last       []Record // differences that were reported last, at most mostLast, the oldest first
}

// New returns a shadow around the machine, to whom nobody else may give events.
func New(m *machine.Machine, o Options) *Shadow {
	return &Shadow{machine: m, options: o, metrics: newMetrics(o.Register), log: newLimitedLog(o.Logger), choices: map[Choices]int{},
		waiting: map[types.UID]*waiting{}, placements: map[types.UID]*placement{}}
}

// First is none: no pod is ever scheduled.
func (s *Shadow) First() *object.Pod { return nil }

// Repair has the machine put itself right.
func (s *Shadow) Repair() []machine.Effect {
	s.machine.Repair()
	return nil
}

// NextTimer is when a Tick is due.
func (s *Shadow) NextTimer() (time.Time, bool) {
	next, any := s.machine.NextTimer()
	sooner := func(t time.Time) {
		if !any || t.Before(next) {
			next, any = t, true
		}
	}
	if len(s.held) > 0 {
		sooner(later(s.held[0].seen.Add(window), s.lastReport.Add(reportEvery)))
	}
	if len(s.waiting) > 0 {
		sooner(s.reviewed.Add(reviewEvery))
	}
	return next, any
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Step has the machine take in the event, and compares where it tells of a choice of
// the live scheduler. What the machine would do about the event is not done.
func (s *Shadow) Step(now time.Time, e machine.Event) []machine.Effect {
	s.reportDue(now)
	switch e := e.(type) {
	case machine.PodSet:
		s.podSet(now, e)
	case machine.PodGone:
		s.podGone(now, e)
	case machine.Tick:
		s.machine.Step(now, e)
		s.reviewWaiting(now)
	default:
		s.machine.Step(now, e)
	}
	return nil
}

// podSet compares before the machine knows that the pod is bound.
func (s *Shadow) podSet(now time.Time, e machine.PodSet) {
	p := e.Pod
	if p.Terminal {
		s.podGone(now, machine.PodGone{UID: p.UID, Namespace: p.Namespace, Name: p.Name})
		return
	}
	entry, w := s.machine.Entry(p.UID), s.waiting[p.UID]
	chosen := p.NodeName != "" && entry != nil && w != nil
	var d difference
	if chosen && s.options.Synced() {
		d = s.compare(now, w, entry.Pod, p)
	}
	s.machine.Step(now, e)
	switch {
	case chosen:
		s.endWait(now, w)
		s.placed(now, p, w.order)
		if d.pod != nil {
			s.hold(d)
		}
	case p.NodeName == "" && w == nil && s.machine.Entry(p.UID) != nil:
		s.arrivals++
		s.waiting[p.UID] = &waiting{pod: p, since: now, order: order{p.Priority, s.arrivals}}
	case p.NodeName == "" && w != nil:
		w.pod = p
	}
}

func (s *Shadow) podGone(now time.Time, e machine.PodGone) {
	if w := s.waiting[e.UID]; w != nil {
		s.endWait(now, w)
	}
	if pl := s.machine.Table().Pod(e.UID); pl != nil {
		s.wentAway(now, pl.Pod, s.machine.Table().Name(pl.Row))
	}
	s.machine.Step(now, e)
}

// compare counts a choice that is no difference, and returns one that may be.
func (s *Shadow) compare(now time.Time, w *waiting, pending, bound *object.Pod) difference {
	d := difference{pod: pending, node: bound.NodeName, order: w.order, seen: now, waited: now.Sub(w.since)}
	d.comparison, d.finding = s.classify(pending, bound.NodeName)
	if !d.finding.Result.differs() {
		s.count(pending.SchedulerName, d.finding)
		return difference{}
	}
	return d
}
