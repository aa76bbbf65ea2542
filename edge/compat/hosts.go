package compat

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/profile"
)

// PluginFactory makes a plugin from its arguments. It is the type of kube-scheduler's
// registry.
type PluginFactory = func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error)

// Options configure Hosts.
type Options struct {
	Logger klog.Logger
	// Config configures clients of the API server; nil in tests without one.
	Config *rest.Config
	// Client is the ClientSet of plugins; nil in tests without an API.
	Client kubernetes.Interface
	// Informers makes the informers; nil: New makes a factory that uses Client.
	Informers informers.SharedInformerFactory
	// Dynamic reads the custom resources whose events plugins register for.
	Dynamic dynamic.Interface
	// Timeout bounds the time that all calls of plugins take in one attempt, up to Permit. A call
	// for no attempt, such as PreEnqueue or a queueing hint, has as much, and so has each call of
	// PostFilter and Unreserve. PreBind, Bind and PostBind have no limit. 0: 10 s.
	Timeout time.Duration
	// PostFilterWait is how long the loop waits for a PostFilter plugin. After that the
	// loop goes on, and the plugin's answer comes later. 0: 100 ms.
	PostFilterWait time.Duration
	// Parallelism is how many goroutines call one plugin for nodes at once; at least 1.
	Parallelism int
	// Extenders are the extenders that plugins get from their Handle.
	Extenders []fwk.Extender
	// PodsToActivate makes the value that plugins find under PodsToActivateKey, of a type
	// that CheckPodsToActivate accepts; nil: a PodsToActivate.
	PodsToActivate func() fwk.StateData
	// DeviceTaintRules and ConsumableCapacity are the feature gates DRADeviceTaintRules and
	// DRAConsumableCapacity: whether the SharedDRAManager of plugins heeds them.
	DeviceTaintRules, ConsumableCapacity bool
	// PodGroups is the feature gate GenericWorkload: plugins may register for events of
	// PodGroups.
	PodGroups bool
	// GroupPlacements is the feature gate TopologyAwareWorkloadScheduling: the plugins'
	// PlacementGenerate and PlacementScore points are called.
	GroupPlacements bool
	// PreQueueingHints is the feature gate SchedulerPreQueueingHints: the plugins'
	// PreQueueingHintFns are called.
	PreQueueingHints bool
}

// Loop is the part of the scheduling loop (package loop) that Hosts need.
type Loop interface {
	// Inspect runs look between two steps, on the goroutine that owns the machine, and
	// waits for it.
	Inspect(ctx context.Context, look func()) error
	// Report sends the machine an event and never waits.
	Report(e machine.Event)
	// Post sends the machine an event, and waits while too many events are queued.
	Post(e machine.Event)
}

// Hosts hold the hosted plugins of all profiles (one Host each) and what these share.
type Hosts struct {
	options  Options
	factory  *factory         // of informers; nil in tests without a client
	fed      *fedFactory      // what factory wraps in a simulation; nil: there is an API server
	profiles map[string]*Host // by schedulerName

	machine     *machine.Machine // only the loop may read it: see ask; nil before Connect
	loop        Loop             // nil before Connect
	questions   chan *question   // for the loop while it waits for a plugin
	logging     context.Context  // carries the logger
	asked       askedBuffer      // scratch of Filter and Score calls
	snapshots   snapshots
	lastGroup   lastGroup                  // only for the loop
	step        step                       // only for the loop
	groupTrial  atomic.Pointer[groupTrial] // of the PodGroupPostFilter call under way; nil: none
	trialNodes  atomic.Pointer[trialNodes] // what plugins see after StartMutations; nil: the snapshot
	workers     workers
	timer       *time.Timer // for the loop's next call; nil: in use or not made yet
	hangs       hangs
	postFilters atomic.Int32            // PostFilter calls that run beside the loop
	binding     running                 // PreBind calls
	postBinds   chan func()             // calls of PostBind that wait
	broadcaster events.EventBroadcaster // of the plugins' Events; nil: there is no API server
	assumptions assumptions
	// slices are the ResourceSlices with what DeviceTaintRules add; nil: none do, or
	// slicesFailed.
	slices       *tracker.Tracker
	slicesFailed error           // why the tracker did not start; nil: it did, or nothing asked for it
	slicesOnce   sync.Once       // sets slices, or is done by Start so that it stays nil
	watched      map[string]bool // resources besides pods and nodes whose events plugins registered for
}

