package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// gangNode, gangGroup and gangPod are documents of a cluster with gangs.
const (
	gangNode  = "---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: %d, pods: 10}}\n"
	gangGroup = "---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: %s, namespace: default}\nspec: {minMember: %s}\n"
	gangPod   = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: default, labels: {scheduling.x-k8s.io/pod-group: %s}}\n" +
		"spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}\n"
)

// Two APIs may have a PodGroup of one name. Each pod is in that of the API by which it names it, and why
// wants to know which one is meant.
func TestGroupsOfOneName(t *testing.T) {
	in := fmt.Sprintf(gangNode, "node", 4) + fmt.Sprintf(gangGroup, "dup", "2") + fmt.Sprintf(gangPod, "a", "dup") +
		"---\napiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: dup, namespace: default}\nspec: {schedulingPolicy: {gang: {minCount: 3}}}\n" +
		"---\napiVersion: v1\nkind: Pod\nmetadata: {name: b, namespace: default}\nspec: {schedulingGroup: {podGroupName: dup}, containers: [{name: c, image: i}]}\n"
	for _, c := range [][]string{
		{"simulate", "default/a\n    waiting for as many pods as spec.minMember (2) of PodGroup scheduling.x-k8s.io/dup\n"},
		{"why podgroup/dup", "berth: podgroup default/dup: there are several: give podgroup.scheduling.k8s.io/dup or podgroup.scheduling.x-k8s.io/dup\n"},
		{"why default/podgroup.scheduling.x-k8s.io/dup", "1 pod of podgroup default/scheduling.x-k8s.io/dup is pending, ", "\n  default/a\n"},
		{"why podgroups.scheduling.k8s.io/dup", "1 pod of podgroup default/scheduling.k8s.io/dup is pending, ", "\n  default/b\n"},
		{"why podgroup.example.com/dup", "berth: podgroup default/example.com/dup: there is none, "},
	} {
		_, out, errs := berth(in, append(strings.Fields(c[0]), "-f", "-", "--config", "testdata/gangs-config.yaml", "--feature-gates", "GenericWorkload=true")...)
		for _, want := range c[1:] {
			if !strings.Contains(out+errs, want) {
				t.Errorf("%s: want %q in\n%s%s", c[0], want, out, errs)
			}
		}
	}
	_, _, errs := berth(in+fmt.Sprintf(gangGroup, "dup", "2"), "simulate", "-f", "-")
	if want := "podgroup.scheduling.x-k8s.io default/dup: metadata.name: the same object is in "; !strings.Contains(errs, want) {
		t.Errorf("want %q in %s", want, errs)
	}
}

// A group whose minimum is none is not placed: why says which field is wrong, and that a group has no pod.
func TestWhyFaultyGroup(t *testing.T) {
	const wrong = "spec.minMember of the PodGroup scheduling.x-k8s.io/g is %s, and should be a number of pods, at least 1\n"
	for _, c := range []struct{ min, in, ask, want string }{
		{"0", fmt.Sprintf(gangPod, "p", "g"), "podgroup/g", "\n1 pod, not placed, as pod group default/scheduling.x-k8s.io/g is not valid: " + wrong},
		{"-2", fmt.Sprintf(gangPod, "p", "g"), "p", "default/p waits: not placed, as pod group default/scheduling.x-k8s.io/g is not valid: spec.minMember of the PodGroup scheduling.x-k8s.io/g is %s, "},
		{"-2", "", "podgroup/g", "No pod of podgroup default/g is pending.\n  it is not valid: " + wrong + "  no pod names it: a pod of it has the label scheduling.x-k8s.io/pod-group: g\n"},
		{"2", "", "podgroup/g", "No pod of podgroup default/g is pending.\n  no pod names it: a pod of it has the label scheduling.x-k8s.io/pod-group: g\n"},
	} {
		in := fmt.Sprintf(gangNode, "node", 4) + fmt.Sprintf(gangGroup, "g", c.min) + c.in
		_, out, errs := berth(in, "why", "-f", "-", "--config", "testdata/gangs-config.yaml", c.ask)
		if want := strings.Replace(c.want, "%s", c.min, 1); !strings.Contains(out, want) {
			t.Errorf("minMember %s: why %s: want %q in\n%s%s", c.min, c.ask, want, out, errs)
		}
	}
	_, _, errs := berth("apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: {schedulingPolicy: {gang: {minCount: 0}}}\n", "simulate", "-f", "-")
	if want := "podgroup default/g: spec.schedulingPolicy.gang.minCount: 0 is not positive\n"; !strings.HasSuffix(errs, want) {
		t.Errorf("want %q in %s", want, errs)
	}
}

// The pods that are evicted for a gang are in no pod's decision, so the result lists them, as the
// table does.
func TestVictimsOfAGang(t *testing.T) {
	const pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: default, labels: {%s}}\n" +
		"spec: {priority: %d, nodeName: %q, containers: [{name: c, image: i, resources: {requests: {cpu: 3}}}]}\n"
	const label = "scheduling.x-k8s.io/pod-group: gang"
	in := fmt.Sprintf(gangGroup, "gang", "2")
	for i := range 2 {
		in += fmt.Sprintf(gangNode, fmt.Sprint("n", i), 4) +
			fmt.Sprintf(pod, fmt.Sprint("old-", i), "", 0, fmt.Sprint("n", i)) + fmt.Sprintf(pod, fmt.Sprint("gang-", i), label, 9, "")
	}
	_, out, errs := berth(in, "simulate", "-f", "-", "--config", "testdata/gangs-config.yaml", "-o", "jsonpath={.evicted}")
	const want = `[{"for":"default/gang-0","node":"n0","pod":"default/old-0"},{"for":"default/gang-0","node":"n1","pod":"default/old-1"}]`
	if out != want {
		t.Errorf("evicted %s, want %s\n%s", out, want, errs)
	}
}

