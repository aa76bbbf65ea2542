package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func quiet(string, ...any) {}

// Mode decide gives a run of each scheduler in each turn.
func TestDecideModeMeasuresBothSchedulers(t *testing.T) {
	dir := own(t, threeNodes+"  - {opcode: createPods, count: 2}\n"+sixPods)
	r, err := Measure(t.Context(), Options{
		Dir: dir, Mode: "decide", Schedulers: []string{Berth, KubeScheduler}, Runs: 2,
	}, "Own/Small", quiet)
	if err != nil {
		t.Fatal(err)
	}
	var turns []string
	for _, run := range r.Runs {
		turns = append(turns, run.Scheduler)
		if run.Nodes != 3 || run.Pods != 6 || run.Scheduled != 6 {
			t.Errorf("%+v: want 3 nodes, 6 of 6 pods", run)
		}
		if run.PodsPerSecond <= 0 || run.CPUMillisPerPod <= 0 || run.P50Millis <= 0 || run.P99Millis < run.P50Millis || run.PeakRSSMiB <= 0 {
			t.Errorf("%+v: a figure is missing", run)
		}
	}
	if want := []string{Berth, KubeScheduler, Berth, KubeScheduler}; !slices.Equal(turns, want) {
		t.Errorf("turns %v, want %v", turns, want)
	}
	if r.Ratio.PodsPerSecond <= 0 {
		t.Errorf("ratio %+v", r.Ratio)
	}
}

// TestServicesSpreadInDecideMode: pods of a Service go round the nodes, though
// all of them would fit on the one with the most room.
func TestServicesSpreadInDecideMode(t *testing.T) {
	dir := own(t, "  - {opcode: createNodes, count: 1, nodeTemplatePath: templates/big.yaml}\n"+threeNodes+
		"  - {opcode: createAny, namespace: services, templatePath: templates/service.yaml}\n"+
		"  - {opcode: createPods, count: 4, namespace: services, podTemplatePath: templates/served.yaml, collectMetrics: true}")
	w, err := Load(dir, "Own/Small")
	if err != nil {
		t.Fatal(err)
	}
	for _, scheduler := range []string{Berth, KubeScheduler} {
		for _, served := range []bool{true, false} {
			s, err := w.scene()
			if err != nil {
				t.Fatal(err)
			}
			if !served {
				s.selectorOwners = nil
			}
			d, stop, err := newDecider(scheduler, s)
			if err != nil {
				t.Fatal(err)
			}
			nodes := map[string]bool{}
			for range s.count {
				node, err := d.decide()
				if err != nil {
					t.Fatal(err)
				}
				nodes[node] = true
			}
			stop()
			if want := map[bool]int{true: 4, false: 1}[served]; len(nodes) != want {
				t.Errorf("%s, with the Service %t: pods on %d nodes, want %d", scheduler, served, len(nodes), want)
			}
		}
	}
}

const threeDevices = `
  - {opcode: createNodes, countParam: $nodes, nodeTemplatePath: templates/driven.yaml}
  - {opcode: createAny, countParam: $nodes, templatePath: templates/slice.yaml}
  - {opcode: createAny, templatePath: templates/class.yaml}
`

