package bench

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

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

// Every workload of kube-scheduler's suite is understood, but those with one of these
// reasons. The suite itself cannot run those without a parameter.
func TestTheSuiteIsUnderstood(t *testing.T) {
	all, err := List(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"Go code of the suite adds features":        4,
		"no pods are measured":                      2,
		"there is no parameter $measurePods":        2,
		"feature gate GenericWorkload":              41,
		"feature gate DRAWorkloadResourceClaims":    6,
		"feature gate DRADeviceCompatibilityGroups": 9,
		"feature gate DRAListTypeAttributes":        2,
	}
	not := map[string]int{}
	for _, k := range all {
		if k.Err == nil {
			continue
		}
		clear := false
		for reason := range want { // any order: each is another text
			if strings.Contains(k.Err.Error(), reason) {
				clear = true
				not[reason]++
			}
		}
		if !clear || !strings.Contains(k.Err.Error(), k.Name) {
			t.Errorf("%s: unclear: %v", k.Name, k.Err)
		}
	}
	if !maps.Equal(not, want) || len(all) != 267 {
		t.Errorf("%d workloads, of which these are not understood: %v, want 267 and %v", len(all), not, want)
	}
}

// What --suite names is there and understood: all that are measured make their
// objects, in whatever mode.
func TestSuiteNamesOneWorkloadOfEachTestCase(t *testing.T) {
	names, err := Suite()
	if err != nil {
		t.Fatal(err)
	}
	cases, decided := map[string]bool{}, 0
	for _, name := range names {
		test, _, _ := strings.Cut(name, "/")
		if cases[test] {
			t.Errorf("%s: a second one of its test case", name)
		}
		cases[test] = true
		w, err := Load(filepath.Join("..", "..", "bench"), name)
		if err != nil {
			t.Error(err)
			continue
		}
		w.limit(7)
		for _, s := range w.Steps {
			switch s := s.(type) {
			case *CreateNodes:
				s.Count = min(s.Count, 20)
			case *CreatePods:
				if s.Count = min(s.Count, 20); s.Measure && s.Count > 7 {
					t.Errorf("%s: %d pods are measured after a limit of 7", name, s.Count)
				}
			case *CreateObjects:
				s.Count = min(s.Count, 20)
			}
		}
		switch o, err := w.ceilingObjects(); {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case name == memory && (len(o.there) != 20 || o.there[0].Spec.NodeName != o.nodes[0].Name || len(o.pods) != 7 || len(o.again) != 7):
			t.Errorf("%s: the ceiling is measured with %d pods that are there, on %q, and %d and %d measured ones, want 20, 7 and 7",
				name, len(o.there), o.there[0].Spec.NodeName, len(o.pods), len(o.again))
		}
		if _, err := w.scene(); err == nil {
			decided++
		} else if !strings.Contains(err.Error(), "--mode cluster") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"SchedulingBasic/5000Nodes_10000Pods", "SchedulingNodeAffinity/5000Nodes_10000Pods",
		"SchedulingCSIPVs/5000Nodes_5000Pods", "SchedulingWithResourceClaimTemplate/5000pods_500nodes", "EventHandlingPodDelete/50Nodes_500Pods", memory} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is left out of %v", name, names)
		}
	}
	if len(names) != 48 || decided != 33 {
		t.Errorf("%d workloads, of which mode decide runs %d, want 48 and 33", len(names), decided)
	}
}

