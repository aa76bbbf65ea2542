package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/berth-scheduler/berth/lab/cluster"
)

const (
	namespace = "chaos"
	// A node takes four pods, of one CPU each.
	podsPerNode = 4
	// beat is the time between two changes of the workload.
	beat = 50 * time.Millisecond
)

// workload creates and deletes pods, and cordons, deletes and creates nodes, on
// nodes that are full: there are a few pods more than fit.
type workload struct {
	client  kubernetes.Interface
	nodes   []*corev1.Node
	random  *rand.Rand
	created atomic.Int64
	deleted atomic.Int64

	mu   sync.Mutex
	pods []string // that were created and not deleted, oldest first
	next int
}

// makeNodes are nodes that four pods fill.
func makeNodes(n int) []*corev1.Node {
	nodes := cluster.Nodes(n)
	for _, node := range nodes {
		room := corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewQuantity(podsPerNode, resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("64Gi"),
			corev1.ResourcePods: resource.MustParse("110"),
		}
		node.Status.Capacity, node.Status.Allocatable = room, room
		node.Spec.Taints = nil
	}
	return nodes
}

// most is how many pods there are at most.
func (w *workload) most() int { return len(w.nodes)*podsPerNode + len(w.nodes)/10 }

// run changes something at each beat until the context ends. A control plane
// that is down is tried again at the next beat.
func (w *workload) run(ctx context.Context) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for ctx.Err() == nil {
		switch n := w.random.IntN(100); {
		case w.size() >= w.most() || n < 30 && w.size() > 0:
			w.deletePod(ctx, w.random.IntN(w.size()))
		case n < 98:
			w.createPod(ctx)
		default:
			w.changeNode(ctx, w.nodes[w.random.IntN(len(w.nodes))])
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func (w *workload) size() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pods)
}

func (w *workload) createPod(ctx context.Context) {
	w.next++
	name := fmt.Sprintf("pod-%d", w.next)
	_, err := w.client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}},
	}, metav1.CreateOptions{})
	// After an error the pod may be there or not: whoever lists knows.
	if err == nil {
		w.created.Add(1)
		w.mu.Lock()
		w.pods = append(w.pods, name)
		w.mu.Unlock()
	}
}

func (w *workload) deletePod(ctx context.Context, i int) {
	w.mu.Lock()
	name := w.pods[i]
	w.mu.Unlock()
	now := int64(0)
	err := w.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err == nil || apierrors.IsNotFound(err) {
		w.deleted.Add(1)
		w.mu.Lock()
		w.pods = append(w.pods[:i], w.pods[i+1:]...)
		w.mu.Unlock()
	}
}

// changeNode cordons or uncordons the node, or deletes it and creates it again.
// What fails is made good by repair.
func (w *workload) changeNode(ctx context.Context, n *corev1.Node) {
	if w.random.IntN(2) == 0 {
		_ = w.cordon(ctx, n.Name, w.random.IntN(2) == 0)
		return
	}
	_ = w.client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{})
	_ = w.createNode(ctx, n)
}

func (w *workload) cordon(ctx context.Context, name string, unschedulable bool) error {
	now, err := w.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || now.Spec.Unschedulable == unschedulable {
		return err
	}
	now.Spec.Unschedulable = unschedulable
	_, err = w.client.CoreV1().Nodes().Update(ctx, now, metav1.UpdateOptions{})
	return err
}

func (w *workload) createNode(ctx context.Context, n *corev1.Node) error {
	_, err := w.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// settle ends the churn in a state in which every pod fits: all nodes are there
// and take pods, and no more pods are left than there is room for.
func (w *workload) settle(ctx context.Context) error {
	for _, n := range w.nodes {
		if err := w.createNode(ctx, n); err != nil {
			return err
		}
		if err := w.cordon(ctx, n.Name, false); err != nil {
			return err
		}
	}
	all, err := w.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	now := int64(0)
	for _, p := range all.Items[:max(0, len(all.Items)-len(w.nodes)*podsPerNode)] {
		if err := w.client.CoreV1().Pods(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			return err
		}
	}
	return nil
}
