package up

import (
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-scheduler/berth/lab/sample"
)

// The values of --scheduler.
const (
	schedulerBerth = "berth"
	schedulerKube  = "kube-scheduler"
	schedulerNone  = "none"
)

// Options are the flags of `berth-lab up`.
type Options struct {
	Nodes      int
	Scheduler  string // berth, kube-scheduler or none
	Berth      string // the berth-scheduler to run; empty: the one beside this executable
	Config     string // file with a KubeSchedulerConfiguration; empty: the defaults
	Gates      string // of the API server and the scheduler; empty: the defaults
	Dir        string // empty: temporary
	Port       int    // kube-apiserver's; 0: any free one
	HealthPort int    // the scheduler's; 0: any free one
	Sample     bool
	Once       bool // implies Sample
	Timeout    time.Duration
}

// maxNodes is far beyond what one machine serves well, and within what kwok has
// addresses for.
const maxNodes = 50_000

// NewCommand is `berth-lab up`.
func NewCommand() *cobra.Command {
	var options Options
	command := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster with a scheduler, and stay up for kubectl",
		Long: `Start a Kubernetes control plane on this machine (etcd, kube-apiserver and
kube-controller-manager), kwok, which plays the nodes and their pods, and a
scheduler. The command prints the path of a kubeconfig. Ctrl-C ends everything.

Several labs can run side by side. Each lab has its own directory, and takes free
ports unless flags name them.`,
		Example: `  berth-lab up --sample
  berth-lab up --scheduler kube-scheduler --nodes 500
  berth-lab up --feature-gates DRANodeAllocatableResources=true
  berth-lab up --once && echo "all that can be placed is placed"`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return Run(ctx, command.OutOrStdout(), options)
		},
	}
	flags := command.Flags()
	flags.IntVar(&options.Nodes, "nodes", 100, "number of nodes")
	flags.StringVar(&options.Scheduler, "scheduler", schedulerBerth, "scheduler to start: berth, kube-scheduler or none")
	flags.StringVar(&options.Berth, "berth", "", "path of the berth-scheduler to run (default: the program beside berth-lab)")
	flags.StringVar(&options.Config, "config", "", "file with the scheduler's KubeSchedulerConfiguration; the lab replaces its kubeconfig")
	flags.StringVar(&options.Gates, "feature-gates", "", "feature gates of the API server and of the scheduler, NAME=true,NAME=false; the API server then serves its alpha and beta APIs, too")
	flags.StringVar(&options.Dir, "dir", "", "directory for certificates, logs and etcd's data, from which the cluster can be started again (default: a temporary directory that is removed at the end)")
	flags.IntVar(&options.Port, "port", 0, "port of kube-apiserver on 127.0.0.1; 0 means any free port")
	flags.IntVar(&options.HealthPort, "scheduler-port", 0, "port of the scheduler's health and metrics on 127.0.0.1; 0 means any free port")
	flags.BoolVar(&options.Sample, "sample", false, "deploy a sample workload of ten pods per node and show how it is placed")
	flags.BoolVar(&options.Once, "once", false, "deploy the sample workload and end when every pod is decided; the exit status is 0 if all pods that can be placed are placed, otherwise 1")
	flags.DurationVar(&options.Timeout, "timeout", 5*time.Minute, "how long --once waits for the sample workload")
	return command
}

// validate checks the options and names the flag that is wrong.
func (o Options) validate() error {
	if o.Nodes < 0 || o.Nodes > maxNodes {
		return fmt.Errorf("--nodes %d: must be between 0 and %d", o.Nodes, maxNodes)
	}
	switch o.Scheduler {
	case schedulerBerth, schedulerKube:
	case schedulerNone:
		if o.Once {
			return fmt.Errorf("--once: needs a scheduler, and --scheduler is none")
		}
		if o.Config != "" {
			return fmt.Errorf("--config: needs a scheduler, and --scheduler is none")
		}
	default:
		return fmt.Errorf("--scheduler %q: must be berth, kube-scheduler or none", o.Scheduler)
	}
	if o.Berth != "" && o.Scheduler != schedulerBerth {
		return fmt.Errorf("--berth: goes with --scheduler berth, not with %s", o.Scheduler)
	}
	for name, port := range map[string]int{"port": o.Port, "scheduler-port": o.HealthPort} {
		if port < 0 || port > 65535 {
			return fmt.Errorf("--%s %d: must be between 0 and 65535", name, port)
		}
	}
	if o.Timeout <= 0 {
		return fmt.Errorf("--timeout %s: must be positive", o.Timeout)
	}
	if o.Sample || o.Once {
		if _, err := sample.For(o.Nodes); err != nil {
			return fmt.Errorf("--nodes %d: %w", o.Nodes, err)
		}
	}
	return nil
}
