package profile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/berth-scheduler/berth/core/framework"
)

// Factory returns a new plugin for its arguments: the Value that Config.Args holds for the
// plugin, nil if it holds none.
type Factory func(args any) (*framework.Plugin, error)

// Registry holds, by name, the factories of the plugins that a configuration may enable.
type Registry map[string]Factory

// Config is what a profile is built from: one profile of the configuration
// file, with the default plugins merged in.
type Config struct {
	// Name is the schedulerName that pods carry.
	Name string
	// MultiPoint enables plugins at every point that they implement.
	MultiPoint Set
	// Points enables and disables plugins at single extension points, by Point.
	Points [Points]Set
	// Args are the plugin arguments; each plugin may occur once.
	Args []Args
	// Own holds factories for this profile alone, which come before the registry's.
	Own Registry
}

// Set enables and disables plugins, as a PluginSet of the configuration file.
type Set struct {
	Enabled []Enabled
	// Disabled names plugins that MultiPoint enables and that are not to run at this point;
	// "*" means all. MultiPoint's own Disabled is not read: it was applied when defaults
	// were merged in.
	Disabled []string
}

// Enabled is one enabled plugin. Weight matters only at Score and PlacementScore; 0 means
// 1.
type Enabled struct {
	Plugin string
	Weight int64
}

// Args are the arguments of one plugin (pluginConfig), in the form that its factory
// expects.
type Args struct {
	Plugin string
	Value  any
}

// BuildAll builds every profile of a configuration, at least one, in its order. Each must have a
// name of its own. As there is one queue, all must have the same QueueSort plugin with the same
// arguments; this is checked last. The error lists all problems, in the order of the profiles.
func BuildAll(configs []Config, registry Registry) ([]*Profile, error) {
	if len(configs) == 0 {
		return nil, errors.New("at least one profile is required")
	}
	var profiles []*Profile
	var errs []error
	names := map[string]bool{}
	for i := range configs {
		name := configs[i].Name
		p, err := Build(&configs[i], registry)
		switch {
		case name == "":
			err = errors.New("scheduler name is needed")
		case names[name]:
			err = fmt.Errorf("duplicate profile with scheduler name %q", name)
		case err != nil:
			err = fmt.Errorf("creating profile for scheduler name %s: %w", name, err)
		default:
			profiles = append(profiles, p)
		}
		if names[name] = true; err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		errs = sameQueueSort(configs, profiles)
	}
	if len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	return profiles, nil
}

// sameQueueSort returns an error for each profile whose QueueSort plugin or its arguments
// differ from the first profile's.
func sameQueueSort(configs []Config, profiles []*Profile) []error {
	var errs []error
	first := profiles[0].QueueSort.Name
	for i, p := range profiles[1:] {
		switch sort := p.QueueSort.Name; {
		case sort != first:
			errs = append(errs, fmt.Errorf("different queue sort plugins for profile %q: %q, first: %q", p.Name, sort, first))
		case !reflect.DeepEqual(configs[0].args(sort), configs[i+1].args(sort)):
			errs = append(errs, fmt.Errorf("different queue sort plugin args for profile %q", p.Name))
		}
	}
	return errs
}

// args returns the arguments to make the plugin with, nil if the configuration has none.
func (c *Config) args(plugin string) any {
	for _, a := range c.Args {
		if a.Plugin == plugin {
			return a.Value
		}
	}
	return nil
}

// Build makes one profile. Plugins that no point enables are not made. The error lists the plugins
// that cannot be made or, if all can, the other problems, by point and plugin, in kube-scheduler's
// words.
func Build(c *Config, registry Registry) (*Profile, error) {
	plugins, errs := c.makePlugins(registry)
	if len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	var lists [Points][]*framework.Plugin
	var failed [Points]bool
	for pt := range Points {
		if pointErrs := c.checkPoint(pt, plugins); len(pointErrs) > 0 {
			errs, failed[pt] = append(errs, pointErrs...), true
			continue
		}
		for _, name := range c.order(pt, plugins) {
			lists[pt] = append(lists[pt], plugins[name])
		}
	}
	if n := len(lists[QueueSort]); n != 1 && !failed[QueueSort] {
		errs = append(errs, fmt.Errorf("only one queue sort plugin required for profile with scheduler name %q, but got %d", c.Name, n))
	}
	if len(lists[Bind]) == 0 && !failed[Bind] {
		errs = append(errs, fmt.Errorf("at least one bind plugin is needed for profile with scheduler name %q", c.Name))
	}
	if len(lists[PlacementGenerate]) > 1 {
		errs = append(errs, fmt.Errorf("at most one placement generate plugin is allowed for profile with scheduler name %q", c.Name))
	}
	levels, err := c.topologyLevels()
	if err != nil {
		errs = append(errs, err)
	}
	strict, err := c.strictBudgets()
	if err != nil {
		errs = append(errs, err)
	}
	scorers, err := c.weigh(Score, lists[Score])
	if err != nil {
		errs = append(errs, fmt.Errorf("score plugins: %w", err))
	}
	placementScorers, err := c.weigh(PlacementScore, lists[PlacementScore])
	if err != nil {
		errs = append(errs, fmt.Errorf("placement score plugins: %w", err))
	}
	if len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	p := newProfile(c.Name, lists, scorers, placementScorers)
	p.Levels, p.StrictBudgets = levels, strict
	return p, nil
}

