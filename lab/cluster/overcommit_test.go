package cluster

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A node whose pods request more than it has is named, and pods that have ended
// do not count.
func TestOvercommitted(t *testing.T) {
	node := func(name, cpu, pods string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse(pods)}}}
	}
	pod := func(on, cpu string, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{Spec: corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}, Status: corev1.PodStatus{Phase: phase}}
	}
	nodes := []corev1.Node{node("b", "2", "2"), node("a", "1", "10")}
	tests := []struct {
		name string
		pods []corev1.Pod
		want []string
	}{
		{"empty", nil, nil},
		{"just full", []corev1.Pod{pod("a", "400m", ""), pod("a", "600m", "")}, nil},
		{"too much CPU", []corev1.Pod{pod("a", "400m", ""), pod("a", "601m", "")}, []string{"a: 1001m of cpu requested, 1 there"}},
		{"ended pods take no room", []corev1.Pod{pod("a", "1", "Running"), pod("a", "1", "Succeeded"), pod("a", "1", "Failed")}, nil},
		{"a resource that the node does not have", []corev1.Pod{{Spec: corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}}}}}}},
			[]string{"a: 1 of example.com/gpu requested, 0 there"}},
		{"too many pods, two nodes", []corev1.Pod{pod("b", "0", ""), pod("b", "0", ""), pod("b", "0", ""), pod("a", "2", "")},
			[]string{"a: 2 of cpu requested, 1 there", "b: 3 pods, room for 2"}},
		{"pending pods are nowhere", []corev1.Pod{pod("", "100", "")}, nil},
	}
	for _, test := range tests {
		if got := overcommitted(nodes, test.pods); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
