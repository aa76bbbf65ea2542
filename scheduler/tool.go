package scheduler

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/compat"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/tool"
)

// NewToolCommand returns the whole berth command with the plugins that the options give a
// scheduler. Run it with RunTool.
func NewToolCommand(opts ...Option) *cobra.Command {
	o := newOptions()
	for _, set := range opts {
		set(o)
	}
	own, err := o.toolPlugins()
	command := tool.NewCommand(tool.Build{Version: revision(), Plugins: own})
	if err != nil {
		command.PersistentPreRunE = func(*cobra.Command, []string) error { return err }
	}
	return command
}

// RunTool runs the command of NewToolCommand with the arguments of this process and returns
// its exit status. cli.Run would end each failure with 1.
func RunTool(command *cobra.Command) int { return tool.Run(command) }

// toolPlugins are the plugins of the options, for schedulers that are simulated.
func (o *options) toolPlugins() (*sim.Plugins, error) {
	registry := plugins.Registry(features.Plugins(o.gates))
	own := &sim.Plugins{Native: profile.Registry{}, Hosted: map[string]compat.PluginFactory{},
		Schemes: o.hosted.schemes, PodsToActivate: o.hosted.podsToActivate, Timeout: o.hosted.timeout}
	err := errors.Join(o.addNative(registry), o.hosted.check(registry))
	for _, pl := range o.nativePlugins {
		own.Native[pl.name] = registry[pl.name]
	}
	for _, pl := range o.hosted.plugins {
		own.Hosted[pl.name] = pl.factory
	}
	return own, err
}
