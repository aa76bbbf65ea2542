package schedulertest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/compat"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/loop"
)

// Cluster is a cluster with a scheduler. Its methods are for the test's goroutine.
type Cluster struct {
	t       testing.TB
	client  *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
	hosts   *compat.Hosts
	loop    *loop.Loop
	machine *machine.Machine

	executor *executor
}

// Option changes the scheduler.
type Option func(*options)

type options struct {
	names      []string
	factories  map[string]compat.PluginFactory
	schemes    []func(*runtime.Scheme) error
	timeout    time.Duration
	custom     map[schema.GroupVersionResource]string
	change     []func(*configv1.KubeSchedulerConfiguration)
	groups     bool
	preHints   bool // SchedulerPreQueueingHints
	placements bool

	podsToActivate func() framework.StateData
}

// WithPlugin adds a plugin and enables it at every point that it implements.
func WithPlugin(name string, factory compat.PluginFactory) Option {
	return func(o *options) {
		o.names = append(o.names, name)
		o.factories[name] = factory
	}
}

// WithScheme adds types for the arguments of plugins.
func WithScheme(add func(*runtime.Scheme) error) Option {
	return func(o *options) { o.schemes = append(o.schemes, add) }
}

// WithArgs gives a plugin its arguments, as JSON.
func WithArgs(plugin, args string) Option {
	return WithConfig(func(c *configv1.KubeSchedulerConfiguration) {
		c.Profiles[0].PluginConfig = append(c.Profiles[0].PluginConfig, configv1.PluginConfig{Name: plugin, Args: runtime.RawExtension{Raw: json.RawMessage(args)}})
	})
}

// WithConfig changes the configuration, which has one profile and the plugins enabled.
func WithConfig(change func(*configv1.KubeSchedulerConfiguration)) Option {
	return func(o *options) { o.change = append(o.change, change) }
}

// WithCustomResource has the cluster serve a custom resource, which starts without
// objects.
func WithCustomResource(r schema.GroupVersionResource, kind string) Option {
	return func(o *options) { o.custom[r] = kind + "List" }
}

// WithPodGroups places the pods of a PodGroup together: the gate GenericWorkload is on.
func WithPodGroups() Option { return func(o *options) { o.groups = true } }

// WithPlacements is WithPodGroups, and tries a group in each placement that there is for it:
// the gate TopologyAwareWorkloadScheduling is on. A plugin that generates placements needs
// TopologyPlacementGenerator disabled.
func WithPlacements() Option { return func(o *options) { o.groups, o.placements = true, true } }

// WithPreQueueingHints calls the plugins' PreQueueingHintFns: the gate
// SchedulerPreQueueingHints is on.
func WithPreQueueingHints() Option { return func(o *options) { o.preHints = true } }

// WithTimeout bounds calls of plugins.
func WithTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithPodsToActivate is scheduler.WithPodsToActivate.
func WithPodsToActivate(make func() framework.StateData) Option {
	return func(o *options) { o.podsToActivate = make }
}

