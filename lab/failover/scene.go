package failover

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/berth-scheduler/berth/lab/cluster"
)

const (
	namespace   = "failover"
	podsPerNode = 100
	writers     = 32
)

// scene is a control plane with nodes and pods on them.
type scene struct {
	*cluster.Cluster
	client kubernetes.Interface
	probes int // pods that were created to be bound
}

func newScene(ctx context.Context, nodes, pods int) (*scene, error) {
	c, err := cluster.Start(ctx, cluster.Options{WithoutKWOK: true, WithoutControllers: true,
		APIServerFlags: []string{"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"}})
	if err != nil {
		return nil, err
	}
	config := c.AdminConfig()
	config.QPS, config.Burst = -1, -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	s := &scene{Cluster: c}
	if s.client, err = kubernetes.NewForConfig(config); err == nil {
		err = s.fill(ctx, nodes, pods)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return s, nil
}

// fill creates the nodes, and pods that are bound to them from the start.
func (s *scene) fill(ctx context.Context, nodes, pods int) error {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := s.client.CoreV1().Namespaces().Create(ctx, n, metav1.CreateOptions{}); err != nil {
		return err
	}
	all := cluster.Nodes(nodes)
	if err := s.CreateNodes(ctx, all); err != nil {
		return err
	}
	return concurrently(ctx, pods, func(i int) error {
		p := pod(fmt.Sprintf("running-%d", i))
		p.Spec.NodeName = all[i%len(all)].Name
		_, err := s.client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
		return err
	})
}

// pod is a small pod.
func pod(name string) *corev1.Pod {
	requests := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi"),
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "sample"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "sample", Resources: corev1.ResourceRequirements{Requests: requests},
		}}},
	}
}

// probe creates a pod and says when it is bound.
func (s *scene) probe(ctx context.Context) (<-chan time.Time, error) {
	s.probes++
	name := fmt.Sprintf("probe-%d", s.probes)
	w, err := s.client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	if err != nil {
		return nil, err
	}
	if _, err := s.client.CoreV1().Pods(namespace).Create(ctx, pod(name), metav1.CreateOptions{}); err != nil {
		w.Stop()
		return nil, err
	}
	bound := make(chan time.Time, 1)
	go func() {
		defer close(bound)
		defer w.Stop()
		for e := range w.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok && e.Type == watch.Modified && p.Spec.NodeName != "" {
				bound <- time.Now()
				return
			}
		}
	}()
	return bound, nil
}

// expiry is when the schedulers' lease runs out if nobody renews it.
func (s *scene) expiry(ctx context.Context) (time.Time, error) {
	lease, err := s.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, "kube-scheduler", metav1.GetOptions{})
	if err != nil {
		return time.Time{}, err
	}
	return expiryOf(lease)
}

func expiryOf(lease *coordinationv1.Lease) (time.Time, error) {
	spec := lease.Spec
	if spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return time.Time{}, fmt.Errorf("lease %s says nothing of its end", lease.Name)
	}
	return spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second), nil
}

// concurrently calls f for each number below n, several at a time, until one
// fails.
func concurrently(ctx context.Context, n int, f func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for i := w; i < n && ctx.Err() == nil; i += writers {
				if err := f(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}
