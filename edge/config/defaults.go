package config

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	componentv1alpha1 "k8s.io/component-base/config/v1alpha1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// orDefault fills a field that was left out.
func orDefault[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

// orValue fills a field whose zero value means that it was left out.
func orValue[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// complete fills in v1.37's defaults.
func (r Reader) complete(c *Config) {
	c.SetGroupVersionKind(kind)
	orDefault(&c.Parallelism, 16)
	orDefault(&c.PercentageOfNodesToScore, 0)
	orDefault(&c.PodInitialBackoffSeconds, 1)
	orDefault(&c.PodMaxBackoffSeconds, 10)
	orDefault(&c.EnableProfiling, true)
	if *c.EnableProfiling {
		orDefault(&c.EnableContentionProfiling, true)
	}
	orDefault(&c.EnableContentionProfiling, false)

	orValue(&c.LeaderElection.ResourceLock, "leases")
	orValue(&c.LeaderElection.ResourceNamespace, configv1.SchedulerDefaultLockObjectNamespace)
	orValue(&c.LeaderElection.ResourceName, configv1.SchedulerDefaultLockObjectName)
	componentv1alpha1.RecommendedDefaultLeaderElectionConfiguration(&c.LeaderElection)
	componentv1alpha1.RecommendedDefaultClientConnectionConfiguration(&c.ClientConnection)

	if len(c.Profiles) == 0 {
		c.Profiles = []configv1.KubeSchedulerProfile{{}}
	}
	if len(c.Profiles) == 1 {
		orDefault(&c.Profiles[0].SchedulerName, v1.DefaultSchedulerName)
	}
	for i := range c.Profiles {
		orDefault(&c.Profiles[i].SchedulerName, "")
		r.completeProfile(&c.Profiles[i])
	}
}

// completeProfile merges the default plugins in, and adds the arguments of each enabled plugin
// that takes some and was given none. Added arguments follow the configured ones, by name.
func (r Reader) completeProfile(p *configv1.KubeSchedulerProfile) {
	p.Plugins = mergePlugins(r.defaultPlugins(), p.Plugins)
	configured := map[string]bool{}
	for i := range p.PluginConfig {
		pc := &p.PluginConfig[i]
		configured[pc.Name] = true
		if gvk, known := argsKind(pc.Name); known {
			pc.Args.Object = plugins.WithDefaults(pc.Args.Object, features.Plugins(r.gates))
			pc.Args.Object.GetObjectKind().SetGroupVersionKind(gvk)
		}
	}
	for _, name := range enabledNames(p.Plugins) {
		gvk, known := argsKind(name)
		if !known || configured[name] {
			continue
		}
		args, err := scheme.New(gvk)
		if err != nil {
			panic(err) // argsKind has just found the kind
		}
		args = plugins.WithDefaults(args, features.Plugins(r.gates))
		args.GetObjectKind().SetGroupVersionKind(gvk)
		p.PluginConfig = append(p.PluginConfig, configv1.PluginConfig{Name: name, Args: runtime.RawExtension{Object: args}})
	}
}

// ignoreExtendedResources makes NodeResourcesFit of every profile leave alone the resources that
// an extender manages in its stead. As in v1.37 these replace the configured ignoredResources.
func ignoreExtendedResources(c *Config) {
	var ignored []string
	for _, e := range c.Extenders {
		for _, r := range e.ManagedResources {
			if r.IgnoredByScheduler {
				ignored = append(ignored, r.Name)
			}
		}
	}
	if len(ignored) == 0 {
		return
	}
	for _, p := range c.Profiles {
		for _, pc := range p.PluginConfig {
			if fit, ok := pc.Args.Object.(*configv1.NodeResourcesFitArgs); ok {
				fit.IgnoredResources = ignored
			}
		}
	}
}
