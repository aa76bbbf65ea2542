package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// maxScore is the most that a plugin may score after normalising.
const maxScore = 100

// Engine keeps the views of one table. It belongs to the table's owner.
type Engine struct {
	table   *table.Table
	seed    uint64
	workers int
	budget  int  // rows that all views together may hold
	excess  int  // rows that views count for because of their words
	plain   bool // nothing is kept

	views    map[string]*view
	statics  map[string]*static
	seen     map[uint64]struct{} // hashes of the keys of classes that came by
	guest    *view               // the one in use, if it is not kept
	readings map[*profile.Profile]*reading
	guests   map[string]*view // those not kept that were made ahead of their turn
	spares   []*spare
	ahead    []*view // brought up to date ahead of their turn
	clock    uint64
	keyBuf   []byte
	found    []scratch // by worker
	asked    int       // rows looked at for the last decision
	tied     []table.Row
	list     []table.Row
	extremes []extremes
	learnt   uint64  // the nominations' revision
	swept    uint64  // how often the table's terms were
	keeping  []*view // for which plugins keep something, the oldest first
}

// New returns an engine over the table. The seed decides among equals;
// workers is how many cores a full evaluation may use.
func New(t *table.Table, seed uint64, workers int) *Engine {
	return &Engine{table: t, seed: seed, workers: max(1, workers), budget: viewRows, views: map[string]*view{}, statics: map[string]*static{}, seen: map[uint64]struct{}{},
		guests: map[string]*view{}, readings: map[*profile.Profile]*reading{}, found: make([]scratch, max(1, workers))}
}

// Reset forgets every view. Decisions stay the same; the next ones are slower.
func (e *Engine) Reset() {
	clear(e.views)
	e.excess = 0
	clear(e.statics)
	clear(e.guests)
	e.guest, e.ahead, e.keeping = nil, e.ahead[:0], nil
}

// Outcome is the answer for one pod. It is valid until the table changes.
type Outcome struct {
	engine  *Engine
	view    *view
	pod     *object.Pod
	blocked map[table.Row]block // by nominated pods; overrides the view
	// nominated counts on every row once complete; until then rows that are
	// infeasible anyway have not been looked at with nominated pods placed.
	// rest is what they come to there, where it is another first blocker.
	nominated Nominations
	// considered: feasible rows have been looked at.
	considered bool
	complete   bool
	rest       map[table.Row]block
	codes      map[blockKey]decision.Code // asked for so far
	rows       []table.Row                // the only rows considered; nil: all
	review     *review                    // what extenders say; nil: nothing

	// Row is the chosen node, -1 when there is none.
	Row table.Row
	// Feasible is the number of nodes that passed every filter.
	Feasible int
	// Score is the chosen node's total, Ties the number of nodes that have
	// it. Both are 0 where a single node was feasible: nothing was scored.
	Score int64
	Ties  int
	// Rejected is set when the pod was rejected as a whole (PreFilter), or
	// deciding failed (Code Error).
	Rejected *decision.Status

	extremes []extremes  // of the raw scores over the feasible rows, by scorer; nil: not scored
	columns  [][]int64   // of raw scores, by scorer, while scanning
	list     []table.Row // the feasible rows, once listed; the engine's room
	listed   bool

	cellVerdicts map[cellKey]framework.Verdict // asked for so far
}

type block struct {
	filter  int16
	verdict framework.Verdict
}

// Decide evaluates every node for the pod and chooses the best. Pods of at
// least its priority that are nominated to a node count as placed there, but
// must not be needed for the pod to fit.
func (e *Engine) Decide(p *profile.Profile, pod *object.Pod, nominated Nominations) *Outcome {
	return e.decide(p, pod, nominated, nil)
}

func (e *Engine) decide(p *profile.Profile, pod *object.Pod, nominated Nominations, r *review) *Outcome {
	e.learn(nominated)
	if e.plain {
		return e.decidePlainly(p, pod, nominated, r)
	}
	v := e.viewOf(p, pod)
	o := &Outcome{engine: e, view: v, pod: pod, Row: -1, Rejected: v.class.rejected, review: r}
	if o.Rejected != nil {
		return o
	}
	o.nominated = nominated
	if v.class.narrowed != nil {
		o.rows = e.rowsOf(v.class.narrowed)
		v.look(e.table, o.rows, &e.found[0])
		e.asked = len(o.rows)
	} else {
		e.asked = v.refresh(e.table, e.workers, &e.found[0])
	}
	if row, ok := e.ownNomination(o); ok {
		o.Row, o.Feasible = row, 1
		return o
	}
	o.considerNominated()
	v.sync() // with nominated pods placed, the domains had other counts
	if o.Rejected = o.failure(); o.Rejected != nil {
		return o
	}
	if o.Feasible = o.countFeasible(); o.Feasible > 0 {
		o.pick()
	}
	return o
}

