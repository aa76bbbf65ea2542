package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The answer about each pod of one cluster equals its golden file, in each form,
// and the exit status is that of its verdict.
func TestWhyOutputs(t *testing.T) {
	for pod, want := range map[string]int{"web": exitPlaced, "big": exitMisconfigured, "gated": exitWaiting, "stranger": exitWaiting, "kube-system/running": exitPlaced} {
		for _, form := range []string{"json", "text", "wide"} {
			code, got, errs := berth("", "why", "-f", "testdata/small.yaml", pod, "-o", form)
			if code != want || errs != "" {
				t.Fatalf("%s: exit status %d, want %d; stderr %q", pod, code, want, errs)
			}
			golden(t, "why-"+filepath.Base(pod)+"."+form, got)
		}
	}
}

// The ranking of all pending pods equals its golden file.
func TestWhyAll(t *testing.T) {
	for _, form := range []string{"json", "text", "wide"} {
		code, got, errs := berth("", "why", "-f", "testdata/small.yaml", "--all", "-o", form)
		if code != exitWaiting || errs != "" {
			t.Fatalf("exit status %d, want %d; stderr %q", code, exitWaiting, errs)
		}
		golden(t, "why-all."+form, got)
	}
	if code, got, _ := berth("", "why", "-f", "testdata/small.yaml", "--all", "--config", "testdata/none.yaml"); code != exitInvalid || got != "" {
		t.Errorf("without the configuration: exit status %d, stdout %q", code, got)
	}
}

// The text about twenty pods, each stuck for a reason of its own, equals its golden
// file.
func TestWhyStuck(t *testing.T) {
	var all strings.Builder
	pods := stuckPods(t)
	for _, name := range pods {
		_, out, errs := berth("", "why", "-f", "testdata/stuck.yaml", name)
		if errs != "" {
			t.Errorf("%s: stderr %q", name, errs)
		}
		all.WriteString("$ berth why -f stuck.yaml " + name + "\n" + out + "\n")
	}
	if len(pods) != 20 {
		t.Errorf("%d pods, want 20", len(pods))
	}
	_, out, errs := berth("", "why", "-f", "testdata/stuck.yaml", "--all")
	if errs != "" {
		t.Errorf("--all: stderr %q", errs)
	}
	all.WriteString("$ berth why -f stuck.yaml --all\n" + out)
	golden(t, "stuck.text", all.String())
}

// A pod that may go to one node alone, as a DaemonSet's, is answered about like any
// other.
func TestWhyOneNodeAlone(t *testing.T) {
	pod := strings.Replace(podYAML, "{containers: [{name: c}]}", "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [a]}]}]}}}, containers: [{name: c, resources: {requests: {cpu: 5}}}]}", 1)
	code, out, errs := berth(nodeYAML+"---\n"+strings.Replace(nodeYAML, "name: a", "name: b", 1)+"---\n"+pod, "why", "-f", "-", "p")
	if code != exitMisconfigured || errs != "" || !strings.Contains(out, `lower the CPU request of container "c" from 5 to 4; then it goes to a`) {
		t.Errorf("exit status %d, stderr %q:\n%s", code, errs, out)
	}
}

// A claim that is written without its namespace, as in a manifest, can be changed by a
// fix like any other.
func TestWhyClaimWithoutNamespace(t *testing.T) {
	const claim = "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {volumeName: v, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	const volume = "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], claimRef: {namespace: default, name: data}, hostPath: {path: /x}}\n"
	pod := strings.Replace(podYAML, "{containers: ", "{volumes: [{name: v, persistentVolumeClaim: {claimName: data}}], containers: ", 1)
	if _, out, _ := berth(nodeYAML+claim+volume+"---\n"+pod, "why", "-f", "-", "p"); !strings.Contains(out, "(claim data names volume v and is not bound yet)") {
		t.Errorf("a claim that is not bound:\n%s", out)
	}
	for name, namespace := range map[string]string{"without": "", "with": ", namespace: default"} {
		code, out, errs := berth(nodeYAML+strings.Replace(claim, "name: data", "name: data"+namespace, 1)+volume+"---\n"+pod, "why", "-f", "-", "p")
		if code != exitMisconfigured || errs != "" || !strings.Contains(out, "1. bind the claim data (the volume controller does); then it goes to a\n") {
			t.Errorf("%s: exit status %d, stderr %q:\n%s", name, code, errs, out)
		}
	}
}

