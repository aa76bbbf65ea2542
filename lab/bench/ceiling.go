package bench

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ceilings is what a control plane does for a client that decides nothing, in
// pods per second.
type ceilings struct {
	bind       float64 // binding pods that are there
	createBind float64 // creating pods and binding them, as the measured phase does
}

// ceilingPods is the most pods that a ceiling is measured on.
const ceilingPods = 10_000

// measureCeilings creates the workload's nodes and measured pods with no
// scheduler about: first pods that are bound as soon as they are there, then
// pods of the same kind once more, all of them before the first binding.
func measureCeilings(ctx context.Context, w *Workload) (c ceilings, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := newStage(ctx)
	if err != nil {
		return c, err
	}
	defer s.cluster.Close()
	if err := s.namespaces(ctx, w); err != nil {
		return c, err
	}
	var nodes []*v1.Node
	var pods, again []*v1.Pod
	for _, step := range w.Steps {
		switch step := step.(type) {
		case *CreateNodes:
			nodes = append(nodes, slices.Collect(step.All())...)
		case *CreatePods:
			if step.Measure {
				twin := *step
				twin.Count = min(twin.Count, ceilingPods)
				pods = append(pods, twin.All()...)
				twin.Group += "-again"
				again = append(again, twin.All()...)
			}
		}
	}
	if err := s.cluster.CreateNodes(ctx, nodes); err != nil {
		return c, err
	}
	bind := func(p *v1.Pod, i int) error {
		return s.client.CoreV1().Pods(p.Namespace).Bind(ctx, &v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
			Target:     v1.ObjectReference{Kind: "Node", Name: nodes[i%len(nodes)].Name},
		}, metav1.CreateOptions{})
	}
	start := time.Now()
	if err := s.createAndBind(ctx, pods, bind); err != nil {
		return c, err
	}
	c.createBind = perSecond(len(pods), start)
	if _, err := s.createPods(ctx, again); err != nil {
		return c, err
	}
	start = time.Now()
	err = concurrently(ctx, creators, len(again), func(i int) error { return bind(again[i], i) })
	c.bind = perSecond(len(again), start)
	return c, err
}

// createAndBind has as many workers bind as create, so that neither waits for
// the other, as with a scheduler.
func (s *stage) createAndBind(ctx context.Context, pods []*v1.Pod, bind func(p *v1.Pod, i int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	created, bound := make(chan int, len(pods)), make(chan error)
	go func() {
		bound <- concurrently(ctx, creators, len(pods), func(int) error {
			select {
			case i := <-created:
				return bind(pods[i], i)
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	err := concurrently(ctx, creators, len(pods), func(i int) error {
		_, err := s.client.CoreV1().Pods(pods[i].Namespace).Create(ctx, pods[i], metav1.CreateOptions{})
		if err == nil {
			created <- i
		}
		return err
	})
	if err != nil {
		cancel()
	}
	return errors.Join(err, <-bound)
}

func perSecond(n int, since time.Time) float64 {
	return round(float64(n) / time.Since(since).Seconds())
}
