package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/lab/cluster"
)

// The modes of bench: deciding in process, or a scheduler beside a real API server.
const decideMode, clusterMode = "decide", "cluster"

// The schedulers that take turns.
const (
	Berth         = "berth"
	KubeScheduler = "kube-scheduler"
)

// Options are the flags of `berth-lab bench`.
type Options struct {
	Workloads  []string
	Suite      bool   // Suite() after Workloads
	Pods       int    // the most that a measured step creates, 0: as the file says
	NoCeiling  bool   // leave the ceilings of mode cluster out
	Dir        string // of Berth's own workloads
	List       bool
	Mode       string
	Schedulers []string
	Gates      string // feature gates of kube-scheduler: NAME=true,...
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
		Short: "Measure Berth beside kube-scheduler, in turn, in one run",
		Long: `Run a workload of kube-scheduler's own benchmark suite (scheduler_perf, read from
the k8s.io/kubernetes module), or one of Berth's own in the same format
(bench/*.yaml), with each scheduler in turn.

Mode decide measures the decision alone, on the same cluster and without an API
server. Each turn is a process of its own. Pods of steps that are not measured are
bound to the nodes in turn. Bindings are answered while the clock stands still.
Mode cluster measures each scheduler as a process of its own, against a fresh
control plane, with the same raised client limits.

Workloads run one after the other. A workload that the mode cannot run is left
out, and the result gives the reason. --suite takes one workload of each test case
of kube-scheduler's suite, of the size that Kubernetes measures, and Berth's
workload for memory with 30,000 pods on 5,000 nodes. It leaves test cases of
feature gates out that are off by default. Its table names the threshold: what
Kubernetes' own runs ask of kube-scheduler, on their machines and with all pods.

Progress goes to standard error, and the result to standard output.`,
		Example: `  berth-lab bench --list
  berth-lab bench --workload SchedulingBasic/5000Nodes_10000Pods --mode decide
  berth-lab bench --workload SchedulingBasic/5000Nodes_10000Pods --mode cluster --runs 3 -o json
  berth-lab bench --workload SchedulingBasic/5000Nodes_10000Pods --mode decide --schedulers berth --cpuprofile cpu.out
  berth-lab bench --suite --pods 3000 --mode cluster -o markdown
  berth-lab bench scale --nodes 1000,5000,20000 --svg scale.svg
  berth-lab bench hard --mix volumes,interpod --budget 20s
  berth-lab bench gangs --case 9000-pods
  berth-lab bench replay --openb DIR`,
		Args: cobra.NoArgs,
		RunE: untilSignalled(func(ctx context.Context, out io.Writer) error {
			if err := o.validate(); err != nil {
				return err
			}
			if o.List {
				return list(out, o.Dir)
			}
			return measureAll(ctx, o, out, say)
		}),
	}
	flags := command.Flags()
	flags.StringSliceVar(&o.Workloads, "workload", nil, "workload to run, as TestCase/Workload; may be repeated")
	flags.BoolVar(&o.Suite, "suite", false, "run one workload of each test case of kube-scheduler's suite, and "+memory)
	flags.IntVar(&o.Pods, "pods", 0, "largest number of pods that a measured step creates (default: the number in the workload)")
	flags.BoolVar(&o.NoCeiling, "no-ceiling", false, "mode cluster: do not measure the ceiling, a client that binds without deciding")
	flags.BoolVar(&o.List, "list", false, "list all workloads, and why some cannot be run")
	flags.StringVar(&o.Dir, "workloads", "bench", "directory with Berth's own workloads (*.yaml)")
	flags.StringVar(&o.Mode, "mode", clusterMode, "what to measure: cluster or decide")
	flags.StringSliceVar(&o.Schedulers, "schedulers", []string{Berth, KubeScheduler}, "schedulers that take turns, in this order")
	flags.StringVar(&o.Gates, "kube-scheduler-gates", "", "feature gates of kube-scheduler, as NAME=true,... (default: kube-scheduler's defaults)")
	flags.IntVar(&o.Runs, "runs", 1, "number of turns of each scheduler")
	flags.StringVarP(&o.Output, "output", "o", "table", "output format: table, json or markdown (one table of all workloads)")
	flags.StringVar(&o.Binary, "berth", "", "path of the berth-scheduler to measure in mode cluster (default: the program beside berth-lab)")
	flags.StringVar(&o.CPUProfile, "cpuprofile", "", "write a CPU profile of Berth's measured phase to this file; in mode cluster, of its first seconds")
	flags.StringVar(&o.MemProfile, "memprofile", "", "mode decide: write a profile of Berth's allocations to this file")
	command.AddCommand(newScaleCommand(), newHostedCommand(), newHardCommand(), newGangsCommand(), newReplayCommand(), newTurnCommand())
	return command
}

// untilSignalled is the body of a command that a signal ends; f writes its
// result to out.
func untilSignalled(f func(ctx context.Context, out io.Writer) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		return f(ctx, command.OutOrStdout())
	}
}

func writeJSON(w io.Writer, result any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(result)
}

// say tells of progress.
func say(format string, a ...any) { terminal.Fprintf(os.Stderr, format+"\n", a...) }

func (o *Options) validate() error {
	if o.List {
		return nil
	}
	if o.Suite {
		names, err := Suite()
		if err != nil {
			return err
		}
		o.Workloads = append(o.Workloads, names...)
	}
	if len(o.Workloads) == 0 {
		return errors.New("--workload is missing; --list shows them all")
	}
	if o.Pods < 0 {
		return fmt.Errorf("--pods %d: must not be less than 0", o.Pods)
	}
	if len(o.Workloads) > 1 && o.CPUProfile+o.MemProfile != "" {
		return errors.New("--cpuprofile and --memprofile are for one workload")
	}
	if o.Mode != clusterMode && o.Mode != decideMode {
		return fmt.Errorf("--mode %q: must be cluster or decide", o.Mode)
	}
	if o.Output != "table" && o.Output != "json" && o.Output != "markdown" {
		return fmt.Errorf("--output %q: must be table, json or markdown", o.Output)
	}
	if o.Runs < 1 {
		return fmt.Errorf("--runs %d: must be at least 1", o.Runs)
	}
	if o.Mode == clusterMode && o.MemProfile != "" {
		return errors.New("--memprofile is for --mode decide")
	}
	if err := validSchedulers(o.Schedulers); err != nil {
		return err
	}
	if err := utilfeature.DefaultMutableFeatureGate.DeepCopy().Set(o.Gates); err != nil {
		return fmt.Errorf("--kube-scheduler-gates: %w", err)
	}
	if o.Mode == clusterMode && slices.Contains(o.Schedulers, Berth) {
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
		return errors.New("--schedulers: must name at least one scheduler")
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
	if err := absent(dir); err != nil {
		fmt.Fprintf(w, "\nNote: %v\n", err)
	}
	fmt.Fprintf(w, "\n%d workloads are understood; these %d are not:\n\n", understood, len(all)-understood)
	for _, k := range all {
		if k.Err != nil {
			fmt.Fprintln(w, strings.TrimPrefix(k.Err.Error(), "workload "))
		}
	}
	return nil
}
