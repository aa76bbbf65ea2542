package engine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/par"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// A row's place in view.first: feasible, no node there, or 1 + the index of
// the filter that rejects it.
const (
	feasible int16 = 0
	noNode   int16 = -1
)

// view is what the engine knows of one class of pods: for each row whether it
// is feasible, else the first filter that rejects it and its verdict, and the
// raw scores. It is up to date at the table's revision `revision`.
type view struct {
	profile *profile.Profile
	class   class
	filters []filter
	scorers []scorer

	first    []int16
	verdict  []framework.Verdict // of the first filter, where one rejects
	final    []int64             // weighted sum of the scores that need no normalising
	tally    map[blockKey]int    // rows by first filter and verdict
	feasible int

	revision uint64
	columns  int
	epochs   uint64
	invalid  *decision.Status // a final score out of range, once seen
	used     uint64           // when, in decisions; for dropping the oldest
}

// class is what PreFilter and PreScore made of the pods.
type class struct {
	key string
	// rejected is set when a PreFilter plugin rejects every pod of the class,
	// or fails.
	rejected *decision.Status
	// narrowed, when not nil, names the only nodes to look at, and narrowedBy
	// the plugins that said so.
	narrowed   []string
	narrowedBy []string
}

type filter struct {
	*framework.Plugin
	in framework.Input
}

type scorer struct {
	*framework.Plugin
	in     framework.Input
	weight int64
	raw    []int64
	// extremes of raw over the feasible rows; not kept where Normalize is nil.
	extremes extremes
}

type blockKey struct {
	filter  int16
	verdict framework.Verdict
}

// prepare runs PreFilter and PreScore for the pod's class.
func prepare(t *table.Table, p *profile.Profile, pod *object.Pod, key string) *view {
	v := &view{profile: p, class: class{key: key}, tally: map[blockKey]int{}}
	v.prepareFilters(t, p, pod)
	if v.class.rejected == nil {
		v.prepareScorers(t, p, pod)
	}
	v.columns = t.Columns()
	v.epochs = epochs(t, p)
	return v
}

// prepareFilters mirrors v1.36's RunPreFilterPlugins: an Unresolvable or an
// Error ends it at once, an Unschedulable is remembered while the rest run.
func (v *view) prepareFilters(t *table.Table, p *profile.Profile, pod *object.Pod) {
	prepared := map[string]framework.Prepared{}
	for _, pl := range p.PreFilter {
		out := pl.PreFilter(t, pod)
		prepared[pl.Name] = out
		if out.Status != nil && out.Status.Code != decision.Success {
			out.Status.Plugin = pl.Name
			if v.class.rejected == nil || out.Status.Code != decision.Unschedulable {
				v.class.rejected = out.Status
			}
			if out.Status.Code != decision.Unschedulable {
				return
			}
		}
		if !out.Skip && out.Nodes != nil {
			v.narrow(pl.Name, out.Nodes)
			if len(v.class.narrowed) == 0 && v.class.rejected == nil {
				v.class.rejected = &decision.Status{
					Code: decision.Unresolvable, Plugin: pl.Name,
					Reasons: []string{emptied(v.class.narrowedBy)},
				}
				return
			}
		}
	}
	for _, pl := range p.Filter {
		out, ok := prepared[pl.Name]
		if !ok && pl.PreFilter != nil {
			out = pl.PreFilter(t, pod) // enabled at Filter alone: it still needs its state
		}
		if !out.Skip {
			v.filters = append(v.filters, filter{pl, framework.Input{Table: t, Pod: pod, State: out.State}})
		}
	}
}

func (v *view) narrow(plugin string, nodes []string) {
	c := &v.class
	c.narrowedBy = append(c.narrowedBy, plugin)
	if c.narrowed == nil {
		c.narrowed = append([]string{}, nodes...)
		return
	}
	keep := map[string]bool{}
	for _, n := range nodes {
		keep[n] = true
	}
	left := c.narrowed[:0]
	for _, n := range c.narrowed {
		if keep[n] {
			left = append(left, n)
		}
	}
	c.narrowed = left
}

func (v *view) prepareScorers(t *table.Table, p *profile.Profile, pod *object.Pod) {
	for _, s := range p.Score {
		var out framework.Prepared
		if s.PreScore != nil {
			out = s.PreScore(t, pod)
		}
		if out.Status != nil && out.Status.Code != decision.Success {
			out.Status.Plugin = s.Name
			v.invalid = out.Status
			return
		}
		if !out.Skip {
			v.scorers = append(v.scorers, scorer{
				Plugin: s.Plugin, in: framework.Input{Table: t, Pod: pod, State: out.State}, weight: s.Weight,
			})
		}
	}
}

