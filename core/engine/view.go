package engine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// What is known of a row first: feasible, no node there, or the place of the
// filter that rejects it, counted from 1.
const (
	feasible int16 = 0
	noNode   int16 = -1
)

// view is what the engine knows of one class of pods: for each row whether it
// is feasible, else the first filter that rejects it and its verdict, and the
// scores. It stands on a static part that it shares with other classes.
type view struct {
	reading *reading
	pod     *object.Pod // the one that it was made for
	class   class
	excess  int // what its words count for, in rows
	static  *static
	dynamic static // the plugins that also look at the pods on a node

	filters []filter // all of them, in the profile's order
	scorers []scorer // all of them, in the profile's order

	divided     []*cells // of the filters and scorers that answer by cells
	cellFilters []*filter
	fallible    bool // one of the filters can fail

	standings

	revision   uint64
	generation uint64 // of the static part, when all rows were last made anew
	columns    uint64 // the table's ColumnRevision
	epochs     uint64
	failed     *decision.Status // PreScore failed
	used       uint64           // when, in decisions; for dropping the oldest
	lent       *spare           // whose columns it has; nil: its own

	// opened and closed are of the feasible rows and the others.
	opened, closed tried
	kept           map[string]*any // what plugins left, by name
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
func prepare(t *table.Table, r *reading, pod *object.Pod, key string) *view {
	v := &view{reading: r, pod: pod, class: class{key: key}}
	v.prepareFilters(t, pod)
	if v.class.rejected == nil {
		v.prepareScorers(t, pod)
	}
	v.columns, v.epochs = t.ColumnRevision(), r.epoch(t)
	return v
}

// prepareFilters mirrors v1.36's RunPreFilterPlugins: an UnschedulableAndUnresolvable or an
// Error ends it at once, an Unschedulable is remembered while the rest run.
func (v *view) prepareFilters(t *table.Table, pod *object.Pod) {
	prepared := map[string]framework.PreFilterResult{}
	for _, pl := range v.reading.profile.PreFilter {
		out := pl.PreFilter(t, pod)
		prepared[pl.Name] = out
		if out.Status != nil && out.Status.Code != decision.Success {
			if !v.reject(pl.Name, *out.Status) {
				return
			}
			continue
		}
		if !out.Skip && out.NodeNames != nil {
			v.narrow(pl.Name, out.NodeNames)
			if len(v.class.narrowed) == 0 {
				v.class.rejected = &decision.Status{
					Code: decision.UnschedulableAndUnresolvable, Plugin: pl.Name,
					Reasons: []string{emptied(v.class.narrowedBy)},
				}
				return
			}
		}
	}
	for _, pl := range v.reading.profile.Filter {
		out, ok := prepared[pl.Name]
		if !ok && pl.PreFilter != nil {
			out = pl.PreFilter(t, pod) // enabled at Filter alone: it still needs its state
		}
		if !out.Skip {
			v.fallible = v.fallible || pl.ErrorsFrom != 0
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
	for _, s := range v.reading.profile.Score {
		var out framework.PreFilterResult
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
	v.arrange()
}

// current tells whether what prepare made still stands.
func (v *view) current(t *table.Table) bool {
	return v.columns == t.ColumnRevision() && v.epochs == v.reading.epoch(t)
}

// refresh brings the view up to the table's revision. Few changed rows are
// evaluated again; where there are many, or at first sight, all are, over the
// cores. It returns how many.
func (v *view) refresh(t *table.Table, workers int, found *scratch) int {
	v.prepareRefresh(t, workers, found)
	return v.catchUp(t, workers, found)
}

// prepareRefresh does the part of refresh that touches what views share.
func (v *view) prepareRefresh(t *table.Table, workers int, found *scratch) {
	v.static.refresh(t, workers, found)
	v.sync()
}

func (v *view) catchUp(t *table.Table, workers int, found *scratch) (asked int) {
	if v.revision != 0 && v.generation == v.static.generation && v.replay(t, found) {
		asked = len(found.rows)
	} else {
		v.rebuild(t, workers, found)
		asked = len(v.at)
	}
	v.revision = t.Revision()
	return asked
}

// replay evaluates the rows that changed since the view's revision. It gives
// up (false) when they are so many that a full pass is cheaper.
func (v *view) replay(t *table.Table, found *scratch) bool {
	limit := 1 + t.Rows()/8
	found.rows = t.AppendChanged(found.rows[:0], v.revision, limit+1)
	if len(found.rows) > limit {
		return false
	}
	v.size(t.Rows())
	return again(found, v.evaluate, v.seat)
}

func (v *view) rebuild(t *table.Table, workers int, found *scratch) {
	v.generation = v.static.generation
	v.size(t.Rows())
	if v.static.scattered && !v.scattered() {
		v.scatter()
	}
	v.clear()
	if v.own == 0 && !v.scattered() {
		if pass(t, workers, found, v.evaluate, v.seatFirst) {
			v.sum()
			return
		}
	} else if pass(t, workers, found, v.evaluate, v.seat) {
		return
	}
	v.scatter()
	v.clear()
	pass(t, workers, found, v.evaluate, v.seat)
}

// size gives the view columns of n rows; what was in them stays.
func (v *view) size(n int) {
	v.standings.size(n)
	for _, c := range v.divided {
		c.at = extend(c.at, n)
	}
	if v.dynamic.raw == nil {
		v.dynamic.raw = make([][]int64, len(v.dynamic.scorers))
	}
	for k := range v.dynamic.scorers {
		if v.dynamic.scorers[k].NormalizeScore != nil {
			v.dynamic.raw[k] = extend(v.dynamic.raw[k], n)
		}
	}
}

// evaluate asks the plugins that look at pods about the rows, and adds what
// the static part has.
func (v *view) evaluate(rows []table.Row, found *scratch) {
	first, verdict, final := v.static.first, v.static.verdict, v.static.final
	for i, r := range rows {
		found.first[i], found.verdict[i], found.final[i] = first[r], verdict[r], final[r]
	}
	for k := range v.dynamic.filters {
		v.dynamic.filters[k].run(rows, found)
	}
	for k := range v.dynamic.scorers {
		if s := &v.dynamic.scorers[k]; s.NormalizeScore != nil {
			s.write(v.dynamic.raw[k], rows, found)
		} else {
			s.add(rows, found)
		}
	}
	for _, c := range v.divided {
		cells := found.scores[:len(rows)]
		c.of(c.in, rows, cells)
		for i, cell := range cells {
			c.at[rows[i]] = cell
		}
	}
}
