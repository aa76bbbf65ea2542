package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// The schedulers that take turns.
const (
	Berth         = "berth"
	KubeScheduler = "kube-scheduler"
)

// Options are the flags of `berth-lab bench`.
type Options struct {
	Workload   string
	Dir        string // of Berth's own workloads
	List       bool
	Mode       string
	Schedulers []string
	Runs       int
	Output     string
	Binary     string
	CPUProfile string
	MemProfile string
}

// NewCommand is `berth-lab bench`.
func NewCommand() *cobra.Command {
	var o Options
	command := &cobra.Command{
		Use:   "bench --workload NAME",
		Short: "Measure Berth beside kube-scheduler v1.36.3, in turn, in one run",
		Long: `Run a workload of kube-scheduler's own benchmark suite (scheduler_perf, read from
the k8s.io/kubernetes v1.36.3 module), or one of Berth's own in the same format
(bench/*.yaml), with each scheduler in turn.

Mode decide: the decision alone, on the same cluster, no API server; each turn is
a process of its own. Pods of steps that are not measured are bound to the nodes
in turn, and bindings are answered while the clock stands still.
Mode cluster: each scheduler as a process of its own against a fresh control plane,
with the same raised client limits.

Progress goes to the standard error, the result to the standard output.`,
		Example: `  berth-lab bench --list
  berth-lab bench --workload SchedulingBasic/5000Nodes_10000Pods --mode decide
  berth-lab bench --workload SchedulingBasic/5000Nodes_10000Pods --mode cluster --runs 3 -o json
  berth-lab bench --workload SchedulingBasic/5000Nodes_10000Pods --mode decide --schedulers berth --cpuprofile cpu.out
  berth-lab bench scale --nodes 1000,5000,20000 --svg scale.svg
  berth-lab bench replay --openb DIR`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if err := o.validate(); err != nil {
				return err
			}
			if o.List {
				return list(command.OutOrStdout(), o.Dir)
			}
			result, err := Measure(ctx, o, say)
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
	flags.BoolVar(&o.List, "list", false, "list all workloads: which are understood, which are not and why")
	flags.StringVar(&o.Dir, "workloads", "bench", "the directory with Berth's own workloads (*.yaml)")
	flags.StringVar(&o.Mode, "mode", "cluster", "cluster or decide")
	flags.StringSliceVar(&o.Schedulers, "schedulers", []string{Berth, KubeScheduler}, "who takes turns, in this order")
	flags.IntVar(&o.Runs, "runs", 1, "turns of each")
	flags.StringVarP(&o.Output, "output", "o", "table", "table or json")
	flags.StringVar(&o.Binary, "berth", "", "the berth-scheduler to measure in mode cluster (default: the one beside berth-lab)")
	flags.StringVar(&o.CPUProfile, "cpuprofile", "", "write a CPU profile of Berth's measured phase (in mode cluster of its first seconds) to this file")
	flags.StringVar(&o.MemProfile, "memprofile", "", "mode decide: write a profile of Berth's allocations to this file")
	command.AddCommand(newScaleCommand(), newReplayCommand(), newTurnCommand())
	return command
}

// say tells of progress.
func say(format string, a ...any) { fmt.Fprintf(os.Stderr, format+"\n", a...) }

func (o *Options) validate() error {
	if o.List {
		return nil
	}
	if o.Workload == "" {
		return errors.New("--workload is missing; --list shows them all")
	}
	if o.Mode != "cluster" && o.Mode != "decide" {
		return fmt.Errorf("--mode %q: must be cluster or decide", o.Mode)
	}
	if o.Output != "table" && o.Output != "json" {
		return fmt.Errorf("--output %q: must be table or json", o.Output)
	}
	if o.Runs < 1 {
		return fmt.Errorf("--runs %d: must be at least 1", o.Runs)
	}
	if o.Mode == "cluster" && o.MemProfile != "" {
		return errors.New("--memprofile is for --mode decide")
	}
	if err := validSchedulers(o.Schedulers); err != nil {
		return err
	}
	if o.Mode == "cluster" && slices.Contains(o.Schedulers, Berth) {
		if err := (cluster.SchedulerOptions{Kind: cluster.Berth, Binary: o.Binary}).Check(); err != nil {
			return err // now, and not after a turn of the other
		}
	}
	return nil
}

func validSchedulers(names []string) error {
	for i, s := range names {
		if (s != Berth && s != KubeScheduler) || slices.Contains(names[:i], s) {
			return fmt.Errorf("--schedulers %s: each must be %s or %s, once", strings.Join(names, ","), Berth, KubeScheduler)
		}
	}
	if len(names) == 0 {
		return errors.New("--schedulers: there is none")
	}
	return nil
}

func list(w io.Writer, dir string) error {
	all, err := List(dir)
	if err != nil {
		return err
	}
	understood := 0
	for _, k := range all {
		if k.Err == nil {
			understood++
			fmt.Fprintln(w, k.Name)
		}
	}
	fmt.Fprintf(w, "\n%d workloads are understood; these %d are not:\n\n", understood, len(all)-understood)
	for _, k := range all {
		if k.Err != nil {
			fmt.Fprintln(w, strings.TrimPrefix(k.Err.Error(), "workload "))
		}
	}
	return nil
}

// Measure runs the benchmark; progress is told in lines.
func Measure(ctx context.Context, o Options, say func(string, ...any)) (*Result, error) {
	w, err := Load(o.Dir, o.Workload)
	if err != nil {
		return nil, err
	}
	if o.Mode == "decide" {
		if _, err := w.scene(); err != nil {
			return nil, err
		}
	}
	r := newResult(w.Name, o.Mode)
	if o.Mode == "cluster" {
		say("measuring what the control plane binds for a client that decides nothing")
		ceiling, err := measureCeilings(ctx, w)
		if err != nil {
			return nil, fmt.Errorf("the binding ceiling: %w", err)
		}
		r.BindCeiling, r.CreateBindCeiling = ceiling.bind, ceiling.createBind
		say("  %.0f bindings/s; creating pods and binding them, %.0f pods/s", ceiling.bind, ceiling.createBind)
	}
	for n := range o.Runs {
		for _, scheduler := range o.Schedulers {
			say("turn %d of %d: %s", n+1, o.Runs, scheduler)
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
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	t := turn{Scheduler: scheduler, Workload: w.Name, Dir: dir}
	if scheduler == Berth {
		t.CPUProfile, t.MemProfile = o.CPUProfile, o.MemProfile
	}
	run := &Run{}
	return run, t.in(ctx, run)
}
