package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/why"
	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/sim/generate"
)

// gangGates are the feature gates under which both schedulers place groups.
const gangGates = "GenericWorkload"

// gangPool is the value of the label pool of the nodes that hopeless gangs select.
const gangPool = "gangs"

// gpu is the resource of the case with GPUs.
const gpu v1.ResourceName = "example.com/gpu"

// gangCase is a cluster, and gangs that come to it.
type gangCase struct {
	Name    string
	Nodes   int // of 4 CPUs
	Pool    int // how many of them hopeless gangs select
	Gangs   int
	Pods    int // of a gang
	Most    int // of a gang, if their sizes differ: drawn with a seed
	CPU     int64
	GPU     bool // each node has eight, and each pod requests one
	Singles int  // pods without a group, in between
	Rate    int  // of the singles a second in mode cluster; 0: they are there before the scheduler
	Lent    bool // each node is full with a pod that borrows what the gangs' queue is guaranteed
	Budget  time.Duration
}

// gangCases are the cases by default. The last one's nodes have room for 60 % of its pods.
func gangCases() []gangCase {
	return []gangCase{
		{Name: "3000-pods", Nodes: 5000, Gangs: 1000, Pods: 3, CPU: 100},
		{Name: "6000-pods", Nodes: 5000, Gangs: 2000, Pods: 3, CPU: 100},
		{Name: "9000-pods", Nodes: 5000, Gangs: 3000, Pods: 3, CPU: 100},
		{Name: "one-of-512", Nodes: 512, Gangs: 1, Pods: 512, CPU: 4000},
		{Name: "4000-jobs", Nodes: 500, Gangs: 4000, Pods: 1, CPU: 100, GPU: true},
		{Name: "20-of-500", Nodes: 5000, Gangs: 20, Pods: 500, CPU: 1000},
		{Name: "hopeless", Nodes: 5000, Pool: 63, Gangs: 1000, Pods: 64, CPU: 4000, Singles: 1000, Rate: 100},
		{Name: "60-percent", Nodes: 534, Gangs: 100, Pods: 8, Most: 64, CPU: 1000},
		{Name: "reclaim-250", Nodes: 250, Gangs: 1, Pods: 250, CPU: 4000, Lent: true},
		{Name: "reclaim-500", Nodes: 500, Gangs: 1, Pods: 500, CPU: 4000, Lent: true},
	}
}

// caseNames returns the names of the cases; those with quotas only if quotas is set.
func caseNames(quotas bool) (names []string) {
	for _, c := range gangCases() {
		if quotas || !c.Lent {
			names = append(names, c.Name)
		}
	}
	return names
}

// GangRun is what one scheduler did in a case.
type GangRun struct {
	Case       string  `json:"case"`
	Scheduler  string  `json:"scheduler"`
	Nodes      int     `json:"nodes"`
	Gangs      int     `json:"gangs"`
	Attempts   int     `json:"attempts"` // of gangs
	Placed     int     `json:"gangsPlaced"`
	Partial    int     `json:"partialGangs"`
	Pods       int     `json:"podsPlaced"`
	Singles    int     `json:"singlesPlaced"`
	MeanMicros float64 `json:"meanMicros"` // of an attempt
	P99Micros  float64 `json:"p99Micros"`
	MaxMillis  float64 `json:"longestStepMillis"`
	// LastMillis is how long was decided until the last pod had its node.
	LastMillis float64 `json:"lastMemberMillis"`
	PeakRSSMiB float64 `json:"peakRSSMiB"`
	Done       bool    `json:"done"` // each gang was tried within the budget

	// In mode cluster:
	CPUMillis    float64 `json:"cpuMillis,omitempty"`    // of the scheduler
	InPartMillis float64 `json:"inPartMillis,omitempty"` // longest time from the first binding of a placed gang to its last
	Evicted      int     `json:"evicted,omitempty"`
	SingleP99    float64 `json:"singleP99Millis,omitempty"` // from the creation of a pod without a group to its binding
	Set          string  `json:"set,omitempty"`             // hash of the names of the gangs that are placed
}

