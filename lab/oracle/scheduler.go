package oracle

import (
	"context"
	"fmt"
	"maps"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/berth-scheduler/berth/sim/generate"
)

// Scheduler is a kube-scheduler whose cache is filled by hand. It belongs to
// one goroutine.
type Scheduler struct {
	*scheduler.Scheduler
	ctx      context.Context
	stop     context.CancelFunc
	gates    map[string]bool // not at their defaults
	logger   klog.Logger
	profiles profile.Map
	// weights are the score plugins' weights by profile and plugin.
	weights  map[string]map[string]int64
	snapshot *schedulercache.Snapshot
	// listed is the store behind the pod lister, which preemption reads.
	listed cache.Indexer
	// namespaces is the store behind the namespace lister.
	namespaces cache.Indexer
	// factory has the stores behind all other listers.
	factory informers.SharedInformerFactory
	client  *fake.Clientset
	version int // of what was shown last about devices
	nodes   map[string]*v1.Node
	placed  map[types.UID]*v1.Pod
}

// New starts a scheduler that evaluates every node on the cluster of a world,
// with its configuration. Stop ends it.
func New(w generate.World) (*Scheduler, error) {
	defer Under(w.Gates)()
	cfg, err := load(w.Config)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	all := int32(100)
	for i := range cfg.Profiles {
		cfg.Profiles[i].PercentageOfNodesToScore = &all
	}
	s, err := start(cfg.Profiles, w, scheduler.WithPercentageOfNodesToScore(&all), scheduler.WithParallelism(1),
		scheduler.WithExtenders(cfg.Extenders...))
	if err != nil {
		return nil, err
	}
	for _, x := range cfg.Extenders {
		for _, weights := range s.weights {
			weights[x.URLPrefix] = max(1, x.Weight)
		}
	}
	return s, nil
}

func start(profiles []config.KubeSchedulerProfile, w generate.World, opts ...scheduler.Option) (*Scheduler, error) {
	ctx, stop := context.WithCancel(context.Background())
	client := fake.NewSimpleClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	feed(factory)
	sortBudgets(factory)
	silent := func(string) events.EventRecorderLogger { return &events.FakeRecorder{} }
	opts = append(opts, scheduler.WithProfiles(profiles...))
	sched, err := scheduler.New(ctx, client, factory, nil, silent, opts...)
	if err != nil {
		stop()
		return nil, err
	}
	s := &Scheduler{
		Scheduler: sched, ctx: ctx, stop: stop, gates: w.Gates, logger: klog.FromContext(ctx),
		profiles:   sched.Profiles,
		weights:    map[string]map[string]int64{},
		listed:     factory.Core().V1().Pods().Informer().GetIndexer(),
		namespaces: factory.Core().V1().Namespaces().Informer().GetIndexer(),
		factory:    factory,
		client:     client,
		nodes:      map[string]*v1.Node{},
		placed:     map[types.UID]*v1.Pod{},
	}
	for name, p := range sched.Profiles {
		s.snapshot = p.SnapshotSharedLister().(*schedulercache.Snapshot)
		s.weights[name] = map[string]int64{}
		for _, plugin := range p.ListPlugins().Score.Enabled {
			s.weights[name][plugin.Name] = max(1, int64(plugin.Weight))
		}
	}
	for _, n := range w.Nodes {
		s.nodes[n.Name] = n
		sched.Cache.AddNode(s.logger, n)
	}
	budgets := factory.Policy().V1().PodDisruptionBudgets().Informer().GetIndexer()
	for _, b := range w.Budgets {
		if err := budgets.Add(b); err != nil {
			stop()
			return nil, err
		}
	}
	for _, n := range w.Namespaces {
		if err := s.namespaces.Add(n); err != nil {
			stop()
			return nil, err
		}
	}
	for _, f := range w.SelectorOwners {
		if err := addSelectorOwner(factory, f); err != nil {
			stop()
			return nil, err
		}
	}
	for _, o := range w.Objects {
		if err := s.setObject(o); err != nil {
			stop()
			return nil, err
		}
	}
	for _, p := range w.Bound {
		if err := s.Assume(p, p.Spec.NodeName); err != nil {
			stop()
			return nil, err
		}
	}
	s.recountDevices()
	return s, nil
}

// underGates is who needs the gates of the process as they are. The process has but one
// set, which plugins read when they are made, and the cache reads all the time.
var underGates = struct {
	sync.Mutex
	left    *sync.Cond
	gates   map[string]bool
	before  map[string]bool
	version *version.Version // that was emulated before
	holders int
}{}

func init() { underGates.left = sync.NewCond(&underGates) }

// Under sets the gates of the process; what it returns sets them back. Those who need
// other gates wait until then.
func Under(gates map[string]bool) (restore func()) {
	u := &underGates
	u.Lock()
	defer u.Unlock()
	for u.holders > 0 && !maps.Equal(u.gates, gates) {
		u.left.Wait()
	}
	if u.holders == 0 {
		u.gates, u.before = gates, map[string]bool{}
		for name := range gates {
			u.before[name] = utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(name))
		}
		u.version = setGates(gates)
	}
	u.holders++
	return func() {
		u.Lock()
		defer u.Unlock()
		if u.holders--; u.holders == 0 {
			resetGates(u.before, u.version)
			u.left.Broadcast()
		}
	}
}

// load decodes a configuration as kube-scheduler does, defaults included.
func load(configuration string) (*config.KubeSchedulerConfiguration, error) {
	if configuration == "" {
		var versioned configv1.KubeSchedulerConfiguration
		scheme.Scheme.Default(&versioned)
		cfg := &config.KubeSchedulerConfiguration{}
		return cfg, scheme.Scheme.Convert(&versioned, cfg, nil)
	}
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(configuration), nil, nil)
	if err != nil {
		return nil, err
	}
	cfg, ok := obj.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("%T is not a KubeSchedulerConfiguration", obj)
	}
	return cfg, nil
}

// Stop ends the scheduler's background work.
func (s *Scheduler) Stop() {
	s.SchedulingQueue.Close()
	s.stop()
}

// Assume places the pod on the node, as if the API server had confirmed it.
func (s *Scheduler) Assume(pod *v1.Pod, node string) error {
	defer Under(s.gates)()
	placed := pod.DeepCopy()
	placed.Spec.NodeName = node
	if err := s.Cache.AddPod(s.logger, placed); err != nil {
		return fmt.Errorf("pod %s/%s: place on node %s: %w", pod.Namespace, pod.Name, node, err)
	}
	s.placed[placed.UID] = placed
	return s.listed.Add(placed)
}

// framework is the pod's profile.
func (s *Scheduler) framework(pod *v1.Pod) (framework.Framework, error) {
	p, ok := s.profiles[pod.Spec.SchedulerName]
	if !ok {
		return nil, fmt.Errorf("pod %s/%s: no profile %q", pod.Namespace, pod.Name, pod.Spec.SchedulerName)
	}
	return p, nil
}
