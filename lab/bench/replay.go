package bench

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/why"
)

// The trace's GPUs as an extended resource, a thousand a GPU, and the label
// that tells their model.
const (
	gpuMilli = v1.ResourceName("nvidia.com/gpu-milli")
	gpuModel = "nvidia.com/gpu.product"
)

// The policies that a trace is replayed under.
const (
	Spread = "spread" // the defaults: LeastAllocated on CPU and memory
	Pack   = "pack"   // MostAllocated on GPUs
)

var policies = map[string]string{
	Spread: "",
	Pack: `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{name: nvidia.com/gpu-milli, weight: 1}]
`,
}

// trace is the openb trace in a folder, under a policy. Its pods come in a
// random order, over and over, until they have asked for the demand, and stay.
type trace struct {
	Dir, Pods string
	Policy    string
	Demand    float64 // GPUs asked for, as a share of all
	Seed      uint64
}

// Replayed is what came of a trace.
type Replayed struct {
	Scheduler string `json:"scheduler"`
	Policy    string `json:"policy"`
	Speed
	GPUs float64 `json:"gpus"`
	// AtFull is what was allocated when as many GPUs had been asked for as
	// there are, AtEnd when all pods had been decided on.
	AtFull float64 `json:"gpusAllocatedAtFullDemand"`
	AtEnd  float64 `json:"gpusAllocatedAtEnd"`
}

// ReplayOptions are the flags of `berth-lab bench replay`.
type ReplayOptions struct {
	Dir, Pods  string
	Demand     float64
	Schedulers []string
	Runs       int
	Output     string
}

func newReplayCommand() *cobra.Command {
	var o ReplayOptions
	command := &cobra.Command{
		Use:   "replay --openb DIR",
		Short: "Replay the openb GPU trace: decisions per second and allocated GPUs",
		Long: `Take decisions in process on the 1,213 GPU nodes of Alibaba's openb trace. Pods come
from the trace in a random order, with the run's number as the seed, until they have
requested --demand of all GPUs. No pod leaves. GPUs are an extended resource of a
thousand units each, so a node may give parts of two GPUs to one pod: the command
measures the allocation of nodes, and not of devices.

The directory holds openb_node_list_gpu_node.csv and the list of pods: it is
cluster-trace-gpu-v2023/csv of github.com/alibaba/clusterdata.`,
		Example: `  berth-lab bench replay --openb DIR
  berth-lab bench replay --openb DIR --pods openb_pod_list_gpuspec33.csv --runs 5 -o json`,
		Args: cobra.NoArgs,
		RunE: untilSignalled(func(ctx context.Context, out io.Writer) error {
			if err := o.validate(); err != nil {
				return err
			}
			results, err := Replay(ctx, o, say)
			if err != nil {
				return err
			}
			return writeReplayed(out, o.Output, results)
		}),
	}
	flags := command.Flags()
	flags.StringVar(&o.Dir, "openb", "", "directory with the trace")
	flags.StringVar(&o.Pods, "pods", "openb_pod_list_default.csv", "list of pods in that directory")
	flags.Float64Var(&o.Demand, "demand", 1.3, "GPUs that the pods request, as a share of all GPUs")
	flags.StringSliceVar(&o.Schedulers, "schedulers", []string{Berth, KubeScheduler}, "schedulers that take turns, in this order")
	flags.IntVar(&o.Runs, "runs", 1, "number of turns of each scheduler, each with another order of pods; speeds are medians, allocations are means")
	flags.StringVarP(&o.Output, "output", "o", "table", "output format: table or json")
	return command
}

func (o *ReplayOptions) validate() error {
	if o.Dir == "" {
		return errors.New("--openb is missing: it names the directory with the trace")
	}
	if o.Demand <= 0 || o.Demand > 10 {
		return fmt.Errorf("--demand %g: must be more than 0 and at most 10", o.Demand)
	}
	if o.Runs < 1 {
		return fmt.Errorf("--runs %d: must be at least 1", o.Runs)
	}
	if o.Output != "table" && o.Output != "json" {
		return fmt.Errorf("--output %q: must be table or json", o.Output)
	}
	return validSchedulers(o.Schedulers)
}

// Replay replays the trace under each policy; progress is told in lines.
func Replay(ctx context.Context, o ReplayOptions, say func(string, ...any)) ([]Replayed, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	var results []Replayed
	for _, policy := range []string{Spread, Pack} {
		runs, err := rounds(ctx, o.Schedulers, o.Runs, func(scheduler string, run int) turn {
			return turn{Scheduler: scheduler, Replay: &trace{dir, o.Pods, policy, o.Demand, uint64(run + 1)}}
		}, func(run int, r Replayed) {
			say("%s, run %d, %s: %.0f decisions/s, %.0f of %.0f GPUs allocated", policy, run+1, r.Scheduler, r.PerSecond, r.AtEnd, r.GPUs)
		})
		if err != nil {
			return nil, fmt.Errorf("%s, %w", policy, err)
		}
		for _, scheduler := range o.Schedulers {
			results = append(results, merge(runs[scheduler]))
		}
	}
	return results, nil
}

// merge is the run of median speed with the mean allocations.
func merge(runs []Replayed) Replayed {
	r := medianOf(runs, func(r Replayed) float64 { return r.PerSecond })
	r.AtFull, r.AtEnd = 0, 0
	for _, x := range runs {
		r.AtFull += x.AtFull / float64(len(runs))
		r.AtEnd += x.AtEnd / float64(len(runs))
	}
	return r
}

