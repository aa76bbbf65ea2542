package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/why"
)

// The patterns in which classes of pods come.
const (
	Repeated = "repeated" // one class, over and over
	InTurn   = "turn"     // 150 classes, one after the other
	Unique   = "unique"   // each pod is a class of its own
)

// patterns with how many classes each has; 0: as many as pods.
var patterns = map[string]int{Repeated: 1, InTurn: 150, Unique: 0}

// scaleCase is what one turn of bench scale measures: a number of nodes, and a pattern
// of classes.
type scaleCase struct {
	Nodes   int
	Pattern string
	Pods    int
	Budget  time.Duration
	Hosted  string // the kind of a plugin that is hosted, "" for none
}

// Point is what was measured in one case. Where there is a choice it is the
// median turn.
type Point struct {
	Scheduler string `json:"scheduler"`
	Hosted    string `json:"hosted,omitempty"`
	Pattern   string `json:"pattern"`
	Nodes     int    `json:"nodes"`

	Speed
	Micros             float64 `json:"microsPerDecision"`
	CPUMicros          float64 `json:"cpuMicrosPerDecision"`
	Allocations        float64 `json:"allocationsPerDecision"`
	AllocatedBytes     float64 `json:"allocatedBytesPerDecision"`
	SettleMicros       float64 `json:"microsPerAnswer,omitempty"` // to take in a binding and the pod as the watch shows it
	BytesPerNode       float64 `json:"bytesPerNode,omitempty"`    // Berth's heap
	BytesPerPendingPod float64 `json:"bytesPerPendingPod,omitempty"`
	BytesPerPlacedPod  float64 `json:"bytesPerPlacedPod,omitempty"` // one class only
	BytesPerClass      float64 `json:"bytesPerClass,omitempty"`
	PeakRSSMiB         float64 `json:"peakRSSMiB"`
}

// ScaleOptions are the flags of `berth-lab bench scale`.
type ScaleOptions struct {
	Nodes             []int
	Patterns          []string
	Schedulers        []string
	KubeSchedulerUpTo int
	Pods              int
	Budget            time.Duration
	Runs              int
	Output            string
	SVG               string
	CPUProfile        string
	MemProfile        string
}

func newScaleCommand() *cobra.Command {
	var o ScaleOptions
	command := &cobra.Command{
		Use:   "scale",
		Short: "Measure the cost of a decision by number of nodes",
		Long: `Take decisions in process on equal nodes (4 CPUs, 32 GiB) and measure the cost of
one decision. There are three patterns: one class of pods repeated, 150 classes in
turn, and classes that never repeat. Each turn is a process of its own. Three rounds
of the classes are decided before the clock runs, but none if classes never repeat.
Bindings are answered, 64 at a time, while the clock stands still.`,
		Example: `  berth-lab bench scale
  berth-lab bench scale --nodes 1000,5000,20000,100000 --runs 3 --svg docs/scale.svg -o json > scale.json
  berth-lab bench scale --nodes 1000000 --patterns repeated --schedulers berth
  berth-lab bench scale --nodes 5000 --patterns turn --schedulers berth --memprofile mem.out`,
		Args: cobra.NoArgs,
		RunE: untilSignalled(func(ctx context.Context, out io.Writer) error {
			if err := o.validate(); err != nil {
				return err
			}
			points, err := Scale(ctx, o, say)
			if err != nil {
				return err
			}
			if err := writePoints(out, o.Output, points); err != nil || o.SVG == "" {
				return err
			}
			return os.WriteFile(o.SVG, plot(points), 0o644)
		}),
	}
	flags := command.Flags()
	flags.IntSliceVar(&o.Nodes, "nodes", []int{1000, 5000, 20000, 100000}, "numbers of nodes")
	flags.StringSliceVar(&o.Patterns, "patterns", []string{Repeated, InTurn, Unique}, "patterns of classes: repeated, turn (150 classes), unique")
	flags.StringSliceVar(&o.Schedulers, "schedulers", []string{Berth, KubeScheduler}, "schedulers that take turns, in this order")
	flags.IntVar(&o.KubeSchedulerUpTo, "kube-scheduler-up-to", 100000, "largest number of nodes for kube-scheduler")
	flags.IntVar(&o.Pods, "pods", 20000, "largest number of pending pods")
	flags.DurationVar(&o.Budget, "budget", 2*time.Second, "longest time of decisions in a turn")
	flags.IntVar(&o.Runs, "runs", 1, "number of turns of each scheduler; the median counts")
	flags.StringVarP(&o.Output, "output", "o", "table", "output format: table, json or csv")
	flags.StringVar(&o.SVG, "svg", "", "also draw the cost by number of nodes into this file")
	flags.StringVar(&o.CPUProfile, "cpuprofile", "", "write a CPU profile of Berth's last turn to this file")
	flags.StringVar(&o.MemProfile, "memprofile", "", "write a profile of the allocations of Berth's last turn to this file")
	return command
}

