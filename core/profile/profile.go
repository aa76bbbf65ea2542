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
