package inprocess

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/compat"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/daemon"
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
	daemon *daemon.Daemon
	logger klog.Logger
}

// New returns a scheduler that does not run yet, under the feature gates that the
// test has set in its process.
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
		if hosts, err = newHosts(logger, &o, api); err != nil {
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
	d, err := daemon.New(daemon.Options{
		Logger: logger, Config: c, API: api, Profiles: profiles, Hosts: hosts, Seed: rand.Uint64(),
		MaxUnschedulable: o.MaxUnschedulable, Register: basemetrics.NewKubeRegistry().MustRegister,
		HideExpectedNode: !gates.Enabled(features.NominatedNodeNameForExpectation),
	})
	return &Scheduler{d, logger}, err
}

// Run schedules until the context ends.
func (s *Scheduler) Run(ctx context.Context) {
	if err := s.daemon.Run(ctx, nil); err != nil {
		s.logger.Error(err, "Berth ended")
	}
}

func newHosts(logger klog.Logger, o *Options, api *rest.Config) (*compat.Hosts, error) {
	d, err := dynamic.NewForConfig(api)
	if err != nil {
		return nil, err
	}
	return compat.New(compat.Options{Logger: logger, Config: api, Client: o.Client, Dynamic: d, Parallelism: int(o.Parallelism)}), nil
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
