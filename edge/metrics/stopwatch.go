package metrics

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
)

// stopwatch times plugins in one step of ten, as kube-scheduler does in one cycle of
// ten. In the others a plugin's call costs a look at `on`, and kernels count
// the nodes that they looked at.
type stopwatch struct {
	on     bool // in this step; set between steps
	chance func() bool
	laps   []*lap // by profile and point
	hints  []*hintLap
}

// lap is what one plugin takes at one point, in a step. Kernels add to it
// concurrently.
type lap struct {
	profile, point, plugin string
	took                   atomic.Int64 // nanoseconds
	calls                  atomic.Int64
	status                 decision.Code // of the last call; kernels have none
	evaluated              atomic.Int64  // since the start: pods, or nodes for pods
	told                   int64         // of these, how many the counter has
	first, last            atomic.Int64  // when the first call began and the last ended: Unix nanoseconds; 0: none
}

// hintLap is the first call of one plugin's hints, in a step.
type hintLap struct {
	plugin   string
	resource framework.EventResource
	action   framework.ActionType
	queue    bool
	took     time.Duration
	done     bool
}

func newStopwatch() stopwatch {
	return stopwatch{chance: func() bool { return rand.IntN(10) == 0 }} // #nosec G404 -- which steps are timed is no secret
}

// Time has the plugins of the profiles timed from now on, and no others. It changes
// the plugins, and belongs before they are used; while the loop runs it belongs to
// the loop's goroutine.
func (m *Metrics) Time(profiles []*profile.Profile) {
	m.evaluations()
	m.watch.laps, m.watch.hints = nil, nil
	for _, p := range profiles {
		for _, pl := range p.Plugins { // any order: sorted below
			m.watch.wrap(p.Name, pl)
		}
		p.Watch = func(pl *framework.Plugin, at profile.Point) headroom.Watcher {
			return m.watch.watcher(m.watch.lapOf(p.Name, at.String(), pl.Name))
		}
	}
	slices.SortFunc(m.watch.laps, compareLaps)
}

func compareLaps(a, b *lap) int {
	return cmp.Or(cmp.Compare(a.profile, b.profile), cmp.Compare(a.point, b.point), cmp.Compare(a.plugin, b.plugin))
}

// lapOf returns the lap of a plugin that is timed at the point.
func (w *stopwatch) lapOf(profile, point, plugin string) *lap {
	i, _ := slices.BinarySearchFunc(w.laps, &lap{profile: profile, point: point, plugin: plugin}, compareLaps)
	return w.laps[i]
}

func (w *stopwatch) wrap(profile string, p *framework.Plugin) {
	at := func(point string) *lap {
		l := &lap{profile: profile, point: point, plugin: p.Name}
		w.laps = append(w.laps, l)
		return l
	}
	w.wrapFilter(p, at)
	w.wrapScore(p, at)
	w.wrapBinding(p, at)
	if f := p.PreEnqueue; f != nil {
		l := at("PreEnqueue")
		p.PreEnqueue = func(t *table.Table, pod *object.Pod) *decision.Status {
			return w.status(l, func() *decision.Status { return f(t, pod) })
		}
	}
	if f := p.PostFilter; f != nil {
		l := at("PostFilter")
		p.PostFilter = func(c *framework.PostFilterCall) (r framework.PostFilterResult) {
			w.status(l, func() *decision.Status {
				r = f(c)
				return postFiltered(&r)
			})
			return r
		}
	}
	w.wrapHints(p)
}

// postFiltered is the status that kube-scheduler would have for the result.
func postFiltered(r *framework.PostFilterResult) *decision.Status {
	switch {
	case r.Failed:
		return &decision.Status{Code: decision.Error}
	case r.NominatedNodeName == "" && len(r.Candidates) == 0:
		return &decision.Status{Code: decision.Unschedulable}
	}
	return nil
}

func (w *stopwatch) wrapFilter(p *framework.Plugin, at func(string) *lap) {
	if f := p.PreFilter; f != nil {
		l := at("PreFilter")
		p.PreFilter = func(t *table.Table, pod *object.Pod) (out framework.PreFilterResult) {
			w.prepare(l, func() (bool, *decision.Status) {
				out = f(t, pod)
				return out.Skip, out.Status
			})
			return out
		}
	}
	l := at("Filter")
	if f := p.Filter; f != nil {
		p.Filter = func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
			l.evaluated.Add(int64(len(rows)))
			w.kernel(l, func() { f(in, rows, out) })
		}
	}
	if c := p.CellFilter; c != nil {
		wrapped := *c
		wrapped.Sync, wrapped.Cells = w.cells(l, c.Sync, c.Cells)
		wrapped.Rows = func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
			l.evaluated.Add(int64(len(rows)))
			w.kernel(l, func() { c.AskRows(in, rows, out) })
		}
		p.CellFilter = &wrapped
	}
}