// New starts a scheduler, which ends with the test.
func New(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	c, err := Start(t, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Start starts a scheduler with an empty cluster. It returns the error if the plugins
// cannot be made, where New ends the test.
func Start(t testing.TB, opts ...Option) (*Cluster, error) {
	o := &options{factories: map[string]compat.PluginFactory{}, custom: map[schema.GroupVersionResource]string{}, timeout: 10 * time.Second}
	for _, set := range opts {
		set(o)
	}
	logger, ctx := ktesting.NewTestContext(t)
	if _, bench := t.(*testing.B); bench {
		logger, ctx = klog.Background(), context.Background()
	}
	ctx, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	c := &Cluster{t: t, client: fake.NewClientset(), dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(scheme.Scheme, o.custom)}
	c.hosts = compat.New(compat.Options{Logger: logger, Client: c.client, Dynamic: c.dynamic,
		Timeout: o.timeout, Parallelism: 4, PodGroups: o.groups, GroupPlacements: o.placements, PreQueueingHints: o.preHints, PodsToActivate: o.podsToActivate})
	profiles, err := o.profiles(c.hosts)
	if err != nil {
		return nil, err
	}
	c.machine = machine.New(machine.Options{Profiles: profiles, Seed: 1, Workers: 1, Check: config.CheckInvariants(),
		PodGroups: o.groups, GroupPlacements: o.placements,
		InitialBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond, MaxUnschedulable: 5 * time.Minute})
	c.executor = newExecutor(ctx, c)
	c.loop = loop.New(c.machine, c.executor, loop.Options{Logger: logger})
	c.hosts.Connect(c.machine, c.loop)
	if err := c.follow(ctx); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() { defer close(ended); c.loop.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	if !c.hosts.WaitForSync(ctx) {
		t.Fatal("the informers of plugins do not sync")
	}
	c.loop.Lead(true)
	return c, nil
}

// profiles builds the profile.
func (o *options) profiles(hosts *compat.Hosts) ([]*profile.Profile, error) {
	c := &configv1.KubeSchedulerConfiguration{}
	c.APIVersion, c.Kind = configv1.SchemeGroupVersion.String(), "KubeSchedulerConfiguration"
	c.Profiles = []configv1.KubeSchedulerProfile{{Plugins: &configv1.Plugins{}}}
	for _, name := range o.names {
		c.Profiles[0].Plugins.MultiPoint.Enabled = append(c.Profiles[0].Plugins.MultiPoint.Enabled, configv1.Plugin{Name: name})
	}
	for _, change := range o.change {
		change(c)
	}
	body, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	gates := features.New()
	if err := gates.SetFromMap(map[string]bool{string(features.GenericWorkload): o.groups, string(features.TopologyAwareWorkloadScheduling): o.placements}); err != nil {
		return nil, err
	}
	complete, err := config.With(gates).Decode(body, "the test's configuration")
	if err != nil {
		return nil, err
	}
	args, err := compat.NewArgs(o.schemes)
	if err != nil {
		return nil, err
	}
	configs := config.Profiles(complete)
	for i := range configs {
		configs[i].Own = hosts.Registry(configs[i].Name, o.factories, args)
	}
	profiles, err := profile.BuildAll(configs, plugins.Registry(features.Plugins(gates)))
	if err == nil {
		hosts.Built(profiles)
	}
	return profiles, err
}

// follow has the machine told of pods and nodes.
func (c *Cluster) follow(ctx context.Context) error {
	_, err := c.hosts.Pods().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.loop.Post(podSet(obj)) },
		UpdateFunc: func(_, obj any) { c.loop.Post(podSet(obj)) },
		DeleteFunc: func(obj any) {
			p := obj.(*v1.Pod)
			c.loop.Post(machine.PodGone{UID: p.UID, Namespace: p.Namespace, Name: p.Name})
		},
	})
	if err != nil {
		return err
	}
	_, err = c.hosts.Nodes().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.loop.Post(nodeSet(obj)) },
		UpdateFunc: func(_, obj any) { c.loop.Post(nodeSet(obj)) },
		DeleteFunc: func(obj any) { c.loop.Post(machine.NodeGone{Name: obj.(*v1.Node).Name}) },
	})
	if err != nil {
		return err
	}
	return c.hosts.Start(ctx)
}

func podSet(obj any) machine.Event {
	p := decode.Pod(obj.(*v1.Pod).DeepCopy())
	p.API = obj.(*v1.Pod)
	return machine.PodSet{Pod: p}
}

func nodeSet(obj any) machine.Event {
	n := decode.Node(obj.(*v1.Node).DeepCopy())
	n.API = obj.(*v1.Node)
	return machine.NodeSet{Node: n}
}

// Add creates objects, and returns when the scheduler knows the pods, nodes and pod groups
// among them.
func (c *Cluster) Add(objects ...runtime.Object) {
	c.t.Helper()
	for _, o := range objects {
		if err := c.client.Tracker().Add(o); err != nil {
			c.t.Fatal(err)
		}
		if g, ok := o.(*schedulingv1beta1.PodGroup); ok {
			c.loop.Post(machine.ObjectSet{Object: decode.Object(g)})
		}
		c.settle(o, true)
	}
}

