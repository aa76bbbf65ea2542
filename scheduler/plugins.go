package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/compat"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// NativePluginFactory makes a plugin for one profile. The arguments are what
// pluginConfig has for the plugin, as JSON; nil where it has nothing.
type NativePluginFactory = func(args json.RawMessage) (*framework.Plugin, error)

// WithNativePlugin adds a plugin that is written against core/framework, and so
// runs as fast as those that come with Berth. A configuration enables it by its
// name. A name that is given twice, or that an in-tree plugin has, is an error
// at start.
//
// This option is not stable, because core/framework is not: a plugin may have to
// be changed for a new release. docs/plugins.md is a guide.
func WithNativePlugin(name string, factory NativePluginFactory) Option {
	return func(o *options) { o.nativePlugins = append(o.nativePlugins, nativePlugin{name, factory}) }
}

type nativePlugin struct {
	name    string
	factory NativePluginFactory
}

// profiles builds what the configuration asks for, of the in-tree plugins and
// those that options add.
func (o *options) profiles(c *config.Config, hosts *compat.Hosts) ([]*profile.Profile, error) {
	registry := plugins.Registry(features.Plugins(o.gates))
	if err := o.addNative(registry); err != nil {
		return nil, err
	}
	if err := o.hosted.check(registry); err != nil {
		return nil, err
	}
	configs := config.Profiles(c)
	if hosts != nil {
		if err := o.host(hosts, configs); err != nil {
			return nil, err
		}
	}
	profiles, err := profile.BuildAll(configs, registry)
	if err == nil && hosts != nil {
		hosts.Built(profiles)
	}
	return profiles, err
}

// addNative adds the native plugins of the options to the registry.
func (o *options) addNative(registry profile.Registry) error {
	for _, pl := range o.nativePlugins {
		switch {
		case pl.name == "":
			return errors.New("a native plugin has no name")
		case pl.factory == nil:
			return fmt.Errorf("native plugin %q has no factory", pl.name)
		case registry[pl.name] != nil:
			return fmt.Errorf("a plugin named %q already exists", pl.name)
		}
		registry[pl.name] = func(args any) (*framework.Plugin, error) {
			raw, _ := args.(json.RawMessage)
			return pl.factory(raw)
		}
	}
	return nil
}
