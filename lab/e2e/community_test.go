//go:build community

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// coscheduling is the module of the scheduler with the plugin of others.
var coscheduling = filepath.Join("..", "cmd", "coscheduling")

// lessOfV137 changes the plugin's source so that it compiles against v1.37, whose Less gets
// entities of the queue.
var lessOfV137 = strings.NewReplacer("fwk.QueuedPodInfo", "fwk.QueuedEntityInfo",
	"podInfo1.GetPodInfo()", "podInfo1.(interface{ GetPodInfo() fwk.PodInfo }).GetPodInfo()",
	"podInfo2.GetPodInfo()", "podInfo2.(interface{ GetPodInfo() fwk.PodInfo }).GetPodInfo()")

// forV137 copies the plugin's module, changes its Less, and returns the flag by which the go
// command takes the copy. module is the folder of scheduler-plugins.
func forV137(t *testing.T, module string) string {
	t.Helper()
	dir := t.TempDir()
	changed := filepath.Join(dir, "scheduler-plugins")
	if err := os.CopyFS(changed, os.DirFS(module)); err != nil {
		t.Fatal(err)
	}
	read := func(name ...string) string {
		content, err := os.ReadFile(filepath.Join(name...))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	write := func(content string, name ...string) {
		if err := os.WriteFile(filepath.Join(name...), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	less := filepath.Join(changed, "pkg", "coscheduling", "coscheduling.go")
	write(lessOfV137.Replace(read(less)), less)
	write(read(coscheduling, "go.mod")+"\nreplace sigs.k8s.io/scheduler-plugins => "+changed+"\n", dir, "go.mod")
	write(read(coscheduling, "go.sum"), dir, "go.sum")
	return "-modfile=" + filepath.Join(dir, "go.mod")
}

// Coscheduling of sigs.k8s.io/scheduler-plugins runs in Berth, but for its Less unmodified: a
// gang waits for its last pod and is then bound together; one that has no room is not bound in
// part, and is bound when there is room. `make community` runs this test, as the module of the
// plugin is not among those that the lab needs.
func TestCoscheduling(t *testing.T) {
	f := newField(t, "coscheduling")
	f.sameNodes(3, "8", 110)
	binary := filepath.Join(t.TempDir(), "coscheduling")
	module := goTool(t, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/scheduler-plugins")
	goTool(t, "build", forV137(t, module), "-o", binary, ".")
	crd, err := os.ReadFile(filepath.Join(module, "config", "crd", "bases", "scheduling.x-k8s.io_podgroups.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	f.apply(append(objects(t, string(crd)), objects(t, readsPodGroups)...))
	config, err := os.ReadFile(filepath.Join(coscheduling, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	f.awaitServed("PodGroup")
	f.berth(cluster.SchedulerOptions{Binary: binary, Config: config})

	gang := func(name string, pods int, cpu string) {
		f.podGroup(name, 3)
		for i := range pods {
			p := f.pod(fmt.Sprintf("%s-%d", name, i), cpu)
			p.Labels["scheduling.x-k8s.io/pod-group"] = name
			f.create(p)
		}
	}
	gang("red", 2, "2")
	f.create(f.pod("alone", "1"))
	f.await("the pod of no gang to be bound, and the gang to be told why it waits", func() string {
		return missing(bound(f.seen("")), 1) + f.rejected("red-", 2)
	})
	last := f.pod("red-2", "2")
	last.Labels["scheduling.x-k8s.io/pod-group"] = "red"
	f.create(last)
	f.await("the gang to be bound", func() string { return missing(bound(f.seen("")), 4) })

	gang("blue", 3, "7")
	f.await("the second gang to be told that it has no room", func() string { return f.rejected("blue-", 3) })
	if n := bound(f.seen("")); n != 4 {
		t.Errorf("%d pods are bound while the second gang has no room, want 4", n)
	}
	for _, name := range []string{"red-0", "red-1", "red-2", "alone"} {
		if err := f.client.CoreV1().Pods(f.name).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.await("the second gang to be bound", func() string { return missing(bound(f.seen("")), 3) })
	f.awaitScheduledOnce()
}

// rejected says how many of n pods with the prefix have not been rejected.
func (f *field) rejected(prefix string, n int) string {
	rejected := 0
	for _, p := range f.seen("") {
		if c := condition(p, corev1.PodScheduled); strings.HasPrefix(p.Name, prefix) && c != nil && c.Status == corev1.ConditionFalse {
			rejected++
		}
	}
	return missing(rejected, n)
}

// goTool runs the go command in that module, and returns what it prints.
func goTool(t *testing.T, args ...string) string {
	t.Helper()
	var out, said bytes.Buffer
	command := exec.Command("go", args...)
	command.Dir, command.Stdout, command.Stderr = coscheduling, &out, &said
	if err := command.Run(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, said.String())
	}
	return strings.TrimSpace(out.String())
}

// readsPodGroups is the right to read PodGroups, which the plugin needs.
const readsPodGroups = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: coscheduling}
rules:
- {apiGroups: [scheduling.x-k8s.io], resources: [podgroups], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: coscheduling}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: coscheduling}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:berth-scheduler"}]
`
