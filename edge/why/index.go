package why

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/manifest"
)

// index finds the workloads of a cluster, and what events say, by the objects that they are about.
// Each part is made when it is asked for first, and knows what the set has then.
type index struct {
	workloads *workloadIndex
	events    *eventIndex
	pods      map[types.UID]*v1.Pod
	podNames  map[types.NamespacedName]*v1.Pod
}

type workloadIndex struct {
	objects map[Workload]metav1.Object
	// below are the objects that the workload controls.
	below map[Workload][]metav1.Object
}

type eventIndex struct {
	// refusals are the last events FailedCreate.
	refusals map[Workload]*refusal
	// rejections are the events FailedScheduling, by pod.
	rejections map[types.NamespacedName][]*manifest.Event
}

func keyOf(o metav1.Object) Workload { return Workload{kindOf(o), o.GetNamespace(), o.GetName()} }

// all returns the workloads whose objects are known.
func (c *Cluster) all() []metav1.Object { return slices.Concat(c.Set.Workloads, c.Set.Running) }

// indexWorkloads returns the index of the workloads whose objects are known.
func (c *Cluster) indexWorkloads() *workloadIndex {
	if c.index.workloads != nil {
		return c.index.workloads
	}
	x := &workloadIndex{map[Workload]metav1.Object{}, map[Workload][]metav1.Object{}}
	for _, o := range c.all() {
		x.objects[keyOf(o)] = o
		if by := metav1.GetControllerOfNoCopy(o); by != nil {
			key := Workload{strings.ToLower(by.Kind), o.GetNamespace(), by.Name}
			x.below[key] = append(x.below[key], o)
		}
	}
	c.index.workloads = x
	return x
}

// Makers returns the objects whose controllers make the workload's pods, with kinds as the API
// writes them: itself, then those that it made, the newest first.
func (c *Cluster) Makers(w Workload) (all []Workload) {
	below := slices.Clone(c.indexWorkloads().below[w])
	slices.SortStableFunc(below, func(a, b metav1.Object) int {
		return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
	})
	keys := []Workload{w}
	for _, o := range below {
		keys = append(keys, keyOf(o))
	}
	for _, key := range keys {
		if kind := makers[key.Kind]; kind != "" {
			all = append(all, Workload{kind, key.Namespace, key.Name})
		}
	}
	return all
}

// indexEvents returns the index of the events that were read.
func (c *Cluster) indexEvents() *eventIndex {
	if c.index.events != nil {
		return c.index.events
	}
	x := &eventIndex{map[Workload]*refusal{}, map[types.NamespacedName][]*manifest.Event{}}
	for i := range c.Set.Events {
		switch e := &c.Set.Events[i]; {
		case e.Reason == "FailedCreate":
			key := Workload{strings.ToLower(e.Kind), e.Namespace, e.Name}
			if last := x.refusals[key]; last == nil || e.Last.After(last.since) {
				x.refusals[key] = &refusal{e.Message, e.Last}
			}
		case e.Reason == string(machine.ReasonFailedScheduling) && e.Kind == "Pod":
			pod := types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
			x.rejections[pod] = append(x.rejections[pod], e)
		}
	}
	c.index.events = x
	return x
}

// withoutFixes returns a copy of the cluster for answers without fixes. It shares the index.
func (c *Cluster) withoutFixes() *Cluster {
	c.indexWorkloads()
	c.indexEvents()
	c.indexPods()
	brief := *c
	brief.NoFixes = true
	return &brief
}

// blockedOnly returns a copy of the cluster for answers that say what blocks a pod, and read nothing
// to say since when.
func (c *Cluster) blockedOnly() *Cluster {
	brief := c.withoutFixes()
	brief.LookNode = nil
	return brief
}