// what-if tells what a change leads to from what happens in any case: what a pod of a quota, or a gang,
// that waits already takes back or preempts.
func TestWhatIfInAnyCase(t *testing.T) {
	_, out, errs := berth("", "what-if", "-f", "testdata/quotas.yaml", "--config", "testdata/quotas-config.yaml", "add-nodes", "1", "cpu=1,memory=1Gi")
	for _, want := range []string{"add-nodes 1 cpu=1,memory=1Gi: 0 pods move, 1 pod preempted in any case\n", "\nEVICTED IN ANY CASE\n  web/web-2 on node-1, for research/train-2\n", "\nWITHOUT A NODE IN ANY CASE\n  web/web-2\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s%s", want, out, errs)
		}
	}
	in := fmt.Sprintf(gangNode, "a", 2) + fmt.Sprintf(gangNode, "b", 1) + fmt.Sprintf(gangGroup, "g", "2") +
		strings.NewReplacer("spec: {", "spec: {nodeName: a, ", "cpu: 1}", "cpu: 2}").Replace(fmt.Sprintf(gangPod, "low", ""))
	for _, pod := range []string{"g-0", "g-1"} {
		in += strings.Replace(fmt.Sprintf(gangPod, pod, "g"), "spec: {", "spec: {priority: 9, ", 1)
	}
	code, out, errs := berth(in, "what-if", "-f", "-", "--config", "testdata/gangs-config.yaml", "cordon", "b")
	if want := "cordon b: 0 pods move, 1 pod preempted in any case\n"; code != 0 || !strings.HasPrefix(out, want) {
		t.Errorf("exit status %d, want %q in\n%s%s", code, want, out, errs)
	}
}

// fit counts whole gangs, each with a group of its own; replicas of a workload in a gang stay in it, as
// many at first as it lacks; and all pods of a file come as gangs of their own.
func TestFitGangs(t *testing.T) {
	const job = "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: train, namespace: default}\nspec:\n  parallelism: 2\n  completions: 9\n  template:\n" +
		"    metadata: {labels: {scheduling.x-k8s.io/pod-group: g}}\n    spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}\n"
	const native = "---\napiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: own, namespace: default}\nspec: {schedulingPolicy: {gang: {minCount: 2}}}\n" +
		"---\napiVersion: v1\nkind: Pod\nmetadata: {name: n-0, namespace: default}\nspec: {schedulingGroup: {podGroupName: own}, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}\n"
	const running = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web-%d, namespace: default, labels: {scheduling.x-k8s.io/pod-group: g}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r, controller: true}]}\n" +
		"spec: {nodeName: a, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}\n"
	nodes := fmt.Sprintf(gangNode, "a", 4) + fmt.Sprintf(gangNode, "b", 3)
	group := fmt.Sprintf(gangGroup, "g", "2")
	gang := group + fmt.Sprintf(gangPod, "g-0", "g") + fmt.Sprintf(gangPod, "g-1", "g")
	huge := strings.ReplaceAll(gang, "minMember: 2", "minMember: 2147483647")
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, []byte(strings.TrimPrefix(group, "---\n")+job), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, in, args, want string }{
		{"the only one that waits", gang, "", "3 more pod groups like default/g fit, of 2 pods each\n\nNODE   MORE PODS\n"},
		{"named", gang + strings.ReplaceAll(gang, "g-", "h-")[len(group):], "--pod podgroup/g", "1 more pod group like default/g fits, of 4 pods each\n"},
		{"a pod of it", gang, "--pod g-1", "3 more pod groups like default/g fit, of 2 pods each\n"},
		{"of Kubernetes, one of its pods is there", native, "--pod podgroup.scheduling.k8s.io/own", "3 more pod groups like default/own fit, of 2 pods each\n"},
		{"replicas of a gang that waits", group + job, "--scale job/train", "job/default/train fits up to 7 replicas (now 2)\n"},
		{"replicas of a gang that runs", group + fmt.Sprintf(running, 0) + fmt.Sprintf(running, 1), "--scale rs/web", "replicaset/default/web fits up to 7 replicas (now 2)\n"},
		{"a file", "", "--scale " + file, "job.yaml fits 3 times: 2 pods each, of job/default/train (2)\n"},
		{"too large", strings.ReplaceAll(gang, "cpu: 1}", "cpu: 4}"), "", "0 more pod groups like default/g fit, of 2 pods each\n\nWhat stops the next\n  0/2 nodes are available: 2 Insufficient cpu.\n"},
		{"of more pods than there can be", huge, "", "0 more pod groups like default/g fit, "},
		{"replicas of such a one", huge + job, "--scale job/train", "job/default/train fits up to 0 replicas (now 2)\n"},
		{"no such", gang, "--pod podgroup/x", "berth: podgroup/x: has no pods\n"},
	} {
		_, out, errs := berth(nodes+c.in, append([]string{"fit", "-f", "-", "--config", "testdata/gangs-config.yaml", "--feature-gates", "GenericWorkload=true"}, strings.Fields(c.args)...)...)
		if !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: want %q in\n%s%s", c.name, c.want, out, errs)
		}
	}
}