// viewOf finds or makes the view of the pod's class.
func (e *Engine) viewOf(p *profile.Profile, pod *object.Pod) *view {
	e.dismiss()
	e.clock++
	e.keyBuf = e.readingOf(p).appendKey(e.keyBuf[:0], e.table, pod)
	v := e.known()
	if v == nil {
		v = e.newView(p, pod)
	}
	if e.guests[v.class.key] == v {
		delete(e.guests, v.class.key)
		e.guest = v
	}
	return v
}

// known finds the view whose key is at hand, nil where there is none that
// still stands.
func (e *Engine) known() *view {
	if v := e.views[string(e.keyBuf)]; v != nil && v.current(e.table) {
		v.used = e.clock
		return v
	}
	if v := e.guests[string(e.keyBuf)]; v != nil {
		if v.current(e.table) {
			return v
		}
		e.takeBack(v)
	}
	return nil
}

// newView makes a view of the class whose key is at hand: to be kept, or a
// guest.
func (e *Engine) newView(p *profile.Profile, pod *object.Pod) *view {
	once := e.views[string(e.keyBuf)] == nil && e.firstSight()
	v := prepare(e.table, e.readingOf(p), pod, string(e.keyBuf))
	v.used = e.clock
	if v.class.rejected != nil {
		return v
	}
	v.stand(e.staticOf(v, p, pod))
	if v.passing() || (once && len(v.divided) == 0) {
		e.lend(v)
		return v
	}
	v.excess = v.wordy()
	e.drop(v.class.key)
	e.views[v.class.key] = v
	e.makeRoom(v)
	return v
}

// passing tells whether the view is for one decision and not kept: its class
// is narrowed to a few nodes and looked at on those alone, or its PreScore
// failed, which it may not the next time.
func (v *view) passing() bool { return v.class.narrowed != nil || v.failed != nil }

// staticOf finds or makes the static part for the view's class.
func (e *Engine) staticOf(v *view, p *profile.Profile, pod *object.Pod) *static {
	s := newStatic(e.table, v)
	if v.passing() {
		return s
	}
	e.keyBuf = e.readingOf(p).appendStaticKey(e.keyBuf[:0], e.table, pod)
	e.keyBuf = binary.AppendUvarint(e.keyBuf, v.epochs)
	e.keyBuf = binary.AppendUvarint(e.keyBuf, v.columns)
	if known := e.statics[string(e.keyBuf)]; known != nil && known.agrees(s) {
		return known
	}
	s.key = string(e.keyBuf)
	e.statics[s.key] = s
	v.static = s
	e.dropStatics(v)
	return s
}

// agrees tells whether two parts have the same plugins and their filters the
// same places in the order: a plugin that looks at pods and is skipped moves
// them, one whose PreScore fails leaves out those after it.
func (s *static) agrees(o *static) bool {
	return slices.EqualFunc(s.filters, o.filters, func(a, b filter) bool { return a.place == b.place && a.Plugin == b.Plugin }) &&
		slices.EqualFunc(s.scorers, o.scorers, func(a, b scorer) bool { return a.Plugin == b.Plugin })
}

// look evaluates a few rows of a view that is not kept.
func (v *view) look(t *table.Table, rows []table.Row, found *scratch) {
	v.sync()
	v.static.scattered = true
	v.static.size(t.Rows())
	v.causes.reset() // they may be those of another view
	if !v.scattered() {
		v.final = append(v.lent.final[:0], 0)
	}
	v.size(t.Rows())
	for _, r := range rows {
		v.at[r] = vacant // others may stand as they did in another view
	}
	for rows := range slices.Chunk(rows, chunk) {
		found.size(len(rows))
		v.static.evaluate(rows, found)
		v.static.keep(rows, found)
		v.evaluate(rows, found)
		v.seat(rows, found)
	}
}