// GangOptions are the flags of `berth-lab bench gangs`.
type GangOptions struct {
	Cases, Schedulers []string
	Mode              string
	Binary, Peers     string
	Budget, Settle    time.Duration
	Output            string
}

func newGangsCommand() *cobra.Command {
	var o GangOptions
	command := &cobra.Command{
		Use:   "gangs",
		Short: "Measure how pod groups are placed",
		Long: `Decide on pod groups in process, beside kube-scheduler with its gate GenericWorkload on.
The groups are gangs: all pods of one are placed, or none. Each turn is a process of its
own. Nodes have 4 CPUs.

  3000-pods, 6000-pods, 9000-pods  5,000 nodes, 1,000 to 3,000 gangs of 3
  one-of-512   512 nodes, one gang that takes them all
  4000-jobs    500 nodes of 8 GPUs, 4,000 gangs of a pod that requests one
  20-of-500    5,000 nodes, 20 gangs of 500
  hopeless     5,000 nodes, 1,000 gangs of 64 for whose last pod no node is left,
               and 1,000 pods without a group in between; in mode cluster these come at
               100 a second, once the first is bound
  60-percent   100 gangs of 8 to 64, on nodes for 60 % of their pods

An attempt is one cycle for a gang. Berth decides with its queue, in which all pods are
before the clock runs. kube-scheduler gets one gang after the other, with an empty queue:
each is tried once. Bindings are answered while the clock stands still.

With --mode cluster a scheduler runs beside a real API server, which has all objects before
the scheduler starts. The clock runs from that start to the last binding. With --peers the
groups and quotas are those of scheduling.x-k8s.io, and Berth takes turns with that binary;
both get one configuration, with the plugins Coscheduling and CapacityScheduling. Two cases
more have quotas then:

  reclaim-250, reclaim-500  a gang for all nodes, each of which another queue has borrowed`,
		Example: `  berth-lab bench gangs
  berth-lab bench gangs --mode cluster --case 60-percent
  make peers && berth-lab bench gangs --mode cluster --peers bin/peers
  berth-lab bench gangs --case 9000-pods,one-of-512 -o markdown
  berth-lab bench gangs --case hopeless --schedulers berth -o json`,
		Args: cobra.NoArgs,
		RunE: untilSignalled(func(ctx context.Context, out io.Writer) error {
			if err := o.validate(); err != nil {
				return err
			}
			runs, err := Gangs(ctx, o, say)
			if err != nil {
				return err
			}
			return o.write(out, runs)
		}),
	}
	command.Flags().AddFlagSet(o.flags())
	return command
}

// flags returns the flags, which set the options.
func (o *GangOptions) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("gangs", pflag.ContinueOnError)
	flags.StringSliceVar(&o.Cases, "case", nil, "cases; default: all of "+strings.Join(caseNames(true), ", ")+", of which the last two need --peers")
	flags.StringSliceVar(&o.Schedulers, "schedulers", nil, "schedulers that take turns, in this order; default: berth,kube-scheduler, or berth,peers with --peers")
	flags.StringVar(&o.Mode, "mode", decideMode, "what a turn is: decide (in process) or cluster (on a real API server)")
	flags.StringVar(&o.Binary, "binary", "", "berth-scheduler to run in mode cluster; default: the one beside berth-lab")
	flags.StringVar(&o.Peers, "peers", "", "kube-scheduler with Coscheduling and CapacityScheduling, built by make peers, in mode cluster")
	flags.DurationVar(&o.Budget, "budget", time.Minute, "longest time of decisions in a turn; in mode cluster, longest turn")
	flags.DurationVar(&o.Settle, "settle", 15*time.Second, "how long nothing is bound when a turn in mode cluster ends")
	flags.StringVarP(&o.Output, "output", "o", "table", "output format: table, json or markdown")
	return flags
}