// own writes a suite of one test case into a directory and returns it.
func own(t *testing.T, ops string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"own.yaml":               "- name: Own\n  defaultPodTemplatePath: templates/pod.yaml\n  workloadTemplate:\n" + ops + "\n  workloads:\n  - name: Small\n    params: {nodes: 3, pods: 6, half: 0.5, batch: 2, steady: true, duration: 3s}\n",
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
		"templates/unknown.yaml": "metadata: {name: \"{{Sqrt .Index}}\"}\n",
		"templates/zero.yaml":    "metadata: {name: \"p{{DivideInt .Index .Index}}\"}\n",
		"templates/numbered.yaml": "metadata: {name: \"n-{{.Index}}\", labels: {pair: \"{{DivideInt .Index 2}}\", odd: \"{{Mod .Index 2}}\", of: \"{{.Count}}\"}}\n" +
			"spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}\n",
		"templates/given.yaml": "metadata: {name: \"g-{{.Index}}\", annotations: {given: {{print .pods .default .none .text | JSON}}, list: '{{.list | JSON}}'}}\n" +
			"spec: {priority: {{AddInt 1 (or .count 1)}}, containers: [{{range (or .count 1) | Int}}{name: \"c{{.}}\", image: i},{{end}}]}\n",
		"templates/driven.yaml": "metadata: {name: \"driven-{{.Index}}\"}\nstatus: {capacity: {cpu: 4, pods: 110}}\n",
		"templates/volume.yaml": "spec: {accessModes: [ReadOnlyMany], capacity: {storage: 1Gi}, csi: {driver: ebs.csi.aws.com}, persistentVolumeReclaimPolicy: Retain}\n",
		"templates/bound.yaml":  "metadata: {annotations: {pv.kubernetes.io/bind-completed: \"true\"}}\nspec: {accessModes: [ReadOnlyMany], resources: {requests: {storage: 1Gi}}}\n",
		"templates/slice.yaml": "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: \"slice-{{.Index}}\"}\nspec: {driver: test.example.com, nodeName: \"driven-{{.Index}}\", " +
			"pool: {name: \"driven-{{.Index}}\", resourceSliceCount: 1}, devices: [{name: d0}, {name: d1}, {name: d2}, {name: d3}]}\n",
		"templates/class.yaml":     "apiVersion: resource.k8s.io/v1beta2\nkind: DeviceClass\nmetadata: {name: test-class}\nspec: {selectors: [{cel: {expression: device.driver == \"test.example.com\"}}]}\n",
		"templates/extended.yaml":  "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpus}\nspec: {extendedResourceName: example.com/gpu, selectors: [{cel: {expression: device.driver == \"test.example.com\"}}]}\n",
		"templates/gpu.yaml":       "spec: {containers: [{name: c, image: i, resources: {requests: {example.com/gpu: 1}, limits: {example.com/gpu: 1}}}]}\n",
		"templates/device.yaml":    "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: \"claim-{{.Index}}\"}\nspec: {devices: {requests: [{name: r, exactly: {deviceClassName: test-class}}]}}\n",
		"templates/devices.yaml":   "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: two}\nspec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: test-class, count: 2}}]}}}\n",
		"templates/templated.yaml": "spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: i, resources: {claims: [{name: d}]}}], resourceClaims: [{name: d, resourceClaimTemplateName: two}]}\n",
		"templates/shared.yaml":    "spec: {containers: [{name: c, image: i, resources: {claims: [{name: d}]}}], resourceClaims: [{name: d, resourceClaimName: \"claim-{{DivideInt .Index 3}}\"}]}\n",
		"templates/held.yaml":      "apiVersion: v1\nkind: Pod\nmetadata: {name: \"held-{{.Index}}\"}\nspec: {schedulingGates: [{name: example.com/hold}], containers: [{name: c, image: i}]}\n",
		"templates/released.yaml":  "apiVersion: v1\nkind: Pod\nmetadata: {name: \"held-{{.Index}}\"}\nspec: {containers: [{name: c, image: i}]}\n",
	} {
		write(t, dir, name, text)
	}
	return dir
}

const (
	threeNodes = "  - {opcode: createNodes, countParam: $nodes}\n"
	sixPods    = "  - {opcode: createPods, countParam: $pods, collectMetrics: true}"
)

// Each opcode is read with its fields and parameters.
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
    nodeAllocatableStrategy: {nodeAllocatable: {example.com/gpu: "8"}, csiNodeAllocatable: {ebs.csi.aws.com: {count: 39}}, migratedPlugins: [a, b]}
  - {opcode: createNamespaces, prefix: sets, count: 2}
  - {opcode: createPodSets, count: 2, namespacePrefix: sets, createPodsOp: {opcode: createPods, count: 2}}
  - {opcode: createPods, count: 1, skipWaitToCompletion: true, podTemplatePath: templates/large.yaml}
  - {opcode: barrier, stageRequirement: Attempted}
  - {opcode: deletePods, namespace: sets-0, deletePodsPerSecond: 5, skipWaitToCompletion: true}
  - {opcode: churn, mode: recreate, number: 1, templatePaths: [templates/service.yaml]}
  - {opcode: createAny, namespace: services, templatePath: templates/service.yaml}
