package engine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// A row's place in view.first: feasible, no node there, or the place of the
// filter that rejects it, counted from 1.
const (
	feasible int16 = 0
	noNode   int16 = -1
)

// view is what the engine knows of one class of pods: for each row whether it
// is feasible, else the first filter that rejects it and its verdict, and the
// scores. It stands on a static part that it shares with other classes.
type view struct {
	profile *profile.Profile
	pod     *object.Pod // the one that it was made for
	class   class
	static  *static
	dynamic static // the plugins that also look at the pods on a node

	filters []filter // all of them, in the profile's order
	scorers []scorer // all of them, in the profile's order

	divided     []*cells // of the filters and scorers that answer by cells
	cellFilters []*filter

	first    []int16
	verdict  []framework.Verdict
	final    []int64
	tally    map[blockKey]int // rows by first filter and verdict
	feasible int
	poisoned int // feasible rows with a score out of range
	index    *index

	revision   uint64
	generation uint64 // of the static part, when all rows were last made anew
	columns    uint64 // the table's ColumnRevision
	epochs     uint64
	failed     *decision.Status // PreScore failed
	uses       int              // since all rows were last made anew; the second makes an index
	used       uint64           // when, in decisions; for dropping the oldest
	lent       *spare           // whose columns it has; nil: its own
}

// class is what PreFilter made of the pods.
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
	in    framework.Input
	place int16  // in the profile's order, from 1
	cells *cells // nil: it answers by rows
}

type scorer struct {
	*framework.Plugin
	in     framework.Input
	weight int64
	// raw is the column of raw scores where Normalize needs them.
	raw   func() []int64
	cells *cells // nil: it answers by rows
}

type blockKey struct {
	filter  int16
	verdict framework.Verdict
}

// prepare runs PreFilter and PreScore for the pod's class.
func prepare(t *table.Table, p *profile.Profile, pod *object.Pod, key string) *view {
	v := &view{profile: p, pod: pod, class: class{key: key}, tally: map[blockKey]int{}}
	v.prepareFilters(t, pod)
	if v.class.rejected == nil {
		v.prepareScorers(t, pod)
	}
	v.columns, v.epochs = t.ColumnRevision(), epochs(t, p)
	return v
}

// prepareFilters mirrors v1.36's RunPreFilterPlugins: an Unresolvable or an
// Error ends it at once, an Unschedulable is remembered while the rest run.
func (v *view) prepareFilters(t *table.Table, pod *object.Pod) {
	prepared := map[string]framework.Prepared{}
	for _, pl := range v.profile.PreFilter {
		out := pl.PreFilter(t, pod)
		prepared[pl.Name] = out
		if out.Status != nil && out.Status.Code != decision.Success {
			if !v.reject(pl.Name, *out.Status) {
				return
			}
			continue
		}
		if !out.Skip && out.Nodes != nil {
			v.narrow(pl.Name, out.Nodes)
			if len(v.class.narrowed) == 0 {
				v.class.rejected = &decision.Status{
					Code: decision.Unresolvable, Plugin: pl.Name,
					Reasons: []string{emptied(v.class.narrowedBy)},
				}
				return
			}
		}
	}
	for _, pl := range v.profile.Filter {
		out, ok := prepared[pl.Name]
		if !ok && pl.PreFilter != nil {
			out = pl.PreFilter(t, pod) // enabled at Filter alone: it still needs its state
		}
		if !out.Skip {
			v.filters = append(v.filters, filter{Plugin: pl, in: framework.Input{Table: t, Pod: pod, State: out.State}, place: int16(len(v.filters) + 1)})
		}
	}
}

