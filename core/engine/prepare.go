package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/core/answers"
	"github.com/berth-scheduler/berth/core/classes"
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// preFiltered holds the merged results of PreFilter plugins.
type preFiltered struct {
	// rejected is set when a plugin rejects every pod of the class, or fails, or no node is left.
	// In a decision it may also be the status of RejectPod.
	rejected *decision.Status
	// narrowed, when not nil, names the only nodes to consider; narrowedBy are the plugins
	// that restricted them.
	narrowed   []string
	narrowedBy []string
}

// prepare runs PreFilter and PreScore of native plugins for the pod's class and returns a view with
// their states. No row is evaluated. If a PreFilter rejects the class or fails, rejected is set and
// PreScore does not run; if a PreScore fails, failed is set.
func prepare(t *table.Table, k *classes.Keys, pod *object.Pod) *view {
	v := &view{table: t, keys: k, pod: pod}
	v.runPreFilter(t, pod)
	if v.rejected == nil {
		v.runPreScore(t, pod)
		v.assignColumns()
	}
	v.columnRevision, v.epochs = t.ColumnRevision(), k.Epoch(t)
	return v
}

// runPreFilter runs the native PreFilter plugins and lists the filters that they do not skip,
// hosted ones included. As kube-scheduler's RunPreFilterPlugins it ends at an
// UnschedulableAndUnresolvable or an Error, and continues after an Unschedulable. Where it ends it
// lists no filter.
func (v *view) runPreFilter(t *table.Table, pod *object.Pod) {
	var room [usualPlugins]framework.PreFilterResult
	prepared := room[:0] // as the profile lists the plugins
	for _, pl := range v.keys.Profile.PreFilter {
		if isHosted(pl) {
			prepared = append(prepared, framework.PreFilterResult{})
			continue
		}
		out := pl.PreFilter(t, pod)
		prepared = append(prepared, out)
		if !v.take(pl.Name, out) {
			break
		}
	}
	if v.keys.Profile.Host != nil {
		v.preFilterResults = slices.Clone(prepared)
	}
	if v.rejected != nil && v.rejected.Code != decision.Unschedulable {
		return
	}
	var roomToo [usualPlugins]filter
	filters := roomToo[:0]
	for _, pl := range v.keys.Profile.Filter {
		f := filter{Plugin: pl, in: framework.Input{Table: t, Pod: pod}, position: int16(len(filters) + 1), hosted: isHosted(pl)}
		if f.hosted {
			filters = append(filters, f)
			continue
		}
		var out framework.PreFilterResult
		if i := slices.Index(v.keys.Profile.PreFilter, pl); i >= 0 {
			out = prepared[i]
		}
		if f.in.State, f.in.Rules, f.alone = out.State, out.Rules, out.Alone; !out.Skip {
			v.fallible = v.fallible || pl.ErrorsFrom != 0
			filters = append(filters, f)
		}
	}
	v.filters = append([]filter(nil), filters...) // most plugins have nothing to say of most pods
}

// usualPlugins is the number of plugins up to which prepare needs no allocation for its
// lists.
const usualPlugins = 24

// isHosted reports whether the plugin is hosted: it may read anything, so it is asked
// afresh in each decision.
func isHosted(pl *framework.Plugin) bool { return pl.Locality == framework.Anything }

// take adds the result out of one PreFilter plugin to v. It returns false if no further PreFilter
// plugin is to be asked: the pod is rejected for good, or no node is left.
func (v *preFiltered) take(plugin string, out framework.PreFilterResult) bool {
	if out.Status != nil && out.Status.Code != decision.Success {
		return v.reject(plugin, *out.Status)
	}
	if out.Skip || out.NodeNames == nil {
		return true
	}
	if v.narrow(plugin, out.NodeNames); len(v.narrowed) > 0 {
		return true
	}
	v.rejected = &decision.Status{
		Code: decision.UnschedulableAndUnresolvable, Plugin: plugin,
		Reasons: []string{noNodesLeft(v.narrowedBy)},
	}
	return false
}

