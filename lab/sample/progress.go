package sample

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Progress is how far the placement of the sample has come.
type Progress struct {
	Total   int // pods that there are to be
	Bound   int // pods that have a node
	Created int // pods that exist

	Fitting  int // bound pods of those that can be placed
	Rejected int // pods that cannot be placed, and of which the scheduler has said so
	Misfits  int // bound pods of those that cannot be placed: the scheduler is wrong

	Pending []Reason // why pods have no node, most pods first
}

// Reason is why some pods of a workload are pending.
type Reason struct {
	Workload string
	Message  string // of the PodScheduled condition; empty: not tried yet
	Pods     int
}

// Settled says whether all that can be placed is, and all the rest is known to
// be impossible.
func (s Sample) Settled(p Progress) bool {
	return p.Fitting == s.Fitting() && p.Rejected == s.Unfitting()
}

// Watch calls report with the state of the sample at every interval, until the
// context ends or report returns false.
func (s Sample) Watch(ctx context.Context, client kubernetes.Interface, interval time.Duration, report func(Progress) bool) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(Namespace))
	pods := factory.Core().V1().Pods()
	informer := pods.Informer()
	watching, stop := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.StartWithContext(watching)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("watching the sample's pods: %w", context.Cause(ctx))
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		list, err := pods.Lister().List(labels.Everything())
		if err != nil {
			return err
		}
		if !report(s.measure(list)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// measure reads the progress off the sample's pods.
func (s Sample) measure(pods []*corev1.Pod) Progress {
	fits := map[string]bool{}
	for _, w := range workloads {
		fits[w.name] = w.fits
	}
	p := Progress{Total: s.Fitting() + s.Unfitting(), Created: len(pods)}
	pending := map[Reason]int{}
	for _, pod := range pods {
		name := pod.Labels[appLabel]
		switch {
		case pod.Spec.NodeName != "" && fits[name]:
			p.Bound++
			p.Fitting++
		case pod.Spec.NodeName != "":
			p.Bound++
			p.Misfits++
		default:
			message := rejection(pod)
			if message != "" && !fits[name] {
				p.Rejected++
			}
			pending[Reason{Workload: name, Message: message}]++
		}
	}
	for reason, n := range pending {
		reason.Pods = n
		p.Pending = append(p.Pending, reason)
	}
	slices.SortFunc(p.Pending, func(a, b Reason) int {
		return cmp.Or(-cmp.Compare(a.Pods, b.Pods), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Message, b.Message))
	})
	return p
}

// rejection is what the scheduler has said of a pod that it could not place.
func rejection(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return cmp.Or(condition.Message, condition.Reason)
		}
	}
	return ""
}
