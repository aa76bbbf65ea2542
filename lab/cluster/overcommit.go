package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresource "k8s.io/component-helpers/resource"
)

// Overcommitted reads all nodes and pods back from the API and names, in order,
// each node whose pods request more of a resource than it has, or that are more
// than it takes. Pods that have ended take no room.
func (c *Cluster) Overcommitted(ctx context.Context) ([]string, error) {
	nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	pods, err := c.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return overcommitted(nodes.Items, pods.Items), nil
}

func overcommitted(nodes []corev1.Node, pods []corev1.Pod) []string {
	type load struct {
		pods     int64
		requests corev1.ResourceList
	}
	loads := map[string]*load{}
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		l := loads[pod.Spec.NodeName]
		if l == nil {
			l = &load{requests: corev1.ResourceList{}}
			loads[pod.Spec.NodeName] = l
		}
		l.pods++
		for name, quantity := range podresource.PodRequests(pod, podresource.PodResourcesOptions{}) {
			sum := l.requests[name]
			sum.Add(quantity)
			l.requests[name] = sum
		}
	}
	var found []string
	for _, node := range nodes {
		l := loads[node.Name]
		if l == nil {
			continue
		}
		if most := node.Status.Allocatable.Pods().Value(); l.pods > most {
			found = append(found, fmt.Sprintf("%s: %d pods, room for %d", node.Name, l.pods, most))
		}
		for name, requested := range l.requests {
			if room := node.Status.Allocatable[name]; requested.Cmp(room) > 0 {
				found = append(found, fmt.Sprintf("%s: %s of %s requested, %s there", node.Name, &requested, name, &room))
			}
		}
	}
	slices.Sort(found)
	return found
}
