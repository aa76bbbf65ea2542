package profile

import (
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// Profile is the compiled configuration of one scheduler name. It is
// immutable; plugins appear in the order in which they run.
type Profile struct {
	// Name is the schedulerName that pods carry.
	Name string

	QueueSort  *framework.Plugin
	PreEnqueue []*framework.Plugin
	PreFilter  []*framework.Plugin
	Filter     []*framework.Plugin
	PostFilter []*framework.Plugin
	PreScore   []*framework.Plugin
	Score      []Scorer
	Reserve    []*framework.Plugin
	Permit     []*framework.Plugin
	PreBind    []*framework.Plugin
	Bind       []*framework.Plugin
	PostBind   []*framework.Plugin

	// Host runs the hosted plugins; nil: there are none.
	Host framework.Host

	// Plugins holds every plugin above, once, by name.
	Plugins map[string]*framework.Plugin
}

// Scorer is a Score plugin and the weight of its score, at least 1.
type Scorer struct {
	*framework.Plugin
	Weight int64
}

// PointPlugins are the plugins of an extension point, in the order in which they
// run.
type PointPlugins struct {
	Point   string
	Plugins []string
}

// Enabled lists the plugins by extension point.
func (p *Profile) Enabled() []PointPlugins {
	scorers := make([]*framework.Plugin, len(p.Score))
	for i, s := range p.Score {
		scorers[i] = s.Plugin
	}
	var list []PointPlugins
	for _, at := range []struct {
		name    string
		plugins []*framework.Plugin
	}{
		{"PreEnqueue", p.PreEnqueue}, {"QueueSort", []*framework.Plugin{p.QueueSort}}, {"PreFilter", p.PreFilter},
		{"Filter", p.Filter}, {"PostFilter", p.PostFilter}, {"PreScore", p.PreScore}, {"Score", scorers},
		{"Reserve", p.Reserve}, {"Permit", p.Permit}, {"PreBind", p.PreBind}, {"Bind", p.Bind}, {"PostBind", p.PostBind},
	} {
		names := make([]string, len(at.plugins))
		for i, pl := range at.plugins {
			names[i] = pl.Name
		}
		list = append(list, PointPlugins{at.name, names})
	}
	return list
}

// Reads lists the kinds of objects that plugins of the profiles look up.
func Reads(profiles []*Profile) []object.Kind {
	var kinds []object.Kind
	for _, p := range profiles {
		for _, pl := range p.Plugins { // any order: sorted below
			kinds = append(kinds, pl.Reads...)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}
