package shadow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
)

type metrics struct {
	choices          *basemetrics.CounterVec
	placeable        *basemetrics.GaugeVec
	placeableSeconds *basemetrics.HistogramVec
}

func newMetrics(register func(...basemetrics.Registerable)) *metrics {
	const berth, shadow = "berth", "shadow_"
	m := &metrics{
		choices: basemetrics.NewCounterVec(&basemetrics.CounterOpts{Subsystem: berth, Name: shadow + "choices_total", StabilityLevel: basemetrics.ALPHA,
			Help: "Pods that the live scheduler bound, by what its choice is to Berth: same, tie (another node of the same score), nominated, stale, sampled, lower, infeasible, unschedulable or not_compared. plugin is the one that rejects the node, or by whose score it loses most."}, []string{"result", "plugin", "profile"}),
		placeable: basemetrics.NewGaugeVec(&basemetrics.GaugeOpts{Subsystem: berth, Name: shadow + "placeable_pods", StabilityLevel: basemetrics.ALPHA,
			Help: "Pods that have waited for 10 s for the live scheduler and that Berth would place, each by itself."}, []string{"profile"}),
		placeableSeconds: basemetrics.NewHistogramVec(&basemetrics.HistogramOpts{Subsystem: berth, Name: shadow + "placeable_duration_seconds", StabilityLevel: basemetrics.ALPHA,
			Help:    "Time for which such a pod could have been placed, until it was bound or gone, or did not fit any more.",
			Buckets: basemetrics.ExponentialBuckets(1, 2, 12)}, []string{"profile"}),
	}
	register(m.choices, m.placeable, m.placeableSeconds)
	return m
}

// Choices are choices of the live scheduler that are alike, as the metric counts them.
type Choices struct {
	Result  Result
	Plugin  string // that it is about, "" for none
	Profile string
}

// count counts a choice.
func (s *Shadow) count(profile string, f finding) {
	s.metrics.choices.WithLabelValues(string(f.Result), f.Plugin, profile).Inc()
	s.choices[Choices{f.Result, f.Plugin, profile}]++
}

// Found returns the choices so far with their number, and how many pods wait that Berth
// would place. It is for the loop's goroutine.
func (s *Shadow) Found() (choices map[Choices]int, placeable int) {
	for _, w := range s.waiting { // any order: a sum
		if !w.fits.IsZero() {
			placeable++
		}
	}
	return maps.Clone(s.choices), placeable
}

// mostLast bounds the differences that are kept. Each takes about a kilobyte.
const mostLast = 200

// Differences returns the last differences, the newest first. It is for the loop's goroutine.
func (s *Shadow) Differences() []Record {
	last := slices.Clone(s.last)
	slices.Reverse(last)
	return last
}

// Record is a difference as data.
type Record struct {
	Time   time.Time `json:"time"`
	Pod    string    `json:"pod"`
	UID    string    `json:"uid"`
	Node   string    `json:"node"`
	Result Result    `json:"result"`
	Plugin string    `json:"plugin,omitempty"`
	// BerthNode is Berth's choice, one of Ties nodes with BestScore; "": there is none.
	BerthNode string `json:"berthNode,omitempty"`
	Ties      int    `json:"ties,omitempty"`
	BestScore int64  `json:"bestScore,omitempty"`
	// Score is the node's, where it is feasible; Scores are those that differ.
	Score         int64    `json:"score,omitempty"`
	Scores        []loss   `json:"scores,omitempty"`
	Reasons       []string `json:"reasons,omitempty"` // why the node is not feasible
	NodesFeasible int      `json:"nodesFeasible"`
	NodesTotal    int      `json:"nodesTotal"`
	WaitedSeconds float64  `json:"waitedSeconds"`
}

// record is the difference as data. A stale one has the scores of before.
func (d *difference) record() Record {
	c := &d.comparison
	r := Record{
		Time: d.seen, Pod: d.pod.Key(), UID: string(d.pod.UID), Node: d.node, Result: d.finding.Result, Plugin: d.finding.Plugin,
		BerthNode: c.Node, Ties: c.Ties, NodesFeasible: c.NodesFeasible, NodesTotal: c.NodesTotal, WaitedSeconds: d.waited.Seconds(),
	}
	r.BestScore = c.Best.Total
	if c.Other.Feasible {
		r.Score, r.Scores = c.Other.Total, lossOf(c)
	}
	for _, b := range c.Other.Blockers {
		r.Reasons = append(r.Reasons, b.Plugin+": "+strings.Join(b.Reasons, ", "))
	}
	return r
}

// report counts a difference, logs it and writes it down.
func (s *Shadow) report(d *difference) {
	s.count(d.pod.SchedulerName, d.finding)
	r := d.record()
	if s.options.File != nil {
		s.options.File.write(&r)
	}
	if d.finding.Result == Stale {
		return // it is none
	}
	s.last = append(s.last, r)
	if excess := len(s.last) - mostLast; excess > 0 {
		s.last = slices.Delete(s.last, 0, excess)
	}
	about := []any{"pod", r.Pod, "node", r.Node, "result", r.Result, "plugin", r.Plugin, "berthNode", r.BerthNode,
		"feasibleNodes", r.NodesFeasible, "nodes", r.NodesTotal}
	if len(r.Reasons) > 0 {
		about = append(about, "reasons", strings.Join(r.Reasons, "; "))
	} else {
		about = append(about, "score", r.Score, "bestScore", r.BestScore, "ties", r.Ties, "scores", scoresText(r.Scores))
	}
	s.log.info(d.seen, "Live scheduler chose another node than Berth would", about...)
}

// scoresText lists plugins with the node's score and the best node's.
func scoresText(scores []loss) string {
	parts := make([]string, len(scores))
	for i, l := range scores {
		parts[i] = fmt.Sprintf("%s %d/%d x%d", l.Plugin, l.Node, l.Best, l.Weight)
	}
	return strings.Join(parts, ", ")
}

// Log lines, at most that many in a second.
const linesPerSecond = 10

// limitedLog drops lines where there are too many, and says how many it dropped.
type limitedLog struct {
	logger  klog.Logger
	second  time.Time
	lines   int
	dropped int
}

func newLimitedLog(l klog.Logger) *limitedLog { return &limitedLog{logger: l} }

func (l *limitedLog) info(now time.Time, message string, about ...any) {
	if now.Sub(l.second) >= time.Second {
		l.second, l.lines = now, 0
	}
	if l.lines++; l.lines > linesPerSecond {
		l.dropped++
		return
	}
	if l.dropped > 0 {
		about = append(about, "linesDropped", l.dropped)
		l.dropped = 0
	}
	l.logger.Info(message, about...)
}