func (o *GangOptions) validate() error {
	known := caseNames(o.Peers != "")
	if o.Cases == nil {
		o.Cases = known
	}
	for _, name := range o.Cases {
		if !slices.Contains(known, name) {
			return fmt.Errorf("--case %s: must be one of %s", name, strings.Join(known, ", "))
		}
	}
	if o.Budget <= 0 || o.Settle <= 0 {
		return fmt.Errorf("--budget %s, --settle %s: must be more than 0", o.Budget, o.Settle)
	}
	if o.Mode != decideMode && o.Mode != clusterMode {
		return fmt.Errorf("--mode %q: must be %s or %s", o.Mode, decideMode, clusterMode)
	}
	if o.Mode == decideMode && (o.Peers != "" || o.Binary != "") {
		return errors.New("--peers, --binary: only in mode cluster")
	}
	if !slices.Contains([]string{"table", "json", "markdown"}, o.Output) {
		return fmt.Errorf("--output %q: must be table, json or markdown", o.Output)
	}
	rival := KubeScheduler
	if o.Peers != "" {
		rival = Peers
	}
	if o.Schedulers == nil {
		o.Schedulers = []string{Berth, rival}
	}
	for _, name := range o.Schedulers {
		if name != Berth && name != rival {
			return fmt.Errorf("--schedulers %s: must be %s or %s", name, Berth, rival)
		}
	}
	return nil
}

// Gangs measures the cases; progress is told in lines.
func Gangs(ctx context.Context, o GangOptions, say func(string, ...any)) ([]GangRun, error) {
	var runs []GangRun
	for _, c := range gangCases() {
		if c.Budget = o.Budget; !slices.Contains(o.Cases, c.Name) {
			continue
		}
		for _, scheduler := range o.Schedulers {
			r, err := c.turn(ctx, &o, scheduler)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", c.Name, scheduler, err)
			}
			say("%s, %s: %d of %d gangs placed, the last pod after %.0f ms", c.Name, scheduler, r.Placed, r.Gangs, r.LastMillis)
			runs = append(runs, *r)
		}
	}
	return runs, nil
}

// turn is one scheduler's turn.
func (c *gangCase) turn(ctx context.Context, o *GangOptions, scheduler string) (*GangRun, error) {
	if o.Mode == clusterMode {
		return c.measureOnCluster(ctx, o, scheduler)
	}
	r := &GangRun{}
	return r, turn{Scheduler: scheduler, Gangs: c}.in(ctx, r)
}

// gangScene is the case's objects.
type gangScene struct {
	nodes   []*v1.Node
	groups  []*schedulingv1beta1.PodGroup
	pods    [][]*v1.Pod // by group
	singles []*v1.Pod
	lent    []*v1.Pod // one bound to each node, in the namespace of another queue
}

