package config

import (
	"slices"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/edge/config/features"
)

// point is one list of plugins in a profile, under its name in the file.
type point struct {
	name string
	set  *configv1.PluginSet
}

// points lists the plugin sets of a profile: MultiPoint first, then the extension points in the
// order in which a pod meets them.
func points(p *configv1.Plugins) []point {
	return []point{
		{"multiPoint", &p.MultiPoint},
		{"preEnqueue", &p.PreEnqueue},
		{"queueSort", &p.QueueSort},
		{"preFilter", &p.PreFilter},
		{"filter", &p.Filter},
		{"postFilter", &p.PostFilter},
		{"preScore", &p.PreScore},
		{"score", &p.Score},
		{"reserve", &p.Reserve},
		{"permit", &p.Permit},
		{"preBind", &p.PreBind},
		{"bind", &p.Bind},
		{"postBind", &p.PostBind},
		{"placementGenerate", &p.PlacementGenerate},
		{"placementScore", &p.PlacementScore},
	}
}

// enabledNames lists the plugins that any point of a profile enables, sorted.
func enabledNames(p *configv1.Plugins) []string {
	var names []string
	for _, pt := range points(p) {
		for _, plugin := range pt.set.Enabled {
			names = append(names, plugin.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// defaultPlugins is v1.36's default profile: one MultiPoint set, whose order is the order of
// evaluation at every extension point.
func (r Reader) defaultPlugins() *configv1.Plugins {
	plugin := func(name string) configv1.Plugin { return configv1.Plugin{Name: name} }
	scored := func(name string, weight int32) configv1.Plugin { return configv1.Plugin{Name: name, Weight: &weight} }

	enabled := []configv1.Plugin{
		plugin("SchedulingGates"),
		plugin("PrioritySort"),
		plugin("NodeUnschedulable"),
		plugin("NodeName"),
		scored("TaintToleration", 3),
		scored("NodeAffinity", 2),
		plugin("NodePorts"),
		scored("NodeResourcesFit", 1),
		plugin("VolumeRestrictions"),
		plugin("NodeVolumeLimits"),
		plugin("VolumeBinding"),
		plugin("VolumeZone"),
		scored("PodTopologySpread", 2),
		scored("InterPodAffinity", 2),
	}
	if r.gates.Enabled(features.DynamicResourceAllocation) {
		// Before DefaultPreemption: an idle claim is freed sooner than a running pod is evicted.
		enabled = append(enabled, scored("DynamicResources", 2))
	}
	enabled = append(enabled,
		plugin("DefaultPreemption"),
		scored("NodeResourcesBalancedAllocation", 1),
		scored("ImageLocality", 1),
		plugin("DefaultBinder"),
	)
	if r.gates.Enabled(features.NodeDeclaredFeatures) {
		enabled = append(enabled, plugin("NodeDeclaredFeatures"))
	}
	if r.gates.Enabled(features.GangScheduling) {
		enabled = append(enabled, plugin("GangScheduling"))
	}
	if r.gates.Enabled(features.TopologyAwareWorkloadScheduling) {
		enabled = append(enabled, plugin("TopologyPlacementGenerator"), scored("PodGroupPodsCount", 1))
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

// mergePluginSet follows v1.36: a disabled default (by name, or all by "*") goes; a default that
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
