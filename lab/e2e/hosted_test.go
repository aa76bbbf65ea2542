package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// Plugins that are written against kube-scheduler's framework run in Berth on a real
// API server: a gang is bound together, a quota is kept and preempts, a filter and a
// score decide.
func TestHostedPlugins(t *testing.T) {
	f := newField(t, "hosted")
	f.sameNodes(3, "8", 110)
	binary := filepath.Join(programs(t), "hosted-scheduler")
	build := exec.Command("go", "build", "-o", binary, "./examples/hosted-scheduler")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the example: %v\n%s", err, out)
	}
	f.berth(cluster.SchedulerOptions{Binary: binary, Config: []byte(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Tier, weight: 2}, {name: Gang}, {name: Quota}]}}
  pluginConfig:
  - {name: Quota, args: {max: 4}}
  - {name: Tier, args: {maxPods: 50}}
`)})

	gang := func(name string) {
		p := f.pod(name, "1")
		p.Labels["example.com/gang"] = "red"
		p.Annotations = map[string]string{"example.com/gang-size": "3"}
		f.create(p)
	}
	gang("gang-0")
	gang("gang-1")
	f.create(f.pod("alone", "1"))
	f.await("the pod of no gang to be bound", func() string { return missing(bound(f.seen("")), 1) })
	gang("gang-2")
	f.await("the gang to be bound", func() string { return missing(bound(f.seen("")), 4) })

	f.create(f.pod("too-many", "1"))
	f.await("the quota to keep a pod", func() string {
		p := f.get("too-many")
		if p == nil {
			return "it is not seen"
		}
		c := condition(p, corev1.PodScheduled)
		if c == nil || !strings.Contains(c.Message, "the namespace's quota is used up") {
			return fmt.Sprintf("the condition is %v", c)
		}
		return ""
	})
	if err := f.client.CoreV1().Pods(f.name).Delete(t.Context(), "alone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.await("room in the quota to be used", func() string {
		if f.get("too-many").Spec.NodeName == "" {
			return "it is not bound"
		}
		return ""
	})
	f.awaitScheduledOnce()
}