func (t *trace) measure(who turn) (*Replayed, error) {
	nodes, err := readTable(filepath.Join(t.Dir, "openb_node_list_gpu_node.csv"), openbNode)
	if err != nil {
		return nil, err
	}
	tasks, err := readTable(filepath.Join(t.Dir, t.Pods), openbPod)
	if err != nil {
		return nil, err
	}
	r := &Replayed{Scheduler: who.Scheduler, Policy: t.Policy}
	for _, n := range nodes {
		r.GPUs += gpus(n.Status.Allocatable)
	}
	pods, err := t.draw(tasks, r.GPUs*t.Demand)
	if err != nil {
		return nil, err
	}
	s := &scene{nodes: slices.Values(nodes), pods: slices.Values(pods), count: len(pods), config: policies[t.Policy], misfits: true}
	took, err := who.take(s)
	if err != nil {
		return nil, err
	}
	r.allocate(pods, took.unplaced)
	r.Speed = took.speed()
	return r, nil
}

// draw picks pods in rounds of the whole trace, each in a random order, until
// they ask for that many GPUs.
func (t *trace) draw(tasks []*v1.Pod, demand float64) ([]*v1.Pod, error) {
	random := rand.New(rand.NewPCG(t.Seed, 0))
	var pods []*v1.Pod
	for asked, round := 0.0, 0; asked < demand; round++ {
		before := asked
		for _, i := range random.Perm(len(tasks)) {
			if asked >= demand {
				break
			}
			p := podOf(fmt.Sprintf("%s-%d", tasks[i].Name, round), tasks[i].Spec.Containers[0].Resources.Requests)
			p.Spec.Affinity = tasks[i].Spec.Affinity
			asked += gpus(p.Spec.Containers[0].Resources.Requests)
			pods = append(pods, p)
		}
		if asked == before {
			return nil, fmt.Errorf("%s: no pod asks for a GPU", t.Pods)
		}
	}
	return pods, nil
}

// allocate adds up what was given to the pods that were placed.
func (r *Replayed) allocate(pods []*v1.Pod, unplaced []int) {
	asked := 0.0
	for i, p := range pods {
		wants := gpus(p.Spec.Containers[0].Resources.Requests)
		asked += wants
		if len(unplaced) > 0 && unplaced[0] == i {
			unplaced = unplaced[1:]
		} else {
			r.AtEnd += wants
		}
		if asked <= r.GPUs {
			r.AtFull = r.AtEnd
		}
	}
}

func gpus(list v1.ResourceList) float64 {
	q := list[gpuMilli]
	return float64(q.Value()) / 1000
}

// readTable reads a CSV file with a header, row by row.
func readTable[T any](file string, row func(field func(name string) string) (T, error)) ([]T, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(lines) < 2 {
		return nil, fmt.Errorf("%s: there is no row", file)
	}
	at := map[string]int{}
	for i, name := range lines[0] {
		at[name] = i
	}
	rows := make([]T, 0, len(lines)-1)
	for i, line := range lines[1:] {
		missing := ""
		r, err := row(func(name string) string {
			k, ok := at[name]
			if !ok {
				missing = name
				return ""
			}
			return line[k]
		})
		if missing != "" {
			return nil, fmt.Errorf("%s: there is no column %s", file, missing)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", file, i+2, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// room is a list of resources from numbers; the first that is none ends it.
func room(cpuMilli, memoryMiB, gpu string, factor int64) (v1.ResourceList, error) {
	var n [3]int64
	for i, s := range []string{cpuMilli, memoryMiB, gpu} {
		var err error
		if n[i], err = strconv.ParseInt(s, 10, 64); err != nil {
			return nil, err
		}
	}
	list := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(n[0], resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(n[1]<<20, resource.BinarySI),
	}
	if n[2] > 0 && factor > 0 {
		list[gpuMilli] = *resource.NewQuantity(n[2]*factor, resource.DecimalSI)
	}
	return list, nil
}

func openbNode(field func(string) string) (*v1.Node, error) {
	list, err := room(field("cpu_milli"), field("memory_mib"), field("gpu"), 1000)
	if err != nil {
		return nil, err
	}
	list[v1.ResourcePods] = resource.MustParse("1000") // the trace's own limit is not known
	name := field("sn")
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name, gpuModel: field("model")}},
		Status:     v1.NodeStatus{Capacity: list, Allocatable: list},
	}, nil
}

func openbPod(field func(string) string) (*v1.Pod, error) {
	milli, err := strconv.ParseInt(cmp.Or(field("gpu_milli"), "0"), 10, 64)
	if err != nil {
		return nil, err
	}
	list, err := room(field("cpu_milli"), field("memory_mib"), field("num_gpu"), milli)
	if err != nil {
		return nil, err
	}
	p := podOf(field("name"), list)
	if models := field("gpu_spec"); models != "" {
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: gpuModel, Operator: v1.NodeSelectorOpIn, Values: strings.Split(models, "|")}},
			}}},
		}}
	}
	return p, nil
}

func writeReplayed(w io.Writer, format string, results []Replayed) error {
	if format == "json" {
		return writeJSON(w, map[string]any{"apiVersion": why.APIVersion, "kind": "ReplayResult", "results": results})
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scheduler\tpolicy\tdecisions\tdecisions/s\tp50 µs\tp99 µs\tGPUs\tallocated at 100 %\tat the end\t")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%s\t%d\t%.0f\t%.2f\t%.2f\t%.0f\t%.0f (%.1f %%)\t%.0f (%.1f %%)\t\n", r.Scheduler, r.Policy, r.Decisions, r.PerSecond,
			r.P50Micros, r.P99Micros, r.GPUs, r.AtFull, 100*r.AtFull/r.GPUs, r.AtEnd, 100*r.AtEnd/r.GPUs)
	}
	return t.Flush()
}