func (o *ScaleOptions) validate() error {
	for _, n := range o.Nodes {
		if n < 1 || n > 2_000_000 {
			return fmt.Errorf("--nodes %d: must be between 1 and 2000000", n)
		}
	}
	for _, p := range o.Patterns {
		if _, ok := patterns[p]; !ok {
			return fmt.Errorf("--patterns %s: must be %s, %s or %s", p, Repeated, InTurn, Unique)
		}
	}
	if o.Pods < 1000 {
		return fmt.Errorf("--pods %d: must be at least 1000", o.Pods)
	}
	for _, n := range o.Nodes {
		if o.Pods > 30*n {
			return fmt.Errorf("--pods %d: %d nodes have room for %d", o.Pods, n, 30*n)
		}
	}
	if o.Runs < 1 {
		return fmt.Errorf("--runs %d: must be at least 1", o.Runs)
	}
	if o.Budget <= 0 {
		return errors.New("--budget: must be more than 0")
	}
	if !slices.Contains([]string{"table", "json", "csv"}, o.Output) {
		return fmt.Errorf("--output %q: must be table, json or csv", o.Output)
	}
	return validSchedulers(o.Schedulers)
}

// Scale measures every case; progress is told in lines.
func Scale(ctx context.Context, o ScaleOptions, say func(string, ...any)) ([]Point, error) {
	var points []Point
	for _, pattern := range o.Patterns {
		for _, nodes := range o.Nodes {
			at := &scaleCase{Nodes: nodes, Pattern: pattern, Pods: o.Pods, Budget: o.Budget}
			runs, err := rounds(ctx, o.schedulersAt(nodes), o.Runs, func(scheduler string, _ int) turn {
				t := turn{Scheduler: scheduler, Scale: at}
				if scheduler == Berth {
					t.CPUProfile, t.MemProfile = o.CPUProfile, o.MemProfile
				}
				return t
			}, func(_ int, p Point) {
				say("%s, %d nodes, %s: %.2f µs a decision", pattern, nodes, p.Scheduler, p.Micros)
			})
			if err != nil {
				return nil, fmt.Errorf("%s, %d nodes, %w", pattern, nodes, err)
			}
			for _, scheduler := range o.schedulersAt(nodes) {
				points = append(points, medianOf(runs[scheduler], func(p Point) float64 { return p.Micros }))
			}
		}
	}
	return points, nil
}

// schedulersAt lists who takes turns at that many nodes.
func (o *ScaleOptions) schedulersAt(nodes int) []string {
	return slices.DeleteFunc(slices.Clone(o.Schedulers), func(scheduler string) bool {
		return scheduler == KubeScheduler && nodes > o.KubeSchedulerUpTo
	})
}

// scene makes the case's nodes and pods, each only when it is asked for.
func (at *scaleCase) scene() *scene {
	s := &scene{
		nodes: at.nodes(), pods: at.pods(), count: at.Pods,
		warmUp: 3 * patterns[at.Pattern], budget: at.Budget,
	}
	if at.Hosted != "" {
		s.hosted, s.config = at.Hosted, hostedConfig
	}
	return s
}

func (at *scaleCase) nodes() iter.Seq[*v1.Node] {
	return func(yield func(*v1.Node) bool) {
		for i := range at.Nodes {
			room := v1.ResourceList{
				v1.ResourceCPU:    resource.MustParse("4"),
				v1.ResourceMemory: resource.MustParse("32Gi"),
				v1.ResourcePods:   resource.MustParse("110"),
			}
			name := fmt.Sprintf("node-%05d", i)
			n := &v1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
				Status: v1.NodeStatus{
					Capacity: room, Allocatable: room,
					Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
				},
			}
			if !yield(n) {
				return
			}
		}
	}
}

func (at *scaleCase) pods() iter.Seq[*v1.Pod] {
	return func(yield func(*v1.Pod) bool) {
		for i := range at.Pods {
			p := podOf(fmt.Sprintf("pod-%07d", i), at.requests(i))
			if !yield(p) {
				return
			}
		}
	}
}

// requests are what tells the classes apart. All are small, so that every pod
// fits everywhere and a decision has every node to choose from.
func (at *scaleCase) requests(i int) v1.ResourceList {
	cpu, memory := int64(100), int64(500<<20)
	switch at.Pattern {
	case InTurn:
		k := int64(i % patterns[InTurn])
		cpu, memory = 10+k, (64+k)<<20
	case Unique:
		cpu, memory = 1+int64(i%100), 1<<20+int64(i)<<10
	}
	return v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(cpu, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
	}
}

