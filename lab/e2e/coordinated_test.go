package e2e

import (
	"context"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	baseversion "k8s.io/component-base/version"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// With the gate CoordinatedLeaderElection the API server chooses who leads: the candidate
// that emulates the oldest version, though another leads already. That one ends. The
// rights are those of Berth's own identity, the lease is kube-scheduler's.
func TestCoordinatedLeaderElection(t *testing.T) {
	c := start(t, cluster.Options{WithoutControllers: true, WithoutKWOK: true, APIServerFlags: []string{
		"--feature-gates=CoordinatedLeaderElection=true", "--runtime-config=coordination.k8s.io/v1beta1=true"}}, 1)
	candidate := func(flags ...string) *cluster.Scheduler {
		s, err := c.StartScheduler(t.Context(), cluster.SchedulerOptions{Kind: cluster.Berth, Binary: filepath.Join(programs(t), cluster.Berth),
			LeaderElect: true,
			Flags:       append([]string{"--feature-gates=CoordinatedLeaderElection=true"}, flags...)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	newest := candidate()
	awaitPlaced(t, c, "first")
	oldest := candidate("--emulated-version=1.35")
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	select {
	case <-newest.Done():
	case <-ctx.Done():
		t.Fatal("a leader that is not to lead any more goes on")
	}
	awaitPlaced(t, c, "second")
	if !running(oldest) {
		t.Error("the new leader has ended")
	}
	candidates, err := c.Client().CoordinationV1beta1().LeaseCandidates(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, k := range candidates.Items {
		said[k.Spec.LeaseName+" "+k.Spec.BinaryVersion+" "+k.Spec.EmulationVersion] = true
	}
	own := baseversion.DefaultKubeBinaryVersion + ".0"
	if len(said) != 2 || !said["kube-scheduler "+own+" "+own] || !said["kube-scheduler "+own+" 1.35.0"] {
		t.Errorf("the candidates say %v", said)
	}
}

// awaitPlaced creates a pod and waits until it has a node.
func awaitPlaced(t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}}}
	pods := c.Client().CoreV1().Pods(metav1.NamespaceDefault)
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	shown, err := pods.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer shown.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for {
		select {
		case e := <-shown.ResultChan():
			if p, ok := e.Object.(*corev1.Pod); ok && p.Spec.NodeName != "" {
				return
			}
		case <-ctx.Done():
			t.Fatalf("pod %s is not placed", name)
		}
	}
}