func (c *gangCase) scene() *gangScene {
	s := &gangScene{}
	for n := range (&scaleCase{Nodes: c.Nodes}).nodes() {
		if len(s.nodes) < c.Pool {
			n.Labels["pool"] = gangPool
		}
		if c.GPU {
			n.Status.Capacity[gpu], n.Status.Allocatable[gpu] = resource.MustParse("8"), resource.MustParse("8")
		}
		s.nodes = append(s.nodes, n)
	}
	draw := rand.New(rand.NewPCG(1, 1)) // #nosec G404 -- the sizes are to be the same in each turn
	requests := func(milliCPU int64) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI)}
	}
	for i := range c.Gangs {
		size, name := c.Pods, fmt.Sprintf("gang-%04d", i)
		if c.Most > c.Pods {
			size += draw.IntN(c.Most - c.Pods + 1)
		}
		priority := int32(0)
		s.groups = append(s.groups, &schedulingv1beta1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
			Spec: schedulingv1beta1.PodGroupSpec{Priority: &priority, SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
				Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(size)}}},
		})
		var pods []*v1.Pod
		for j := range size {
			p := podOf(fmt.Sprintf("%s-%03d", name, j), requests(c.CPU))
			if c.GPU {
				one := v1.ResourceList{gpu: resource.MustParse("1")}
				p.Spec.Containers[0].Resources.Requests[gpu], p.Spec.Containers[0].Resources.Limits = one[gpu], one
			}
			p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &name}
			if c.Pool > 0 {
				p.Spec.NodeSelector = map[string]string{"pool": gangPool}
			}
			pods = append(pods, p)
		}
		s.pods = append(s.pods, pods)
	}
	for i := 0; c.Lent && i < c.Nodes; i++ {
		p := podOf(fmt.Sprintf("lent-%03d", i), requests(c.CPU))
		p.Namespace, p.Spec.NodeName, p.Spec.TerminationGracePeriodSeconds = lender, s.nodes[i].Name, new(int64)
		s.lent = append(s.lent, p)
	}
	for i := range c.Singles {
		s.singles = append(s.singles, podOf(fmt.Sprintf("single-%03d", i), requests(100)))
	}
	return s
}

// gangTally is what a turn counts.
type gangTally struct {
	run   *GangRun
	spent time.Duration
	took  []time.Duration // by attempt of a gang
	most  time.Duration   // of a step
}

// step counts a step. pods is how many were placed in it.
func (t *gangTally) step(took time.Duration, gang bool, pods int) {
	t.spent += took
	t.most = max(t.most, took)
	if gang {
		t.took = append(t.took, took)
	}
	if pods > 0 {
		t.run.LastMillis = round(millis([]time.Duration{t.spent})[0])
	}
}

// gang counts what became of a gang in an attempt.
func (t *gangTally) gang(pods, placed int) {
	t.run.Attempts++
	t.run.Pods += placed
	switch {
	case placed == pods:
		t.run.Placed++
	case placed > 0:
		t.run.Partial++
	}
}

// measure takes the turn's decisions.
func (c *gangCase) measure(t turn) (*GangRun, error) {
	r, s := &GangRun{Case: c.Name, Scheduler: t.Scheduler, Nodes: c.Nodes, Gangs: c.Gangs}, c.scene()
	tally := &gangTally{run: r}
	var err error
	if t.Scheduler == Berth {
		err = c.measureBerth(s, tally)
	} else {
		err = c.measureKubeScheduler(s, tally)
	}
	if err != nil {
		return nil, err
	}
	total := time.Duration(0)
	for _, d := range tally.took {
		total += d
	}
	r.MeanMicros = micros(total, max(1, len(tally.took)))
	r.P99Micros = round(1000 * percentile(millis(tally.took), 0.99))
	r.MaxMillis = round(millis([]time.Duration{tally.most})[0])
	r.PeakRSSMiB = round(peakRSS())
	return r, nil
}

func (c *gangCase) measureBerth(s *gangScene, t *gangTally) error {
	d, err := newBerth("", "", gangGates)
	if err != nil {
		return err
	}
	d.addNodes(slices.Values(s.nodes))
	for _, g := range s.groups {
		d.m.Step(time.Now(), machine.ObjectSet{Object: decode.Object(g)})
	}
	for i, pods := range s.pods {
		d.addPods(slices.Values(pods))
		if c.Singles > 0 && i%(c.Gangs/c.Singles) == 0 {
			d.addPods(slices.Values(s.singles[i/(c.Gangs/c.Singles):][:1]))
		}
	}
	goruntime.GC()
	for n := 1; d.m.Ready() && t.spent < c.Budget; n++ {
		start := time.Now()
		record := d.step(machine.ScheduleOne{})
		took := time.Since(start)
		placed := 0
		for _, g := range d.groups {
			placed = g.Scheduled
			t.gang(g.Pods, placed)
		}
		if len(d.groups) == 0 && record != nil && record.Result == decision.ResultScheduled {
			placed = 1
			t.run.Singles++
		}
		t.step(took, len(d.groups) > 0, placed)
		if d.groups = d.groups[:0]; n%slice == 0 || !d.m.Ready() {
			if err := d.settle(); err != nil {
				return err
			}
		}
	}
	t.run.Done = t.run.Attempts >= c.Gangs
	return nil
}