// reject notes a PreFilter plugin's status; false when no other plugin is to
// be asked.
func (v *view) reject(plugin string, s decision.Status) bool {
	s.Plugin = plugin
	if s.Code == decision.Error {
		s = *failure("PreFilter", plugin, &s)
	}
	if v.class.rejected == nil || s.Code != decision.Unschedulable {
		v.class.rejected = &s
	}
	return s.Code == decision.Unschedulable
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

func (v *view) prepareScorers(t *table.Table, pod *object.Pod) {
	for _, s := range v.profile.Score {
		var out framework.Prepared
		if s.PreScore != nil {
			out = s.PreScore(t, pod)
		}
		if out.Status != nil && out.Status.Code != decision.Success {
			v.failed = failure("PreScore", s.Name, out.Status)
			return
		}
		if !out.Skip {
			v.scorers = append(v.scorers, scorer{
				Plugin: s.Plugin, in: framework.Input{Table: t, Pod: pod, State: out.State}, weight: s.Weight,
			})
		}
	}
}

// stand puts the view on the static part for its class, and gives it columns
// of its own for the rest.
func (v *view) stand(on *static) {
	v.static = on
	v.divide()
	k, d := 0, 0
	for _, f := range v.filters {
		if f.Locality != framework.NodeOnly && f.cells == nil {
			v.dynamic.filters = append(v.dynamic.filters, f)
		}
	}
	for i := range v.scorers {
		s := &v.scorers[i]
		if s.cells != nil {
			continue
		}
		column, of := &d, &v.dynamic
		if s.Locality == framework.NodeOnly {
			column, of = &k, on
		} else {
			v.dynamic.scorers = append(v.dynamic.scorers, *s)
		}
		at := *column
		s.raw = func() []int64 { return of.raw[at] }
		*column++
	}
}

// epochs sums the epochs of the profile's plugins: when any moves, the sum
// does, as each only grows.
func epochs(t *table.Table, p *profile.Profile) uint64 {
	var sum uint64
	for _, list := range [][]*framework.Plugin{p.PreFilter, p.Filter} {
		for _, pl := range list {
			if pl.Epoch != nil {
				sum += pl.Epoch(t)
			}
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
	return v.columns == t.ColumnRevision() && v.epochs == epochs(t, v.profile)
}

// refresh brings the view up to the table's revision. Few changed rows are
// evaluated one by one; many, or a first sight, all at once over the cores.
func (v *view) refresh(t *table.Table, workers int) {
	v.static.refresh(t, workers)
	v.sync()
	if v.revision == 0 || len(v.first) != t.Rows() || v.generation != v.static.generation || !v.replay(t) {
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
	var buf scratch
	buf.verdicts, buf.scores = make([]framework.Verdict, 1), make([]int64, 1)
	t.Changed(v.revision, func(r table.Row) bool {
		v.uncount(r)
		v.evaluate(one(t, r), &buf)
		v.count(r)
		if v.poisoned > 0 {
			v.index = nil // what is no score cannot be ranked
		}
		if v.index != nil {
			v.index.update(v, r)
		}
		return true
	})
	if v.index != nil && v.index.scattered() {
		v.index = nil
		v.uses = -1 << 40 // not worth an index, ever
	}
	return true
}

// grain is the least number of rows worth a goroutine of its own.
const grain = 1024

func (v *view) rebuild(t *table.Table, workers int) {
	v.size(t.Rows())
	inChunks(t, workers, v.evaluate)
	clear(v.tally)
	v.feasible, v.poisoned, v.index = 0, 0, nil
	switch {
	case v.uses < 0:
	case v.revision == 0 || len(v.divided) > 0:
		v.uses = 1 // the class came by before, or asks its cells by groups
	default:
		v.uses = 0 // it has to prove anew that an index is worth it
	}
	v.generation = v.static.generation
	for r := range t.Rows() {
		v.count(table.Row(r))
	}
}

// size gives the view columns of n rows.
func (v *view) size(n int) {
	v.first, v.verdict, v.final = resize(v.first, n), resize(v.verdict, n), resize(v.final, n)
	for _, c := range v.divided {
		c.at = resize(c.at, n)
	}
	if v.dynamic.raw == nil {
		v.dynamic.raw = make([][]int64, len(v.dynamic.scorers))
	}
	for k := range v.dynamic.scorers {
		if v.dynamic.scorers[k].Normalize != nil {
			v.dynamic.raw[k] = resize(v.dynamic.raw[k], n)
		}
	}
	if v.lent != nil {
		v.lent.keep(v)
	}
}

// evaluate fills the view's columns for the rows, from the static part and
// the plugins that look at pods.
func (v *view) evaluate(rows []table.Row, buf *scratch) {
	for _, r := range rows {
		v.first[r], v.verdict[r], v.final[r] = v.static.first[r], v.static.verdict[r], v.static.final[r]
	}
	for k := range v.dynamic.filters {
		v.dynamic.filters[k].run(rows, buf, v.first, v.verdict)
	}
	for k := range v.dynamic.scorers {
		s := &v.dynamic.scorers[k]
		if s.Normalize != nil {
			s.write(v.dynamic.raw[k], rows, buf)
		} else {
			s.addTo(v.final, rows, buf)
		}
	}
	for _, c := range v.divided {
		buf.scores = resize(buf.scores, len(rows))
		c.of(c.in, rows, buf.scores)
		for i, cell := range buf.scores {
			c.at[rows[i]] = cell
		}
	}
}

func (v *view) count(r table.Row) {
	switch first := v.first[r]; first {
	case feasible:
		v.feasible++
		if v.final[r] < 0 {
			v.poisoned++
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
		if v.final[r] < 0 {
			v.poisoned--
		}
	case noNode:
	default:
		k := blockKey{first, v.verdict[r]}
		if v.tally[k]--; v.tally[k] == 0 {
			delete(v.tally, k)
		}
	}
}