// podOf is a pod with one container that requests this, as the API server
// would hand it out.
func podOf(name string, requests v1.ResourceList) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("default/" + name)},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name: "main", Image: "registry.k8s.io/pause:3.10.2",
			Resources: v1.ResourceRequirements{Requests: requests},
		}}},
	}
	decode.DefaultPod(p)
	return p
}

// measure takes the turn's decisions. Of Berth it also weighs the heap.
func (at *scaleCase) measure(t turn) (*Point, error) {
	s := at.scene()
	p := &Point{Scheduler: t.Scheduler, Pattern: at.Pattern, Nodes: at.Nodes, Hosted: at.Hosted}
	if t.Scheduler == KubeSchedulerAll {
		t.Scheduler, s.config = KubeScheduler, hostedAllNodes
	}
	if t.Scheduler == KubeScheduler || at.Hosted != "" {
		took, err := t.take(s)
		if err != nil {
			return nil, err
		}
		p.fill(took)
		return p, nil
	}
	d, err := newBerth("", "")
	if err != nil {
		return nil, err
	}
	before := heap()
	d.addNodes(s.nodes)
	filled := heap()
	p.BytesPerNode = round((filled - before) / float64(at.Nodes))
	d.addPods(s.pods)
	queued := heap()
	p.BytesPerPendingPod = round((queued - filled) / float64(at.Pods))
	if err := s.warm(d); err != nil {
		return nil, err
	}
	warm := heap()
	if classes := patterns[at.Pattern]; classes > 0 {
		p.BytesPerClass = round((warm - queued) / float64(classes))
	}
	took, err := t.profiled(func() (*timing, error) { return s.take(d) })
	if err != nil {
		return nil, err
	}
	p.fill(took)
	p.SettleMicros = micros(took.settling, took.decisions)
	if at.Pattern == Repeated {
		p.BytesPerPlacedPod = round(p.BytesPerPendingPod + (heap()-warm)/float64(took.decisions))
	}
	runtime.KeepAlive(d)
	return p, nil
}

func (p *Point) fill(t *timing) {
	n := float64(t.decisions)
	p.Speed = t.speed()
	p.Micros, p.CPUMicros = micros(t.wall, t.decisions), micros(t.cpu, t.decisions)
	p.Allocations, p.AllocatedBytes = round(float64(t.allocations)/n), round(float64(t.bytes)/n)
	p.PeakRSSMiB = round(peakRSS())
}

func micros(d time.Duration, n int) float64 {
	return round(float64(d) / float64(time.Microsecond) / float64(n))
}

// heap is how many bytes are in use once all garbage is gone.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func figure(format string, of func(*Point) float64) func(*Point) string {
	return func(p *Point) string { return fmt.Sprintf(format, of(p)) }
}

var scaleColumns = []column[Point]{
	{"scheduler", func(p *Point) string { return p.Scheduler }},
	{"pattern", func(p *Point) string { return p.Pattern }},
	{"nodes", func(p *Point) string { return fmt.Sprint(p.Nodes) }},
	{"decisions", func(p *Point) string { return fmt.Sprint(p.Decisions) }},
	{"decisions/s", figure("%.0f", func(p *Point) float64 { return p.PerSecond })},
	{"µs", figure("%.2f", func(p *Point) float64 { return p.Micros })},
	{"CPU µs", figure("%.2f", func(p *Point) float64 { return p.CPUMicros })},
	{"p50 µs", figure("%.2f", func(p *Point) float64 { return p.P50Micros })},
	{"p99 µs", figure("%.2f", func(p *Point) float64 { return p.P99Micros })},
	{"allocs", figure("%.1f", func(p *Point) float64 { return p.Allocations })},
	{"alloc B", figure("%.0f", func(p *Point) float64 { return p.AllocatedBytes })},
	{"answer µs", figure("%.2f", func(p *Point) float64 { return p.SettleMicros })},
	{"B/node", figure("%.0f", func(p *Point) float64 { return p.BytesPerNode })},
	{"B/pending", figure("%.0f", func(p *Point) float64 { return p.BytesPerPendingPod })},
	{"B/placed", figure("%.0f", func(p *Point) float64 { return p.BytesPerPlacedPod })},
	{"B/class", figure("%.0f", func(p *Point) float64 { return p.BytesPerClass })},
	{"peak MiB", figure("%.0f", func(p *Point) float64 { return p.PeakRSSMiB })},
}

func writePoints(w io.Writer, format string, points []Point) error {
	if format == "json" {
		return writeJSON(w, map[string]any{"apiVersion": why.APIVersion, "kind": "ScaleResult", "points": points})
	}
	return writeRows(w, format, scaleColumns, points)
}