`+sixPods+`
  - opcode: createPods
    namespace: filled
    count: 3
    podTemplatePath: templates/numbered.yaml
    persistentVolumeTemplatePath: templates/volume.yaml
    persistentVolumeClaimTemplatePath: templates/bound.yaml
    steadyStateParam: $steady
    durationParam: $duration
  - {opcode: createAny, count: 2, templatePath: templates/slice.yaml}
  - {opcode: createAny, namespace: filled, countParam: $nodes, templatePath: templates/device.yaml}
`), "Own/Small")
	if err != nil {
		t.Fatal(err)
	}
	got := described(t, w)
	want := []string{
		"node node-0-00000 host=node-0-00000 zone=a own= gpu=0",
		"node node-0-00001 host=node-0-00001 zone=b own= gpu=0",
		"node node-0-00002 host=node-0-00002 zone=a own= gpu=0",
		"node node-1-00000 host=node-1-00000 zone= own=node-1-00000 gpu=0",
		"node node-1-00001 host=node-1-00001 zone= own=node-1-00001 gpu=0",
		"node the-node host=the-node zone= own= gpu=8",
		"CSINode the-node ebs.csi.aws.com=39 map[storage.alpha.kubernetes.io/migrated-plugins:a,b]",
		"CreateNamespaces",
		"pod sets-0/pod-4-0-00000 measure=false nowait=false",
		"pod sets-0/pod-4-0-00001 measure=false nowait=false",
		"pod sets-1/pod-4-1-00000 measure=false nowait=false",
		"pod sets-1/pod-4-1-00001 measure=false nowait=false",
		"pod namespace-5/pod-5-00000 measure=false nowait=true",
		"Barrier", "DeletePods",
		"churn in namespace-8 every 500ms of Service",
		"Service s- in services",
	}
	for i := range 6 {
		want = append(want, fmt.Sprintf("pod namespace-10/pod-10-%05d measure=true nowait=false", i))
	}
	for i := range 3 {
		want = append(want, fmt.Sprintf("pod filled/n-%d measure=false nowait=false", i))
	}
	want = append(want,
		"n-0 has pvc-0, which is filled-vol-0 of pvc-0, map[odd:0 of:3 pair:0 signature:signature-label-0] for 3s",
		"n-1 has pvc-1, which is filled-vol-1 of pvc-1, map[odd:1 of:3 pair:0 signature:signature-label-1] for 3s",
		"n-2 has pvc-2, which is filled-vol-2 of pvc-2, map[odd:0 of:3 pair:1 signature:signature-label-2] for 3s",
		"ResourceSlice slice-0 in ", "ResourceSlice slice-1 in ",
		"ResourceClaim claim-0 in filled", "ResourceClaim claim-1 in filled", "ResourceClaim claim-2 in filled")
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A template sees the templateParams of its step: values, parameters of the workload, and
// the defaults of those that it does not have. Pods in a row share a signature.
func TestTemplateParams(t *testing.T) {
	w, err := Load(own(t, `
  - opcode: createPods
    count: 3
    collectMetrics: true
    podTemplatePath: templates/given.yaml
    signatureBatchSizeParam: $batch
    templateParams: {pods: $pods, default: $none|7, none: $none|, text: " <a>", list: "$none|[a, 1]", count: 2.5, Index: 9}
  - {opcode: createPods, count: 2, podTemplatePath: templates/given.yaml}
  - {opcode: createPods, count: 1}
