package oracle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/berth-scheduler/berth/sim/generate"
)

// Rejected is a pod that waits, and the plugins that rejected it.
type Rejected struct {
	Pod     *v1.Pod
	Plugins []string
	Gated   bool
}

// Apply makes a change to the cluster and returns which of the waiting pods
// (by their position) it takes out of the unschedulable pool. The waiting pods
// are put into kube-scheduler's own queue, which is told of the change as its
// event handlers would tell it. A change of an object that is not there does
// nothing.
func (s *Scheduler) Apply(c generate.Change, waiting []Rejected) ([]bool, error) {
	defer Under(s.gates)()
	for _, w := range waiting {
		if err := s.enqueueRejected(w); err != nil {
			return nil, err
		}
	}
	defer func() {
		for _, w := range waiting {
			s.SchedulingQueue.Delete(s.logger, w.Pod)
		}
		s.recountDevices()
	}()
	var err error
	switch {
	case c.Node != nil:
		err = s.changeNode(c)
	case c.Namespace != nil:
		err = s.namespaces.Update(c.Namespace) // no plugin asks to be told
	case c.Other != nil:
		err = s.changeObject(c)
	default:
		err = s.changePod(c)
	}
	unschedulable := sets.New[string]()
	for _, p := range s.SchedulingQueue.UnschedulablePods() {
		unschedulable.Insert(string(p.UID))
	}
	requeued := make([]bool, len(waiting))
	for i, w := range waiting {
		requeued[i] = !unschedulable.Has(string(w.Pod.UID))
	}
	return requeued, err
}

// evictionTimeout is how long evictions in process may take.
const evictionTimeout = 30 * time.Second

// enqueueRejected brings a waiting pod to where its rejection left it in the queue.
func (s *Scheduler) enqueueRejected(w Rejected) error {
	q := s.SchedulingQueue
	q.Add(s.ctx, w.Pod)
	if w.Gated {
		return nil
	}
	// kube-scheduler's evictions go on beside, and hold their pod back from the
	// queue until they are through.
	for start := time.Now(); len(q.PodsInActiveQ()) == 0; q.Add(s.ctx, w.Pod) {
		if time.Since(start) > evictionTimeout {
			return fmt.Errorf("pod %s/%s: is held back from the queue", w.Pod.Namespace, w.Pod.Name)
		}
		time.Sleep(time.Millisecond)
		q.Delete(s.logger, w.Pod)
	}
	info, err := s.pop()
	if err != nil {
		return err
	}
	info.UnschedulablePlugins = sets.New(w.Plugins...)
	return q.AddUnschedulablePodIfNotPresent(s.logger, info, q.SchedulingCycle())
}

func (s *Scheduler) changeNode(c generate.Change) error {
	old, known := s.nodes[c.Node.Name]
	defer s.recountImages()
	switch {
	case c.Verb == generate.Add && !known:
		s.nodes[c.Node.Name] = c.Node
		s.Cache.AddNode(s.logger, c.Node)
		s.move(fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}, nil, c.Node)
	case c.Verb == generate.Update && known:
		s.nodes[c.Node.Name] = c.Node
		s.Cache.UpdateNode(s.logger, old, c.Node)
		for _, e := range framework.NodeSchedulingPropertiesChange(c.Node, old) {
			s.move(e, old, c.Node)
		}
	case c.Verb == generate.Delete && known:
		s.move(fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Delete}, old, nil)
		delete(s.nodes, c.Node.Name)
		return s.Cache.RemoveNode(s.logger, old)
	}
	return nil
}

// recountImages has the next snapshot hold how many nodes have each image.
// kube-scheduler notes that number with a node when the node itself changes, and goes
// on with the old one while images come and go elsewhere; what it would answer
// then depends on the past, and comparing it would say nothing.
func (s *Scheduler) recountImages() {
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		s.Cache.UpdateNode(s.logger, s.nodes[name], s.nodes[name])
	}
}

func (s *Scheduler) changePod(c generate.Change) error {
	old, placed := s.placed[c.Pod.UID]
	switch {
	case c.Verb == generate.Add:
		err := s.Assume(c.Pod, c.Pod.Spec.NodeName)
		s.move(framework.EventAssignedPodAdd, nil, c.Pod)
		return err
	case c.Verb == generate.Update && placed:
		changed := c.Pod.DeepCopy()
		changed.Spec.NodeName = old.Spec.NodeName
		s.placed[changed.UID] = changed
		if err := s.Cache.UpdatePod(s.logger, old, changed); err != nil {
			return fmt.Errorf("pod %s/%s: update: %w", old.Namespace, old.Name, err)
		}
		for _, e := range framework.PodSchedulingPropertiesChange(changed, old, false) {
			s.move(e, old, changed)
		}
	case c.Verb == generate.Update:
		if info, waits := s.SchedulingQueue.GetPod(c.Pod.Name, c.Pod.Namespace, nil); waits {
			s.SchedulingQueue.Update(s.ctx, info.Pod, c.Pod)
		}
	case c.Verb == generate.Delete && placed:
		delete(s.placed, c.Pod.UID)
		if err := s.Cache.RemovePod(s.logger, old); err != nil {
			return fmt.Errorf("pod %s/%s: remove: %w", old.Namespace, old.Name, err)
		}
		s.move(framework.EventAssignedPodDelete, old, nil)
	case c.Verb == generate.Delete:
		s.SchedulingQueue.Delete(s.logger, c.Pod)
		if gone := c.Pod; gone.Status.NominatedNodeName != "" { // pods of at most its priority left it that room
			s.SchedulingQueue.MoveAllToActiveOrBackoffQueue(s.logger, framework.EventAssignedPodDelete, gone, nil, func(p *v1.Pod) bool {
				return corev1helpers.PodPriority(p) <= corev1helpers.PodPriority(gone)
			})
		}
		return s.listed.Delete(c.Pod)
	}
	return nil
}

func (s *Scheduler) move(e fwk.ClusterEvent, old, new any) {
	s.SchedulingQueue.MoveAllToActiveOrBackoffQueue(s.logger, e, old, new, nil)
}
