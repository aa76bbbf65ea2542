package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/compat"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// Plugins are those that a build has besides the ones that come with Berth.
type Plugins struct {
	Native profile.Registry
	// Hosted are written against k8s.io/kube-scheduler/framework.
	Hosted  map[string]compat.PluginFactory
	Schemes []func(*runtime.Scheme) error // of their arguments
	// PodsToActivate is that of compat.Options.
	PodsToActivate func() fwk.StateData
	// Timeout is that of compat.Options.
	Timeout time.Duration
}

// Names lists the plugins.
func (p *Plugins) Names() []string {
	return slices.Sorted(maps.Keys(p.All()))
}

// All has every plugin's name.
func (p *Plugins) All() map[string]bool {
	all := map[string]bool{}
	for name := range p.Native { // any order: fills a map
		all[name] = true
	}
	for name := range p.Hosted { // any order: fills a map
		all[name] = true
	}
	return all
}

// Scheduler is a configuration with the plugins for it. Hosted plugins keep what they
// saw, so each world gets a scheduler made anew.
type Scheduler struct {
	config  *config.Config
	gates   featuregate.FeatureGate
	plugins Plugins
	// Absent maps the plugins that the configuration names and no world has to the reason.
	Absent map[string]string
}

// NewScheduler returns the scheduler of a configuration, and options of a machine for it.
// The plugins of absent are left out, and hosted ones that cannot be made.
func NewScheduler(c *config.Config, gates featuregate.FeatureGate, own Plugins, absent map[string]string) (*Scheduler, machine.Options, error) {
	s := &Scheduler{config: c, gates: gates, plugins: own, Absent: maps.Clone(absent)}
	if s.Absent == nil {
		s.Absent = map[string]string{}
	}
	for {
		known := len(s.Absent)
		profiles, hosts, err := s.build()
		if err != nil && len(s.Absent) > known {
			continue // without those that could not be made
		}
		if err != nil {
			return nil, machine.Options{}, err
		}
		if hosts != nil {
			hosts.Close()
		}
		return s, optionsWith(profiles, c, gates), nil
	}
}

// Hosts reports whether a profile may have hosted plugins.
func (s *Scheduler) Hosts() bool { return s != nil && len(s.plugins.Hosted) > 0 }

// build makes the profiles, and the hosts of their plugins, nil where there are none.
func (s *Scheduler) build() ([]*profile.Profile, *compat.Hosts, error) {
	registry := plugins.Registry(features.Plugins(s.gates))
	maps.Copy(registry, s.plugins.Native)
	configs := config.Profiles(s.config)
	for i := range configs {
		s.leaveOut(&configs[i])
	}
	if !s.Hosts() {
		profiles, err := profile.BuildAll(configs, registry)
		return profiles, nil, err
	}
	args, err := compat.NewArgs(s.plugins.Schemes)
	if err != nil {
		return nil, nil, err
	}
	hosts, err := compat.NewOffline(compat.Options{Logger: klog.Background(), Timeout: s.plugins.Timeout, Parallelism: int(*s.config.Parallelism),
		PodsToActivate: s.plugins.PodsToActivate, ConsumableCapacity: s.gates.Enabled(features.DRAConsumableCapacity),
		PodGroups: s.gates.Enabled(features.GenericWorkload), GroupPlacements: s.gates.Enabled(features.TopologyAwareWorkloadScheduling),
		PreQueueingHints: s.gates.Enabled(features.SchedulerPreQueueingHints)})
	if err != nil {
		return nil, nil, err
	}
	factories := map[string]compat.PluginFactory{}
	for name, make := range s.plugins.Hosted { // any order: fills a map
		factories[name] = s.try(name, make, hosts.Timeout())
	}
	for i := range configs {
		configs[i].Own = hosts.Registry(configs[i].Name, factories, args)
	}
	profiles, err := profile.BuildAll(configs, registry)
	if err != nil {
		hosts.Close()
		return nil, nil, err
	}
	hosts.Built(profiles)
	return profiles, hosts, nil
}

// leaveOut disables the absent plugins in a profile.
func (s *Scheduler) leaveOut(c *profile.Config) {
	is := func(e profile.Enabled) bool { return s.Absent[e.Plugin] != "" }
	c.MultiPoint.Enabled = slices.DeleteFunc(slices.Clone(c.MultiPoint.Enabled), is)
	for i := range c.Points {
		c.Points[i].Enabled = slices.DeleteFunc(slices.Clone(c.Points[i].Enabled), is)
	}
	c.Args = slices.DeleteFunc(slices.Clone(c.Args), func(a profile.Args) bool { return s.Absent[a.Plugin] != "" })
}

// made is what a factory returned.
type made struct {
	plugin fwk.Plugin
	err    error
}

// try returns a factory that records why a plugin cannot be made: its factory fails, panics,
// or does not return in time.
func (s *Scheduler) try(name string, factory compat.PluginFactory, limit time.Duration) compat.PluginFactory {
	return func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		result := make(chan made, 1)
		go func() {
			m := made{err: errors.New("its factory ended its goroutine")}
			defer func() {
				if r := recover(); r != nil {
					m.err = fmt.Errorf("its factory panicked: %v", r)
				}
				result <- m
			}()
			m.plugin, m.err = factory(ctx, args, h)
		}()
		var m made
		select {
		case m = <-result:
		case <-time.After(limit):
			m.err = fmt.Errorf("its factory did not return within %v", limit)
		}
		if m.err != nil {
			s.Absent[name] = m.err.Error()
		}
		return m.plugin, m.err
	}
}
