package inprocess

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/compat"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/daemon"
	"github.com/berth-scheduler/berth/edge/loop"
)

// Options are what a test has given to kube-scheduler's constructor.
type Options struct {
	Client    kubernetes.Interface
	API       *rest.Config // nil: as Client
	Profiles  []kubeconfig.KubeSchedulerProfile
	Extenders []kubeconfig.Extender
	// Plugins are those that the test has registered.
	Plugins                    map[string]compat.PluginFactory
	Parallelism                int32
	InitialBackoff, MaxBackoff int64 // seconds
	MaxUnschedulable           time.Duration
}

// Scheduler is Berth.
type Scheduler struct {
	deciding atomic.Bool
	ended    chan struct{}
}

// New returns a scheduler that knows the cluster and decides nothing yet, under the
// feature gates that the test has set in its process. It follows the cluster until
// the context ends.
func New(ctx context.Context, o Options) (*Scheduler, error) {
	gates, err := processGates()
	if err != nil {
		return nil, err
	}
	c, err := o.config(gates)
	if err != nil {
		return nil, err
	}
	api := o.API
	if api == nil {
		api = connection(o.Client)
	}
	logger := klog.FromContext(ctx)
	configs, hosts := config.Profiles(c), (*compat.Hosts)(nil)
	if len(o.Plugins) > 0 {
		if hosts, err = newHosts(logger, &o, api, gates); err != nil {
			return nil, err
		}
		args, err := compat.NewArgs(nil)
		if err != nil {
			return nil, err
		}
		for i := range configs {
			configs[i].Own = hosts.Registry(configs[i].Name, o.Plugins, args)
		}
	}
	profiles, err := profile.BuildAll(configs, plugins.Registry(features.Plugins(gates)))
	if err != nil {
		return nil, err
	}
	if hosts != nil {
		hosts.Built(profiles)
	}
	s := &Scheduler{ended: make(chan struct{})}
	d, err := daemon.New(daemon.Options{
		Wrap:   func(m loop.Machine) loop.Machine { return &held{m, s} },
		Logger: logger, Config: c, API: api, Profiles: profiles, Hosts: hosts, Seed: rand.Uint64(),
		MaxUnschedulable: o.MaxUnschedulable, Register: basemetrics.NewKubeRegistry().MustRegister,
		HideExpectedNode: !gates.Enabled(features.NominatedNodeNameForExpectation),
		PodGroups:        gates.Enabled(features.GenericWorkload),
		GroupPlacements:  gates.Enabled(features.TopologyAwareWorkloadScheduling),
		WaitForEvictions: !gates.Enabled(features.SchedulerAsyncPreemption),
		WaitOutBackoff:   !gates.Enabled(features.SchedulerPopFromBackoffQ),
		PodFields:        features.PodFields(gates),
	})
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(s.ended)
		if err := d.Run(ctx, nil); err != nil {
			logger.Error(err, "Berth ended")
		}
	}()
	return s, waitForSync(ctx, d)
}

// held is a machine that has nothing to decide on before the test runs its scheduler.
type held struct {
	loop.Machine
	scheduler *Scheduler
}

// First is the pod to decide on; nil: there is none.
func (h *held) First() *object.Pod {
	if !h.scheduler.deciding.Load() {
		return nil
	}
	return h.Machine.First()
}

// waitForSync waits until the daemon knows the cluster: a test waits for
// kube-scheduler's informers before it goes on. With BERTH_CHECK=1 the 4,000 pods that
// tests of dra/all leave behind take half a minute, and more beside other work.
func waitForSync(ctx context.Context, d *daemon.Daemon) error {
	return wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 5*time.Minute, true, func(context.Context) (bool, error) {
		for _, check := range d.Endpoint().Readyz {
			if check.Name() == "sched-handler-sync" {
				return check.Check(nil) == nil, nil
			}
		}
		return false, errors.New("the daemon does not tell when it knows the cluster")
	})
}

// Run has Berth decide until the context ends, or that of New.
func (s *Scheduler) Run(ctx context.Context) {
	s.deciding.Store(true)
	defer s.deciding.Store(false)
	select {
	case <-ctx.Done():
	case <-s.ended:
	}
}

func newHosts(logger klog.Logger, o *Options, api *rest.Config, gates featuregate.FeatureGate) (*compat.Hosts, error) {
	d, err := dynamic.NewForConfig(api)
	if err != nil {
		return nil, err
	}
	return compat.New(compat.Options{Logger: logger, Config: api, Client: o.Client, Dynamic: d, Parallelism: int(o.Parallelism),
		DeviceTaintRules: gates.Enabled(features.DRADeviceTaintRules), ConsumableCapacity: gates.Enabled(features.DRAConsumableCapacity),
		PodGroups: gates.Enabled(features.GenericWorkload), GroupPlacements: gates.Enabled(features.TopologyAwareWorkloadScheduling),
		PreQueueingHints: gates.Enabled(features.SchedulerPreQueueingHints)}), nil
}

// connection is how a client reaches its API server.
func connection(c kubernetes.Interface) *rest.Config {
	client := c.CoreV1().RESTClient().(*rest.RESTClient)
	at := client.Get().URL()
	return &rest.Config{Host: at.Scheme + "://" + at.Host, Transport: transport(client), QPS: -1}
}

func transport(c *rest.RESTClient) http.RoundTripper {
	if c.Client == nil || c.Client.Transport == nil {
		return http.DefaultTransport
	}
	return c.Client.Transport
}