// TestWhatPodsGetInDecideMode: volumes and devices run out, for both.
func TestWhatPodsGetInDecideMode(t *testing.T) {
	volumes := `
  - opcode: createNodes
    count: 2
    nodeAllocatableStrategy: {csiNodeAllocatable: {ebs.csi.aws.com: {count: 3}}}
  - &pods
    opcode: createPods
    count: 2
    persistentVolumeTemplatePath: templates/volume.yaml
    persistentVolumeClaimTemplatePath: templates/bound.yaml
  - {<<: *pods, count: %d, collectMetrics: true}
`
	templates := threeDevices + `
  - {opcode: createAny, namespace: test, templatePath: templates/devices.yaml}
  - {opcode: createPods, namespace: test, count: 2, podTemplatePath: templates/templated.yaml}
  - {opcode: createPods, namespace: test, count: %d, podTemplatePath: templates/templated.yaml, collectMetrics: true}
`
	shared := threeDevices + `
  - {opcode: createAny, namespace: before, count: 10, templatePath: templates/device.yaml}
  - {opcode: allocResourceClaims, namespace: before}
  - {opcode: createAny, namespace: test, count: 4, templatePath: templates/device.yaml}
  - {opcode: createPods, namespace: test, count: %d, podTemplatePath: templates/shared.yaml, collectMetrics: true}
`
	extended := threeDevices + `
  - {opcode: createAny, templatePath: templates/extended.yaml}
  - {opcode: createPods, count: 10, podTemplatePath: templates/gpu.yaml}
  - {opcode: createPods, count: %d, podTemplatePath: templates/gpu.yaml, collectMetrics: true}
`
	for _, test := range []struct {
		ops string
		fit int // how many of one more
	}{{volumes, 4}, {templates, 4}, {shared, 6}, {extended, 2}} {
		for _, scheduler := range []string{Berth, KubeScheduler} {
			var b bytes.Buffer
			err := turn{Scheduler: scheduler, Workload: "Own/Small", Dir: own(t, fmt.Sprintf(test.ops, test.fit))}.run(&b)
			if err != nil || !strings.Contains(b.String(), fmt.Sprintf(`"scheduled":%d,`, test.fit)) {
				t.Errorf("%s: %v %s, want %d pods scheduled of %s", scheduler, err, b.String(), test.fit, test.ops)
			}
			err = turn{Scheduler: scheduler, Workload: "Own/Small", Dir: own(t, fmt.Sprintf(test.ops, test.fit+1))}.run(io.Discard)
			if err == nil || !strings.Contains(err.Error(), "a pod found no node") {
				t.Errorf("%s: with one pod more: %v: %s", scheduler, err, test.ops)
			}
		}
	}
}

// A workload that mode decide cannot run is an error that gives the step and
// the reason.
func TestDecideModeSaysWhyItCannot(t *testing.T) {
	tests := []struct{ ops, err string }{
		{threeNodes + "  - {opcode: createPods, count: 1, podTemplatePath: templates/large.yaml, collectMetrics: true}", "a pod found no node, and mode decide measures pods that do: 0/3 nodes are available: 3 Insufficient cpu."},
		{sixPods, "step 0: there is no node yet"},
		{threeNodes + "  - {opcode: churn, mode: create, templatePaths: [templates/service.yaml]}\n" + sixPods, "step 1: churn needs a clock; use --mode cluster"},
		{threeNodes + "  - {opcode: deletePods, namespace: a}\n" + sixPods, "step 1: deletePods needs a clock"},
		{threeNodes + "  - {opcode: createAny, namespace: a, templatePath: templates/churned.yaml}\n" + sixPods, "step 1: a Pod needs an API server"},
		{threeNodes + "  - {opcode: createPods, count: 1, steadyState: true, duration: 1s, collectMetrics: true}", "step 1: a steady state needs a clock"},
		{threeNodes + "  - {opcode: startCollectingMetrics, namespaces: [a]}\n" + sixPods, "step 1: changes during the measurement need a clock"},
		{threeNodes + "  - {opcode: createPods, count: 1, podTemplatePath: templates/templated.yaml, collectMetrics: true}", "step 1: there is no ResourceClaimTemplate namespace-1/two"},
		{threeNodes + "  - {opcode: createPods, count: 1, skipWaitToCompletion: true}\n" + sixPods, "step 1: pods that nobody waits for"},
	}
	for _, test := range tests {
		for _, scheduler := range []string{Berth, KubeScheduler} {
			err := turn{Scheduler: scheduler, Workload: "Own/Small", Dir: own(t, test.ops)}.run(io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: %s: error is %v, want %q", scheduler, test.ops, err, test.err)
			}
		}
	}
}