// defaultTimeout is how long all plugin calls of one attempt may take, if Options.Timeout is
// not set.
const defaultTimeout = 10 * time.Second

// defaultPostFilterWait is Options.PostFilterWait if that is not set. The loop waits for a
// plugin that returns soon, so that no other pod comes between the filters and its answer.
const defaultPostFilterWait = 100 * time.Millisecond

// New returns Hosts without profiles; Registry adds them. Options that are 0 get their defaults.
func New(o Options) *Hosts {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.PostFilterWait <= 0 {
		o.PostFilterWait = defaultPostFilterWait
	}
	if o.PodsToActivate == nil {
		o.PodsToActivate = newPodsToActivate
	}
	o.Parallelism = max(o.Parallelism, 1)
	h := &Hosts{options: o, profiles: map[string]*Host{}, questions: make(chan *question), watched: map[string]bool{},
		logging:     klog.NewContext(context.Background(), o.Logger),
		hangs:       hangs{pods: map[types.UID]hang{}, plugins: map[string]int{}},
		binding:     running{pods: map[types.UID]*preBinding{}},
		postBinds:   make(chan func(), postBindLimit),
		assumptions: assumptions{pending: map[types.UID]*pendingClaim{}, written: map[string]*resourcev1.ResourceClaim{}}}
	if o.Informers == nil && o.Client != nil {
		o.Informers = informers.NewSharedInformerFactory(o.Client, 0)
	}
	if o.Informers != nil {
		h.factory = newFactory(o.Informers)
	}
	return h
}

// Connect sets the machine whose plugins these are and the loop that owns it. Call it after
// the plugins were made and before the first step.
func (h *Hosts) Connect(m *machine.Machine, l Loop) { h.machine, h.loop = m, l }

// report sends the machine an event without waiting. Before Connect it drops the event.
func (h *Hosts) report(e machine.Event) {
	if h.loop != nil {
		h.loop.Report(e)
	}
}

// Registry adds a host for the profile and returns its plugin factories as core's: each
// decodes the arguments, makes the plugin and adapts it to core's framework.
func (h *Hosts) Registry(profileName string, factories map[string]PluginFactory, args Args) profile.Registry {
	host := &Host{Hosts: h, name: profileName, cycles: map[types.UID]*cycle{}, byName: map[string]*hostedPlugin{}}
	host.recorder = newRecorder(h, profileName)
	h.profiles[profileName] = host
	registry := profile.Registry{}
	for name, make := range factories { // any order: fills a map
		registry[name] = func(raw any) (*framework.Plugin, error) {
			object, err := args.Decode(name, raw)
			if err != nil {
				return nil, err
			}
			return host.add(name, make, object)
		}
	}
	return registry
}

// add makes a plugin of the profile and returns it as one of core's framework. It returns an error
// if the factory make fails, panics or returns nil.
func (h *Host) add(name string, make PluginFactory, args runtime.Object) (native *framework.Plugin, err error) {
	defer func() {
		if r := recover(); r != nil {
			native, err = nil, fmt.Errorf("its factory panicked: %v", r)
		}
	}()
	pl, err := make(h.logging, args, &handle{h})
	if err != nil {
		return nil, err
	}
	if isNil(pl) {
		return nil, fmt.Errorf("its factory returned no plugin")
	}
	hosted := newHostedPlugin(name, pl)
	h.tellUncalled(hosted)
	native, err = h.adapt(h.logging, hosted)
	if err != nil {
		return nil, err
	}
	h.plugins = append(h.plugins, hosted)
	h.byName[name] = hosted
	return native, nil
}

// Overdue returns how many plugin calls are overdue: they took too long and have not returned yet.
func (h *Hosts) Overdue() int { return h.hangs.count() }

// Timeout returns how long all plugin calls of one attempt may take.
func (h *Hosts) Timeout() time.Duration { return h.options.Timeout }
