package bench

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/compat"
	"github.com/berth-scheduler/berth/edge/why"
)

// hostedName is the name of the plugin that both schedulers have in `bench hosted`.
const hostedName = "Hosted"

// hostedConfig enables it. hostedAllNodes has kube-scheduler look at all nodes, too.
const (
	hostedConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: Hosted, weight: 2}]}}
`
	hostedAllNodes = hostedConfig + `  percentageOfNodesToScore: 100
`
)

// named is the name of a plugin, embedded with the points that it takes part in.
type named struct{}

func (named) Name() string { return hostedName }

// filtering rejects one node of so many, by the last two digits of the node's name.
type filtering struct {
	named
	of byte
}

func (p filtering) Filter(_ context.Context, _ fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	name := node.Node().Name
	if tens, ones := name[len(name)-2]-'0', name[len(name)-1]-'0'; (10*tens+ones)%p.of == 1 {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the node is odd")
	}
	return nil
}

// leastPods is 100 for a node without pods, and less with each.
type leastPods struct{ named }

func (leastPods) Score(_ context.Context, _ fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	return max(0, 100-5*int64(len(node.GetPods()))), nil
}

func (leastPods) ScoreExtensions() fwk.ScoreExtensions { return nil }

// scoring prefers nodes with few pods, and among these some to others. No node gets
// 100.
type scoring struct{ named }

func (scoring) Score(_ context.Context, _ fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(node.Node().Name)) // it never fails
	return max(0, 80-5*int64(len(node.GetPods()))) + int64(h.Sum32()%20), nil
}

func (scoring) ScoreExtensions() fwk.ScoreExtensions { return nil }

// normalising is scoring, with the best node at 100 and the worst at 0.
type normalising struct{ scoring }

func (p normalising) ScoreExtensions() fwk.ScoreExtensions { return p }

func (normalising) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, list fwk.NodeScoreList) *fwk.Status {
	byScore := func(a, b fwk.NodeScore) int { return int(a.Score - b.Score) }
	low, high := slices.MinFunc(list, byScore).Score, slices.MaxFunc(list, byScore).Score
	for i := range list {
		list[i].Score = 100 * (list[i].Score - low) / max(1, high-low)
	}
	return nil
}

// reserving takes part when a node is chosen, and before the pod is bound.
type reserving struct{ named }

func (reserving) Reserve(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status { return nil }
func (reserving) Unreserve(context.Context, fwk.CycleState, *v1.Pod, string)           {}

func (reserving) Permit(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.Status, time.Duration) {
	return nil, 0
}

func (reserving) PreBindPreFlight(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

func (reserving) PreBind(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status { return nil }

// signing says that what a plugin answers does not depend on the pod.
type signing struct{}

func (signing) SignPod(context.Context, *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return nil, nil
}

type (
	nothing struct {
		named
		signing
	}
	signedFilter struct {
		filtering
		signing
	}
	signedScore struct {
		leastPods
		signing
	}
	signedNormalised struct {
		normalising
		signing
	}
)

// ScoreExtensions is the plugin's own.
func (p signedNormalised) ScoreExtensions() fwk.ScoreExtensions { return p }

// hostedKinds are the plugins that are measured.
var hostedKinds = map[string]fwk.Plugin{
	"none": nothing{}, "filter": filtering{of: 2}, "filter-few": filtering{of: 20}, "score": leastPods{}, "score-below": scoring{}, "normalised": normalising{}, "binding": reserving{},
	"signed-filter": signedFilter{filtering: filtering{of: 2}}, "signed-score": signedScore{}, "signed-normalised": signedNormalised{},
}

// factory makes the plugin of a kind.
func factory(kind string) compat.PluginFactory {
	return func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return hostedKinds[kind], nil }
}

// host makes Berth's hosted plugin of the kind, for the profiles.
func (d *berthDecider) host(kind string, profiles []profile.Config) error {
	d.hosts = compat.New(compat.Options{Logger: klog.Background(), Parallelism: 16})
	args, err := compat.NewArgs(nil)
	if err != nil {
		return err
	}
	for i := range profiles {
		profiles[i].Own = d.hosts.Registry(profiles[i].Name, map[string]compat.PluginFactory{hostedName: factory(kind)}, args)
	}
	return nil
}

// alone stands in for the loop: no plugin here asks or tells anything.
type alone struct{}

func (alone) Inspect(context.Context, func()) error { return errors.New("there is no loop") }
func (alone) Report(machine.Event)                  {}
func (alone) Post(machine.Event)                    {}

// HostedOptions are the flags of `berth-lab bench hosted`.
type HostedOptions struct {
	Kinds    []string
	Patterns []string
	Nodes    int
	Pods     int
	Budget   time.Duration
	Runs     int
	Output   string
	// CPUProfile is the file for a CPU profile of Berth's last turn, "" for none.
	CPUProfile string
}

// hostedSchedulers take turns, in this order.
var hostedSchedulers = []string{Berth, KubeScheduler, KubeSchedulerAll}

func newHostedCommand() *cobra.Command {
	var o HostedOptions
	kinds := slices.Sorted(maps.Keys(hostedKinds))
	command := &cobra.Command{
		Use:   "hosted",
		Short: "Measure decisions with a plugin that is written for kube-scheduler",
		Long: `Take decisions in process with one more plugin, which is written against
