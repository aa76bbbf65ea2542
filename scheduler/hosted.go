package scheduler

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/compat"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/extender"
)

// PluginFactory makes a plugin that is written against
// k8s.io/kube-scheduler/framework, for one profile. It is the type that
// kube-scheduler's registry has.
type PluginFactory = compat.PluginFactory

// PodsToActivate is what a plugin finds under PodsToActivateKey in the CycleState. It
// has the shape of kube-scheduler's own type, and is another type.
type PodsToActivate = compat.PodsToActivate

// PodsToActivateKey is the key of PodsToActivate.
const PodsToActivateKey = compat.PodsToActivateKey

// WithPlugin adds a plugin that is written against k8s.io/kube-scheduler/framework,
// unmodified. A configuration enables it by its name. A name that is given twice, or
// that a built-in plugin has, is an error at start.
//
// docs/first-plugin.md is a guide.
func WithPlugin(name string, factory PluginFactory) Option {
	return func(o *options) { o.hosted.plugins = append(o.hosted.plugins, hostedPlugin{name, factory}) }
}

// WithScheme adds types to the scheme by which pluginConfig[].args are decoded. The
// type of a plugin's arguments is the kind NameArgs of
// kubescheduler.config.k8s.io/v1, where Name is the plugin's; what the factory gets is
// made of it by the scheme's defaults and conversions. A plugin without such a type
// gets a *runtime.Unknown.
func WithScheme(add func(*runtime.Scheme) error) Option {
	return func(o *options) { o.hosted.schemes = append(o.hosted.schemes, add) }
}

// WithPluginTimeout bounds the time that calls of plugins may take in one attempt to
// place a pod, 10 seconds without this option. What all calls in one step of the loop may
// take is twice that. PreBind, Bind and PostBind are not bounded.
func WithPluginTimeout(d time.Duration) Option {
	return func(o *options) { o.hosted.timeout = d }
}

// WithPodsToActivate has plugins find under PodsToActivateKey what make returns, instead of a
// PodsToActivate. Plugins that assert kube-scheduler's own type, as Coscheduling of
// sigs.k8s.io/scheduler-plugins does, link k8s.io/kubernetes anyway; their main gives
//
//	func() framework.StateData { return upstream.NewPodsToActivate() }
//
// where upstream is k8s.io/kubernetes/pkg/scheduler/framework. A type of another shape is an
// error at start.
func WithPodsToActivate(make func() framework.StateData) Option {
	return func(o *options) { o.hosted.podsToActivate = make }
}

type hostedOptions struct {
	plugins        []hostedPlugin
	schemes        []func(*runtime.Scheme) error
	timeout        time.Duration
	podsToActivate func() framework.StateData
}

type hostedPlugin struct {
	name    string
	factory PluginFactory
}

// check says what is wrong with the plugins, beside those that a registry has.
func (o *hostedOptions) check(known profile.Registry) error {
	seen := map[string]bool{}
	for _, pl := range o.plugins {
		switch {
		case pl.name == "":
			return errors.New("a plugin has no name")
		case pl.factory == nil:
			return fmt.Errorf("plugin %q has no factory", pl.name)
		case known[pl.name] != nil && !names.Replaceable(pl.name) || seen[pl.name]:
			return fmt.Errorf("a plugin named %q already exists", pl.name)
		}
		seen[pl.name] = true
	}
	if o.podsToActivate != nil {
		return compat.CheckPodsToActivate(o.podsToActivate)
	}
	return nil
}

// newHosts returns the hosts of the plugins, nil where there are none.
func (o *options) newHosts(c *config.Config, api *rest.Config) (*compat.Hosts, error) {
	if len(o.hosted.plugins) == 0 {
		return nil, nil
	}
	// What a plugin adds to an informer may panic. That skips one event, and ends
	// nothing.
	utilruntime.ReallyCrash = false
	options := compat.Options{Logger: klog.Background(), Config: api, Timeout: o.hosted.timeout, Parallelism: int(*c.Parallelism),
		PodsToActivate:   o.hosted.podsToActivate,
		DeviceTaintRules: o.gates.Enabled(features.DRADeviceTaintRules), ConsumableCapacity: o.gates.Enabled(features.DRAConsumableCapacity),
		PodGroups: o.gates.Enabled(features.GenericWorkload), GroupPlacements: o.gates.Enabled(features.TopologyAwareWorkloadScheduling),
		PreQueueingHints: o.gates.Enabled(features.SchedulerPreQueueingHints)}
	extenders, err := extender.New(c.Extenders)
	if err != nil {
		return nil, err
	}
	options.Extenders = extenders.Hosted()
	if options.Client, err = kubernetes.NewForConfig(api); err != nil {
		return nil, err
	}
	plain := rest.CopyConfig(api)
	plain.ContentType, plain.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if options.Dynamic, err = dynamic.NewForConfig(plain); err != nil {
		return nil, err
	}
	return compat.New(options), nil
}

// copyProfiles makes the profiles once more, for a copy of the machine. What hosted
// plugins know of the cluster cannot be copied.
func (o *options) copyProfiles(c *config.Config) ([]*profile.Profile, error) {
	if len(o.hosted.plugins) > 0 {
		return nil, api.ErrHosted
	}
	return o.profiles(c, nil)
}

// host gives each profile its own hosted plugins.
func (o *options) host(hosts *compat.Hosts, profiles []profile.Config) error {
	args, err := compat.NewArgs(o.hosted.schemes)
	if err != nil {
		return err
	}
	factories := map[string]compat.PluginFactory{}
	for _, pl := range o.hosted.plugins {
		factories[pl.name] = pl.factory
	}
	for i := range profiles {
		profiles[i].Own = hosts.Registry(profiles[i].Name, factories, args)
	}
	return nil
}
