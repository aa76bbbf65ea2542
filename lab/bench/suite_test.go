package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/lab/child"
)

// TestMain lets the test binary host the control plane and the turns.
func TestMain(m *testing.M) {
	child.RunIfAsked()
	if len(os.Args) == 3 && os.Args[1] == "bench" {
		command := NewCommand()
		command.SetArgs(os.Args[2:])
		command.SilenceUsage, command.SilenceErrors = true, true
		if err := command.Execute(); err != nil {
			fmt.Fprintln(os.Stderr, "berth-lab:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestEverySuiteWorkloadIsUnderstoodOrSaysWhyNot(t *testing.T) {
	all, err := List(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	understood, not := map[string]bool{}, map[string]bool{}
	for _, k := range all {
		test, _, _ := strings.Cut(k.Name, "/")
		if k.Err == nil {
			understood[test] = true
			continue
		}
		not[test] = true
		if text := k.Err.Error(); !strings.Contains(text, k.Name) || !(strings.Contains(text, "not understood") || strings.Contains(text, "Go code") || strings.Contains(text, "collects metrics")) {
			t.Errorf("%s: unclear: %v", k.Name, k.Err)
		}
	}
	for _, test := range []string{
		"SchedulingBasic", "SchedulingNodeAffinity", "SchedulingDaemonset", "SchedulingSecrets",
		"TopologySpreading", "PreferredTopologySpreading", "DefaultTopologySpreading",
		"SchedulingWithNodeInclusionPolicy", "SchedulingWhileGated", "Unschedulable", "SchedulingWithMixedChurn",
		"PreemptionBasic", "PreemptionAsync", "SchedulingPodAntiAffinity", "SchedulingRequiredPodAntiAffinityWithNSSelector",
	} {
		if !understood[test] || not[test] {
			t.Errorf("%s: some understood: %t, some not: %t", test, understood[test], not[test])
		}
	}
	for _, test := range []string{"SchedulingCSIPVs", "EventHandlingPodDelete", "SchedulingWithResourceClaimTemplate", "NodeDeclaredFeaturesEnabled"} {
		if understood[test] || !not[test] {
			t.Errorf("%s is understood, or not there", test)
		}
	}
}

// What --suite names is there and understood.
func TestPlacementWorkloadsAreUnderstood(t *testing.T) {
	for _, name := range Placement {
		w, err := Load(filepath.Join("..", "..", "bench"), name)
		if err != nil {
			t.Error(err)
			continue
		}
		if w.limit(7); w.Measured() != 7 {
			t.Errorf("%s: %d pods are measured after a limit of 7", name, w.Measured())
		}
	}
}

// own writes a suite of one test case into a directory and returns it.
func own(t *testing.T, ops string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"own.yaml":               "- name: Own\n  defaultPodTemplatePath: templates/pod.yaml\n  workloadTemplate:\n" + ops + "\n  workloads:\n  - name: Small\n    params: {nodes: 3, pods: 6, half: 0.5}\n",
		"templates/pod.yaml":     "metadata: {generateName: p-}\nspec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}\n",
		"templates/large.yaml":   "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 9}}}]}\n",
		"templates/named.yaml":   "metadata: {name: the-node}\nstatus: {capacity: {cpu: 1, pods: 10}}\n",
		"templates/big.yaml":     "metadata: {name: big}\nstatus: {capacity: {cpu: 100, memory: 320Gi, pods: 110}}\n",
		"templates/served.yaml":  "metadata: {labels: {a: b}}\nspec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}\n",
		"templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {generateName: s-}\nspec: {selector: {a: b}, ports: [{port: 80}]}\n",
		"templates/gated.yaml":   "spec: {schedulingGates: [{name: example.com/hold}], containers: [{name: c, image: i}]}\n",
		"templates/light.yaml":   "metadata: {labels: {light: \"yes\"}}\nspec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: i}]}\n",
		"templates/churned.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {generateName: churned-}\nspec: {priority: 10, containers: [{name: c, image: i}]}\n",
		"templates/claim.yaml":   "apiVersion: v1\nkind: PersistentVolumeClaim\n",
		"templates/action.yaml":  "metadata: {name: \"{{.Index}}\"}\n",
	} {
		write(t, dir, name, text)
	}
	return dir
}

const (
	threeNodes = "  - {opcode: createNodes, countParam: $nodes}\n"
	sixPods    = "  - {opcode: createPods, countParam: $pods, collectMetrics: true}"
)

func TestLoadReadsSteps(t *testing.T) {
	w, err := Load(own(t, `
  - opcode: createNodes
    count: 3
    labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}
  - opcode: createNodes
    count: 2
    uniqueNodeLabelStrategy: {labelKey: own}
  - opcode: createNodes
    count: 1
    nodeTemplatePath: templates/named.yaml
    nodeAllocatableStrategy: {nodeAllocatable: {example.com/gpu: "8"}}
  - {opcode: createNamespaces, prefix: sets, count: 2}
  - {opcode: createPodSets, count: 2, namespacePrefix: sets, createPodsOp: {opcode: createPods, count: 2}}
  - {opcode: createPods, count: 1, skipWaitToCompletion: true, podTemplatePath: templates/large.yaml}
  - {opcode: barrier, stageRequirement: Attempted}
  - {opcode: deletePods, namespace: sets-0, deletePodsPerSecond: 5, skipWaitToCompletion: true}
  - {opcode: churn, mode: recreate, number: 1, templatePaths: [templates/service.yaml]}
  - {opcode: createAny, namespace: services, templatePath: templates/service.yaml}
`+sixPods), "Own/Small")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range w.Steps {
		switch s := s.(type) {
		case *CreateNodes:
			for n := range s.All() {
				gpu := n.Status.Allocatable["example.com/gpu"]
				got = append(got, fmt.Sprintf("node %s host=%s zone=%s own=%s gpu=%s", n.Name, n.Labels[v1.LabelHostname], n.Labels["zone"], n.Labels["own"], gpu.String()))
			}
		case *CreatePods:
			for _, p := range s.All() {
				got = append(got, fmt.Sprintf("pod %s/%s measure=%t nowait=%t", p.Namespace, p.Name, s.Measure, s.NoWait))
			}
		case *Churn:
			got = append(got, fmt.Sprintf("churn in %s every %s of %s", s.Namespace, s.Interval, s.Objects[0].GetKind()))
		default:
			got = append(got, strings.TrimPrefix(fmt.Sprintf("%T", s), "*bench."))
		}
	}
	want := []string{
		"node node-0-00000 host=node-0-00000 zone=a own= gpu=0",
		"node node-0-00001 host=node-0-00001 zone=b own= gpu=0",
		"node node-0-00002 host=node-0-00002 zone=a own= gpu=0",
		"node node-1-00000 host=node-1-00000 zone= own=node-1-00000 gpu=0",
		"node node-1-00001 host=node-1-00001 zone= own=node-1-00001 gpu=0",
		"node the-node host=the-node zone= own= gpu=8",
		"CreateNamespaces",
		"pod sets-0/pod-4-0-00000 measure=false nowait=false",
		"pod sets-0/pod-4-0-00001 measure=false nowait=false",
		"pod sets-1/pod-4-1-00000 measure=false nowait=false",
		"pod sets-1/pod-4-1-00001 measure=false nowait=false",
		"pod namespace-5/pod-5-00000 measure=false nowait=true",
		"Barrier", "DeletePods",
		"churn in namespace-8 every 500ms of Service",
		"CreateObjects",
	}
	for i := range 6 {
		want = append(want, fmt.Sprintf("pod namespace-10/pod-10-%05d measure=true nowait=false", i))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	tests := []struct{ ops, err string }{
		{"  - {opcode: fly}", "step 0: the opcode fly is not understood"},
		{"  - {opcode: createNodes, count: 2, nodeTemplatePath: templates/named.yaml}", "2 nodes cannot all be named the-node"},
		{"  - {opcode: createNodes, countParam: $none}", "parameter $none is not a count"},
		{"  - {opcode: createNodes, countParam: $half}", "parameter $half is not a count"},
		{"  - {opcode: createNodes, count: 1, nodeAllocatableStrategy: {csiNodeAllocatable: {}}}", `the field "csiNodeAllocatable" is not understood`},
		{"  - {opcode: createNodes, count: 1, nodeAllocatableStrategy: {nodeAllocatable: {gpu: many}}}", "gpu: quantities must match"},
		{"  - {opcode: createNodes, count: 1, labelNodePrepareStrategy: {labelKey: zone}}", "has no labelValues"},
		{"  - {opcode: createPods, count: 1, steadyState: true}", `the field "steadyState" is not understood`},
		{"  - {opcode: createPods, count: 1, podTemplatePath: none.yaml}", "none.yaml: no such file"},
		{"  - {opcode: createPods, count: 1, podTemplatePath: templates/action.yaml}", "action.yaml: template actions are not understood"},
		{"  - {opcode: createPods, count: x}", "cannot unmarshal string"},
		{"  - {opcode: createPodSets, count: 1}", "createPodsOp is missing"},
		{"  - {opcode: churn, mode: spin}", `mode "spin": must be create or recreate`},
		{"  - {opcode: churn, mode: recreate}", "number 0: must be at least 1"},
		{"  - {opcode: churn, mode: create, templatePaths: [templates/claim.yaml]}", "the kind PersistentVolumeClaim is not understood"},
		{"  - {opcode: barrier, stageRequirement: Never}", `stageRequirement "Never"`},
		{"  - {opcode: deletePods, deletePodsPerSecond: -1}", "-1 is less than 0"},
		{"  - {opcode: createNodes, count: 1}", "no createPods step collects metrics"},
	}
	for _, test := range tests {
		_, err := Load(own(t, test.ops), "Own/Small")
		if err == nil || !strings.Contains(err.Error(), test.err) || !strings.Contains(err.Error(), "Own/Small") {
			t.Errorf("%s: error is %v, want %q", test.ops, err, test.err)
		}
	}
	if _, err := Load(t.TempDir(), "Own/Small"); err == nil || !strings.Contains(err.Error(), "--list") {
		t.Errorf("an unknown workload: %v", err)
	}
	if _, err := Load("nowhere", "Own/Small"); err == nil || !strings.Contains(err.Error(), "own workloads, nowhere, was not found: --workloads") {
		t.Error(err)
	}
	var listed strings.Builder
	if err := list(&listed, "nowhere"); err != nil || !strings.Contains(listed.String(), "Note: the directory of Berth's own workloads, nowhere, was not found: --workloads") {
		t.Errorf("%v: %s", err, listed.String())
	}
	if _, err := Load(t.TempDir(), "SchedulingBasic/Small"); err == nil || !strings.Contains(err.Error(), "SchedulingBasic/5000Nodes_10000Pods") {
		t.Errorf("an unknown workload of a known test case: %v", err)
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		change func(*Options)
		err    string
	}{
		{func(*Options) {}, ""},
		{func(o *Options) { o.Workloads = nil }, "--workload is missing"},
		{func(o *Options) { o.Workloads, o.List = nil, true }, ""},
		{func(o *Options) { o.Workloads, o.Suite = nil, true }, ""},
		{func(o *Options) { o.Suite, o.CPUProfile = true, "x" }, "for one workload"},
		{func(o *Options) { o.Pods = -1 }, "--pods -1"},
		{func(o *Options) { o.Mode = "fast" }, `--mode "fast"`},
		{func(o *Options) { o.Output = "xml" }, `--output "xml"`},
		{func(o *Options) { o.Runs = 0 }, "--runs 0"},
		{func(o *Options) { o.Schedulers = []string{"cron"} }, "--schedulers cron"},
		{func(o *Options) { o.Schedulers = []string{Berth, Berth} }, "once"},
		{func(o *Options) { o.Schedulers = nil }, "there is none"},
		{func(o *Options) { o.Mode, o.MemProfile = "cluster", "x" }, "--mode decide"},
		{func(o *Options) { o.Mode, o.Binary = "cluster", "/no/such/file" }, "the scheduler to run"},
	}
	for _, test := range tests {
		o := Options{Workloads: []string{"a/b"}, Mode: "decide", Output: "table", Runs: 1, Schedulers: []string{Berth, KubeScheduler}}
		test.change(&o)
		err := o.validate()
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%+v: error is %v, want %q", o, err, test.err)
		}
	}
}