// newProfile returns the profile with the plugins of each extension point, in order, and
// the weighted ones of Score and PlacementScore.
func newProfile(name string, lists [Points][]*framework.Plugin, scorers, placementScorers []Scorer) *Profile {
	p := &Profile{
		Name:       name,
		QueueSort:  lists[QueueSort][0],
		PreEnqueue: lists[PreEnqueue],
		PreFilter:  withFilters(lists[PreFilter], lists[Filter]),
		Filter:     lists[Filter],
		PostFilter: lists[PostFilter],
		PreScore:   lists[PreScore],
		Score:      scorers,
		Reserve:    lists[Reserve],
		Permit:     lists[Permit],
		PreBind:    lists[PreBind],
		Bind:       lists[Bind],
		PostBind:   lists[PostBind],
		Plugins:    map[string]*framework.Plugin{},

		PlacementScore: placementScorers,

		PodGroupPostFilter: lists[PodGroupPostFilter],
	}
	for _, pl := range p.PreFilter {
		if pl.RejectPod != nil {
			p.RejectPod = append(p.RejectPod, pl)
			p.Quotas = cmp.Or(p.Quotas, pl.Reads.Quotas)
		}
	}
	if generators := lists[PlacementGenerate]; len(generators) > 0 {
		p.PlacementGenerate = generators[0]
	}
	for _, list := range lists {
		for _, plugin := range list {
			if p.Plugins[plugin.Name] = plugin; plugin.Hosted != nil {
				p.Host = plugin.Hosted.Host
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Plugins)) {
		pl := p.Plugins[name]
		p.Groups = cmp.Or(p.Groups, pl.Reads.Groups)
		if pl.PodGroup != nil && pl.PodGroup.PlacementFeasible != nil {
			p.PlacementFeasible = append(p.PlacementFeasible, pl)
		}
	}
	return p
}

// withFilters returns the plugins whose PreFilter runs: those enabled at PreFilter, and then those
// enabled at Filter alone that have a PreFilter, since the filter needs the state that it makes. In
// kube-scheduler most such filters fail every attempt. A hosted plugin runs only where it is
// enabled.
func withFilters(preFilters, filters []*framework.Plugin) []*framework.Plugin {
	all := slices.Clip(preFilters)
	for _, pl := range filters {
		if pl.PreFilter != nil && pl.Hosted == nil && !slices.Contains(preFilters, pl) {
			all = append(all, pl)
		}
	}
	return all
}

// makePlugins makes each plugin that some point or MultiPoint enables, once. It returns them by
// name, and an error for each that cannot be made, or that has arguments twice.
func (c *Config) makePlugins(registry Registry) (map[string]*framework.Plugin, []error) {
	var errs []error
	seen := map[string]bool{}
	for _, a := range c.Args {
		if seen[a.Plugin] {
			errs = append(errs, fmt.Errorf("repeated config for plugin %s", a.Plugin))
		}
		seen[a.Plugin] = true
	}
	enabledAt := map[string]string{} // the first that names the plugin
	for _, e := range c.MultiPoint.Enabled {
		enabledAt[e.Plugin] = "MultiPointPlugin"
	}
	for pt := range Points {
		for _, e := range c.Points[pt].Enabled {
			if enabledAt[e.Plugin] == "" {
				enabledAt[e.Plugin] = pt.kind()
			}
		}
	}
	plugins := map[string]*framework.Plugin{}
	for _, name := range slices.Sorted(maps.Keys(enabledAt)) {
		factory, ok := c.Own[name]
		if !ok {
			factory, ok = registry[name]
		}
		if !ok {
			errs = append(errs, fmt.Errorf("%s %q does not exist", enabledAt[name], name))
			continue
		}
		plugin, err := factory(c.args(name))
		if err == nil {
			err = checkPlugin(name, plugin)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("initializing plugin %q: %w", name, err))
			continue
		}
		plugins[name] = plugin
	}
	return plugins, errs
}

