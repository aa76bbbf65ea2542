package faults

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// newPod is a pod that requests a tenth of a core and ends at once when it is
// deleted; each option adds to it.
func newPod(namespace, name string, options ...func(*corev1.Pod)) *corev1.Pod {
	grace := int64(0)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}}, // never pulled
		},
	}
	requests("100m")(pod)
	for _, option := range options {
		option(pod)
	}
	return pod
}

func requests(cpu string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

func app(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels["app"] = name }
}

// on has the pod run on one node, whatever its taints.
func on(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
}

func class(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.PriorityClassName = name }
}

func claim(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	}
}

// term is about pods of an app on one node, in the pod's own namespace or, with
// a team, in those of the team.
func term(app, team string) corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
	if team != "" {
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
	}
	return t
}

func with(t corev1.PodAffinityTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{t}}}
	}
}

func without(t corev1.PodAffinityTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{t}}}
	}
}

func (s *stage) create(pods ...*corev1.Pod) {
	for _, pod := range pods {
		if s.err == nil {
			_, err := s.client.CoreV1().Pods(pod.Namespace).Create(s.ctx, pod, metav1.CreateOptions{})
			s.note(err)
		}
	}
}

func (s *stage) delete(namespace, name string) {
	if s.err == nil {
		s.note(s.client.CoreV1().Pods(namespace).Delete(s.ctx, name, metav1.DeleteOptions{}))
	}
}

// nodeOf creates a node, which only pods tolerate that tolerate everything when
// it is kept.
func (s *stage) nodeOf(name, cpu string, kept bool) {
	if s.err != nil {
		return
	}
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("110")}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
	if kept {
		node.Spec.Taints = []corev1.Taint{{Key: "kept", Effect: corev1.TaintEffectNoSchedule}}
	}
	s.note(s.cluster.CreateNodes(s.ctx, []*corev1.Node{node}))
}

func (s *stage) namespace(name string, labels map[string]string) {
	if s.err == nil {
		_, err := s.client.CoreV1().Namespaces().Create(s.ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
		s.note(err)
	}
}

// assign gives the namespace to a team.
func (s *stage) assign(namespace, team string) {
	if s.err == nil {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"team":%q}}}`, team)
		_, err := s.client.CoreV1().Namespaces().Patch(s.ctx, namespace, types.MergePatchType, patch, metav1.PatchOptions{})
		s.note(err)
	}
}

// priority creates a priority class and returns its name.
func (s *stage) priority(name string, value int32) string {
	name = s.home + "-" + name
	if s.err == nil {
		_, err := s.client.SchedulingV1().PriorityClasses().Create(s.ctx,
			&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{})
		s.note(err)
	}
	return name
}

// claimForOne creates a claim that one pod at a time may use, bound already to
// a volume that is everywhere.
func (s *stage) claimForOne(name string) {
	if s.err != nil {
		return
	}
	none := ""
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: s.home + "-" + name},
		Spec: corev1.PersistentVolumeSpec{Capacity: size, AccessModes: modes,
			ClaimRef:               &corev1.ObjectReference{Namespace: s.home, Name: name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}}}}
	_, err := s.client.CoreV1().PersistentVolumes().Create(s.ctx, volume, metav1.CreateOptions{})
	s.note(err)
	bound := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes, StorageClassName: &none, VolumeName: volume.Name,
			Resources: corev1.VolumeResourceRequirements{Requests: size}}}
	_, err = s.client.CoreV1().PersistentVolumeClaims(s.home).Create(s.ctx, bound, metav1.CreateOptions{})
	s.note(err)
}
