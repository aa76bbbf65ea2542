package plugins

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/devices"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/plugins/balancedallocation"
	"github.com/berth-scheduler/berth/core/plugins/capacityscheduling"
	"github.com/berth-scheduler/berth/core/plugins/coscheduling"
	"github.com/berth-scheduler/berth/core/plugins/defaultbinder"
	"github.com/berth-scheduler/berth/core/plugins/defaultpreemption"
	"github.com/berth-scheduler/berth/core/plugins/deferredpodscheduling"
	"github.com/berth-scheduler/berth/core/plugins/dynamicresources"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/plugins/gangscheduling"
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
	"github.com/berth-scheduler/berth/core/plugins/podgrouppodscount"
	"github.com/berth-scheduler/berth/core/plugins/podtopologyspread"
	"github.com/berth-scheduler/berth/core/plugins/prioritysort"
	"github.com/berth-scheduler/berth/core/plugins/schedulinggates"
	"github.com/berth-scheduler/berth/core/plugins/tainttoleration"
	"github.com/berth-scheduler/berth/core/plugins/topologyplacementgenerator"
	"github.com/berth-scheduler/berth/core/plugins/volumebinding"
	"github.com/berth-scheduler/berth/core/plugins/volumerestrictions"
	"github.com/berth-scheduler/berth/core/plugins/volumezone"
	"github.com/berth-scheduler/berth/core/preempt"
	"github.com/berth-scheduler/berth/core/profile"
)

// Registry returns the factories of all plugins that come with Berth, by name, under these feature
// gates. A name that is no plugin, or whose feature gate is off, has a factory that only returns an
// error saying so.
func Registry(f feature.Features) profile.Registry {
	var counter *devices.Counter // of devices that stand for extended resources
	if f.DRAExtendedResource {
		counter = devices.NewCounter(dynamicresources.AllocatorFeatures(f))
	}
	registry := profile.Registry{
		names.PrioritySort:         withoutArgs(prioritysort.New()),
		names.SchedulingGates:      withoutArgs(schedulinggates.New()),
		names.NodeName:             withoutArgs(nodename.New()),
		names.NodeUnschedulable:    withoutArgs(nodeunschedulable.New(f)),
		names.TaintToleration:      withoutArgs(tainttoleration.New(f)),
		names.NodeDeclaredFeatures: withoutArgs(nodedeclaredfeatures.New(f)),
		names.VolumeRestrictions:   withoutArgs(volumerestrictions.New()),
		names.VolumeZone:           withoutArgs(volumezone.New()),
		names.NodeVolumeLimits:     withoutArgs(nodevolumelimits.New(f)),
		names.NodePorts:            withoutArgs(nodeports.New()),
		names.ImageLocality:        withoutArgs(imagelocality.New()),
		names.DefaultBinder:        withoutArgs(defaultbinder.New()),
		names.NodeAffinity:         withArgs(nodeaffinity.New),
		names.InterPodAffinity:     withArgs(interpodaffinity.New),
		names.DefaultPreemption:    withArgsAndOption(defaultpreemption.New, f),
		names.VolumeBinding:        withArgsAndOption(volumebinding.New, f),
		names.DynamicResources:     withArgsAndOption(dynamicresources.New, f),
		names.PodTopologySpread:    withArgsAndOption(podtopologyspread.New, f),

		names.DeferredPodScheduling:           withoutArgs(deferredpodscheduling.New()),
		names.NodeResourcesFit:                withArgsAndOption(noderesources.New, counter),
		names.NodeResourcesBalancedAllocation: withArgsAndOption(balancedallocation.New, counter),
	}
	registry[names.CapacityScheduling] = withRawArgs(func(raw json.RawMessage) (*framework.Plugin, error) {
		preemption, err := defaultpreemption.New(nil, f)
		if err != nil {
			return nil, err
		}
		return capacityscheduling.New(raw, preemption)
	})
	registry[names.Coscheduling] = func(args any) (*framework.Plugin, error) {
		given, _ := args.(coscheduling.Args)
		search := preempt.ForGroup
		if f.GenericWorkload {
			search = nil // DefaultPreemption searches for any group
		}
		return coscheduling.New(given, gangscheduling.New(), search)
	}
	for _, name := range []string{names.CoschedulingLabels, names.CoschedulingStatus} {
		registry[name] = refused("it is no plugin, but arguments of " + names.Coscheduling)
	}
	registry[profile.GroupTopology] = refused("it is no plugin, but the levels in which pod groups are kept together")
	registry[framework.PreemptionBudgets] = refused("it is no plugin, but says whether preemption may violate disruption budgets")
	registry[names.GangScheduling] = refused("it needs the feature gate GenericWorkload")
	if f.GenericWorkload {
		registry[names.GangScheduling] = withoutArgs(gangscheduling.New())
	}
	for _, pl := range []framework.Plugin{podgrouppodscount.New(), topologyplacementgenerator.New()} {
		registry[pl.Name] = refused("it needs the feature gate TopologyAwareWorkloadScheduling")
		if f.TopologyAwareWorkloadScheduling {
			registry[pl.Name] = withoutArgs(pl)
		}
	}
	return registry
}