// rowsOf returns the rows of those names that are nodes, sorted.
func (e *Engine) rowsOf(names []string) []table.Row {
	rows := make([]table.Row, 0, len(names))
	for _, n := range names {
		if r, ok := e.table.Find(n); ok {
			rows = append(rows, r)
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

// firstBlock runs the filters on one row of the table as it stands.
func firstBlock(filters []filter, row table.Row) (block, bool) {
	for k := range filters {
		if v := filters[k].verdictAt(row); v != framework.Fits {
			return block{filters[k].place, v}, true
		}
	}
	return block{}, false
}

// ownNomination returns the node that the pod itself is nominated to, if it
// is feasible: it is then taken without looking at the others.
func (e *Engine) ownNomination(o *Outcome) (table.Row, bool) {
	if o.pod.NominatedNode == "" || o.review != nil {
		return -1, false
	}
	r, ok := e.table.Find(o.pod.NominatedNode)
	if !ok || (o.rows != nil && !slices.Contains(o.rows, r)) || !o.view.at[r].feasible() {
		return -1, false
	}
	if o.nominated != nil {
		_, blocks := o.tryNominated(r)
		if o.view.sync(); blocks {
			return -1, false
		}
	}
	return r, o.fits(r)
}

// fits tells whether the row is feasible.
func (o *Outcome) fits(r table.Row) bool {
	return o.passesFilters(r) && (o.review == nil || o.review.passes(r))
}

func (o *Outcome) passesFilters(r table.Row) bool {
	if len(o.view.cellFilters) > 0 {
		return o.blockAt(r).filter == feasible
	}
	return o.view.at[r].feasible() && !o.isBlocked(r)
}

func (o *Outcome) isBlocked(r table.Row) bool {
	if o.blocked == nil {
		return false
	}
	_, blocked := o.blocked[r]
	return blocked
}

func (o *Outcome) countFeasible() int {
	if o.grouped() {
		return o.view.judge()
	}
	if o.rows == nil && o.review == nil && len(o.view.cellFilters) == 0 {
		return o.view.feasible - len(o.blocked)
	}
	return len(o.feasibleRows())
}

// grouped tells whether the view's groups speak for this decision.
func (o *Outcome) grouped() bool {
	return !o.view.scattered() && o.blocked == nil && o.rows == nil && o.review == nil
}

// candidates is the number of rows to look at, candidate the i-th of them.
func (o *Outcome) candidates() int {
	if o.rows != nil {
		return len(o.rows)
	}
	return len(o.view.at)
}

func (o *Outcome) candidate(i int) table.Row {
	if o.rows != nil {
		return o.rows[i]
	}
	return table.Row(i)
}

// feasibleRows lists the feasible rows, in order.
func (o *Outcome) feasibleRows() []table.Row {
	if o.listed {
		return o.list
	}
	list := o.engine.list[:0]
	if o.rows == nil && o.blocked == nil && o.review == nil && len(o.view.cellFilters) == 0 {
		for r, at := range o.view.at {
			if at.feasible() {
				list = append(list, table.Row(r))
			}
		}
	} else {
		for i, n := 0, o.candidates(); i < n; i++ {
			if r := o.candidate(i); o.fits(r) {
				list = append(list, r)
			}
		}
	}
	o.list, o.listed, o.engine.list = list, true, list
	return list
}

// emptied is v1.36's reason when PreFilter plugins leave no node between them.
func emptied(plugins []string) string {
	if len(plugins) == 1 {
		return "node(s) didn't satisfy plugin " + plugins[0]
	}
	sorted := slices.Sorted(slices.Values(plugins))
	return fmt.Sprintf("node(s) didn't satisfy plugin(s) [%s] simultaneously", strings.Join(sorted, " "))
}

// leftOut is v1.36's reason on nodes that PreFilter plugins left out.
func leftOut(plugins []string) string {
	sorted := slices.Sorted(slices.Values(plugins))
	return fmt.Sprintf("node(s) didn't satisfy plugin(s) [%s]", strings.Join(sorted, " "))
}

// failure words an Error status as kube-scheduler does.
func failure(point, plugin string, s *decision.Status) *decision.Status {
	err := s.Err
	if err == nil {
		err = errors.New(strings.Join(s.Reasons, ", "))
	}
	return &decision.Status{Code: decision.Error, Plugin: plugin, Err: fmt.Errorf("running %s plugin %q: %w", point, plugin, err)}
}

func outOfRange(plugin string, score int64) *decision.Status {
	return &decision.Status{
		Code: decision.Error, Plugin: plugin,
		Err: fmt.Errorf("plugin %q returns an invalid score %d, it should in the range of [0, %d] after normalizing", plugin, score, maxScore),
	}
}
