package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// creators is how many pods are created at once; the control plane, not the
// bench, is to be the limit.
const creators = 32

// runCluster measures one scheduler against a fresh control plane.
func runCluster(ctx context.Context, o Options, w *Workload, scheduler string) (*Run, error) {
	c, client, err := startControlPlane(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	kind := map[string]string{Berth: cluster.Berth, KubeScheduler: cluster.KubeScheduler}[scheduler]
	s, err := c.StartScheduler(ctx, cluster.SchedulerOptions{Kind: kind, Binary: o.Binary})
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	run := &Run{Scheduler: scheduler}
	for i, step := range w.Steps {
		prefix := fmt.Sprintf("step%d", i)
		if step.Kind == "nodes" {
			run.Nodes += step.Count
			if err := c.CreateNodes(ctx, step.Nodes(prefix)); err != nil {
				return nil, err
			}
			continue
		}
		if err := run.place(ctx, client, s, step, prefix); err != nil {
			return nil, err
		}
	}
	return run, nil
}

func startControlPlane(ctx context.Context) (*cluster.Cluster, kubernetes.Interface, error) {
	c, err := cluster.Start(ctx, cluster.Options{WithoutKWOK: true, WithoutControllers: true})
	if err != nil {
		return nil, nil, err
	}
	client, err := fastClient(c.AdminConfig())
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, client, nil
}

// fastClient has no limit of its own and speaks protobuf.
func fastClient(config *rest.Config) (kubernetes.Interface, error) {
	config.QPS, config.Burst = -1, -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	return kubernetes.NewForConfig(config)
}

// place creates the step's pods and waits until all are bound. The measured
// phase lasts from the first creation to the last binding seen.
func (r *Run) place(ctx context.Context, client kubernetes.Interface, s *cluster.Scheduler, step Step, prefix string) error {
	seen, err := watchBindings(ctx, client, prefix, step.Count)
	if err != nil {
		return err
	}
	defer seen.stop()
	before, err := s.Usage()
	if err != nil {
		return err
	}
	start := time.Now()
	created, err := createPods(ctx, client, step.Pods(prefix))
	if err != nil {
		return err
	}
	if err := seen.wait(ctx, s); err != nil {
		return err
	}
	if !step.Measure {
		return nil
	}
	after, err := s.Usage()
	if err != nil {
		return err
	}
	last, latencies := seen.latencies(created)
	n := float64(step.Count)
	r.Pods, r.Scheduled = step.Count, len(latencies)
	r.PodsPerSecond = round(n / last.Sub(start).Seconds())
	r.CPUMillisPerPod = round(float64(after.CPU-before.CPU) / float64(time.Millisecond) / n)
	r.P50Millis = round(percentile(millis(latencies), 0.5))
	r.P99Millis = round(percentile(millis(latencies), 0.99))
	r.PeakRSSMiB = round(float64(after.PeakRSS) / (1 << 20))
	return nil
}

// createPods creates the pods, many at once but in order of name, and returns
// when each creation was sent.
func createPods(ctx context.Context, client kubernetes.Interface, pods []*v1.Pod) (map[string]time.Time, error) {
	var mu sync.Mutex
	sent := make(map[string]time.Time, len(pods))
	err := concurrently(ctx, creators, len(pods), func(i int) error {
		mu.Lock()
		sent[pods[i].Name] = time.Now()
		mu.Unlock()
		_, err := client.CoreV1().Pods(pods[i].Namespace).Create(ctx, pods[i], metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("creating pods: %w", err)
	}
	return sent, nil
}

// concurrently calls f(0..n-1) from a number of workers and joins the errors.
func concurrently(ctx context.Context, workers, n int, f func(int) error) error {
	next := make(chan int)
	errs := make([]error, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := range next {
				if err := f(i); err != nil && errs[w] == nil {
					errs[w] = err
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	group.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

// bindCeiling creates the workload's nodes and measured pods with no
// scheduler about, and measures how fast a client posts their bindings.
func bindCeiling(ctx context.Context, w *Workload) (float64, error) {
	c, client, err := startControlPlane(ctx)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	var nodes []*v1.Node
	var pods []*v1.Pod
	for i, step := range w.Steps {
		switch prefix := fmt.Sprintf("step%d", i); {
		case step.Kind == "nodes":
			nodes = append(nodes, step.Nodes(prefix)...)
		case step.Measure:
			pods = append(pods, step.Pods(prefix)...)
		}
	}
	if err := c.CreateNodes(ctx, nodes); err != nil {
		return 0, err
	}
	if _, err := createPods(ctx, client, pods); err != nil {
		return 0, err
	}
	seen, err := watchBindings(ctx, client, "", 0)
	if err != nil {
		return 0, err
	}
	defer seen.stop()
	start := time.Now()
	err = concurrently(ctx, creators, len(pods), func(i int) error {
		p := pods[i]
		return client.CoreV1().Pods(p.Namespace).Bind(ctx, &v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
			Target:     v1.ObjectReference{Kind: "Node", Name: nodes[i%len(nodes)].Name},
		}, metav1.CreateOptions{})
	})
	if err != nil {
		return 0, err
	}
	return round(float64(len(pods)) / time.Since(start).Seconds()), nil
}
