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

// PluginFactory makes a plugin; it is the type of kube-scheduler's registry.
type PluginFactory = func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error)

// Options of Hosts.
type Options struct {
	Logger klog.Logger
	// Config is how to reach the API server; nil: there is none, in tests.
	Config *rest.Config
	Client kubernetes.Interface
	// Informers makes the informers; nil: they ask Client.
	Informers informers.SharedInformerFactory
	// Dynamic reads custom resources.
	Dynamic dynamic.Interface
	// Timeout bounds the time that all calls of plugins take in one attempt.
	Timeout time.Duration
	// PostFilterWait is how long the loop waits for PostFilter; then that goes on beside
	// the loop. 0: 100 ms.
	PostFilterWait time.Duration
	// Parallelism is how many nodes a plugin may be asked about at once.
	Parallelism int
	Extenders   []fwk.Extender
	// PodsToActivate makes the value that plugins find under PodsToActivateKey, of a type
	// that CheckPodsToActivate accepts; nil: a PodsToActivate.
	PodsToActivate func() fwk.StateData
	// DeviceTaintRules and ConsumableCapacity are feature gates (DRA...) of what
	// plugins are shown of devices.
	DeviceTaintRules, ConsumableCapacity bool
	// PodGroups lets plugins register for events of PodGroups: the feature gate
	// GenericWorkload.
	PodGroups bool
	// GroupPlacements has plugins asked about placements of pod groups: the feature gate
	// TopologyAwareWorkloadScheduling.
	GroupPlacements bool
}

// Loop is who owns the machine.
type Loop interface {
	// Inspect runs look on the goroutine that owns the machine.
	Inspect(ctx context.Context, look func()) error
	// Report sends the machine an event, and never waits. Post waits while there are
	// many.
	Report(e machine.Event)
	Post(e machine.Event)
}

// Hosts are the hosts of all profiles, and what these share.
type Hosts struct {
	options  Options
	factory  *factory    // of informers
	fed      *fedFactory // where there is no API server; nil: there is one
	profiles map[string]*Host

	machine     *machine.Machine // for questions, and what answers them
	loop        Loop
	questions   chan *question
	logging     context.Context // carries the logger
	asked       askedBuffer     // scratch of filters and scores
	snapshots   snapshots
	lastGroup   lastGroup // of the loop
	step        step      // of the loop
	workers     workers
	timer       *time.Timer // of the loop, for the next call; nil: to be made
	hangs       hangs
	postFilters atomic.Int32 // that run beside the loop
	binding     running
	postBinds   chan func()
	broadcaster events.EventBroadcaster // of plugins' events; nil: there is no API server
	assumptions assumptions
	// slices are the ResourceSlices with what DeviceTaintRules add; nil: none do, or
	// slicesFailed.
	slices       *tracker.Tracker
	slicesFailed error
	slicesOnce   sync.Once       // starts following them, or records that nobody does
	watched      map[string]bool // resources of which plugins want events
}

// defaultTimeout is how long plugins may take unless somebody says otherwise.
const defaultTimeout = 10 * time.Second

// defaultPostFilterWait: a PostFilter plugin that returns soon is waited for, so that
// no other pod comes between the filters and its answer.
const defaultPostFilterWait = 100 * time.Millisecond

// New returns the hosts of no profile.
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

// Connect says which machine the plugins decide for, before its first step.
func (h *Hosts) Connect(m *machine.Machine, l Loop) { h.machine, h.loop = m, l }

// report sends the machine an event. An event from a factory, before there is a machine,
// is dropped.
func (h *Hosts) report(e machine.Event) {
	if h.loop != nil {
		h.loop.Report(e)
	}
}

// Any reports whether a profile has hosted plugins.
func (h *Hosts) Any() bool {
	for _, p := range h.profiles { // any order: a yes or no
		if len(p.plugins) > 0 {
			return true
		}
	}
	return false
}

// Registry returns the factories by which a profile makes hosted plugins.
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

// add makes a plugin for the profile.
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

// Overdue returns how many calls took too long and have not returned since.
func (h *Hosts) Overdue() int { return h.hangs.count() }

// Timeout returns how long all calls of plugins may take in one attempt.
func (h *Hosts) Timeout() time.Duration { return h.options.Timeout }
