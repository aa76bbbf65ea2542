package conform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	intree "k8s.io/kubernetes/pkg/scheduler/framework/plugins"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/compat"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/sim/generate"
)

// hostable are kube-scheduler's own plugins that a hosted side takes. VolumeBinding,
// DynamicResources and DefaultBinder are not among them: a side has no API server, and
// what the native ones write is compared by what they return.
var hostable = []string{"PrioritySort", "SchedulingGates", "NodeName", "NodeUnschedulable", "NodePorts", "TaintToleration",
	"NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality", "NodeVolumeLimits", "VolumeRestrictions",
	"VolumeZone", "DefaultPreemption", "PodTopologySpread", "InterPodAffinity", "NodeDeclaredFeatures"}

// hostedNames reads "all" or names separated by commas.
func hostedNames(list string) ([]string, error) {
	if list == "all" {
		return hostable, nil
	}
	names := strings.Split(list, ",")
	for _, name := range names {
		if !slices.Contains(hostable, name) {
			return nil, fmt.Errorf("--hosted: no plugin %q (there are all, %s)", name, strings.Join(hostable, ", "))
		}
	}
	return names, nil
}

// Hosted starts Berth as a side with kube-scheduler's own plugins of the given names,
// unmodified, hosted in place of the native ones.
func Hosted(names ...string) Start {
	return func(ctx context.Context, w generate.World) (Side, error) {
		b, err := hostedSide(ctx, w, names)
		if err != nil {
			return nil, err
		}
		b.anew = func() (*berth, error) {
			return hostedSide(ctx, generate.World{Mix: w.Mix, Config: w.Config, Gates: w.Gates}, names)
		}
		b.populate(w)
		return b, nil
	}
}

// hostedSide is a side without a cluster so far.
func hostedSide(ctx context.Context, w generate.World, names []string) (*berth, error) {
	if strings.Contains(w.Config, generate.ExtenderAddress) { // the hosts here have no extenders
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "DefaultPreemption" })
	}
	h := newHosting(ctx)
	gates := maps.Clone(w.Gates)
	if gates == nil {
		gates = map[string]bool{}
	}
	gates["SchedulerAsyncPreemption"] = false // PostFilter returns when its victims are deleted
	defer oracle.Under(gates)()               // plugins read the gates when they are made
	b, err := newSide(w, func(configs []profile.Config, native profile.Registry) profile.Registry {
		registry := maps.Clone(native)
		for _, name := range names {
			delete(registry, name)
		}
		for i := range configs {
			configs[i].Own = h.registry(configs[i].Name, names)
		}
		return registry
	})
	if err != nil {
		return nil, err
	}
	b.hosting = h
	h.hosts.Built(b.options.Profiles)
	h.hosts.Connect(b.machine, h)
	return b, h.hosts.Start(ctx)
}

// hosting is what hosted plugins need of a side: their host, and informers that are
// told by hand. The side stands in for the loop.
type hosting struct {
	ctx       context.Context
	hosts     *compat.Hosts
	informers map[reflect.Type]*oracle.Fed

	mu      sync.Mutex
	posted  []machine.Event // not given to the machine yet
	evicted []string        // pods that a plugin deleted: namespace/name
}

func newHosting(ctx context.Context) *hosting {
	client := fake.NewSimpleClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	h := &hosting{ctx: ctx, informers: map[reflect.Type]*oracle.Fed{}}
	for i := range decode.Kinds {
		o := decode.Kinds[i].New().(runtime.Object)
		h.informers[reflect.TypeOf(o)] = oracle.Feed(factory, o)
	}
	client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, &v1.Pod{}, nil })
	client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.evicted = append(h.evicted, a.GetNamespace()+"/"+a.(clienttesting.DeleteAction).GetName())
		return true, nil, nil
	})
	h.hosts = compat.New(compat.Options{Logger: klog.FromContext(ctx), Client: client, Informers: factory, Parallelism: 1,
		PostFilterWait: time.Hour}) // decisions are compared one by one, on a slow machine too
	return h
}

// registry has kube-scheduler's factories make the plugins, with the arguments as
// kube-scheduler has them.
func (h *hosting) registry(profileName string, names []string) profile.Registry {
	args, factories := map[string]runtime.Object{}, map[string]compat.PluginFactory{}
	theirs := intree.NewInTreeRegistry()
	for _, name := range names {
		factories[name] = func(ctx context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			return theirs[name](ctx, args[name], h)
		}
	}
	decoder, err := compat.NewArgs(nil)
	if err != nil {
		panic(err) // no types are added
	}
	registry := profile.Registry{}
	for name, factory := range h.hosts.Registry(profileName, factories, decoder) { // any order: fills a map
		registry[name] = func(raw any) (*framework.Plugin, error) {
			if external, ok := raw.(runtime.Object); ok {
				internal, err := scheme.Scheme.ConvertToVersion(external, runtime.InternalGroupVersioner)
				if err != nil {
					return nil, err
				}
				args[name] = internal
			}
			return factory(nil)
		}
	}
	return registry
}

// show has the informers show the object, or that it is gone. A side without hosted
// plugins has no informers.
func (h *hosting) show(o metav1.Object, gone bool) {
	if h == nil {
		return
	}
	informer := h.informers[reflect.TypeOf(o)]
	change := informer.Set
	if gone {
		change = informer.Remove
	}
	if err := change(o); err != nil {
		panic(err) // a store in memory, and objects with names
	}
}

// Inspect is not there: questions are answered while the machine waits for plugins.
func (h *hosting) Inspect(context.Context, func()) error {
	return errors.New("nobody looks between two steps")
}

// Report and Post keep the event for the side.
func (h *hosting) Report(e machine.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.posted = append(h.posted, e)
}

func (h *hosting) Post(e machine.Event) { h.Report(e) }

// take returns what was posted since the last call.
func (h *hosting) take() []machine.Event {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.posted
	h.posted = nil
	return list
}

// victims are the pods that a plugin deleted since the last call, sorted.
func (h *hosting) victims() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.evicted
	h.evicted = nil
	slices.Sort(list)
	return list
}

// complete adds to what a hosted plugin deleted the victims that terminate already:
// no plugin deletes these again.
func (h *hosting) complete(plans []oracle.Plan, got *oracle.Record) {
	pods := h.informers[reflect.TypeFor[*v1.Pod]()].GetIndexer()
	terminates := func(victim string) bool {
		p, known, _ := pods.GetByKey(victim)
		return known && p.(*v1.Pod).DeletionTimestamp != nil
	}
	for _, p := range plans {
		if p.Node == got.Nominated && slices.Equal(slices.DeleteFunc(slices.Clone(p.Victims), terminates), got.Victims) {
			got.Victims = p.Victims
		}
	}
}
