package failover

import (
	"encoding/json"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// Options are the flags of `berth-lab failover`.
type Options struct {
	Nodes, Pods int
	Runs        int
	Schedulers  []string
	Output      string
	Binary      string
}

// NewCommand is `berth-lab failover`.
func NewCommand() *cobra.Command {
	var o Options
	command := &cobra.Command{
		Use:   "failover",
		Short: "Measure starts and changes of the leader, beside kube-scheduler, on a live control plane",
		Long: `Fill a control plane with nodes and with pods that are bound already. Then, for each
scheduler in turn:

  start   start one replica; the time from its start to its first binding, with the
          CPU time and the peak memory that this took
  SIGTERM start a standby, ask the leader to stop; the time from the signal to the
          standby's first binding
  kill    start a standby, kill the leader; the time from the kill to the standby's
          first binding, and how much of it came after the lease had run out

The durations of the lease are the defaults: it lasts 15 s after its last renewal,
and kube-scheduler's standby looks at it every 2 s to 4.4 s.

Progress goes to standard error, and the result to standard output.`,
		Example: `  berth-lab failover --nodes 5000 --pods 50000
  berth-lab failover --nodes 100 --pods 1000 --runs 3 -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			results, err := Run(ctx, command.ErrOrStderr(), o)
			if err != nil {
				return err
			}
			if o.Output == "json" {
				e := json.NewEncoder(command.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(results)
			}
			return write(command.OutOrStdout(), results)
		},
	}
	flags := command.Flags()
	flags.IntVar(&o.Nodes, "nodes", 5000, "number of nodes")
	flags.IntVar(&o.Pods, "pods", 50000, "number of pods that are bound when it begins")
	flags.IntVar(&o.Runs, "runs", 1, "number of turns of each scheduler")
	flags.StringSliceVar(&o.Schedulers, "schedulers", []string{cluster.Berth, cluster.KubeScheduler}, "schedulers that take turns, in this order")
	flags.StringVarP(&o.Output, "output", "o", "table", "output format: table or json")
	flags.StringVar(&o.Binary, "berth", "", "path of the berth-scheduler to run (default: the program beside berth-lab)")
	return command
}

func (o Options) validate() error {
	if o.Nodes < 1 || o.Pods < 0 || o.Runs < 1 {
		return fmt.Errorf("--nodes %d --pods %d --runs %d: there must be a node and a run, and no less than 0 pods", o.Nodes, o.Pods, o.Runs)
	}
	if limit := o.Nodes * podsPerNode; o.Pods > limit {
		return fmt.Errorf("--pods %d: %d nodes take %d at most", o.Pods, o.Nodes, limit)
	}
	if o.Output != "table" && o.Output != "json" {
		return fmt.Errorf("--output %q: must be table or json", o.Output)
	}
	for _, s := range o.Schedulers {
		if err := (cluster.SchedulerOptions{Kind: s, Binary: o.Binary}).Check(); err != nil {
			return err
		}
	}
	return nil
}
