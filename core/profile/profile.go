package profile

import (
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/object"
)

// Profile is the compiled configuration of one scheduler name. It does not change; the
// plugins of each extension point are in the order in which they run.
type Profile struct {
	// Name is the schedulerName that pods carry.
	Name string

	QueueSort  *framework.Plugin
	PreEnqueue []*framework.Plugin
	PreFilter  []*framework.Plugin // also those that are enabled at Filter alone
	RejectPod  []*framework.Plugin // those of PreFilter that have it
	Filter     []*framework.Plugin
	PostFilter []*framework.Plugin
	Quotas     *framework.QuotaRules // of the first plugin that has them; nil: ElasticQuotas are not followed
	Groups     *framework.GroupRules // of the first plugin that has them; nil: labels put no pod into a group
	PreScore   []*framework.Plugin
	Score      []Scorer
	Reserve    []*framework.Plugin
	Permit     []*framework.Plugin
	PreBind    []*framework.Plugin
	Bind       []*framework.Plugin
	PostBind   []*framework.Plugin

	// PodGroupPostFilter plugins make room for a pod group that does not fit.
	PodGroupPostFilter []*framework.Plugin
	// PlacementFeasible plugins say whether a pod group meets its constraints: all plugins
	// of the profile that implement it, by name.
	PlacementFeasible []*framework.Plugin
	// PlacementGenerate generates the placements for pod groups; nil: no plugin does.
	PlacementGenerate *framework.Plugin
	PlacementScore    []Scorer
	// Levels are the node labels of the tree of domains in which pod groups are kept together
	// (GroupTopology), widest first; nil: there is no tree.
	Levels []string
	// StrictBudgets is set if preemption never violates a PodDisruptionBudget
	// (PreemptionBudgets).
	StrictBudgets bool

	// Host runs the hosted plugins; nil: there are none.
	Host framework.Host

	// Watch, when set, returns the watcher that measures, for metrics, a plugin at Filter or Score
	// whose answers the engine computes without calling it.
	Watch func(pl *framework.Plugin, at Point) headroom.Watcher

	// Plugins holds every plugin above, once, by name.
	Plugins map[string]*framework.Plugin
}

// Scorer is a Score or a PlacementScore plugin and the weight of its score, at least 1.
type Scorer struct {
	*framework.Plugin
	Weight int64
}

// PointPlugins are the names of the plugins that run at one extension point, in their
// order, for reports of the configuration.
type PointPlugins struct {
	Point   string
	Plugins []string
}

// Enabled returns the plugins that run at each extension point, in the order of the points,
// those without plugins included. PreFilter also has those that the configuration enables
// at Filter alone.
func (p *Profile) Enabled() []PointPlugins {
	pluginsOf := func(scorers []Scorer) []*framework.Plugin {
		list := make([]*framework.Plugin, len(scorers))
		for i, s := range scorers {
			list[i] = s.Plugin
		}
		return list
	}
	alone := func(pl *framework.Plugin) []*framework.Plugin {
		if pl == nil {
			return nil
		}
		return []*framework.Plugin{pl}
	}
	var list []PointPlugins
	for _, at := range []struct {
		name    string
		plugins []*framework.Plugin
	}{
		{"PreEnqueue", p.PreEnqueue}, {"QueueSort", []*framework.Plugin{p.QueueSort}}, {"PreFilter", p.PreFilter},
		{"Filter", p.Filter}, {"PostFilter", p.PostFilter}, {"PreScore", p.PreScore}, {"Score", pluginsOf(p.Score)},
		{"Reserve", p.Reserve}, {"Permit", p.Permit}, {"PreBind", p.PreBind}, {"Bind", p.Bind}, {"PostBind", p.PostBind},
		{"PlacementGenerate", alone(p.PlacementGenerate)}, {"PlacementScore", pluginsOf(p.PlacementScore)},
		{"PodGroupPostFilter", p.PodGroupPostFilter},
	} {
		names := make([]string, len(at.plugins))
		for i, pl := range at.plugins {
			names[i] = pl.Name
		}
		list = append(list, PointPlugins{at.name, names})
	}
	return list
}

// Reads returns the kinds of objects that plugins of the profiles look up, sorted, each
// once: those that must be watched.
func Reads(profiles []*Profile) []object.Kind {
	var kinds []object.Kind
	for _, p := range profiles {
		for _, pl := range p.Plugins { // any order: sorted below
			kinds = append(kinds, pl.Reads.Kinds...)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}