// reject records a PreFilter plugin's failing status, and reports whether the next plugin
// is to be asked. Of several Unschedulable the last counts. Any other status drops what
// earlier plugins returned.
func (v *preFiltered) reject(plugin string, s decision.Status) bool {
	s.Plugin = plugin
	switch s.Code {
	case decision.Unschedulable:
		v.rejected = &s
		return true
	case decision.Error:
		s = *failed("PreFilter", plugin, &s)
	}
	*v = preFiltered{rejected: &s}
	return false
}

// narrow restricts the pod to the nodes that the plugin's PreFilter names: narrowed keeps those
// that every such plugin names. It records the plugin, for the reason if no node is left.
func (v *preFiltered) narrow(plugin string, nodes []string) {
	v.narrowedBy = append(v.narrowedBy, plugin)
	if v.narrowed == nil {
		v.narrowed = append([]string{}, nodes...)
		return
	}
	keep := map[string]bool{}
	for _, n := range nodes {
		keep[n] = true
	}
	v.narrowed = slices.DeleteFunc(v.narrowed, func(n string) bool { return !keep[n] })
}

// runPreScore runs PreScore of native score plugins and lists the score plugins that it does not
// skip. If one fails, failed is set and the rest is left out.
func (v *view) runPreScore(t *table.Table, pod *object.Pod) {
	var room [usualPlugins]scorer
	scorers := room[:0]
	defer func() { v.scorers = append([]scorer(nil), scorers...) }()
	for _, s := range v.keys.Profile.Score {
		if isHosted(s.Plugin) {
			continue
		}
		var out framework.PreScoreResult
		if s.PreScore != nil {
			out = s.PreScore(t, pod)
		}
		if out.Status != nil && out.Status.Code != decision.Success {
			v.failed = failed("PreScore", s.Name, out.Status)
			return
		}
		if !out.Skip {
			scorers = append(scorers, scorer{
				Plugin: s.Plugin, in: framework.Input{Table: t, Pod: pod, State: out.State}, headroom: out.Headroom, weight: s.Weight,
			})
		}
	}
}

// newColumn returns a new column (a value of each row) of the view's index.
func (v *view) newColumn() column {
	v.columns++
	return column{kept: true, at: v.columns - 1}
}

// assignColumns assigns a column of the index, for raw scores, to each scorer that is normalised,
// so that they can be normalised later over the feasible rows. Scorers with partitions get the
// first columns. It also lists the plugins that answer by cells, and the hosted filters, and sets
// highest.
func (v *view) assignColumns() {
	for k := range v.scorers { // those with partitions first: their values are known
		if s := &v.scorers[k]; s.NormalizeScore != nil && s.CellScore == nil && answers.Keeps(s.Plugin) {
			s.column = v.newColumn()
		}
	}
	for k := range v.scorers {
		switch s := &v.scorers[k]; {
		case s.column.kept:
		case s.CellScore != nil:
			s.cells = v.addCells(&s.in, s.CellScore.Sync, s.CellScore.Cells)
		case s.NormalizeScore == nil:
			v.highest += maxScore * s.weight
		default:
			s.column = v.newColumn()
		}
	}
	for k := range v.filters {
		if f := &v.filters[k]; f.CellFilter != nil {
			f.cells = v.addCells(&f.in, f.CellFilter.Sync, f.CellFilter.Cells)
			v.cellFilters = append(v.cellFilters, f)
		} else if f.hosted {
			v.hostedFilters = append(v.hostedFilters, f)
		}
	}
}

// noNodesLeft returns kube-scheduler's reason for a pod for which the PreFilter plugins name no
// common node.
func noNodesLeft(plugins []string) string {
	if len(plugins) == 1 {
		return "node(s) didn't satisfy plugin " + plugins[0]
	}
	sorted := slices.Sorted(slices.Values(plugins))
	return fmt.Sprintf("node(s) didn't satisfy plugin(s) [%s] simultaneously", strings.Join(sorted, " "))
}

// failed returns an Error status for a plugin that failed at the extension point, with
// kube-scheduler's message.
func failed(point, plugin string, s *decision.Status) *decision.Status {
	err := s.Err
	if err == nil {
		err = errors.New(strings.Join(s.Reasons, ", "))
	}
	return &decision.Status{Code: decision.Error, Plugin: plugin, Point: point, Err: fmt.Errorf("running %s plugin %q: %w", point, plugin, err)}
}
