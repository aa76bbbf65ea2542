package config

import (
	"slices"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// point is one list of plugins in a profile: its name in the file, and where it stands in the core.
type point struct {
	name string
	set  *configv1.PluginSet
	at   profile.Point // profile.Points for MultiPoint
}

// target is the list's place in the core's form of the profile.
func (pt point) target(c *profile.Config) *profile.Set {
	if pt.at == profile.Points {
		return &c.MultiPoint
	}
	return &c.Points[pt.at]
}

// points lists the plugin sets of a profile: MultiPoint first, then the extension points in the
// order in which a pod meets them.
func points(p *configv1.Plugins) []point {
	return []point{
		{"multiPoint", &p.MultiPoint, profile.Points},
		{"preEnqueue", &p.PreEnqueue, profile.PreEnqueue},
		{"queueSort", &p.QueueSort, profile.QueueSort},
		{"preFilter", &p.PreFilter, profile.PreFilter},
		{"filter", &p.Filter, profile.Filter},
		{"postFilter", &p.PostFilter, profile.PostFilter},
		{"preScore", &p.PreScore, profile.PreScore},
		{"score", &p.Score, profile.Score},
		{"reserve", &p.Reserve, profile.Reserve},
		{"permit", &p.Permit, profile.Permit},
		{"preBind", &p.PreBind, profile.PreBind},
		{"bind", &p.Bind, profile.Bind},
		{"postBind", &p.PostBind, profile.PostBind},
		{"placementGenerate", &p.PlacementGenerate, profile.PlacementGenerate},
		{"placementScore", &p.PlacementScore, profile.PlacementScore},
		{"podGroupPostFilter", &p.PodGroupPostFilter, profile.PodGroupPostFilter},
	}
}

// enabledNames lists the plugins that any point of a profile enables, sorted.
func enabledNames(p *configv1.Plugins) []string {
	var enabled []string
	for _, pt := range points(p) {
		for _, plugin := range pt.set.Enabled {
			enabled = append(enabled, plugin.Name)
		}
	}
	slices.Sort(enabled)
	return slices.Compact(enabled)
}

// defaultPlugins is v1.37's default profile: one MultiPoint set, whose order is the order of
// evaluation at every extension point.
func (r Reader) defaultPlugins() *configv1.Plugins {
	plugin := func(name string) configv1.Plugin { return configv1.Plugin{Name: name} }
	scored := func(name string, weight int32) configv1.Plugin { return configv1.Plugin{Name: name, Weight: &weight} }

	enabled := []configv1.Plugin{
		plugin(names.SchedulingGates),
		plugin(names.PrioritySort),
		plugin(names.NodeName),
		plugin(names.NodeUnschedulable),
		scored(names.TaintToleration, 3),
		scored(names.NodeAffinity, 2),
		plugin(names.NodePorts),
		scored(names.NodeResourcesFit, 1),
		plugin(names.VolumeRestrictions),
		plugin(names.NodeVolumeLimits),
		plugin(names.VolumeBinding),
		plugin(names.VolumeZone),
		scored(names.PodTopologySpread, 2),
		scored(names.InterPodAffinity, 2),
	}
	if r.gates.Enabled(features.DynamicResourceAllocation) {
		// Before DefaultPreemption: an idle claim is freed sooner than a running pod is evicted.
		enabled = append(enabled, scored(names.DynamicResources, 2))
	}
	enabled = append(enabled,
		plugin(names.DefaultPreemption),
		scored(names.NodeResourcesBalancedAllocation, 1),
		scored(names.ImageLocality, 1),
		plugin(names.DefaultBinder),
	)
	if r.gates.Enabled(features.NodeDeclaredFeatures) {
		enabled = append(enabled, plugin(names.NodeDeclaredFeatures))
	}
	if r.gates.Enabled(features.GenericWorkload) {
		enabled = append(enabled, plugin(names.GangScheduling))
	}
	if r.gates.Enabled(features.TopologyAwareWorkloadScheduling) {
		enabled = append(enabled, plugin(names.TopologyPlacementGenerator), scored(names.PodGroupPodsCount, 1))
	}
	return &configv1.Plugins{MultiPoint: configv1.PluginSet{Enabled: enabled}}
}

// mergePlugins lays a profile's own plugin sets over the default ones.
func mergePlugins(defaults, custom *configv1.Plugins) *configv1.Plugins {
	if custom == nil {
		return defaults
	}
	merged := &configv1.Plugins{}
	from, over := points(defaults), points(custom)
	for i, pt := range points(merged) {
		*pt.set = mergePluginSet(*from[i].set, *over[i].set)
	}
	return merged
}

// mergePluginSet follows v1.37: a disabled default (by name, or all by "*") goes; a default that
// the profile enables itself keeps its place and takes the profile's weight; all else that the
// profile enables follows, in its order. Repetitions stay, for the profile's builder to reject.
func mergePluginSet(defaults, custom configv1.PluginSet) configv1.PluginSet {
	var merged configv1.PluginSet
	for _, d := range slices.Concat(custom.Disabled, defaults.Disabled) {
		merged.Disabled = append(merged.Disabled, configv1.Plugin{Name: d.Name})
	}
	disabled := func(name string) bool {
		return slices.ContainsFunc(merged.Disabled, func(d configv1.Plugin) bool { return d.Name == name })
	}

	replaced := map[int]bool{}
	for _, plugin := range defaults.Enabled {
		if disabled("*") || disabled(plugin.Name) {
			continue
		}
		// Of several entries of one name the last one replaces the default.
		for i, own := range slices.Backward(custom.Enabled) {
			if own.Name == plugin.Name {
				plugin, replaced[i] = own, true
				break
			}
		}
		merged.Enabled = append(merged.Enabled, plugin)
	}
	for i, own := range custom.Enabled {
		if !replaced[i] {
			merged.Enabled = append(merged.Enabled, own)
		}
	}
	return merged
}