// WithDefaults returns a copy of an in-tree plugin's arguments with kube-scheduler's defaults for
// fields that are not set. Arguments of types without defaults are returned as they are.
func WithDefaults(args runtime.Object, f feature.Features) runtime.Object {
	switch args := args.(type) {
	case *configv1.DefaultPreemptionArgs:
		return defaultpreemption.WithDefaults(args)
	case *configv1.InterPodAffinityArgs:
		return interpodaffinity.WithDefaults(args)
	case *configv1.NodeResourcesFitArgs:
		return noderesources.WithDefaults(args)
	case *configv1.NodeResourcesBalancedAllocationArgs:
		return balancedallocation.WithDefaults(args)
	case *configv1.PodTopologySpreadArgs:
		return podtopologyspread.WithDefaults(args)
	case *configv1.VolumeBindingArgs:
		return volumebinding.WithDefaults(args, f)
	case *configv1.DynamicResourcesArgs:
		return dynamicresources.WithDefaults(args, f)
	}
	return args
}

// ValidateArgs returns the errors in an in-tree plugin's arguments, in kube-scheduler's
// words and with fields named relative to path. Arguments of other types have none.
func ValidateArgs(path *field.Path, args any, f feature.Features) field.ErrorList {
	switch args := args.(type) {
	case *configv1.DefaultPreemptionArgs:
		return defaultpreemption.ValidateArgs(path, args)
	case *configv1.InterPodAffinityArgs:
		return interpodaffinity.ValidateArgs(path, args)
	case *configv1.NodeAffinityArgs:
		return nodeaffinity.ValidateArgs(path, args)
	case *configv1.NodeResourcesFitArgs:
		return noderesources.ValidateArgs(path, args)
	case *configv1.NodeResourcesBalancedAllocationArgs:
		return balancedallocation.ValidateArgs(path, args)
	case *configv1.PodTopologySpreadArgs:
		return podtopologyspread.ValidateArgs(path, args)
	case *configv1.VolumeBindingArgs:
		return volumebinding.ValidateArgs(path, args, f)
	case *configv1.DynamicResourcesArgs:
		return dynamicresources.ValidateArgs(path, args, f)
	}
	return nil
}

// withoutArgs returns a factory for a plugin without arguments. It ignores any that are given, as
// kube-scheduler does. Each call of the factory returns a copy of its own.
func withoutArgs(p framework.Plugin) profile.Factory {
	return func(any) (*framework.Plugin, error) {
		own := p
		return &own, nil
	}
}

// refused returns a factory that fails with the error why: for a plugin whose feature gate is off,
// and for a name in pluginConfig that is no plugin.
func refused(why string) profile.Factory {
	return func(any) (*framework.Plugin, error) { return nil, errors.New(why) }
}

// withArgs returns a factory that passes the profile's arguments, of type *A, to make; nil if there
// are none, which stands for the defaults. The factory returns an error for arguments of another
// type.
func withArgs[A any](make func(*A) (framework.Plugin, error)) profile.Factory {
	return func(args any) (*framework.Plugin, error) {
		typed, ok := args.(*A)
		if args != nil && !ok {
			return nil, fmt.Errorf("arguments are %T, want %T", args, typed)
		}
		p, err := make(typed)
		return &p, err
	}
}

// withRawArgs returns a factory that passes the profile's arguments as JSON to make, for a plugin
// that kube-scheduler does not have. make gets nil if there are none, or if they are not JSON.
func withRawArgs(make func(json.RawMessage) (*framework.Plugin, error)) profile.Factory {
	return func(args any) (*framework.Plugin, error) {
		raw, _ := args.(json.RawMessage)
		return make(raw)
	}
}

// withArgsAndOption returns a factory that passes the profile's arguments, of type *A, and b to
// make. The arguments are nil if there are none. The factory returns an error for arguments of
// another type.
func withArgsAndOption[A, B any](make func(*A, B) (framework.Plugin, error), b B) profile.Factory {
	return withArgs(func(args *A) (framework.Plugin, error) { return make(args, b) })
}