// The error of a turn's process is the error of the turn.
func TestATurnThatFailsSaysWhy(t *testing.T) {
	err := turn{Scheduler: Berth, Workload: "No/Such", Dir: t.TempDir()}.in(t.Context(), &Run{})
	if err == nil || !strings.HasPrefix(err.Error(), `no workload is named "No/Such"`) {
		t.Errorf("error is %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if err := (turn{Scheduler: Berth}).in(ctx, &Run{}); err == nil || err.Error() != "enough" {
		t.Errorf("cancelled: error is %v", err)
	}
}

// TestJSONIsTheContract compares the keys with those that bench-json.md fixes.
func TestJSONIsTheContract(t *testing.T) {
	keys := func(r *Result) []string {
		var b bytes.Buffer
		if err := writeJSON(&b, r); err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(b.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		names := slices.Collect(maps.Keys(m))
		for k := range m["runs"].([]any)[0].(map[string]any) {
			names = append(names, "runs."+k)
		}
		for k := range m["ratio"].(map[string]any) {
			names = append(names, "ratio."+k)
		}
		slices.Sort(names)
		return names
	}
	r := newResult("A/B", "decide")
	r.Runs = []Run{{Scheduler: Berth}}
	want := strings.Fields(`apiVersion kind mode
		ratio ratio.cpuMillisPerPod ratio.p99Millis ratio.peakRSSMiB ratio.podsPerSecond
		runs runs.cpuMillisPerPod runs.nodes runs.p50Millis runs.p99Millis runs.peakRSSMiB runs.pods
		runs.podsPerSecond runs.scheduled runs.scheduler workload`)
	if got := keys(r); !slices.Equal(got, want) {
		t.Errorf("decide: keys %v, want %v", got, want)
	}
	r = newResult("A/B", "cluster")
	r.Runs, r.BindCeiling = []Run{{}}, 2280
	want = slices.Insert(want, 1, "bindCeilingPodsPerSecond")
	if got := keys(r); !slices.Equal(got, want) {
		t.Errorf("cluster: keys %v, want %v", got, want)
	}
}

// The ratio is that of the medians of the runs.
func TestRatioIsOfMedians(t *testing.T) {
	r := newResult("A/B", "decide")
	for _, x := range []float64{10, 1000, 30} {
		r.Runs = append(r.Runs, Run{Scheduler: Berth, PodsPerSecond: x}, Run{Scheduler: KubeScheduler, PodsPerSecond: x / 10, PeakRSSMiB: 5})
	}
	r.finish()
	if want := (Ratio{PodsPerSecond: 10}); r.Ratio != want {
		t.Errorf("ratio %+v, want %+v", r.Ratio, want)
	}
	if got := percentile([]float64{4, 1, 3, 2}, 0.99); got != 4 {
		t.Errorf("the 99th percentile of 1..4 is %v", got)
	}
}

// Each pattern has as many classes as its name says.
func TestPatternsHaveAsManyClasses(t *testing.T) {
	for pattern, want := range map[string]int{Repeated: 1, InTurn: 150, Unique: 20000} {
		at := &scaleCase{Nodes: 10, Pattern: pattern, Pods: 20000}
		classes := map[string]bool{}
		for i := range at.Pods {
			r := at.requests(i)
			classes[r.Cpu().String()+" "+r.Memory().String()] = true
		}
		if len(classes) != want {
			t.Errorf("%s: %d classes, want %d", pattern, len(classes), want)
		}
	}
}

// Scale measures each number of nodes and pattern with each scheduler, and
// draws the points.
func TestScaleMeasuresAndPlots(t *testing.T) {
	points, err := Scale(t.Context(), ScaleOptions{
		Nodes: []int{40, 80}, Patterns: []string{Repeated, InTurn, Unique}, Schedulers: []string{Berth, KubeScheduler},
		KubeSchedulerUpTo: 40, Pods: 1000, Budget: 20 * time.Millisecond, Runs: 1,
	}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if len(points) != 9 {
		t.Errorf("%d points, want 3 patterns of 40 and 80 nodes with Berth and 40 with kube-scheduler", len(points))
	}
	for _, p := range points {
		if p.Decisions == 0 || p.Micros <= 0 || p.Allocations <= 0 || p.PeakRSSMiB <= 0 {
			t.Errorf("%+v: a figure is missing", p)
		}
		if p.Scheduler == Berth && (p.BytesPerNode <= 0 || p.BytesPerPendingPod <= 0 || p.SettleMicros <= 0) {
			t.Errorf("%+v: a figure of Berth's is missing", p)
		}
	}
	for _, format := range []string{"table", "csv", "json"} {
		var b bytes.Buffer
		if err := writePoints(&b, format, points); err != nil || b.Len() == 0 {
			t.Errorf("%s: %d bytes, %v", format, b.Len(), err)
		}
	}
	svg := plot(points)
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("the plot is not XML: %v", err)
		}
	}
	if got := strings.Count(string(svg), "<polyline"); got != 6 {
		t.Errorf("the plot has %d curves, want 6", got)
	}
}

// Labels of the plot stand apart.
func TestPlotLabelsDoNotCoverEachOther(t *testing.T) {
	all := []*curve{{label: 100}, {label: 101}, {label: 99}, {label: 300}}
	spread(all)
	var at []float64
	for _, c := range all {
		at = append(at, c.label)
	}
	if want := []float64{99 + labelHeight, 99 + 2*labelHeight, 99, 300}; !slices.Equal(at, want) {
		t.Errorf("labels at %v, want %v", at, want)
	}
}

// A wrong flag of scale is an error that names the flag.
func TestScaleOptions(t *testing.T) {
	tests := []struct {
		change func(*ScaleOptions)
		err    string
	}{
		{func(*ScaleOptions) {}, ""},
		{func(o *ScaleOptions) { o.Nodes = []int{0} }, "--nodes 0"},
		{func(o *ScaleOptions) { o.Nodes = []int{10} }, "10 nodes have room for 300"},
		{func(o *ScaleOptions) { o.Patterns = []string{"all"} }, "--patterns all"},
		{func(o *ScaleOptions) { o.Pods = 10 }, "--pods 10"},
		{func(o *ScaleOptions) { o.Runs = 0 }, "--runs 0"},
		{func(o *ScaleOptions) { o.Budget = 0 }, "--budget"},
		{func(o *ScaleOptions) { o.Output = "xml" }, `--output "xml"`},
	}
	for _, test := range tests {
		o := ScaleOptions{Nodes: []int{1000}, Patterns: []string{Repeated}, Schedulers: []string{Berth}, Pods: 1000, Budget: time.Second, Runs: 1, Output: "csv"}
		test.change(&o)
		err := o.validate()
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%+v: error is %v, want %q", o, err, test.err)
		}
	}
}