// epochs sums the epochs of the profile's plugins: when any moves, the sum
// does, as each only grows.
func epochs(t *table.Table, p *profile.Profile) uint64 {
	var sum uint64
	for _, pl := range p.Filter {
		if pl.Epoch != nil {
			sum += pl.Epoch(t)
		}
	}
	for _, s := range p.Score {
		if s.Epoch != nil {
			sum += s.Epoch(t)
		}
	}
	return sum
}

// current tells whether what prepare made still stands.
func (v *view) current(t *table.Table) bool {
	return v.columns == t.Columns() && v.epochs == epochs(t, v.profile)
}

// refresh brings the view up to the table's revision. Few changed rows are
// evaluated one by one; many, or a first sight, all at once over the cores.
func (v *view) refresh(t *table.Table, workers int) {
	if v.revision == t.Revision() && len(v.first) == t.Rows() {
		return
	}
	if v.revision == 0 || len(v.first) != t.Rows() || !v.replay(t) {
		v.rebuild(t, workers)
	}
	v.revision = t.Revision()
}

// replay evaluates the rows that changed since the view's revision. It gives
// up (false) when they are so many that a full pass is cheaper.
func (v *view) replay(t *table.Table) bool {
	limit, dirty := 1+t.Rows()/16, 0
	t.Changed(v.revision, func(table.Row) bool { dirty++; return dirty <= limit })
	if dirty > limit {
		return false
	}
	var buf [1]framework.Verdict
	t.Changed(v.revision, func(r table.Row) bool {
		v.uncount(r)
		v.evaluate(t, par.Range{From: int(r), To: int(r) + 1}, buf[:])
		v.count(r)
		return true
	})
	return true
}

// grain is the least number of rows worth a goroutine of its own.
const grain = 1024

func (v *view) rebuild(t *table.Table, workers int) {
	n := t.Rows()
	v.first = resize(v.first, n)
	v.verdict = resize(v.verdict, n)
	v.final = resize(v.final, n)
	for i := range v.scorers {
		v.scorers[i].raw = resize(v.scorers[i].raw, n)
	}
	par.Rows(n, workers, grain, func(rows par.Range) {
		v.evaluate(t, rows, make([]framework.Verdict, rows.Len()))
	})
	clear(v.tally)
	v.feasible = 0
	for k := range v.scorers {
		v.scorers[k].extremes = extremes{known: true}
	}
	for r := range n {
		v.count(table.Row(r))
	}
}

func resize[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	return append(make([]T, 0, n+n/8), make([]T, n)...)
}

// evaluate fills the view's columns for the rows. buf is scratch space of the
// range's length.
func (v *view) evaluate(t *table.Table, rows par.Range, buf []framework.Verdict) {
	for r := rows.From; r < rows.To; r++ {
		v.first[r], v.verdict[r], v.final[r] = feasible, framework.Fits, 0
		if t.Node(table.Row(r)) == nil {
			v.first[r] = noNode
		}
	}
	for k := range v.filters {
		f := &v.filters[k]
		f.Filter(&f.in, rows, buf)
		for i, verdict := range buf {
			if r := rows.From + i; verdict != framework.Fits && v.first[r] == feasible {
				v.first[r], v.verdict[r] = int16(k+1), verdict
			}
		}
	}
	for k := range v.scorers {
		s := &v.scorers[k]
		s.Score(&s.in, rows, s.raw[rows.From:rows.To])
		if s.Normalize != nil {
			continue
		}
		for r := rows.From; r < rows.To; r++ {
			v.final[r] += s.weight * s.raw[r]
		}
	}
}

func (v *view) count(r table.Row) {
	switch first := v.first[r]; first {
	case feasible:
		v.feasible++
		for k := range v.scorers {
			v.scorers[k].count(r)
			v.checkFinal(k, r)
		}
	case noNode:
	default:
		v.tally[blockKey{first, v.verdict[r]}]++
	}
}

func (v *view) uncount(r table.Row) {
	switch first := v.first[r]; first {
	case feasible:
		v.feasible--
		for k := range v.scorers {
			v.scorers[k].uncount(r)
		}
	case noNode:
	default:
		k := blockKey{first, v.verdict[r]}
		if v.tally[k]--; v.tally[k] == 0 {
			delete(v.tally, k)
		}
	}
}

// checkFinal holds final scores of feasible rows to the range that the
// framework promises.
func (v *view) checkFinal(k int, r table.Row) {
	s := &v.scorers[k]
	if raw := s.raw[r]; s.Normalize == nil && (raw < 0 || raw > maxScore) {
		v.invalid = outOfRange(s.Name, raw)
	}
}
