package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
)

// kinds are the objects that createAny, updateAny and churn can make, and
// whether they are in namespaces.
var kinds = map[string]bool{
	"Node": false, "Pod": true, "Service": true, "PodDisruptionBudget": true,
	"DeviceClass": false, "DeviceTaintRule": false, "ResourceSlice": false, "ResourceClaim": true, "ResourceClaimTemplate": true,
}

// resource is the client for objects of the kind.
func (s *stage) resource(namespace string, object *unstructured.Unstructured) dynamic.ResourceInterface {
	plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	if kinds[object.GetKind()] {
		return s.dynamic.Resource(plural).Namespace(namespace)
	}
	return s.dynamic.Resource(plural)
}

// create creates the object and returns the name that it was given.
func (s *stage) create(ctx context.Context, namespace string, object *unstructured.Unstructured) (string, error) {
	live, err := s.resource(namespace, object).Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("creating a %s: %w", object.GetKind(), err)
	}
	return live.GetName(), nil
}

// createObjects creates the step's objects, in order.
func (s *stage) createObjects(ctx context.Context, step *CreateObjects) error {
	objects, err := step.All()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if _, err := s.create(ctx, step.Namespace, object); err != nil {
			return err
		}
	}
	return nil
}

// updateObjects replaces what the step names, and its status after it, as the
// suite does.
func (s *stage) updateObjects(ctx context.Context, step *UpdateObjects) error {
	objects, err := step.All()
	if err != nil {
		return err
	}
	update := func(i int) error {
		client := s.resource(step.Namespace, objects[i])
		_, err := client.Update(ctx, objects[i], metav1.UpdateOptions{}, step.Subresources...)
		if err == nil {
			_, err = client.UpdateStatus(ctx, objects[i], metav1.UpdateOptions{})
		}
		if err != nil {
			return fmt.Errorf("updating a %s: %w", step.Kind, err)
		}
		return nil
	}
	if step.PerSecond > 0 {
		return every(ctx, time.Second/time.Duration(step.PerSecond), len(objects), update)
	}
	return concurrently(ctx, 1, len(objects), update)
}

// background is work beside the steps, which ends with the run.
type background struct {
	group  sync.WaitGroup
	mu     sync.Mutex
	cancel []context.CancelFunc
	errs   []error
}

// start runs f until it returns or the run ends.
func (b *background) start(ctx context.Context, f func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	b.cancel = append(b.cancel, cancel)
	b.group.Go(func() {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.errs = append(b.errs, err)
		}
	})
}

// busy says whether any work was started.
func (b *background) busy() bool { return len(b.cancel) > 0 }

// stop ends the work and returns what went wrong before.
func (b *background) stop() error {
	for _, cancel := range b.cancel {
		cancel()
	}
	b.group.Wait()
	return errors.Join(b.errs...)
}

// every calls f once an interval, at most limit times if that is not 0.
func every(ctx context.Context, interval time.Duration, limit int, f func(i int) error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for i := 0; limit == 0 || i < limit; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}

// churn starts to make the step's objects over and over.
func (s *stage) churn(ctx context.Context, step *Churn) error {
	var objects []*unstructured.Unstructured
	for _, o := range step.Objects {
		made, err := o.All()
		if err != nil {
			return err
		}
		objects = append(objects, made...)
	}
	limit := step.Number
	if step.Recreate {
		limit = 0
	}
	names := make([][]string, len(objects)) // of what is there, by turn
	for k := range names {
		names[k] = make([]string, max(1, step.Number))
	}
	s.background.start(ctx, func(ctx context.Context) error {
		return every(ctx, step.Interval, limit, func(i int) error {
			for k, object := range objects {
				at := &names[k][i%len(names[k])]
				if err := s.turn(ctx, step, object, at); err != nil {
					return fmt.Errorf("churn: %w", err)
				}
			}
			return nil
		})
	})
	return nil
}

// turn creates the object, or deletes it where it was created a turn ago.
func (s *stage) turn(ctx context.Context, step *Churn, object *unstructured.Unstructured, name *string) (err error) {
	if step.Recreate && *name != "" {
		err = s.resource(step.Namespace, object).Delete(ctx, *name, metav1.DeleteOptions{})
		*name = ""
		return err
	}
	*name, err = s.create(ctx, step.Namespace, object)
	return err
}

func (s *stage) deletePods(ctx context.Context, step *DeletePods) error {
	pods := s.client.CoreV1().Pods(step.Namespace)
	chosen := metav1.ListOptions{LabelSelector: labels.SelectorFromSet(step.Labels).String()}
	work := func(ctx context.Context) error {
		return pods.DeleteCollection(ctx, metav1.DeleteOptions{}, chosen)
	}
	if step.PerSecond > 0 {
		list, err := pods.List(ctx, chosen)
		if err != nil {
			return err
		}
		work = func(ctx context.Context) error {
			if len(list.Items) == 0 {
				return nil
			}
			return every(ctx, time.Second/time.Duration(step.PerSecond), len(list.Items), func(i int) error {
				return pods.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{})
			})
		}
	}
	if !step.NoWait {
		return work(ctx)
	}
	s.background.start(ctx, work)
	return nil
}
