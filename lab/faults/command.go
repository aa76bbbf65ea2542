package faults

import (
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// NewCommand is `berth-lab faults`.
func NewCommand() *cobra.Command {
	var o Options
	command := &cobra.Command{
		Use:   "faults",
		Short: "Show faults of kube-scheduler that Berth does not have, on a live control plane",
		Long: `Play five stories with kube-scheduler and then with Berth. Each scheduler is
a process of its own against the same control plane, with the same objects and the
same faults of the connection. In each story kube-scheduler leaves a pod waiting
that fits (R1, R2, R3, R5), or gives a node's room away twice (R4).

The command does not just wait a while to say that a pod is left waiting. A pod
that was created after the event has been placed, the scheduler's metrics show no
active pod and none in backoff, and a twin of the waiting pod is placed at once.
The waiting pod would stay until the flush after five minutes.

Progress goes to standard error, and a table to standard output. The exit status
is 1 if kube-scheduler does not have one of the faults, or if Berth has it.
docs/deviations.md lists all other differences.`,
		Example: `  berth-lab faults
  berth-lab faults --only R4
  berth-lab faults --only R1,R5 --berth bin/berth-scheduler`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			results, err := Run(ctx, command.ErrOrStderr(), o)
			if err != nil {
				return err
			}
			if err := write(command.OutOrStdout(), results); err != nil {
				return err
			}
			for _, r := range results {
				if !r.Met() {
					return fmt.Errorf("%s: the outcome differs from docs/deviations.md", r.Name)
				}
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.StringSliceVar(&o.Only, "only", nil, "faults to show, R1 to R5 (default: all)")
	flags.StringVar(&o.Binary, "berth", "", "path of the berth-scheduler to run (default: the program beside berth-lab)")
	return command
}
