package dynamicresources

import (
	"fmt"
	"time"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berth-scheduler/berth/core/devices"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/plugins/names"
)

// AllocatorFeatures returns the feature gates in the type that Kubernetes' device allocator takes.
func AllocatorFeatures(f feature.Features) structured.Features {
	return structured.Features{
		AdminAccess: f.DRAAdminAccess, PrioritizedList: f.DRAPrioritizedList, PartitionableDevices: f.DRAPartitionableDevices,
		DeviceTaints: f.DRADeviceTaints, DeviceBindingAndStatus: f.DeviceBindingConditions(), ConsumableCapacity: f.DRAConsumableCapacity,
		FractionalCapacityRange: f.DRAFractionalCapacityRange, ListTypeAttributes: f.DRAListTypeAttributes, DerivedAttributes: f.DRADerivedAttributes,
		CompatibilityGroups: f.DRADeviceCompatibilityGroups, OptionalNodeOperations: f.DRAOptionalNodeOperations,
	}
}

// plugin is the state of the plugin in one profile: its configuration, the claims that
// it makes, and what it keeps between decisions.
type plugin struct {
	features  feature.Features
	allocator structured.Features // the feature gates of the allocator
	steps     int                 // bound of a search on one node; 0: none
	binding   time.Duration       // how long a pod waits for its devices' binding conditions
	selectors *cel.Cache          // compiled CEL selectors
	// made holds, by pod, the claim that is being made for its extended resources, from
	// Reserve until the pod is bound.
	made    map[types.UID]*pendingClaim
	answers answers // verdicts and scores of nodes
	// The rest serves searches whose results nodes share.
	inventories inventories
	selections  deviceSelections
	searches    map[string]*search // by search.key; at most mostSearches
	key         []byte             // scratch of allocateAlike
}

// New returns the plugin; nil args stand for kube-scheduler's defaults. The error names the
// wrong fields.
func New(args *configv1.DynamicResourcesArgs, f feature.Features) (framework.Plugin, error) {
	if err := ValidateArgs(nil, args, f).ToAggregate(); err != nil {
		return framework.Plugin{}, err
	}
	return build(args, f).declare(), nil
}

// build returns the plugin's state for arguments that are valid; nil stands for the defaults.
func build(args *configv1.DynamicResourcesArgs, f feature.Features) *plugin {
	pl := &plugin{
		features:    f,
		allocator:   AllocatorFeatures(f),
		binding:     bindingTimeout,
		selectors:   devices.NewSelectors(AllocatorFeatures(f)),
		made:        map[types.UID]*pendingClaim{},
		inventories: inventories{parts: f.DRAConsumableCapacity, counters: f.DRAPartitionableDevices},
	}
	args = WithDefaults(args, f)
	if timeout := args.BindingTimeout; timeout != nil {
		pl.binding = timeout.Duration
	}
	if timeout := args.FilterTimeout; timeout != nil && timeout.Duration > 0 {
		pl.steps = stepsOf(timeout.Duration)
	}
	return pl
}

// declare returns the plugin as the framework takes it.
func (pl *plugin) declare() framework.Plugin {
	reads := []object.Kind{object.ResourceClaims, object.ResourceSlices, object.DeviceClasses}
	if pl.features.DRADeviceTaintRules {
		reads = append(reads, object.DeviceTaintRules)
	}
	declared := framework.Plugin{
		Name:             names.DynamicResources,
		Reads:            framework.Reads{Kinds: reads},
		EventsToRegister: eventsToRegister(pl.features.DRANodeAllocatableResources),
		SignPlugin:       framework.SignPlugin{Locality: framework.NodeAndPods, Sign: pl.sign, SignRevision: signRevision},
		PreEnqueue:       preEnqueue,
		PreFilter:        pl.preFilter,
		FilterPlugin:     framework.FilterPlugin{Filter: pl.filter, ErrorsFrom: broken, Explain: pl.explain, Costly: true},
		PostFilter:       pl.postFilter,
		PostFilterMay:    pl.remedy,
		PreScore:         pl.preScore,
		ScorePlugin:      framework.ScorePlugin{Score: pl.score, NormalizeScore: normalize},
		ReservePlugin:    framework.ReservePlugin{Reserve: pl.reserve, Unreserve: pl.unreserve, RevertWrites: pl.revertWrites, Keeper: pl},
		PreBindPlugin: framework.PreBindPlugin{
			PreBind:    pl.preBind,
			WaitNotice: pl.waitNotice,
			WritesDone: pl.writesDone,
			// The error is as in kube-scheduler.
			WritesTimeout: framework.Timeout{After: pl.binding, Err: fmt.Errorf("%w: context deadline exceeded", framework.ErrDeviceBindingTimeout)},
		},
		PostBind: func(p *object.Pod, _ string) { delete(pl.made, p.UID) },
	}
	if pl.features.GenericWorkload {
		declared.PodGroup = &framework.PodGroupPlugin{PostFilter: groupPostFilter, Deallocate: pl.deallocate}
	}
	return declared
}