k8s.io/kube-scheduler/framework and runs unchanged in both schedulers. The nodes are
equal (4 CPUs, 32 GiB). 150 classes of pods come in turn, or one class is repeated.
Berth decides as if it had looked at all nodes. kube-scheduler takes two turns: as it
comes it looks at a sample of the nodes, with percentageOfNodesToScore: 100 at all.

filter            a Filter that rejects every other node
filter-few        a Filter that rejects one node of twenty
score             a Score without NormalizeScore: 100 for an empty node
score-below       a Score without NormalizeScore that gives no node 100
normalised        a Score with NormalizeScore
binding           Reserve, Permit and PreBind (PreBind runs while the clock stands still)
signed-...        the same with SignPod
none              a plugin that does nothing`,
		Example: `  berth-lab bench hosted
  berth-lab bench hosted --plugins filter,score --patterns turn --runs 3`,
		Args: cobra.NoArgs,
		RunE: untilSignalled(func(ctx context.Context, out io.Writer) error {
			if err := o.validate(kinds); err != nil {
				return err
			}
			points, err := Hosted(ctx, o, say)
			if err != nil {
				return err
			}
			return writeHosted(out, o.Output, points)
		}),
	}
	flags := command.Flags()
	flags.StringSliceVar(&o.Kinds, "plugins", kinds, "kinds of plugins")
	flags.StringSliceVar(&o.Patterns, "patterns", []string{InTurn, Repeated}, "patterns of classes: turn (150 classes), repeated (one)")
	flags.IntVar(&o.Nodes, "nodes", 5000, "number of nodes")
	flags.IntVar(&o.Pods, "pods", 20000, "largest number of pending pods")
	flags.DurationVar(&o.Budget, "budget", 3*time.Second, "longest time of decisions in a turn")
	flags.IntVar(&o.Runs, "runs", 1, "number of turns of each scheduler; the median counts")
	flags.StringVarP(&o.Output, "output", "o", "table", "output format: table or json")
	flags.StringVar(&o.CPUProfile, "cpuprofile", "", "write a CPU profile of Berth's last turn to this file")
	return command
}

func (o *HostedOptions) validate(kinds []string) error {
	for _, kind := range o.Kinds {
		if hostedKinds[kind] == nil {
			return fmt.Errorf("--plugins %s: must be of %s", kind, strings.Join(kinds, ", "))
		}
	}
	for _, pattern := range o.Patterns {
		if pattern != InTurn && pattern != Repeated {
			return fmt.Errorf("--patterns %s: must be %s or %s", pattern, InTurn, Repeated)
		}
	}
	if o.Runs < 1 || o.Budget <= 0 || o.Nodes < 1 || o.Pods < 1000 || o.Pods > 30*o.Nodes {
		return errors.New("--runs, --budget and --nodes have to be more than 0, --pods at least 1000 and at most 30 a node")
	}
	return nil
}

// Hosted measures the schedulers with each kind of plugin; progress is told in lines.
func Hosted(ctx context.Context, o HostedOptions, say func(string, ...any)) ([]Point, error) {
	var points []Point
	for _, kind := range o.Kinds {
		for _, pattern := range o.Patterns {
			at := &scaleCase{Nodes: o.Nodes, Pattern: pattern, Pods: o.Pods, Budget: o.Budget, Hosted: kind}
			runs, err := rounds(ctx, hostedSchedulers, o.Runs, func(scheduler string, _ int) turn {
				t := turn{Scheduler: scheduler, Scale: at}
				if scheduler == Berth {
					t.CPUProfile = o.CPUProfile
				}
				return t
			}, func(_ int, p Point) { say("%s, %s, %s: %.2f µs a decision", kind, pattern, p.Scheduler, p.Micros) })
			if err != nil {
				return nil, fmt.Errorf("%s: %w", kind, err)
			}
			for _, scheduler := range hostedSchedulers {
				points = append(points, medianOf(runs[scheduler], func(p Point) float64 { return p.Micros }))
			}
		}
	}
	return points, nil
}

// writeHosted has a point of each scheduler for each kind and pattern.
func writeHosted(w io.Writer, format string, points []Point) error {
	if format == "json" {
		return writeJSON(w, map[string]any{"apiVersion": why.APIVersion, "kind": "HostedResult", "points": points})
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "plugin\tpattern\tBerth decisions/s\tCPU µs\tkube-scheduler decisions/s\tratio\tall nodes decisions/s\tratio\t")
	for i := 0; i+2 < len(points); i += 3 {
		b, k, all := points[i], points[i+1], points[i+2]
		fmt.Fprintf(t, "%s\t%s\t%.0f\t%.0f\t%.0f\t%.1f\t%.0f\t%.1f\t\n", b.Hosted, b.Pattern, b.PerSecond, b.CPUMicros,
			k.PerSecond, b.PerSecond/k.PerSecond, all.PerSecond, b.PerSecond/all.PerSecond)
	}
	return t.Flush()
}
