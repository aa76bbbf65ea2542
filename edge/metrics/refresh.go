package metrics

import (
	"time"

	"k8s.io/component-base/metrics"

	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/edge/kube"
)

// Snapshot is what the machine and the edge count themselves.
type Snapshot struct {
	Now                  time.Time
	Queue                queue.Counts
	Groups               []queue.WaitingGroup
	Quotas               []Quota
	Arrivals             map[queue.Arrival]int
	EventsInFlight       map[string]int
	Scoring              int // questions to extenders for scores
	Nodes, Pods, Assumed int
	PluginPanics         int
	HintPanics           int
	BadObjects           uint64
	Rewinds              uint64
	Undone               int // bindings
	HeldBack             int // preemptions
	Overcommits          int // pods
	OvercommittedNodes   int
	Executor             kube.Counters
	WatchesBehind        int
	UnlistedKinds        []string // by resource
	Server               kube.ServerVersion
	AuditRepairs         uint64
	// PreBinding and Late are calls of hosted plugins that have not returned.
	PreBinding, Late int
}

// totals are the counts of the last snapshot, from which counters go on.
type totals struct {
	arrivals                 map[queue.Arrival]int
	pluginPanics, hintPanics int
	badObjects, rewinds      uint64
	auditRepairs             uint64
	undone, heldBack         int
	overcommits              int
	executor                 kube.Counters
}

// Types of entities, as labels: what is scheduled as one.
const (
	onePod   = "pod"
	podGroup = "podgroup"
)

// queueOf returns the label of the place in pending_pods; "" for one that it does not count.
func queueOf(p queue.Place) string {
	switch p {
	case queue.Active, queue.Backoff, queue.Unschedulable, queue.Gated:
		return p.String()
	case queue.ErrorBackoff:
		return queue.Backoff.String()
	}
	return ""
}

// Refresh sets the gauges and advances the counters to the snapshot.
func (m *Metrics) Refresh(s Snapshot) {
	q := s.Queue
	groups, grouped := map[string]int{}, map[string]int{}
	for _, g := range s.Groups {
		groups[queueOf(g.Place)]++
		grouped[queueOf(g.Place)] += g.Pods
	}
	for name, n := range map[string]int{"active": q.Active, "backoff": q.Backoff + q.ErrorBackoff, "unschedulable": q.Unschedulable, "gated": q.Gated} { // any order: each has its gauge
		m.queued.pods.WithLabelValues(name).Set(float64(n))
		m.queued.entities.WithLabelValues(name, onePod).Set(float64(n - grouped[name]))
		if m.groups.attempts != nil {
			m.queued.entities.WithLabelValues(name, podGroup).Set(float64(groups[name]))
		}
	}
	m.groups.refresh(s.Groups, s.Now)
	m.elasticQuotas.refresh(s.Quotas)
	m.cacheSize.WithLabelValues("nodes").Set(float64(s.Nodes))
	m.cacheSize.WithLabelValues("pods").Set(float64(s.Pods))
	m.cacheSize.WithLabelValues("assumed_pods").Set(float64(s.Assumed))
	m.goroutines.WithLabelValues("binding").Set(float64(s.Executor.Binding))
	m.goroutines.WithLabelValues("prioritizing_extender").Set(float64(s.Scoring))
	m.hosted.WithLabelValues("prebind").Set(float64(s.PreBinding))
	m.hosted.WithLabelValues("late").Set(float64(s.Late))
	m.overcommitted.Set(float64(s.OvercommittedNodes))
	m.server.behind.Set(float64(s.WatchesBehind))
	m.server.unlisted.Reset()
	for _, resource := range s.UnlistedKinds {
		m.server.unlisted.WithLabelValues(resource).Set(1)
	}
	m.server.skew.Reset()
	if v := s.Server; v.Minor != "" {
		m.server.skew.WithLabelValues(v.Minor).Set(float64(v.Newer))
	}
	m.inFlight.Reset()
	for event, n := range s.EventsInFlight { // any order: each has its gauge
		m.inFlight.WithLabelValues(event).Set(float64(n))
	}

	m.evaluations()
	for a, n := range s.Arrivals {
		if a.Of != queue.WholeGroup {
			advance(m.queued.incomingPods.WithLabelValues(a.Queue, a.Event), m.last.arrivals[a], n)
		}
		if entity := map[queue.Arriving]string{queue.PodAlone: onePod, queue.WholeGroup: podGroup}[a.Of]; entity != "" && !a.Hinted {
			advance(m.queued.incomingEntities.WithLabelValues(a.Queue, a.Event, entity), m.last.arrivals[a], n)
		}
	}
	advance(m.panics.WithLabelValues("plugin"), m.last.pluginPanics, s.PluginPanics)
	advance(m.panics.WithLabelValues("hint"), m.last.hintPanics, s.HintPanics)
	advance(m.badObjects, m.last.badObjects, s.BadObjects)
	advance(m.rewinds, m.last.rewinds, s.Rewinds)
	advance(m.auditRepairs, m.last.auditRepairs, s.AuditRepairs)
	advance(m.undone, m.last.undone, s.Undone)
	advance(m.heldBack, m.last.heldBack, s.HeldBack)
	advance(m.overcommits, m.last.overcommits, s.Overcommits)
	advance(m.eventsDropped, m.last.executor.EventsDropped, s.Executor.EventsDropped)
	advance(m.patchesFailed, m.last.executor.PatchesFailed, s.Executor.PatchesFailed)
	m.last = totals{s.Arrivals, s.PluginPanics, s.HintPanics, s.BadObjects, s.Rewinds, s.AuditRepairs, s.Undone, s.HeldBack, s.Overcommits, s.Executor}
}

// Steps sets how long the loop has been at its present step, and how long its longest
// one took. Unlike the rest they are known while the loop is stuck.
func (m *Metrics) Steps(age, longest time.Duration) {
	m.stepSeconds.Set(age.Seconds())
	m.longestSeconds.Set(longest.Seconds())
}

func advance[N int | uint64](c metrics.CounterMetric, from, to N) {
	if to > from {
		c.Add(float64(to - from))
	}
}
