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
		Short: "Show faults of kube-scheduler v1.36.3 that Berth does not have, on a live control plane",
		Long: `Play five stories with kube-scheduler v1.36.3 and then with Berth, each a process
of its own against the same control plane, with the same objects and the same
faults of the connection. In each story kube-scheduler leaves a pod waiting that
fits (R1, R2, R3, R5), or gives a node's room away twice (R4).

That a pod is left waiting is not a matter of patience: a pod that was created
after the event has been placed, the scheduler's metrics say that no pod is
active or in backoff, and a twin of the pod that waits is placed at once. The pod
itself would wait until the sweep after five minutes; a gated one (R5) for good.

Progress goes to the standard error, a table to the standard output. The exit
status is 1 if kube-scheduler does not have one of the faults, or Berth has it.
docs/deviations.md lists what else differs.`,
		Example: `  berth-lab faults
  berth-lab faults --only R4
  berth-lab faults --only R1,R5 --berth bin/berth-scheduler`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM)
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
					return fmt.Errorf("%s: not as docs/deviations.md says", r.Name)
				}
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.StringSliceVar(&o.Only, "only", nil, "the faults to show, R1 to R5 (default: all)")
	flags.StringVar(&o.Binary, "berth", "", "the berth-scheduler to run (default: the one beside berth-lab)")
	return command
}
