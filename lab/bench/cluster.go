package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

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
	nodes      []*v1.Node
	unawaited  []unawaited
	phase      *phase // nil: nothing is measured now
	background background
}

// unawaited are pods that nobody waited for so far.
type unawaited struct {
	*CreatePods
	*group
}

// newStage starts a control plane that takes pods as the suite's does: with a
// priority and no class for it, and with versions of the API that the suite's
// objects are in. With claims it makes those that pods get by template, and has
// them go with their pods.
func newStage(ctx context.Context, claims bool) (*stage, error) {
	o := cluster.Options{WithoutKWOK: true, WithoutControllers: !claims, APIServerFlags: []string{
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,Priority",
		"--runtime-config=resource.k8s.io/v1beta2=true,resource.k8s.io/v1alpha3=true",
	}}
	if claims {
		o.Controllers = []string{"resourceclaim-controller", "garbage-collector-controller"}
	}
	c, err := cluster.Start(ctx, o)
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
	s, err := newStage(ctx, w.devices())
	if err != nil {
		return nil, err
	}
	defer s.cluster.Close()
	kind := map[string]string{Berth: cluster.Berth, KubeScheduler: cluster.KubeScheduler}[scheduler]
	options := cluster.SchedulerOptions{Kind: kind, Binary: o.Binary}
	if w.Config != "" {
		options.Config = []byte(w.Config)
	}
	if scheduler == KubeScheduler && o.Gates != "" {
		options.Flags = []string{"--feature-gates=" + o.Gates}
	}
	if s.scheduler, err = s.cluster.StartScheduler(ctx, options); err != nil {
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

func (s *stage) take(ctx context.Context, step Step) error {
	switch step := step.(type) {
	case *CreateNodes:
		return s.createNodes(ctx, step)
	case *CreateNamespaces:
		for _, n := range step.All() {
			if err := s.createNamespace(ctx, n); err != nil {
				return err
			}
		}
		return nil
	case *CreatePods:
		return s.schedulePods(ctx, step)
	case *DeletePods:
		return s.deletePods(ctx, step)
	case *Churn:
		return s.churn(ctx, step)
	case *Barrier:
		return s.barrier(ctx, step)
	case *CreateObjects:
		return s.createObjects(ctx, step)
	case *UpdateObjects:
		return s.updateObjects(ctx, step)
	case *AllocateClaims:
		return s.allocateClaims(ctx, step)
	case *StartMeasuring:
		return s.begin(ctx, step.counts)
	case *StopMeasuring:
		return s.end(ctx)
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

func (s *stage) createNodes(ctx context.Context, step *CreateNodes) error {
	nodes, err := step.All()
	if err != nil {
		return err
	}
	s.nodes = append(s.nodes, nodes...)
	s.run.Nodes += len(nodes)
	attachable := step.CSINodes(nodes)
	err = concurrently(ctx, creators, len(attachable), func(i int) error {
		_, err := s.client.StorageV1().CSINodes().Create(ctx, attachable[i], metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating CSINodes: %w", err)
	}
	return s.cluster.CreateNodes(ctx, nodes)
}

// schedulePods creates the step's pods and waits until all are bound.
func (s *stage) schedulePods(ctx context.Context, step *CreatePods) error {
	if err := s.createVolumes(ctx, step); err != nil {
		return err
	}
	if step.Measure {
		if err := s.begin(ctx, func(c *CreatePods) bool { return c == step }); err != nil {
			return err
		}
	}
	var err error
	if step.Steady > 0 {
		err = s.placeSteadily(ctx, step)
	} else {
		err = s.placeOnce(ctx, step)
	}
	if err != nil || !step.Measure {
		return err
	}
	return s.end(ctx)
}

func (s *stage) placeOnce(ctx context.Context, step *CreatePods) error {
	pods, err := step.All()
	if err != nil {
		return err
	}
	g, err := s.createPods(ctx, step, pods)
	if err != nil {
		return err
	}
	if step.NoWait {
		s.unawaited = append(s.unawaited, unawaited{step, g})
		return nil
	}
	return s.seen.wait(ctx, s.scheduler, g, false)
}

// placeSteadily creates the step's pods and, until the time is over, deletes each
// once it is bound and creates another one.
func (s *stage) placeSteadily(ctx context.Context, step *CreatePods) error {
	ctx, cancel := context.WithTimeoutCause(ctx, step.Steady, errOver)
	defer cancel()
	err := s.replaceBound(ctx, step)
	if context.Cause(ctx) == errOver {
		return nil
	}
	return err
}

// replaceBound returns when the context ends. What it creates anew is the step's
// first pod under other names, as in the suite.
func (s *stage) replaceBound(ctx context.Context, step *CreatePods) error {
	pods, err := step.All()
	if err != nil {
		return err
	}
	g, err := s.createPods(ctx, step, pods)
	if err != nil {
		return err
	}
	zero := int64(0)
	for n := 0; ; n++ {
		if err := s.seen.waitFor(ctx, s.scheduler, g, n+1, false); err != nil {
			return err
		}
		bound := s.seen.nth(g, n)
		if err := s.client.CoreV1().Pods(bound.Namespace).Delete(ctx, bound.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
			return fmt.Errorf("deleting a bound pod: %w", err)
		}
		p := pods[0].DeepCopy()
		p.Name = fmt.Sprintf("%s-%d", p.Name, n)
		s.seen.join(g, p)
		s.seen.send(g, p)
		if _, err := s.client.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a pod: %w", err)
		}
	}
}

// errOver ends a steady state.
var errOver = errors.New("the time is over")

// createPods creates the step's pods, many at once but in order.
func (s *stage) createPods(ctx context.Context, step *CreatePods, pods []*v1.Pod) (*group, error) {
	g := s.seen.expect(pods)
	if s.phase != nil && s.phase.counts(step) {
		s.phase.groups = append(s.phase.groups, g)
	}
	err := concurrently(ctx, creators, len(pods), func(i int) error {
		s.seen.send(g, pods[i])
		_, err := s.client.CoreV1().Pods(pods[i].Namespace).Create(ctx, pods[i], metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("creating pods: %w", err)
	}
	return g, nil
}

// barrier waits for the pods that nobody waited for.
func (s *stage) barrier(ctx context.Context, step *Barrier) error {
	selector := labels.SelectorFromSet(step.Labels)
	for _, pods := range s.unawaited {
		if len(step.Namespaces) > 0 && !slices.Contains(step.Namespaces, pods.Namespace) ||
			!selector.Matches(labels.Set(pods.Labels)) {
			continue
		}
		if err := s.seen.wait(ctx, s.scheduler, pods.group, step.Attempted); err != nil {
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
