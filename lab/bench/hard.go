package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/why"
	"github.com/berth-scheduler/berth/sim/generate"
)

// KubeSchedulerAll is kube-scheduler with percentageOfNodesToScore: 100.
const KubeSchedulerAll = "kube-scheduler-all"

// allNodes is the configuration of KubeSchedulerAll.
const allNodes = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  percentageOfNodesToScore: 100
`

// hardWorld is a world in which hardly two pods are alike, and many do not fit.
type hardWorld struct {
	Mix                     string
	Seed                    uint64
	Nodes, Running, Pending int
	Budget                  time.Duration
}

// HardRun is what one scheduler did in a hard world within the budget.
type HardRun struct {
	Mix       string `json:"mix"`
	Scheduler string `json:"scheduler"`
	Nodes     int    `json:"nodes"`
	Running   int    `json:"running"`
	Pending   int    `json:"pending"`

	Speed
	Micros    float64 `json:"microsPerDecision"`
	CPUMicros float64 `json:"cpuMicrosPerDecision"`
	MaxMicros float64 `json:"maxMicros"`
	// Tried is how many of the pending pods were decided on, Attempts how often
	// each of them was tried: errors count that came again. Placed is how many got a node,
	// Preemptions how many decisions had victims go.
	Tried       int     `json:"podsTried"`
	Attempts    float64 `json:"attemptsPerPod"`
	Placed      int     `json:"placed"`
	Preemptions int     `json:"preemptions"`
	Done        bool    `json:"done"` // every pending pod was decided on within the budget
	PeakRSSMiB  float64 `json:"peakRSSMiB"`
}

// HardOptions are the flags of `berth-lab bench hard`.
type HardOptions struct {
	Mixes                   []string
	Nodes, Running, Pending int
	Seed                    uint64
	Schedulers              []string
	Budget                  time.Duration
	Output                  string
	SVG                     string
	CPUProfile              string
}

func newHardCommand() *cobra.Command {
	var o HardOptions
	command := &cobra.Command{
		Use:   "hard",
		Short: "Measure decisions in worlds in which hardly two pods are alike",
		Long: `Take decisions in process on generated clusters in which each pod is a class of its
own and many pods do not fit. The generators are those of "berth-lab conform". The
schedulers take turns on the same world: Berth, kube-scheduler as it comes (it scores
a sample of the nodes), and kube-scheduler that scores all nodes. Each turn is a
process of its own and ends when its budget is spent. The result says how many
decisions were measured.