func (c *gangCase) measureKubeScheduler(s *gangScene, t *gangTally) error {
	w := generate.World{Nodes: s.nodes, Gates: map[string]bool{gangGates: true}}
	defer oracle.Under(w.Gates)()
	for _, g := range s.groups {
		w.Objects = append(w.Objects, g)
	}
	d, err := oracle.NewDefaultSchedulerOn(w)
	if err != nil {
		return err
	}
	defer d.Stop()
	goruntime.GC()
	for i, pods := range s.pods {
		if t.spent > c.Budget {
			return nil
		}
		placed, took, err := d.DecideGroup(pods)
		if err != nil {
			return err
		}
		t.gang(len(pods), placed)
		t.step(took, true, placed)
		if c.Singles > 0 && i%(c.Gangs/c.Singles) == 0 {
			start := time.Now()
			_, err := d.Decide(s.singles[i/(c.Gangs/c.Singles)])
			if err == nil {
				t.run.Singles++
			}
			t.step(time.Since(start), false, 1)
		}
	}
	t.run.Done = true
	return nil
}

// gangColumns are the columns of the table that both modes have, and those of one.
var (
	gangColumns = []column[GangRun]{
		{"case", func(r *GangRun) string { return r.Case }},
		{"scheduler", func(r *GangRun) string { return r.Scheduler }},
		{"gangs", func(r *GangRun) string { return fmt.Sprint(r.Gangs) }},
		{"placed", func(r *GangRun) string { return fmt.Sprint(r.Placed) }},
		{"partial", func(r *GangRun) string { return fmt.Sprint(r.Partial) }},
		{"singles", func(r *GangRun) string { return fmt.Sprint(r.Singles) }},
		{"last member ms", func(r *GangRun) string { return fmt.Sprintf("%.1f", r.LastMillis) }},
		{"peak MiB", func(r *GangRun) string { return fmt.Sprintf("%.0f", r.PeakRSSMiB) }},
	}
	gangColumnsOf = map[string][]column[GangRun]{
		decideMode: {
			{"attempts", func(r *GangRun) string { return fmt.Sprint(r.Attempts) }},
			{"µs/attempt", func(r *GangRun) string { return fmt.Sprintf("%.0f", r.MeanMicros) }},
			{"p99 µs", func(r *GangRun) string { return fmt.Sprintf("%.0f", r.P99Micros) }},
			{"longest ms", func(r *GangRun) string { return fmt.Sprintf("%.2f", r.MaxMillis) }},
		},
		clusterMode: {
			{"in part ms", func(r *GangRun) string { return fmt.Sprintf("%.0f", r.InPartMillis) }},
			{"single p99 ms", func(r *GangRun) string { return fmt.Sprintf("%.0f", r.SingleP99) }},
			{"evicted", func(r *GangRun) string { return fmt.Sprint(r.Evicted) }},
			{"CPU ms", func(r *GangRun) string { return fmt.Sprintf("%.0f", r.CPUMillis) }},
			{"set", func(r *GangRun) string { return r.Set }},
		},
	}
)

func (o *GangOptions) write(w io.Writer, runs []GangRun) error {
	if o.Output == "json" {
		return writeJSON(w, map[string]any{"apiVersion": why.APIVersion, "kind": "GangsResult", "runs": runs})
	}
	return writeRows(w, o.Output, slices.Concat(gangColumns, gangColumnsOf[o.Mode]), runs)
}
