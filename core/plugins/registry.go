package plugins

import (
	"fmt"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/devices"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/plugins/balancedallocation"
	"github.com/berth-scheduler/berth/core/plugins/defaultbinder"
	"github.com/berth-scheduler/berth/core/plugins/defaultpreemption"
	"github.com/berth-scheduler/berth/core/plugins/dynamicresources"
	"github.com/berth-scheduler/berth/core/plugins/imagelocality"
	"github.com/berth-scheduler/berth/core/plugins/interpodaffinity"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/plugins/nodeaffinity"
	"github.com/berth-scheduler/berth/core/plugins/nodedeclaredfeatures"
	"github.com/berth-scheduler/berth/core/plugins/nodename"
	"github.com/berth-scheduler/berth/core/plugins/nodeports"
	"github.com/berth-scheduler/berth/core/plugins/noderesources"
	"github.com/berth-scheduler/berth/core/plugins/nodeunschedulable"
	"github.com/berth-scheduler/berth/core/plugins/nodevolumelimits"
	"github.com/berth-scheduler/berth/core/plugins/podtopologyspread"
	"github.com/berth-scheduler/berth/core/plugins/prioritysort"
	"github.com/berth-scheduler/berth/core/plugins/schedulinggates"
	"github.com/berth-scheduler/berth/core/plugins/tainttoleration"
	"github.com/berth-scheduler/berth/core/plugins/volumebinding"
	"github.com/berth-scheduler/berth/core/plugins/volumerestrictions"
	"github.com/berth-scheduler/berth/core/plugins/volumezone"
	"github.com/berth-scheduler/berth/core/profile"
)

// Features are the feature gates that decide what plugins do.
type Features struct {
	// TaintComparisons is TaintTolerationComparisonOperators: Lt and Gt in
	// tolerations.
	TaintComparisons bool
	// NodeDeclaredFeatures is the gate of that name.
	NodeDeclaredFeatures bool
	// SpreadKeys is MatchLabelKeysInPodTopologySpread: matchLabelKeys count.
	SpreadKeys bool
	// StorageScoring is StorageCapacityScoring: VolumeBinding scores nodes.
	StorageScoring bool
	// VolumeLimitScaling is the gate of that name.
	VolumeLimitScaling bool
	// Devices are the gates of DynamicResources.
	Devices dynamicresources.Features
}

// Registry returns every plugin that a configuration may name.
func Registry(f Features) profile.Registry {
	var counter *devices.Counter // of devices that stand for extended resources
	if f.Devices.ExtendedResource {
		counter = devices.NewCounter(f.Devices.Allocator(), f.Devices.ListTypeAttributes)
	}
	return profile.Registry{
		names.PrioritySort:         plain(prioritysort.New()),
		names.SchedulingGates:      plain(schedulinggates.New()),
		names.NodeName:             plain(nodename.New()),
		names.NodeUnschedulable:    plain(nodeunschedulable.New(f.TaintComparisons)),
		names.TaintToleration:      plain(tainttoleration.New(f.TaintComparisons)),
		names.NodeDeclaredFeatures: plain(nodedeclaredfeatures.New(f.NodeDeclaredFeatures)),
		names.VolumeRestrictions:   plain(volumerestrictions.New()),
		names.VolumeZone:           plain(volumezone.New()),
		names.NodeVolumeLimits:     plain(nodevolumelimits.New(f.VolumeLimitScaling)),
		names.VolumeBinding: with(func(args *configv1.VolumeBindingArgs) (framework.Plugin, error) {
			return volumebinding.New(args, f.StorageScoring)
		}),
		names.NodePorts:     plain(nodeports.New()),
		names.ImageLocality: plain(imagelocality.New()),
		names.DefaultBinder: plain(defaultbinder.New()),
		names.NodeAffinity:  with(nodeaffinity.New),
		names.NodeResourcesFit: with(func(args *configv1.NodeResourcesFitArgs) (framework.Plugin, error) {
			return noderesources.New(args, counter)
		}),
		names.NodeResourcesBalancedAllocation: with(func(args *configv1.NodeResourcesBalancedAllocationArgs) (framework.Plugin, error) {
			return balancedallocation.New(args, counter)
		}),
		names.DynamicResources: with(func(args *configv1.DynamicResourcesArgs) (framework.Plugin, error) {
			return dynamicresources.New(args, f.Devices)
		}),
		names.InterPodAffinity:  with(interpodaffinity.New),
		names.DefaultPreemption: with[configv1.DefaultPreemptionArgs](defaultpreemption.New),
		names.PodTopologySpread: with(func(args *configv1.PodTopologySpreadArgs) (framework.Plugin, error) {
			return podtopologyspread.New(args, f.TaintComparisons, f.SpreadKeys)
		}),
	}
}

// plain makes a factory of a plugin without arguments; it ignores any that
// are given, as kube-scheduler does. Each profile has its own.
func plain(p framework.Plugin) profile.Factory {
	return func(any) (*framework.Plugin, error) {
		own := p
		return &own, nil
	}
}

// with makes a factory of a plugin that takes *A; nil stands for its defaults.
func with[A any](make func(*A) (framework.Plugin, error)) profile.Factory {
	return func(args any) (*framework.Plugin, error) {
		typed, ok := args.(*A)
		if args != nil && !ok {
			return nil, fmt.Errorf("arguments are %T, want %T", args, typed)
		}
		p, err := make(typed)
		return &p, err
	}
}
