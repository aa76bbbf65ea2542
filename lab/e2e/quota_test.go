package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// gangsAndQuotas enables both plugins in the stock binary.
const gangsAndQuotas = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- plugins:
    multiPoint: {enabled: [{name: Coscheduling}, {name: CapacityScheduling}]}
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
    postFilter: {disabled: [{name: DefaultPreemption}]}
`

// The CustomResourceDefinitions and roles of deploy are what the plugins Coscheduling and
// CapacityScheduling need: without them Berth ends with the command that installs them. A gang and
// a Deployment in a quota are placed as far as they may be, and both kinds have a true status, also
// once objects were deleted and made again.
func TestGangsAndQuotas(t *testing.T) {
	f := newField(t, "gangs")
	f.sameNodes(2, "4", 110)
	f.refusedWithout("elasticquotas", "podgroups")
	f.applyFile("elasticquotas.yaml")
	f.awaitServed("ElasticQuota")
	f.refusedWithout("podgroups")
	f.applyFile("podgroups.yaml")
	f.awaitServed("PodGroup")
	f.berth(cluster.SchedulerOptions{Config: []byte(gangsAndQuotas)})

	f.quota("gangs", "6")
	f.podGroup("red", 3)
	f.gang("red", 3, "1")
	f.await("the gang to be bound", func() string { return missing(bound(f.seen("")), 3) })
	f.awaitStatus("PodGroup", "red", "phase", "Scheduling")
	f.awaitStatus("ElasticQuota", "gangs", "used", "cpu", "3")
	f.runPods("red-")
	f.awaitStatus("PodGroup", "red", "phase", "Running")
	f.awaitStatus("PodGroup", "red", "running", "3")

	f.deploy("web", 4, "1", nil)
	f.await("as many pods as the quota has room for to be bound", func() string { return missing(bound(f.seen("app=web")), 3) })
	f.await("the other one to be told why it waits", func() string { return missing(rejected(f.seen("app=web")), 1) })
	f.awaitStatus("ElasticQuota", "gangs", "used", "cpu", "6")
	for _, p := range f.seen("app=web") {
		if c := condition(p, corev1.PodScheduled); p.Spec.NodeName == "" && !strings.Contains(c.Message, "ElasticQuota gangs/gangs: of CPU 6 used, 1 requested, 6 at most") {
			t.Errorf("%s: %q", p.Name, c.Message)
		}
	}

	f.delete("ElasticQuota", "gangs")
	f.await("the quota to be gone for the last pod", func() string { return missing(bound(f.seen("app=web")), 4) })
	f.quota("gangs", "7")
	f.awaitStatus("ElasticQuota", "gangs", "used", "cpu", "7")
	f.delete("PodGroup", "red")
	for i := range 3 {
		if err := f.client.CoreV1().Pods(f.name).Delete(t.Context(), fmt.Sprintf("red-%d", i), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.awaitStatus("ElasticQuota", "gangs", "used", "cpu", "4")
	f.podGroup("red", 2)
	f.gang("red", 2, "1")
	f.await("the gang that was made again to be bound", func() string { return missing(bound(f.seen("")), 6) })
	f.awaitStatus("PodGroup", "red", "phase", "Scheduling")
	f.awaitStatus("ElasticQuota", "gangs", "used", "cpu", "6")
}

// refusedWithout checks that Berth ends, and says how to install the objects that it needs. The
// cluster does not start it: it would report that a child of it died.
func (f *field) refusedWithout(resources ...string) {
	f.Helper()
	config := filepath.Join(f.TempDir(), "config.yaml")
	kubeconfig := fmt.Sprintf("clientConnection: {kubeconfig: %q}\n", f.cluster.Kubeconfig(cluster.Berth))
	if err := os.WriteFile(config, []byte(gangsAndQuotas+kubeconfig), 0o600); err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(f.Context(), timeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(programs(f.T), cluster.Berth), "--config", config, "--secure-port", "0").CombinedOutput()
	want := "install them first: kubectl apply"
	for _, resource := range resources {
		want += " -f deploy/" + resource + ".yaml"
	}
	if err == nil || !strings.Contains(string(out), want+`"`) {
		f.Fatalf("without %s: %v\n%s", resources, err, out)
	}
}

// applyFile applies what a file of deploy has.
func (f *field) applyFile(name string) {
	f.Helper()
	text, err := os.ReadFile(filepath.Join(deployDir, name))
	if err != nil {
		f.Fatal(err)
	}
	f.apply(objects(f.T, string(text)))
}

// custom applies an object of scheduling.x-k8s.io.
func (f *field) custom(kind, name string, spec map[string]any) {
	f.Helper()
	f.applyWith([]*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": f.name},
		"spec":     spec,
	}}}, metav1.ApplyOptions{})
}

// podGroup makes a PodGroup of Coscheduling.
func (f *field) podGroup(name string, least int64) {
	f.Helper()
	f.custom("PodGroup", name, map[string]any{"minMember": least})
}

// quota makes an ElasticQuota whose min and max are so many CPUs.
func (f *field) quota(name, cpu string) {
	f.Helper()
	f.custom("ElasticQuota", name, map[string]any{"min": map[string]any{"cpu": cpu}, "max": map[string]any{"cpu": cpu}})
}

// gang makes the pods of a PodGroup.
func (f *field) gang(name string, n int, cpu string) {
	f.Helper()
	pods := f.podsOf(name, n, cpu)
	for _, p := range pods {
		p.Labels["scheduling.x-k8s.io/pod-group"] = name
	}
	f.create(pods...)
}

// runPods sets the phase Running of the pods with the prefix, as their kubelets would.
func (f *field) runPods(prefix string) {
	f.Helper()
	for _, p := range f.seen("") {
		if strings.HasPrefix(p.Name, prefix) {
			p = p.DeepCopy()
			p.Status.Phase = corev1.PodRunning
			if _, err := f.client.CoreV1().Pods(f.name).UpdateStatus(f.Context(), p, metav1.UpdateOptions{}); err != nil {
				f.Fatal(err)
			}
		}
	}
}

func (f *field) ofKind(kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": kind}}
	o.SetNamespace(f.name)
	return o
}

func (f *field) delete(kind, name string) {
	f.Helper()
	if err := f.resource(f.ofKind(kind)).Delete(f.Context(), name, metav1.DeleteOptions{}); err != nil {
		f.Fatal(err)
	}
}

// awaitStatus waits until the status of the object has the value, which comes last, at the path.
func (f *field) awaitStatus(kind, name string, path ...string) {
	f.Helper()
	want, path := path[len(path)-1], append([]string{"status"}, path[:len(path)-1]...)
	f.await(fmt.Sprintf("%s %s to have %s at %s", kind, name, want, strings.Join(path, ".")), func() string {
		o, err := f.resource(f.ofKind(kind)).Get(f.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if got, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...); fmt.Sprint(got) != want {
			return fmt.Sprintf("it has %v", got)
		}
		return ""
	})
}

// awaitServed waits until the API server serves the kind of a custom resource.
func (f *field) awaitServed(kind string) {
	f.Helper()
	f.await(kind+" to be served", func() string {
		if _, err := f.resource(f.ofKind(kind)).List(context.Background(), metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}
