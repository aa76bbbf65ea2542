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

// measureCeilings creates the workload's nodes, the pods that are there before
// it measures, and then its measured pods with no scheduler about: first pods
// that are bound as soon as they are there, then pods of the same kind once
// more, all of them before the first binding.
func measureCeilings(ctx context.Context, w *Workload) (c ceilings, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := newStage(ctx, false)
	if err != nil {
		return c, err
	}
	defer s.cluster.Close()
	if err := s.namespaces(ctx, w); err != nil {
		return c, err
	}
	o, err := w.ceilingObjects()
	if err != nil {
		return c, err
	}
	if err := s.cluster.CreateNodes(ctx, o.nodes); err != nil {
		return c, err
	}
	create := func(pods []*v1.Pod) error {
		return concurrently(ctx, creators, len(pods), func(i int) error {
			_, err := s.client.CoreV1().Pods(pods[i].Namespace).Create(ctx, pods[i], metav1.CreateOptions{})
			return err
		})
	}
	if err := create(o.there); err != nil {
		return c, err
	}
	bind := func(p *v1.Pod, i int) error {
		return s.client.CoreV1().Pods(p.Namespace).Bind(ctx, &v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
			Target:     v1.ObjectReference{Kind: "Node", Name: o.nodes[i%len(o.nodes)].Name},
		}, metav1.CreateOptions{})
	}
	start := time.Now()
	if err := s.createAndBind(ctx, o.pods, bind); err != nil {
		return c, err
	}
	c.createBind = perSecond(len(o.pods), start)
	if err := create(o.again); err != nil {
		return c, err
	}
	start = time.Now()
	err = concurrently(ctx, creators, len(o.again), func(i int) error { return bind(o.again[i], i) })
	c.bind = perSecond(len(o.again), start)
	return c, err
}

// ceilingObjects are what ceilings are measured with.
type ceilingObjects struct {
	nodes []*v1.Node
	there []*v1.Pod // pods of earlier steps, each on a node
	pods  []*v1.Pod // the measured ones
	again []*v1.Pod // with other names
}

// ceilingObjects makes the workload's nodes, the pods of earlier steps that
// find a node, and its measured pods twice.
func (w *Workload) ceilingObjects() (*ceilingObjects, error) {
	o := &ceilingObjects{}
	measured := w.measured()
	for _, step := range w.Steps {
		switch step := step.(type) {
		case *CreateNodes:
			made, err := step.All()
			if err != nil {
				return nil, err
			}
			o.nodes = append(o.nodes, made...)
		case *CreatePods:
			made, err := step.All()
			if err != nil {
				return nil, err
			}
			switch {
			case slices.Contains(measured, step):
				o.pods = append(o.pods, made[:min(len(made), ceilingPods)]...)
			case len(o.pods) == 0 && !step.NoWait && step.Steady == 0:
				o.there = append(o.there, made...)
			}
		}
	}
	for i, p := range o.there {
		p.Spec.SchedulingGates = nil
		p.Spec.NodeName = o.nodes[i%len(o.nodes)].Name
	}
	for _, p := range o.pods {
		p.Spec.SchedulingGates = nil // nobody would bind it
		twin := p.DeepCopy()
		twin.Name += "-again"
		o.again = append(o.again, twin)
	}
	return o, nil
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