`), "Own/Small")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range w.Steps {
		pods, err := s.(*CreatePods).All()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pods {
			priority := int32(0)
			if p.Spec.Priority != nil {
				priority = *p.Spec.Priority
			}
			got = append(got, fmt.Sprintf("%s %s %s %d %d %v", p.Name, p.Annotations["given"], p.Annotations["list"], priority, len(p.Spec.Containers), p.Labels))
		}
	}
	want := []string{
		"g-0 6 7 <nil> <a> [\"a\",1] 3 2 map[signature:signature-label-0]",
		"g-1 6 7 <nil> <a> [\"a\",1] 3 2 map[signature:signature-label-0]",
		"g-2 6 7 <nil> <a> [\"a\",1] 3 2 map[signature:signature-label-1]",
		"g-0 <nil> <nil> <nil> <nil> null 2 1 map[signature:signature-label-0]",
		"g-1 <nil> <nil> <nil> <nil> null 2 1 map[signature:signature-label-1]",
		"pod-2-00000   0 1 map[signature:signature-label-0]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The functions of templates reckon as the suite's do.
func TestArithmetic(t *testing.T) {
	for text, want := range map[string]string{
		`{{AddInt 1 "2" 3.75}}`: "6", `{{AddFloat 1 2.5}}`: "3.5", `{{SubtractInt 1 2.5}}`: "-1", `{{SubtractFloat 1 2.5}}`: "-1.5",
		`{{MultiplyInt 3 2.5 1}}`: "7", `{{MultiplyFloat 3 0.5}}`: "1.5", `{{DivideInt 7 2}}`: "3", `{{DivideFloat 7 2}}`: "3.5",
		`{{Mod 7.9 4.2}}`: "3", `{{Int 7.9}}`: "7", `{{JSON "<&>"}}`: `"<&>"`, `{{JSON nil}}`: "null",
		`{{Mod 7 0.5}}`: "division by zero", `{{DivideFloat 0 0}}`: "division by zero", `{{Int "x"}}`: `parsing "x"`,
	} {
		var b strings.Builder
		made, err := template.New("").Funcs(arithmetic).Parse(text)
		if err == nil {
			err = made.Execute(&b, nil)
		}
		if got := b.String(); got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

// described says what the steps make.
func described(t *testing.T, w *Workload) []string {
	var got []string
	for _, s := range w.Steps {
		switch s := s.(type) {
		case *CreateNodes:
			nodes, err := s.All()
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range nodes {
				gpu := n.Status.Allocatable["example.com/gpu"]
				got = append(got, fmt.Sprintf("node %s host=%s zone=%s own=%s gpu=%s", n.Name, n.Labels[v1.LabelHostname], n.Labels["zone"], n.Labels["own"], gpu.String()))
			}
			for _, c := range s.CSINodes(nodes) {
				got = append(got, fmt.Sprintf("CSINode %s %s=%d %v", c.Name, c.Spec.Drivers[0].Name, *c.Spec.Drivers[0].Allocatable.Count, c.Annotations))
			}
		case *CreateObjects:
			objects, err := s.All()
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects {
				got = append(got, fmt.Sprintf("%s %s%s in %s", s.Kind, o.GetGenerateName(), o.GetName(), s.Namespace))
			}
		case *CreatePods:
			pods, err := s.All()
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range pods {
				got = append(got, fmt.Sprintf("pod %s/%s measure=%t nowait=%t", p.Namespace, p.Name, s.Measure, s.NoWait))
			}
			claims, volumes, err := s.Volumes()
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range claims {
				v, p := volumes[i], pods[i]
				got = append(got, fmt.Sprintf("%s has %s, which is %s of %s, %v for %s", p.Name, p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName,
					c.Spec.VolumeName, v.Spec.ClaimRef.Name, p.Labels, s.Steady))
			}
		case *Churn:
			got = append(got, fmt.Sprintf("churn in %s every %s of %s", s.Namespace, s.Interval, s.Objects[0].Kind))
		default:
			got = append(got, strings.TrimPrefix(fmt.Sprintf("%T", s), "*bench."))
		}
	}
	return got
}

// A workload that cannot be read is an error that gives the step and the field.
func TestLoadSaysWhatIsWrong(t *testing.T) {
	tests := []struct{ ops, err string }{
		{"  - {opcode: fly}", "step 0: the opcode fly is not understood"},
		{"  - {opcode: createNodes, count: 2, nodeTemplatePath: templates/named.yaml}", "2 nodes cannot all be named the-node"},
		{"  - {opcode: createNodes, countParam: $none}", "there is no parameter $none"},
		{"  - {opcode: createNodes, countParam: $half}", "parameter $half is not a count"},
		{"  - {opcode: createNodes, count: 1, taints: {}}", `the field "taints" is not understood`},
		{"  - {opcode: createNodes, count: 1, nodeAllocatableStrategy: {nodeAllocatable: {gpu: many}}}", "gpu: quantities must match"},
		{"  - {opcode: createNodes, count: 1, labelNodePrepareStrategy: {labelKey: zone}}", "has no labelValues"},
		{"  - {opcode: createPods, count: 1, steadyState: true}", "duration 0s: must be more than 0 in a steady state"},
		{"  - {opcode: createPods, count: 1, steadyState: true, durationParam: $none}", "parameter $none: time: invalid duration"},
		{"  - {opcode: createPods, count: 1, steadyStateParam: $half}", "parameter $half is neither true nor false"},
		{"  - {opcode: createPods, count: 1, persistentVolumeClaimTemplatePath: templates/claim.yaml}", "no template is named"},
		{"  - {opcode: createPods, count: 1, podTemplatePath: none.yaml}", "none.yaml: no such file"},
		{"  - {opcode: createPods, count: 1, podTemplatePath: templates/unknown.yaml}", `unknown.yaml:1: function "Sqrt" not defined`},
		{"  - {opcode: createPods, count: 1, podTemplatePath: templates/zero.yaml}", "division by zero"},
		{"  - {opcode: createPods, count: 1, podTemplatePath: templates/given.yaml, templateParams: {cpu: $none}}", "templateParams: there is no parameter $none"},
		{"  - {opcode: createPods, count: 1, podTemplatePath: templates/given.yaml, templateParams: {cpu: '$none|['}}", "templateParams: the default of $none: "},
		{"  - {opcode: createPods, count: 1, podTemplatePath: templates/given.yaml, templateParams: {count: many}}", `parsing "many"`},
		{"  - {opcode: createPods, count: 1, signatureBatchSizeParam: $half}", "parameter $half is not a count"},
		{"  - {opcode: createPods, count: x}", "cannot unmarshal string"},
		{"  - {opcode: createPodSets, count: 1}", "createPodsOp is missing"},
		{"  - {opcode: churn, mode: spin}", `mode "spin": must be create or recreate`},
		{"  - {opcode: churn, mode: recreate}", "number 0: must be at least 1"},
		{"  - {opcode: churn, mode: create, templatePaths: [templates/claim.yaml]}", "the kind PersistentVolumeClaim is not understood"},
		{"  - {opcode: barrier, stageRequirement: Never}", `stageRequirement "Never"`},
		{"  - {opcode: deletePods, deletePodsPerSecond: -1}", "-1 is less than 0"},
		{"  - {opcode: updateAny, updatePerSecond: -1}", "-1 is less than 0"},
		{"  - {opcode: createNodes, count: 1}", "no pods are measured"},
		{"  - {opcode: startCollectingMetrics, namespaces: [a]}\n  - {opcode: createPods, count: 1, namespace: b}\n  - {opcode: stopCollectingMetrics}", "no pods are measured"},
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

// A wrong flag of bench is an error that names the flag.
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
		{func(o *Options) { o.Schedulers = nil }, "must name at least one scheduler"},
		{func(o *Options) { o.Gates = "SchedulerPreQueueingHints=true,InterPodAffinityHostnameFastPath=true" }, ""},
		{func(o *Options) { o.Gates = "NoSuchGate=true" }, "--kube-scheduler-gates: unrecognized feature gate: NoSuchGate"},
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

// A workload knows the threshold of Kubernetes' own runs, be it written as a number or by
// topic.
func TestThresholds(t *testing.T) {
	for name, want := range map[string]float64{
		"SchedulingBasic/5000Nodes_10000Pods":                   680,
		"SchedulingWithResourceClaimTemplate/5000pods_500nodes": 56,
		"SchedulingBasic/500Nodes":                              0,
	} {
		w, err := Load(t.TempDir(), name)
		if err != nil {
			t.Fatal(err)
		}
		if w.Threshold != want {
			t.Errorf("%s: threshold %v, want %v", name, w.Threshold, want)
		}
	}
}