// checkPlugin returns an error if the fields of the plugin that the registry has under the
// name contradict each other or are incomplete.
func checkPlugin(name string, p *framework.Plugin) error {
	switch {
	case p == nil:
		return errors.New("its factory returned no plugin")
	case p.Name != name:
		return fmt.Errorf("it is registered under this name, but its Name is %q", p.Name)
	case (p.Filter != nil || p.CellFilter != nil) && p.Explain == nil:
		return errors.New("it has Filter, but no Explain")
	case p.RejectPod != nil && p.PreFilter == nil:
		return errors.New("it has RejectPod, but no PreFilter")
	case p.Locality == framework.Domains && (p.Filter != nil || p.Score != nil):
		return errors.New("its Locality is Domains, which takes CellFilter and CellScore in place of Filter and Score")
	case p.Locality != framework.Domains && (p.CellFilter != nil || p.CellScore != nil):
		return errors.New("it has CellFilter or CellScore, but its Locality is not Domains")
	}
	return nil
}

// PointError is an error about a plugin that the configuration enables at one extension
// point.
type PointError struct {
	Point  Point
	Plugin string
	err    error // kube-scheduler's message
}

// Error returns kube-scheduler's message.
func (e *PointError) Error() string { return e.err.Error() }

// checkPoint returns an error for each plugin that is enabled at the extension point but does not
// implement it, or is enabled there twice. MultiPoint may enable what the point itself enables.
func (c *Config) checkPoint(pt Point, plugins map[string]*framework.Plugin) []error {
	var errs []error
	seen := map[string]bool{}
	for _, e := range c.Points[pt].Enabled {
		if !pt.implementedBy(plugins[e.Plugin]) {
			errs = append(errs, &PointError{pt, e.Plugin, fmt.Errorf("plugin %q does not extend %s plugin", e.Plugin, pt.kind())})
		} else if seen[e.Plugin] {
			errs = append(errs, &PointError{pt, e.Plugin, fmt.Errorf("plugin %q already registered as %q", e.Plugin, pt.kind())})
		}
		seen[e.Plugin] = true
	}
	for _, name := range duplicates(c.fromMultiPoint(pt, plugins)) {
		if !seen[name] { // what the point enables itself, MultiPoint may repeat
			errs = append(errs, fmt.Errorf("plugin %q already registered as %q", name, pt.kind()))
		}
	}
	return errs
}

// duplicates returns the names that occur more than once in the list, each once.
func duplicates(names []string) []string {
	var again []string
	count := map[string]int{}
	for _, name := range names {
		if count[name]++; count[name] == 2 {
			again = append(again, name)
		}
	}
	return again
}

// fromMultiPoint returns the plugins that MultiPoint enables at an extension point, in its
// order: those that implement the point and are not disabled there.
func (c *Config) fromMultiPoint(pt Point, plugins map[string]*framework.Plugin) []string {
	disabled := c.Points[pt].Disabled
	if slices.Contains(disabled, "*") {
		return nil
	}
	var names []string
	for _, e := range c.MultiPoint.Enabled {
		if pt.implementedBy(plugins[e.Plugin]) && !slices.Contains(disabled, e.Plugin) {
			names = append(names, e.Plugin)
		}
	}
	return names
}

// order returns the plugins of an extension point in kube-scheduler's order: first those that both
// the point and MultiPoint enable, in the point's order, then the rest of MultiPoint's,
// then the rest of the point's.
func (c *Config) order(pt Point, plugins map[string]*framework.Plugin) []string {
	multi := c.fromMultiPoint(pt, plugins)
	var own, both, rest []string
	for _, e := range c.Points[pt].Enabled {
		own = append(own, e.Plugin)
		if slices.Contains(multi, e.Plugin) {
			both = append(both, e.Plugin)
		} else {
			rest = append(rest, e.Plugin)
		}
	}
	multi = slices.DeleteFunc(multi, func(name string) bool { return slices.Contains(own, name) })
	return slices.Concat(both, multi, rest)
}

// maxScore is the highest score of a plugin for a node, before the weight.
const maxScore = 100

// weigh returns the plugins of the point, Score or PlacementScore, with their weights: the
// weight that the point configures, else MultiPoint's; 0 counts as 1. It returns an error
// if a weight is negative or a total could overflow.
func (c *Config) weigh(pt Point, plugins []*framework.Plugin) ([]Scorer, error) {
	weights := map[string]int64{}
	for _, e := range slices.Concat(c.Points[pt].Enabled, c.MultiPoint.Enabled) {
		if _, ok := weights[e.Plugin]; !ok {
			weights[e.Plugin] = e.Weight
		}
	}
	var scorers []Scorer
	room := int64(math.MaxInt64)
	for _, p := range plugins {
		weight := weights[p.Name]
		if weight < 0 {
			return nil, fmt.Errorf("weight of plugin %q must not be negative, but is %d", p.Name, weight)
		}
		weight = max(weight, 1)
		if weight > room/maxScore {
			return nil, fmt.Errorf("total score of %s plugins could overflow", pt)
		}
		room -= weight * maxScore
		scorers = append(scorers, Scorer{Plugin: p, Weight: weight})
	}
	return scorers, nil
}