func (w *stopwatch) wrapScore(p *framework.Plugin, at func(string) *lap) {
	if f := p.PreScore; f != nil {
		l := at("PreScore")
		p.PreScore = func(t *table.Table, pod *object.Pod) (out framework.PreScoreResult) {
			w.prepare(l, func() (bool, *decision.Status) {
				out = f(t, pod)
				return out.Skip, out.Status
			})
			return out
		}
	}
	l := at("Score")
	if f := p.Score; f != nil {
		p.Score = func(in *framework.Input, rows []table.Row, out []int64) {
			l.evaluated.Add(int64(len(rows)))
			w.kernel(l, func() { f(in, rows, out) })
		}
	}
	if c := p.CellScore; c != nil {
		wrapped := *c
		wrapped.Sync, wrapped.Cells = w.cells(l, c.Sync, c.Cells)
		_, wrapped.Rows = w.cells(l, c.Sync, c.AskRows)
		p.CellScore = &wrapped
	}
}

// watcher returns a watcher that counts the nodes of a plugin in a pass. It makes the
// engine ask the plugin itself in steps that are timed.
func (w *stopwatch) watcher(l *lap) headroom.Watcher {
	return headroom.Watcher{
		Apart: func() bool { return w.on },
		Seen:  func(rows int) { l.evaluated.Add(int64(rows)) },
	}
}

type cellsOf func(in *framework.Input, rows []table.Row, out []int64)

func (w *stopwatch) cells(l *lap, sync func(*framework.Input), of cellsOf) (func(*framework.Input), cellsOf) {
	return func(in *framework.Input) { w.kernel(l, func() { sync(in) }) },
		func(in *framework.Input, rows []table.Row, out []int64) {
			l.evaluated.Add(int64(len(rows)))
			w.kernel(l, func() { of(in, rows, out) })
		}
}

// wrapBinding times what follows the choice, except for PreBind and Bind, which
// are work of the API for the most part: Observe times those.
func (w *stopwatch) wrapBinding(p *framework.Plugin, at func(string) *lap) {
	if f := p.Reserve; f != nil {
		l := at("Reserve")
		p.Reserve = func(t *table.Table, pod *object.Pod, node string) *decision.Status {
			return w.status(l, func() *decision.Status { return f(t, pod, node) })
		}
	}
	if f := p.Unreserve; f != nil {
		l := at("Unreserve")
		p.Unreserve = func(t *table.Table, pod *object.Pod, node string) { w.kernel(l, func() { f(t, pod, node) }) }
	}
	if f := p.Permit; f != nil {
		l := at("Permit")
		p.Permit = func(t *table.Table, pod *object.Pod, node string) (r framework.PermitResult) {
			w.status(l, func() *decision.Status {
				r = f(t, pod, node)
				return r.Status
			})
			return r
		}
	}
	if f := p.PostBind; f != nil {
		l := at("PostBind")
		p.PostBind = func(pod *object.Pod, node string) { w.kernel(l, func() { f(pod, node) }) }
	}
}

// prepare calls f, a PreFilter or PreScore function, which may say that the
// kernel has nothing to do.
func (w *stopwatch) prepare(l *lap, f func() (skip bool, s *decision.Status)) {
	w.status(l, func() *decision.Status {
		skip, s := f()
		if skip && s == nil {
			return &skipped
		}
		l.evaluated.Add(1)
		return s
	})
}

var skipped = decision.Status{Code: decision.Skip}

// kernel calls f, which gives no status.
func (w *stopwatch) kernel(l *lap, f func()) {
	if !w.on {
		f()
		return
	}
	start := time.Now()
	f()
	took := time.Since(start)
	l.took.Add(int64(took))
	l.calls.Add(1)
	l.during(start.UnixNano(), start.Add(took).UnixNano())
}