const (
	someNodes = "sn,cpu_milli,memory_mib,gpu,model\na,8000,8192,2,T4\nb,8000,8192,1,P100\n"
	somePods  = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\nx,1000,1024,1,1000,T4\ny,1000,1024,1,500,\nz,1000,1024,0,0,\n"
)

// A replay counts the GPUs that its decisions allocate.
func TestReplayAllocatesAndCounts(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "openb_node_list_gpu_node.csv", someNodes)
	write(t, dir, "pods.csv", somePods)
	results, err := Replay(t.Context(), ReplayOptions{
		Dir: dir, Pods: "pods.csv", Demand: 2, Schedulers: []string{Berth, KubeScheduler}, Runs: 2,
	}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 4 {
		t.Fatalf("%d results, want two policies with two schedulers", len(results))
	}
	for _, r := range results {
		// Whoever asks for a T4 gets no P100, and all the rest fits anywhere: two
		// GPUs of one and one of the other go in the end.
		if r.GPUs != 3 || r.AtEnd != 3 || r.AtFull <= 0 || r.AtFull > 3 || r.Decisions < 8 || r.PerSecond <= 0 {
			t.Errorf("%+v", r)
		}
	}
}

// A broken trace is an error that names file and line.
func TestReplaySaysWhatIsWrongWithTheTrace(t *testing.T) {
	tests := []struct{ nodes, pods, err string }{
		{"", somePods, "there is no row"},
		{"sn,gpu,cpu_milli,model\na,1,1,x\n", somePods, "there is no column memory_mib"},
		{strings.Replace(someNodes, "8192", "much", 1), somePods, `openb_node_list_gpu_node.csv: line 2: strconv.ParseInt: parsing "much"`},
		{someNodes, strings.Replace(somePods, "1,500", "1,half", 1), "pods.csv: line 3"},
		{someNodes, somePods + "short,1\n", "wrong number of fields"},
		{someNodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\nz,1,1,0,0,\n", "no pod asks for a GPU"},
	}
	for _, test := range tests {
		dir := t.TempDir()
		write(t, dir, "openb_node_list_gpu_node.csv", test.nodes)
		write(t, dir, "pods.csv", test.pods)
		err := turn{Scheduler: Berth, Replay: &trace{dir, "pods.csv", Spread, 1, 1}}.run(io.Discard)
		if err == nil || !strings.Contains(err.Error(), test.err) {
			t.Errorf("error is %v, want %q", err, test.err)
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The Markdown table has one row for each workload, and the reasons of those
// without figures.
func TestMarkdownHasOneRowAWorkload(t *testing.T) {
	r := newResult("A/B", "cluster")
	r.CreateBindCeiling, r.Threshold = 1000, 680
	r.Runs = []Run{
		{Scheduler: Berth, Nodes: 5, Pods: 10, PodsPerSecond: 900, CPUMillisPerPod: 0.2, CPUMillisToRest: 0.25, P99Millis: 300, PeakRSSMiB: 100},
		{Scheduler: KubeScheduler, Nodes: 5, Pods: 10, PodsPerSecond: 450, CPUMillisPerPod: 2, CPUMillisToRest: 2.5, P99Millis: 6000, PeakRSSMiB: 400},
	}
	r.finish()
	alone := newResult("C/D", "decide")
	alone.Runs = []Run{{Scheduler: Berth, Nodes: 5, Pods: 10, PodsPerSecond: 900}}
	var b bytes.Buffer
	writeMarkdown(&b, []*Result{r, alone}, []error{errors.New("E/F: one\ntwo")})
	lines := strings.Split(b.String(), "\n")
	if want := "| A/B | 5, 10 | 680 | 1000 | 900 / 450 | 2.00 | 90 % / 45 % | 0.2 / 2 | 0.1 | 0.25 / 2.5 | 0.1 | 300 / 6e+03 | 100 / 400 | 0.25 |"; lines[2] != want {
		t.Errorf("got  %s\nwant %s", lines[2], want)
	}
	if want := "| C/D | 5, 10 | - | - | 900 / - | - | - / - | - / - | - | - / - | - | - / - | - / - | - |"; lines[3] != want {
		t.Errorf("got  %s\nwant %s", lines[3], want)
	}
	for _, line := range lines[:4] {
		if n := strings.Count(line, "|"); n != 15 {
			t.Errorf("%d cells: %s", n-1, line)
		}
	}
	if !strings.HasSuffix(b.String(), "\n\n- E/F: one; two\n") {
		t.Errorf("what failed is not told: %s", b.String())
	}
}

// A signal ends the suite, and the finished workloads are written.
func TestSignalledSuiteWritesWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := own(t, threeNodes+sixPods)
	var out bytes.Buffer
	first := true
	err := measureAll(ctx, Options{
		Workloads: []string{"Own/Small", "Own/Small"},
		Dir:       dir, Mode: "decide", Output: "markdown", Schedulers: []string{Berth}, Runs: 1,
	}, &out, func(format string, _ ...any) {
		if strings.Contains(format, "pods/s") && first { // the first is measured
			first = false
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || strings.Count(out.String(), "| Own/Small |") != 1 {
		t.Errorf("error %v, written:\n%s", err, out.String())
	}
}

// One workload that the mode cannot run, or that is not there, does not stop
// the next.
func TestWorkloadsRunOneAfterTheOther(t *testing.T) {
	dir := own(t, threeNodes+sixPods)
	write(t, dir, "churn.yaml", "- name: Churned\n  workloadTemplate:\n"+threeNodes+
		"  - {opcode: churn, mode: recreate, number: 1, templatePaths: [templates/service.yaml]}\n"+
		"  - {opcode: createPods, count: 1, collectMetrics: true}\n"+
		"  workloads:\n  - name: Small\n    params: {nodes: 3}\n")
	var out bytes.Buffer
	err := measureAll(t.Context(), Options{
		Workloads: []string{"Churned/Small", "No/Such", "Own/Small"}, Pods: 2,
		Dir: dir, Mode: "decide", Output: "markdown", Schedulers: []string{Berth}, Runs: 1,
	}, &out, quiet)
	if err == nil || !strings.Contains(err.Error(), "No/Such") || strings.Contains(err.Error(), "Churned") {
		t.Errorf("error %v, want one of No/Such only", err)
	}
	for _, want := range []string{"| Own/Small | 3, 2 |", "- this mode cannot run the workload: Churned/Small: ", "- No/Such: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
}
