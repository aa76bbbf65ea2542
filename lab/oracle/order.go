package oracle

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Order returns the pods in the order in which kube-scheduler's own queue
// hands them out when all of them have come in the order given. Gated pods are
// left out. The queue is empty again afterwards.
func (s *Scheduler) Order(pods []*v1.Pod) ([]*v1.Pod, error) {
	q := s.SchedulingQueue
	for _, p := range pods {
		q.Add(s.ctx, p)
	}
	defer func() {
		for _, p := range pods {
			q.Delete(s.logger, p)
		}
	}()
	var order []*v1.Pod
	for range q.PodsInActiveQ() {
		info, err := s.pop()
		if err != nil {
			return nil, err
		}
		q.Done(info.Pod.UID)
		order = append(order, info.Pod)
	}
	return order, nil
}

// pop takes the pod at the head of kube-scheduler's queue, in which no pod is of a group.
func (s *Scheduler) pop() (*framework.QueuedPodInfo, error) {
	entity, err := s.SchedulingQueue.Pop(s.logger)
	if err != nil {
		return nil, err
	}
	info, ok := entity.(*framework.QueuedPodInfo)
	if !ok {
		return nil, fmt.Errorf("kube-scheduler's queue hands out a %T", entity)
	}
	return info, nil
}
