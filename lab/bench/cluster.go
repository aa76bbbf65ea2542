package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// creators is how many pods are created at once; the control plane, not the
// bench, is to be the limit.
const creators = 32

// stage is a fresh control plane on which the steps of a workload are taken.
type stage struct {
	cluster    *cluster.Cluster
	client     kubernetes.Interface
	dynamic    dynamic.Interface
	seen       *bindings
	scheduler  *cluster.Scheduler
	profile    string // where a CPU profile of the measured phase goes
	profiling  sync.WaitGroup
	unprofiled error // why there is none
	run        *Run
	unawaited  []*CreatePods
	background background
}

// newStage starts a control plane that takes pods as the suite's does: with a
// priority and no class for it.
func newStage(ctx context.Context) (*stage, error) {
	c, err := cluster.Start(ctx, cluster.Options{WithoutKWOK: true, WithoutControllers: true,
		APIServerFlags: []string{"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,Priority"}})
	if err != nil {
		return nil, err
	}
	s := &stage{cluster: c}
	config := c.AdminConfig()
	config.QPS, config.Burst = -1, -1
	if s.dynamic, err = dynamic.NewForConfig(config); err == nil {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		s.client, err = kubernetes.NewForConfig(config)
	}
	if err == nil {
		s.seen, err = watchBindings(ctx, s.client)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return s, nil
}

// runCluster measures one scheduler against a fresh control plane.
func runCluster(ctx context.Context, o Options, w *Workload, scheduler string) (*Run, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := newStage(ctx)
	if err != nil {
		return nil, err
	}
	defer s.cluster.Close()
	kind := map[string]string{Berth: cluster.Berth, KubeScheduler: cluster.KubeScheduler}[scheduler]
	if s.scheduler, err = s.cluster.StartScheduler(ctx, cluster.SchedulerOptions{Kind: kind, Binary: o.Binary}); err != nil {
		return nil, err
	}
	defer s.scheduler.Stop()
	if err := s.namespaces(ctx, w); err != nil {
		return nil, err
	}
	if scheduler == Berth {
		s.profile = o.CPUProfile
	}
	s.run = &Run{Scheduler: scheduler}
	defer s.background.stop() // before the scheduler and the control plane end
	for i, step := range w.Steps {
		if err := s.take(ctx, step); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
	}
	s.profiling.Wait()
	return s.run, errors.Join(s.unprofiled, s.background.stop())
}

// writeProfile asks the scheduler for a CPU profile of the next few seconds.
func (s *stage) writeProfile(ctx context.Context) error {
	config := s.cluster.AdminConfig()
	config.TLSClientConfig.Insecure = true // nobody signed the scheduler's certificate
	config.TLSClientConfig.CAData, config.TLSClientConfig.CAFile = nil, ""
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	url := fmt.Sprintf("https://127.0.0.1:%d/debug/pprof/profile?seconds=%d", s.scheduler.Port, profileSeconds)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, response.Status, data)
	}
	return os.WriteFile(s.profile, data, 0o644)
}

// profileSeconds is how long a profile in mode cluster lasts.
const profileSeconds = 10

