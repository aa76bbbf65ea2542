package chaos

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// Options are the flags of `berth-lab chaos`.
type Options struct {
	Time            time.Duration
	Nodes, Replicas int
	Seed            uint64
	Only            []string // names of faults, empty: all
	Dir             string   // of the control plane and all logs
	Binary          string
	Next            string // program that hosts kube-apiserver of the other version; "": it never changes
}

// NewCommand is `berth-lab chaos`.
func NewCommand() *cobra.Command {
	var o Options
	command := &cobra.Command{
		Use:   "chaos",
		Short: "Run replicas of Berth on a live control plane under a seeded enemy, and check their history",
		Long: `Start a control plane and replicas of Berth, each behind a proxy of its own. Pods and
nodes come and go on nodes that are full. A seeded enemy kills, stops and suspends
replicas, restarts the API server and etcd, compacts and restores etcd, and has the
proxies lose, delay, refuse, freeze and swallow what passes.

Checked at each change: no node has more than its room, no pod changes its node, and
no replica binds without the lease. Checked at the end, when the faults are healed:
every pod that fits is bound, and then nobody writes anything but how often Events were
repeated, which is due up to twelve minutes later.

A seed gives the same faults in the same order; what happens in between depends on
the machine. The log of faults goes to standard error. The exit status is 1 if
something was found.`,
		Example: `  berth-lab chaos --time 2m
  berth-lab chaos --time 30m --nodes 500 --replicas 3 --seed 7
  berth-lab chaos --only "restart the API server,kill" --dir /tmp/chaos`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			r, err := Run(ctx, command.ErrOrStderr(), o)
			if err != nil {
				return err
			}
			r.write(command.OutOrStdout())
			if len(r.Violations) > 0 {
				return fmt.Errorf("%d violations", len(r.Violations))
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.DurationVar(&o.Time, "time", 2*time.Minute, "how long the enemy rages")
	flags.IntVar(&o.Nodes, "nodes", 100, "number of nodes, of four pods each")
	flags.IntVar(&o.Replicas, "replicas", 2, "number of replicas")
	flags.Uint64Var(&o.Seed, "seed", 1, "the seed of workload and enemy")
	flags.StringSliceVar(&o.Only, "only", nil, "draw only from the faults with these words in their names (default: all)")
	flags.StringVar(&o.Dir, "dir", "", "directory of the control plane, which keeps all logs (default: a temporary one)")
	flags.StringVar(&o.Binary, "berth", "", "path of the berth-scheduler to run (default: the program beside berth-lab)")
	flags.StringVar(&o.Next, "next", "", "program of lab/skew: the API server also becomes one of the other version, and one of this version again")
	return command
}

func (o Options) validate() error {
	if o.Time <= 0 || o.Nodes < 1 || o.Replicas < 1 {
		return errors.New("--time, --nodes and --replicas must be more than 0")
	}
	if len(chosen(o.Only, o.Next)) == 0 {
		return fmt.Errorf("--only %q: no fault has such a name", o.Only)
	}
	return cluster.SchedulerOptions{Kind: cluster.Berth, Binary: o.Binary}.Check()
}

func (r *Result) write(w io.Writer) {
	fmt.Fprintf(w, "seed %d: %d pods created, %d deleted, %d changes seen, %d bindings sent\n", r.Seed, r.Created, r.Deleted, r.Changes, r.Bindings)
	for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
		fmt.Fprintf(w, "%4d  %s\n", r.Faults[name], name)
	}
	if r.Left > 0 {
		fmt.Fprintf(w, "%d times a replica ended as it had lost the lease\n", r.Left)
	}
	fmt.Fprintf(w, "all bound %.1f s after the last fault; peak memory of a replica %.0f MiB\n", r.Settled.Seconds(), r.PeakMiB)
	for _, v := range r.Violations {
		fmt.Fprintln(w, "VIOLATION:", v)
	}
	if len(r.Violations) == 0 {
		fmt.Fprintln(w, "no violation")
	}
}
