package config

import (
	"encoding/json"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/plugins/coscheduling"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/profile"
)

// Profiles returns the profiles of a complete configuration in the form of
// core/profile, in their order. The arguments of an in-tree plugin are the
// decoded v1 object (*configv1.NodeResourcesFitArgs, say), those of Coscheduling a
// coscheduling.Args, those of any other plugin a json.RawMessage.
func Profiles(c *Config) []profile.Config {
	var profiles []profile.Config
	for _, p := range c.Profiles {
		out := profile.Config{Name: *p.SchedulerName}
		for _, pt := range points(p.Plugins) {
			*pt.target(&out) = plainSet(*pt.set)
		}
		var gangs coscheduling.Args
		for _, pc := range p.PluginConfig {
			switch {
			case pc.Name == names.Coscheduling:
				gangs.Peer = json.RawMessage(pc.Args.Raw)
			case pc.Name == names.CoschedulingLabels:
				gangs.Labels = json.RawMessage(pc.Args.Raw)
			case pc.Name == names.CoschedulingStatus:
				gangs.Status = json.RawMessage(pc.Args.Raw)
			case pc.Args.Object != nil:
				out.Args = append(out.Args, profile.Args{Plugin: pc.Name, Value: pc.Args.Object})
			case len(pc.Args.Raw) > 0 || pc.Name == profile.GroupTopology:
				out.Args = append(out.Args, profile.Args{Plugin: pc.Name, Value: json.RawMessage(pc.Args.Raw)})
			}
		}
		if gangs.Peer != nil || gangs.Labels != nil || gangs.Status != nil {
			out.Args = append(out.Args, profile.Args{Plugin: names.Coscheduling, Value: gangs})
		}
		profiles = append(profiles, out)
	}
	return profiles
}

func plainSet(set configv1.PluginSet) profile.Set {
	var out profile.Set
	for _, p := range set.Enabled {
		enabled := profile.Enabled{Plugin: p.Name}
		if p.Weight != nil {
			enabled.Weight = int64(*p.Weight)
		}
		out.Enabled = append(out.Enabled, enabled)
	}
	for _, p := range set.Disabled {
		out.Disabled = append(out.Disabled, p.Name)
	}
	return out
}