// The first line about a pod that has a node says whether it runs there.
func TestWhyPlaced(t *testing.T) {
	on := func(node, more string) string {
		return nodeYAML + "---\n" + strings.Replace(podYAML, "{containers: ", "{nodeName: "+node+", containers: ", 1) + more
	}
	for want, in := range map[string]string{
		"default/p runs on a. No other node is feasible.\n":      on("a", ""),
		"default/p has ended on a: its phase is Succeeded.\n":    on("a", "status: {phase: Succeeded}\n"),
		"default/p is bound to b, and there is no such node. It": on("b", ""),
	} {
		if code, out, errs := berth(in, "why", "-f", "-", "p"); code != exitPlaced || errs != "" || !strings.HasPrefix(out, want) {
			t.Errorf("exit status %d, stderr %q, want %q:\n%s", code, errs, want, out)
		}
	}
}

// The ranking says which causes it does not explain.
func TestWhyAllIsBounded(t *testing.T) {
	const left = "\nWhat would help was looked for in the first 10 causes; ask about a pod of another one by its name.\n"
	in := nodeYAML
	for i := range 11 {
		_, out, _ := berth(in, "why", "-f", "-", "--all")
		if strings.Contains(out, left) {
			t.Errorf("%d causes: %s", i, out)
		}
		in += "---\n" + strings.NewReplacer("name: p", fmt.Sprintf("name: p-%d", i), "{containers: ", fmt.Sprintf("{nodeSelector: {disk: d%d}, containers: ", i)).Replace(podYAML)
	}
	if _, out, _ := berth(in, "why", "-f", "-", "--all"); !strings.HasSuffix(out, left) {
		t.Errorf("11 causes: %s", out)
	}
}

// A taint that a condition sets is told as that condition, and no fix tolerates or removes
// it. Other taints can be removed.
func TestWhyTaintOfCondition(t *testing.T) {
	for taint, condition := range map[string]string{
		"node.kubernetes.io/not-ready": "NotReady", "node.kubernetes.io/disk-pressure": "under DiskPressure", "node.cilium.io/agent-not-ready": "waiting for its agent of node.cilium.io",
		"node.cloudprovider.kubernetes.io/uninitialized": "not initialized by its cloud controller manager", "team": "",
	} {
		node := strings.Replace(nodeYAML, "status:", "spec: {taints: [{key: "+taint+", effect: NoSchedule}]}\nstatus:", 1)
		_, out, _ := berth(node+"---\n"+podYAML, "why", "-f", "-", "p")
		lifted := strings.Contains(out, "kubectl taint node a "+taint) && strings.Contains(out, "tolerate the taint "+taint)
		if lifted != (condition == "") || condition != "" && !strings.Contains(out, ": node a is "+condition+": mend the node (on every node).\n") {
			t.Errorf("%s:\n%s", taint, out)
		}
	}
}

// What is to be created has no UID: the API server gives one.
func TestWhyCreatesWithoutUID(t *testing.T) {
	const devices = "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {}\n---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {nodeName: a, driver: gpu.example.com, pool: {name: a, generation: 1, resourceSliceCount: 1}, devices: [{name: g}]}\n---\n"
	pod := strings.Replace(podYAML, "{containers: ", "{resourceClaims: [{name: x, resourceClaimName: missing}], containers: ", 1)
	_, out, errs := berth(nodeYAML+devices+pod, "why", "-f", "-", "p")
	if !strings.Contains(out, "\n  name: missing\n") || strings.Contains(out, "uid:") {
		t.Errorf("stderr %q:\n%s", errs, out)
	}
}

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// What cannot be answered gets one line that says why, and exit status 2.
func TestWhyInvalid(t *testing.T) {
	twice := strings.ReplaceAll(podYAML, "name: p", "name: p, namespace: a") + "---\n" + strings.ReplaceAll(podYAML, "name: p", "name: p, namespace: b")
	for name, c := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"no such pod":     {nodeYAML, []string{"x"}, "pod default/x: there is no such pod among 0"},
		"a similar name":  {podYAML, []string{"pp"}, "pod default/pp: there is no such pod; did you mean default/p?"},
		"with its kind":   {podYAML, []string{"pod/pp"}, "pod default/pp: there is no such pod; did you mean default/p?"},
		"two of the name": {twice, []string{"p"}, "pod p: is in several namespaces: say which: a/p, b/p"},
		"no name":         {podYAML, nil, "which pod? give its name, KIND/NAME of a workload, or --all"},
		"two names":       {podYAML, []string{"p", "q"}, `unexpected argument "q"`},
		"a name and all":  {podYAML, []string{"p", "--all"}, "--all: takes no pod"},
		"a bad form":      {podYAML, []string{"p", "-o", "xml"}, "-o xml: must be text"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := berth(c.stdin, append([]string{"why", "-f", "-"}, c.args...)...)
			_, last, _ := strings.Cut(errs, "--kubeconfig\n")
			if last == "" {
				last = errs
			}
			if code != exitInvalid || out != "" || !strings.HasPrefix(last, "berth: "+c.want) {
				t.Errorf("exit status %d, stdout %q, stderr %q, want %q", code, out, errs, c.want)
			}
		})
	}
}

