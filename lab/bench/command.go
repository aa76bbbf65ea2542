package bench

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// The schedulers that take turns.
const (
	Berth         = "berth"
	KubeScheduler = "kube-scheduler"
)

// Options are the flags of `berth-lab bench`.
type Options struct {
	Workload   string
	Mode       string
	Schedulers []string
	Runs       int
	Output     string
	Binary     string
	CPUProfile string
}

// NewCommand is `berth-lab bench`.
func NewCommand() *cobra.Command {
	var o Options
	command := &cobra.Command{
		Use:   "bench --workload NAME",
		Short: "Measure Berth beside kube-scheduler v1.36.3, in turn, in one run",
		Long: `Run a workload of kube-scheduler's own benchmark suite (scheduler_perf, read from
the k8s.io/kubernetes v1.36.3 module) with each scheduler in turn.

Mode decide: the decision alone, in process, on the same cluster, no API server.
Mode cluster: each scheduler as a process of its own against a fresh control plane.`,
		Example: `  berth-lab bench --workload SchedulingBasic/5000Nodes_10000Pods --mode decide
  berth-lab bench --workload SchedulingBasic/5000Nodes_10000Pods --mode cluster --runs 3 -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if err := o.validate(); err != nil {
				return err
			}
			result, err := Measure(ctx, o, func(format string, a ...any) { fmt.Fprintf(os.Stderr, format+"\n", a...) })
			if err != nil {
				return err
			}
			if o.Output == "json" {
				return result.writeJSON(command.OutOrStdout())
			}
			return result.writeTable(command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.Workload, "workload", "", "test case and workload, as TestCase/Workload")
	flags.StringVar(&o.Mode, "mode", "cluster", "cluster or decide")
	flags.StringSliceVar(&o.Schedulers, "schedulers", []string{Berth, KubeScheduler}, "who takes turns, in this order")
	flags.IntVar(&o.Runs, "runs", 1, "turns of each")
	flags.StringVarP(&o.Output, "output", "o", "table", "table or json")
	flags.StringVar(&o.Binary, "berth", "", "the berth-scheduler to measure in mode cluster (default: the one beside berth-lab)")
	flags.StringVar(&o.CPUProfile, "cpuprofile", "", "mode decide: write a CPU profile of Berth's measured phase to this file")
	_ = command.MarkFlagRequired("workload")
	return command
}

func (o *Options) validate() error {
	if o.Mode != "cluster" && o.Mode != "decide" {
		return fmt.Errorf("--mode %q: must be cluster or decide", o.Mode)
	}
	if o.Output != "table" && o.Output != "json" {
		return fmt.Errorf("--output %q: must be table or json", o.Output)
	}
	if o.Runs < 1 {
		return fmt.Errorf("--runs %d: must be at least 1", o.Runs)
	}
	for _, s := range o.Schedulers {
		if !slices.Contains([]string{Berth, KubeScheduler}, s) {
			return fmt.Errorf("--schedulers %s: each must be %s or %s", strings.Join(o.Schedulers, ","), Berth, KubeScheduler)
		}
	}
	return nil
}

// Measure runs the benchmark; progress is told in lines.
func Measure(ctx context.Context, o Options, say func(string, ...any)) (*Result, error) {
	w, err := Load(o.Workload)
	if err != nil {
		return nil, err
	}
	r := newResult(w.Name, o.Mode)
	if o.Mode == "cluster" {
		say("measuring what the control plane binds for a client that decides nothing")
		if r.BindCeiling, err = bindCeiling(ctx, w); err != nil {
			return nil, fmt.Errorf("the binding ceiling: %w", err)
		}
		say("  %.0f pods/s", r.BindCeiling)
	}
	for turn := range o.Runs {
		for _, scheduler := range o.Schedulers {
			say("turn %d of %d: %s", turn+1, o.Runs, scheduler)
			run, err := one(ctx, o, w, scheduler)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", scheduler, err)
			}
			say("  %.0f pods/s, %.4f ms of CPU a pod", run.PodsPerSecond, run.CPUMillisPerPod)
			r.Runs = append(r.Runs, *run)
		}
	}
	r.finish()
	return r, nil
}

func one(ctx context.Context, o Options, w *Workload, scheduler string) (*Run, error) {
	if o.Mode == "cluster" {
		return runCluster(ctx, o, w, scheduler)
	}
	return runDecide(o, w, scheduler)
}