// during widens the time from the first call to the last.
func (l *lap) during(from, to int64) {
	for was := l.first.Load(); (was == 0 || from < was) && !l.first.CompareAndSwap(was, from); was = l.first.Load() {
	}
	for was := l.last.Load(); to > was && !l.last.CompareAndSwap(was, to); was = l.last.Load() {
	}
}

// status calls f, from the machine's own goroutine.
func (w *stopwatch) status(l *lap, f func() *decision.Status) (s *decision.Status) {
	w.kernel(l, func() { s = f() })
	if l.status = decision.Success; s != nil {
		l.status = s.Code
	}
	return s
}

// wrapHints times, of the hints of a plugin, the first that is asked in a step.
func (w *stopwatch) wrapHints(p *framework.Plugin) {
	p.EventsToRegister = slices.Clone(p.EventsToRegister)
	first := &hintLap{plugin: p.Name}
	for i := range p.EventsToRegister {
		hint := p.EventsToRegister[i].QueueingHintFn
		if hint == nil {
			continue
		}
		p.EventsToRegister[i].QueueingHintFn = func(rejected *object.Pod, e *framework.Event) bool {
			if !w.on || first.done {
				return hint(rejected, e)
			}
			start := time.Now()
			answer := hint(rejected, e)
			first.took, first.done = time.Since(start), true
			first.resource, first.action, first.queue = e.Resource, e.ActionType, answer
			return answer
		}
	}
	w.hints = append(w.hints, first)
}

// Lap is what a plugin took at an extension point in a step. The calls of several
// plugins may alternate: Took is less than the time from First to Last.
type Lap struct {
	Point, Plugin string
	First, Last   time.Time
	Took          time.Duration
	Calls         int
	Status        decision.Code // of the last call; filters and scores have none
}

// TimeStep has the next step timed, whatever was drawn. It belongs to the loop's
// goroutine, before the step.
func (m *Metrics) TimeStep() { m.watch.on = true }

// Laps lists what was timed in the step that has just ended, before Observe.
func (m *Metrics) Laps() (laps []Lap) {
	for _, l := range m.watch.laps {
		if n := l.calls.Load(); n > 0 {
			laps = append(laps, Lap{Point: l.point, Plugin: l.plugin, First: time.Unix(0, l.first.Load()), Last: time.Unix(0, l.last.Load()),
				Took: time.Duration(l.took.Load()), Calls: int(n), Status: l.status})
		}
	}
	return laps
}

// lapped takes in what was timed in the last step, and draws whether the next
// one is timed.
func (m *Metrics) lapped() {
	w := &m.watch
	if w.on {
		m.pointsLapped()
		m.hintsLapped()
	}
	w.on = w.chance()
}

// pointsLapped: the time of a point is the sum of its plugins', its status that
// of the last plugin that did not let the pod pass. Kernels that run on several
// cores at once add up.
func (m *Metrics) pointsLapped() {
	laps := m.watch.laps
	for from := 0; from < len(laps); {
		first := laps[from]
		to := from
		var sum time.Duration
		calls, status := int64(0), decision.Success
		for ; to < len(laps) && laps[to].point == first.point && laps[to].profile == first.profile; to++ {
			l := laps[to]
			n := l.calls.Swap(0)
			if n == 0 {
				continue
			}
			took := time.Duration(l.took.Swap(0))
			l.first.Store(0)
			l.last.Store(0)
			m.pluginSeconds.WithLabelValues(l.plugin, l.point, l.status.String()).Observe(took.Seconds())
			sum, calls = sum+took, calls+n
			if l.status != decision.Success && l.status != decision.Skip {
				status = l.status
			}
		}
		if calls > 0 {
			m.pointSeconds.WithLabelValues(first.point, status.String(), first.profile).Observe(sum.Seconds())
		}
		from = to
	}
}

func (m *Metrics) hintsLapped() {
	for _, h := range m.watch.hints {
		if !h.done {
			continue
		}
		h.done = false
		answer := "QueueSkip"
		if h.queue {
			answer = "Queue"
		}
		m.hintSeconds.WithLabelValues(h.plugin, queue.Label(h.resource, h.action), answer).Observe(h.took.Seconds())
	}
}

// evaluations advances plugin_evaluation_total.
func (m *Metrics) evaluations() {
	for _, l := range m.watch.laps {
		if n := l.evaluated.Load(); n > l.told {
			m.evaluated.WithLabelValues(l.plugin, l.point, l.profile).Add(float64(n - l.told))
			l.told = n
		}
	}
}