func (s *stage) take(ctx context.Context, step Step) error {
	switch step := step.(type) {
	case *CreateNodes:
		s.run.Nodes += step.Count
		return s.cluster.CreateNodes(ctx, slices.Collect(step.All()))
	case *CreateNamespaces:
		for _, n := range step.All() {
			if err := s.createNamespace(ctx, n); err != nil {
				return err
			}
		}
		return nil
	case *CreatePods:
		return s.place(ctx, step)
	case *DeletePods:
		return s.deletePods(ctx, step)
	case *Churn:
		s.churn(ctx, step)
		return nil
	case *Barrier:
		return s.barrier(ctx, step)
	case *CreateObjects:
		for range step.Count {
			if _, err := s.create(ctx, step.Namespace, step.Object); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("no step is a %T", step)
}

// namespaces makes those that the steps use and none creates, long before they
// do: kube-apiserver holds pods back whose namespace is very new.
func (s *stage) namespaces(ctx context.Context, w *Workload) error {
	for _, step := range w.Steps {
		name := ""
		switch step := step.(type) {
		case *CreateNamespaces:
			if err := s.take(ctx, step); err != nil {
				return err
			}
		case *CreatePods:
			name = step.Namespace
		case *Churn:
			name = step.Namespace
		case *CreateObjects:
			name = step.Namespace
		}
		if name == "" {
			continue
		}
		if err := s.createNamespace(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) createNamespace(ctx context.Context, n *v1.Namespace) error {
	_, err := s.client.CoreV1().Namespaces().Create(ctx, n, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// place creates the step's pods and waits until all are bound. The measured
// phase lasts from the first creation to the last binding seen.
func (s *stage) place(ctx context.Context, step *CreatePods) error {
	pods := step.All()
	if step.Measure { // what is left to do for pods before is not for these
		if _, err := s.rest(ctx); err != nil {
			return err
		}
	}
	before, err := s.scheduler.Usage()
	if err != nil {
		return err
	}
	if step.Measure && s.profile != "" {
		s.profiling.Go(func() { s.unprofiled = s.writeProfile(ctx) })
	}
	start := time.Now()
	created, err := s.createPods(ctx, pods)
	if err != nil {
		return err
	}
	if step.NoWait {
		s.unawaited = append(s.unawaited, step)
		return nil
	}
	if err := s.seen.wait(ctx, s.scheduler, step, false); err != nil {
		return err
	}
	if !step.Measure {
		return nil
	}
	after, err := s.scheduler.Usage()
	if err != nil {
		return err
	}
	rest, err := s.rest(ctx)
	if err != nil {
		return err
	}
	last, latencies := s.seen.latencies(step, created)
	n := float64(step.Count)
	r := s.run
	r.Pods, r.Scheduled = step.Count, len(latencies)
	r.PodsPerSecond = round(n / last.Sub(start).Seconds())
	r.CPUMillisPerPod = round(float64(after.CPU-before.CPU) / float64(time.Millisecond) / n)
	r.CPUMillisToRest = round(float64(rest.CPU-before.CPU) / float64(time.Millisecond) / n)
	r.P50Millis = round(percentile(millis(latencies), 0.5))
	r.P99Millis = round(percentile(millis(latencies), 0.99))
	r.PeakRSSMiB = round(float64(rest.PeakRSS) / (1 << 20))
	return nil
}

// A scheduler is at rest when it took less than calmCPU in each calmTime of
// restTime; who works in the background of the steps never is.
const (
	calmTime  = time.Second
	calmCPU   = 50 * time.Millisecond
	restTime  = 2 * calmTime
	restLimit = 90 * time.Second
)

// rest waits until the scheduler has done what is left to do once all pods are
// bound, publishing events above all, and returns what it has taken by then.
func (s *stage) rest(ctx context.Context) (cluster.Usage, error) {
	before, err := s.scheduler.Usage()
	if err != nil || s.background.busy() {
		return before, err
	}
	for calm, waited := time.Duration(0), time.Duration(0); calm < restTime && waited < restLimit; waited += calmTime {
		select {
		case <-ctx.Done():
			return before, context.Cause(ctx)
		case <-time.After(calmTime):
		}
		now, err := s.scheduler.Usage()
		if err != nil {
			return before, err
		}
		if calm += calmTime; now.CPU-before.CPU > calmCPU {
			calm = 0
		}
		before = now
	}
	return before, nil
}

// createPods creates the pods, many at once but in order of name, and returns
// when each creation was sent.
func (s *stage) createPods(ctx context.Context, pods []*v1.Pod) (map[string]time.Time, error) {
	var mu sync.Mutex
	sent := make(map[string]time.Time, len(pods))
	err := concurrently(ctx, creators, len(pods), func(i int) error {
		mu.Lock()
		sent[pods[i].Name] = time.Now()
		mu.Unlock()
		_, err := s.client.CoreV1().Pods(pods[i].Namespace).Create(ctx, pods[i], metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("creating pods: %w", err)
	}
	return sent, nil
}

// barrier waits for the pods that nobody waited for.
func (s *stage) barrier(ctx context.Context, step *Barrier) error {
	selector := labels.SelectorFromSet(step.Labels)
	for _, pods := range s.unawaited {
		if len(step.Namespaces) > 0 && !slices.Contains(step.Namespaces, pods.Namespace) ||
			!selector.Matches(labels.Set(pods.Template.Labels)) {
			continue
		}
		if err := s.seen.wait(ctx, s.scheduler, pods, step.Attempted); err != nil {
			return err
		}
	}
	return nil
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