Berth decides with its queue: a pod that does not fit is tried again when an event
may help, and one whose attempt failed with an error when its backoff is over. Such a
pod fails again as a rule (a selector of devices that does not compile, in the mix
devices), and sooner than others are decided on: its second error and those after it
count in attempts/pod, and not among the decisions, whose times they would make better
than they are. Their CPU time counts. A turn ends when only such pods are left. kube-scheduler's
queue is left out: each pod is tried once, and once more
after each of its preemptions. Bindings and evictions are answered while the clock
stands still.`,
		Example: `  berth-lab bench hard
  berth-lab bench hard --mix volumes --budget 20s -o csv > hard.csv
  berth-lab bench hard --mix interpod --schedulers berth --cpuprofile cpu.out
  berth-lab bench hard --svg docs/performance/hard.svg`,
		Args: cobra.NoArgs,
		RunE: untilSignalled(func(ctx context.Context, out io.Writer) error {
			if err := o.validate(); err != nil {
				return err
			}
			runs, err := Hard(ctx, o, say)
			if err != nil {
				return err
			}
			if err := writeHard(out, o.Output, runs); err != nil || o.SVG == "" {
				return err
			}
			return os.WriteFile(o.SVG, plotHard(runs), 0o644)
		}),
	}
	flags := command.Flags()
	flags.StringSliceVar(&o.Mixes, "mix", generate.HardMixes(), "mixes of the worlds: "+strings.Join(generate.HardMixes(), ", "))
	flags.IntVar(&o.Nodes, "nodes", 5000, "number of nodes")
	flags.IntVar(&o.Running, "running", 10000, "number of running pods")
	flags.IntVar(&o.Pending, "pending", 10000, "number of pending pods")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the worlds")
	flags.StringSliceVar(&o.Schedulers, "schedulers", []string{Berth, KubeScheduler, KubeSchedulerAll}, "schedulers that take turns, in this order")
	flags.DurationVar(&o.Budget, "budget", 20*time.Second, "longest time of decisions in a turn")
	flags.StringVarP(&o.Output, "output", "o", "table", "output format: table, json or csv")
	flags.StringVar(&o.SVG, "svg", "", "also draw the cost of a decision by mix into this file")
	flags.StringVar(&o.CPUProfile, "cpuprofile", "", "write a CPU profile of Berth's last turn to this file")
	return command
}

func (o *HardOptions) validate() error {
	if len(o.Mixes) == 0 || len(o.Schedulers) == 0 {
		return errors.New("--mix and --schedulers must name at least one")
	}
	for _, m := range o.Mixes {
		if !slices.Contains(generate.HardMixes(), m) {
			return fmt.Errorf("--mix %s: must be one of %s", m, strings.Join(generate.HardMixes(), ", "))
		}
	}
	if o.Nodes < 1 || o.Running < 0 || o.Pending < 1 {
		return errors.New("--nodes and --pending must be at least 1, and --running at least 0")
	}
	for _, s := range o.Schedulers {
		if s != Berth && s != KubeScheduler && s != KubeSchedulerAll {
			return fmt.Errorf("--schedulers %s: must be %s, %s or %s", s, Berth, KubeScheduler, KubeSchedulerAll)
		}
	}
	if o.Budget <= 0 {
		return errors.New("--budget: must be more than 0")
	}
	if !slices.Contains([]string{"table", "json", "csv"}, o.Output) {
		return fmt.Errorf("--output %q: must be table, json or csv", o.Output)
	}
	return nil
}

// Hard measures every mix; progress is told in lines.
func Hard(ctx context.Context, o HardOptions, say func(string, ...any)) ([]HardRun, error) {
	var runs []HardRun
	for _, mix := range o.Mixes {
		for _, scheduler := range o.Schedulers {
			t := turn{Scheduler: scheduler, Hard: &hardWorld{mix, o.Seed, o.Nodes, o.Running, o.Pending, o.Budget}}
			if scheduler == Berth {
				t.CPUProfile = o.CPUProfile
			}
			var r HardRun
			if err := t.in(ctx, &r); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", mix, scheduler, err)
			}
			say("%s, %s: %d decisions, %.2f µs each, p99 %.0f µs, most %.0f µs", mix, scheduler, r.Decisions, r.Micros, r.P99Micros, r.MaxMicros)
			runs = append(runs, r)
		}
	}
	return runs, nil
}

func (h *hardWorld) scene(scheduler string) (*scene, error) {
	w, err := generate.Hard(h.Mix, h.Seed, generate.Size{Nodes: h.Nodes, Running: h.Running, Pending: h.Pending})
	if err != nil {
		return nil, err
	}
	s := &scene{
		nodes: slices.Values(w.Nodes), bound: w.Bound, selectorOwners: w.SelectorOwners, namespaces: w.Namespaces,
		objects: w.Objects, budgets: w.Budgets, pods: slices.Values(w.Pending), count: len(w.Pending), preempting: preempts(w.Bound, w.Pending),
	}
	if s.preempting {
		s.slice = 1
	}
	if scheduler == KubeSchedulerAll {
		s.config = allNodes
	}
	return s, nil
}

// measure takes the turn's decisions, until nobody is left or the budget is spent.
func (h *hardWorld) measure(t turn) (*HardRun, error) {
	s, err := h.scene(t.Scheduler)
	if err != nil {
		return nil, err
	}
	d, stop, err := newDecider(cmp.Or(map[string]string{KubeSchedulerAll: KubeScheduler}[t.Scheduler], t.Scheduler), s)
	if err != nil {
		return nil, err
	}
	defer stop()
	r := &HardRun{Mix: h.Mix, Scheduler: t.Scheduler, Nodes: h.Nodes, Running: len(s.bound), Pending: s.count}
	took, err := t.profiled(func() (*timing, error) { return s.takeHard(d, h.Budget, r) })
	if err != nil {
		return nil, err
	}
	r.Speed = took.speed()
	r.Micros, r.CPUMicros = micros(took.wall, took.decisions), micros(took.cpu, took.decisions)
	r.MaxMicros = round(1000 * slices.Max(millis(took.took)))
	r.Attempts = round(float64(took.decisions+took.failedAgain) / float64(max(1, r.Tried)))
	r.PeakRSSMiB = round(peakRSS())
	return r, nil
}

// answerRounds is after how many rounds the last decision's writes, and then its binding,
// are answered, and who is called by that has been tried.
const answerRounds = 3

// takeHard measures decisions, for the budget of time, on pods that may fail and that the queue
// then tries again.
func (s *scene) takeHard(d decider, budget time.Duration, r *HardRun) (*timing, error) {
	goruntime.GC()
	t, failed := &timing{}, map[any]bool{} // those tried: whether the last attempt failed with an error
	spent, idle := time.Duration(0), 0     // rounds in a row without a decision
	for spent < budget {
		cpu, start := cpuTime(), time.Now()
		last, before := start, t.decisions
		for range s.answered() {
			node, err := d.decide()
			if errors.Is(err, errNotReady) {
				break
			}
			now := time.Now()
			took, pod := now.Sub(last), d.decided()
			last = now
			if fails := isFailure(err); fails && failed[pod] {
				t.failedAgain++
			} else {
				failed[pod] = fails
				t.decisions, t.wall, t.took = t.decisions+1, t.wall+took, append(t.took, took)
			}
			if node != "" {
				r.Placed++
			}
			if made := preemption(""); errors.As(err, &made) {
				r.Preemptions++
			}
			if last.Sub(start) > budget-spent {
				break
			}
		}
		spent += last.Sub(start)
		t.cpu += cpuTime() - cpu
		if err := d.settle(); err != nil {
			return nil, err
		}
		if idle++; t.decisions > before {
			idle = 0
		} else if idle > answerRounds || !d.await() {
			break
		}
	}
	r.Tried, r.Done = len(failed), len(failed) == s.count
	if t.decisions == 0 {
		return nil, errors.New("nothing was decided")
	}
	return t, nil
}

// isFailure tells whether the attempt ended with an error, without a verdict.
func isFailure(err error) bool {
	var made preemption
	var found misfit
	return err != nil && !errors.As(err, &made) && !errors.As(err, &found)
}

// await lets time pass until a pod's backoff is over; false if none backs off.
func (d *berthDecider) await() bool {
	for !d.m.Ready() {
		c := d.m.Queue().Counts()
		next, ok := d.m.NextTimer()
		if c.Backoff+c.ErrorBackoff == 0 || !ok {
			return false
		}
		d.ahead = max(d.ahead, time.Until(next)) + time.Millisecond
		d.step(machine.Tick{})
	}
	return true
}

// await: nobody backs off without a queue.
func (d *defaultDecider) await() bool { return len(d.pods) > 0 }

var hardColumns = []column[HardRun]{
	{"mix", func(r *HardRun) string { return r.Mix }},
	{"scheduler", func(r *HardRun) string { return r.Scheduler }},
	{"decisions", func(r *HardRun) string { return fmt.Sprint(r.Decisions) }},
	{"pods", func(r *HardRun) string { return fmt.Sprintf("%d/%d", r.Tried, r.Pending) }},
	{"placed", func(r *HardRun) string { return fmt.Sprint(r.Placed) }},
	{"preemptions", func(r *HardRun) string { return fmt.Sprint(r.Preemptions) }},
	{"attempts/pod", func(r *HardRun) string { return fmt.Sprintf("%.2f", r.Attempts) }},
	{"decisions/s", func(r *HardRun) string { return fmt.Sprintf("%.1f", r.PerSecond) }},
	{"µs", func(r *HardRun) string { return fmt.Sprintf("%.0f", r.Micros) }},
	{"CPU µs", func(r *HardRun) string { return fmt.Sprintf("%.0f", r.CPUMicros) }},
	{"p50 µs", func(r *HardRun) string { return fmt.Sprintf("%.0f", r.P50Micros) }},
	{"p99 µs", func(r *HardRun) string { return fmt.Sprintf("%.0f", r.P99Micros) }},
	{"max µs", func(r *HardRun) string { return fmt.Sprintf("%.0f", r.MaxMicros) }},
	{"peak MiB", func(r *HardRun) string { return fmt.Sprintf("%.0f", r.PeakRSSMiB) }},
}

func writeHard(w io.Writer, format string, runs []HardRun) error {
	if format == "json" {
		return writeJSON(w, map[string]any{"apiVersion": why.APIVersion, "kind": "HardResult", "runs": runs})
	}
	return writeRows(w, format, hardColumns, runs)
}