// A pod of a pod group that fits by itself is not said to be placed next: the group is
// placed together, which the answer does not try.
func TestWhyPodOfGroup(t *testing.T) {
	cluster := nodeYAML + "---\n" + strings.Replace(podYAML, "containers", "schedulingGroup: {podGroupName: train}, containers", 1)
	for args, want := range map[string]string{
		"why p":         "default/p by itself fits now on a. No other node is feasible. The pods of its group train are placed together, which this answer does not try: ",
		"why --all":     "1 pod, fitting now each by itself, but placed together with their pod groups, which this answer does not try\n",
		"why p -o json": `"podGroup": "train"`,
	} {
		if _, out, errs := berth(cluster, append(strings.Fields(args), "-f", "-")...); !strings.Contains(out, want) {
			t.Errorf("%s: lacks %q:\n%s%s", args, want, out, errs)
		}
	}
}

// why of a pod of a gang says what keeps the gang from being placed, as why of its group does. A pod
// that fits by itself waits for it.
func TestWhyPodOfGang(t *testing.T) {
	gang := []string{"-f", "testdata/gang.yaml", "--feature-gates", "GenericWorkload=true"}
	_, group, _ := berth("", append([]string{"why", "podgroup/train"}, gang...)...)
	_, story, _ := strings.Cut(group, "3 pods, ")
	sentence, rest, _ := strings.Cut(story, "\n")
	if !strings.Contains(sentence, "2 of 3 fit: default/train-2 is waiting for room: it requests 3 CPUs") || !strings.Contains(rest, "add a node like node-1; places 3 of 3") {
		t.Fatal(group)
	}
	code, out, errs := berth("", append([]string{"why", "train-0"}, gang...)...)
	if want := "default/train-0 waits: " + sentence + ". By itself it fits now on node-2.\n\nITS POD GROUP, each pod tried in the scheduler's order\n" + rest; code != exitWaiting || errs != "" || !strings.HasPrefix(out, want) {
		t.Errorf("exit status %d, %s%s\nwant %s", code, out, errs, want)
	}
	file, err := os.ReadFile("testdata/gang.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		of, by string // of the file are replaced
		code   int
		want   []string
	}{
		"its gang fits": {"cpu: 3", "cpu: 1", exitPlaced, []string{"default/train-0 fits now, with the others of its pod group train: 3 pods that wait find a place.", "THE BEST NODES"}},
		"no node fits": {"cpu: 3", "cpu: 5", exitMisconfigured, []string{"default/train-0 fits on none of 2 nodes", "ITS POD GROUP, each pod tried in the scheduler's order\n  pod group default/train is placed together (minCount 3, 0 placed, 3 wait), and 0 of 3 fit: ",
			"WHAT WOULD HELP THIS POD ALONE (any one;"}},
	} {
		code, out, errs := berth(strings.ReplaceAll(string(file), c.of, c.by), "why", "train-0", "-f", "-", "--feature-gates", "GenericWorkload=true")
		if code != c.code || errs != "" {
			t.Errorf("%s: exit status %d, %s", name, code, errs)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: lacks %q:\n%s", name, want, out)
			}
		}
	}
}

// A workload, and a pod with its kind, may be named with the namespace in front, as what-if and fit
// have it.
func TestWhyTakesNamespaceKindName(t *testing.T) {
	pod := strings.Replace(podYAML, "name: p", "name: web-0, namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: u, controller: true}]", 1)
	elsewhere := strings.Replace(pod, "shop", "test", 1)
	for call, want := range map[string]string{
		"why shop/sts/web":              "1 pod of statefulset shop/web is pending",
		"why test/statefulset.apps/web": "1 pod of statefulset test/web is pending",
		"why shop/pod/web-0":            "shop/web-0 fits now",
	} {
		if _, out, errs := berth(nodeYAML+"---\n"+pod+"---\n"+elsewhere, append(strings.Fields(call), "-f", "-")...); !strings.HasPrefix(out, want) {
			t.Errorf("%s: want %q\n%s%s", call, want, out, errs)
		}
	}
}
