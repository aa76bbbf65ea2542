package scheduler

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"

	_ "k8s.io/component-base/logs/json/register" // --logging-format=json

	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/terminal"
)

const about = `berth-scheduler assigns pods to nodes in kube-scheduler's place. It takes the same
flags and the same configuration file, and it serves the same endpoints. It
looks at every node for every pod.`

const examples = `  # Schedule the pods of the cluster that a kubeconfig points to
  berth-scheduler --kubeconfig=$HOME/.kube/config --leader-elect=false

  # As a static pod, with a configuration file
  berth-scheduler --config=/etc/kubernetes/scheduler-config.yaml -v=2

  # Write the configuration in effect to a file
  berth-scheduler --config=my.yaml --write-config-to=effective.yaml

  # Record all inputs, for berth replay and berth compare
  berth-scheduler --config=my.yaml --record-to=/var/lib/berth/record`

// Option changes the scheduler that NewCommand makes.
type Option func(*options)

// NewCommand returns the whole berth-scheduler command. Run it with cli.Run of
// k8s.io/component-base/cli, which sets up logs and turns an error into an
// exit status.
func NewCommand(opts ...Option) *cobra.Command {
	o := newOptions()
	for _, set := range opts {
		set(o)
	}
	return newCommand(o)
}

// logStreams are where a log goes unless it is told otherwise. Nothing in it acts on a
// terminal.
var logStreams = &logsapi.LoggingOptions{ErrorStream: terminal.Log(os.Stderr), InfoStream: terminal.NewWriter(os.Stdout)}

// newCommand returns a command that fills the options in and acts on them.
func newCommand(o *options) *cobra.Command {
	command := &cobra.Command{
		Use:           "berth-scheduler",
		Short:         "Assign pods to nodes",
		Long:          about,
		Example:       examples,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if printed, err := printVersion(c.OutOrStdout(), o.version); printed || err != nil {
				return err
			}
			if err := o.registry.Set(); err != nil {
				return shown(err)
			}
			if err := logsapi.ValidateAndApplyWithOptions(o.logs, logStreams, o.gates); err != nil {
				return shown(err)
			}
			features.Apply(o.gates)
			cliflag.PrintFlags(c.Flags())
			return start(o)
		},
	}
	globalflag.AddGlobalFlags(o.flags.FlagSet("global"), command.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range o.flags.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return shown(err) })
	help(command, o.flags)
	return command
}

// shown is an error as it may be shown. cli.Run prints errors as they are until logs go to
// logStreams.
func shown(err error) error { return errors.New(terminal.Escape(err.Error())) }

// help prints the flags by group, after the examples.
func help(command *cobra.Command, flags cliflag.NamedFlagSets) {
	command.SetUsageFunc(func(c *cobra.Command) error {
		fmt.Fprintf(c.OutOrStderr(), "Usage:\n  %s [flags]\n\nSee %s --help.\n", c.UseLine(), c.CommandPath())
		return nil
	})
	command.SetHelpFunc(func(c *cobra.Command, _ []string) {
		fmt.Fprintf(c.OutOrStdout(), "%s\n\nUsage:\n  %s [flags]\n\nExamples:\n%s\n", c.Long, c.CommandPath(), c.Example)
		cliflag.PrintSections(c.OutOrStdout(), flags, 0)
	})
}