// Update replaces an object.
func (c *Cluster) Update(o runtime.Object) {
	c.t.Helper()
	gvr, namespace := resourceOf(c.t, o)
	if err := c.client.Tracker().Update(gvr, o, namespace); err != nil {
		c.t.Fatal(err)
	}
}

// Delete deletes a pod or a node.
func (c *Cluster) Delete(o runtime.Object) {
	c.t.Helper()
	m, _ := meta.Accessor(o)
	gvr, namespace := resourceOf(c.t, o)
	if err := c.client.Tracker().Delete(gvr, namespace, m.GetName()); err != nil {
		c.t.Fatal(err)
	}
	c.settle(o, false)
}

// settle waits until the loop knows that the object is there, or is not.
func (c *Cluster) settle(o runtime.Object, there bool) {
	m, _ := meta.Accessor(o)
	c.Until("the scheduler knows "+m.GetName(), func() bool {
		known := false
		c.look(func() {
			switch o.(type) {
			case *v1.Pod:
				known = (c.machine.Entry(m.GetUID()) != nil || c.machine.Table().Pod(m.GetUID()) != nil) == there
			case *v1.Node:
				row, found := c.machine.Table().Find(m.GetName())
				known = (found && c.machine.Table().Node(row) != nil) == there
			default:
				known = true
			}
		})
		return known
	})
}

func (c *Cluster) look(f func()) {
	if err := c.loop.Inspect(context.Background(), f); err != nil {
		c.t.Fatal(err)
	}
}

// timeout is how long a test waits for what has to come.
const timeout = 20 * time.Second

// Until waits until the condition holds.
func (c *Cluster) Until(what string, holds func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(timeout); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("in vain: %s", what)
		}
	}
}

// Pod returns the pod of the namespace default as the API has it.
func (c *Cluster) Pod(name string) *v1.Pod {
	p, err := c.client.CoreV1().Pods("default").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return p
}

// NodeOf waits until the pod is bound, and returns the node.
func (c *Cluster) NodeOf(pod string) string {
	c.t.Helper()
	node := ""
	c.Until("pod "+pod+" is bound", func() bool {
		if p := c.Pod(pod); p != nil {
			node = p.Spec.NodeName
		}
		return node != ""
	})
	return node
}

// Decision waits for the attempt for the pod that follows the first that many, and returns
// its record. What the attempts after it come to does not matter.
func (c *Cluster) Decision(pod string, after int) *decision.Decision {
	c.t.Helper()
	var d *decision.Decision
	c.Until("an attempt for pod "+pod, func() bool {
		d = c.executor.decision("default/"+pod, after)
		return d != nil
	})
	return d
}

// Failure waits for an attempt for the pod that did not bind it, and returns the record
// that says so: the last one of those. An attempt that fails after the pod was placed
// in memory has two records, of which the first says ResultScheduled or ResultWaiting.
func (c *Cluster) Failure(pod string) *decision.Decision {
	c.t.Helper()
	var d *decision.Decision
	c.Until("a failed attempt for pod "+pod, func() bool {
		d = c.executor.failure("default/" + pod)
		return d != nil
	})
	return d
}

// Client is what plugins get as ClientSet.
func (c *Cluster) Client() *fake.Clientset { return c.client }

// Dynamic is where custom resources are.
func (c *Cluster) Dynamic() *dynamicfake.FakeDynamicClient { return c.dynamic }

// Pause has the scheduler take no further pod, until Resume.
func (c *Cluster) Pause() {
	c.loop.Lead(false)
	c.look(func() {}) // what it was at is done
}

// Resume ends Pause.
func (c *Cluster) Resume() { c.loop.Lead(true) }

// Order lists the pods of all attempts so far, as namespace/name.
func (c *Cluster) Order() []string { return c.executor.tried() }
