package bench

import (
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// All makes the step's nodes. Names go by the template; where it has none,
// they tell of the step and the number.
func (s *CreateNodes) All() ([]*v1.Node, error) {
	nodes, err := filled[v1.Node](s.Template, s.Count)
	for i, n := range nodes {
		n.TypeMeta = metav1.TypeMeta{}
		if n.Name == "" {
			prefix := n.GenerateName
			if prefix == "" {
				prefix = "node-"
			}
			n.Name = fmt.Sprintf("%s%d-%05d", prefix, s.Step, i)
		}
		n.GenerateName = ""
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[v1.LabelHostname] = n.Name
		switch {
		case s.LabelKey == "":
		case len(s.LabelValues) > 0:
			n.Labels[s.LabelKey] = s.LabelValues[i%len(s.LabelValues)]
		default:
			n.Labels[s.LabelKey] = n.Name
		}
		if n.Status.Allocatable == nil {
			n.Status.Allocatable = n.Status.Capacity.DeepCopy()
		}
		maps.Copy(n.Status.Allocatable, s.Allocatable)
	}
	return nodes, err
}

// CSINodes makes what says which volumes the nodes can have attached.
func (s *CreateNodes) CSINodes(nodes []*v1.Node) []*storagev1.CSINode {
	if len(s.Drivers) == 0 {
		return nil
	}
	list := make([]*storagev1.CSINode, len(nodes))
	for i, n := range nodes {
		list[i] = &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, Annotations: map[string]string{v1.MigratedPluginsAnnotationKey: s.Migrated},
		}}
		for _, d := range s.Drivers {
			d.NodeID = n.Name
			list[i].Spec.Drivers = append(list[i].Spec.Drivers, d)
		}
	}
	return list
}

// All makes the namespaces, prefix-0 and on.
func (s *CreateNamespaces) All() []*v1.Namespace {
	var list []*v1.Namespace
	for i := range s.Count {
		n := s.Template.DeepCopy()
		n.GenerateName, n.Name = "", fmt.Sprintf("%s-%d", s.Prefix, i)
		list = append(list, n)
	}
	return list
}

// All makes the step's pods.
func (s *CreatePods) All() ([]*v1.Pod, error) {
	pods, err := filled[v1.Pod](s.Template, s.Count)
	for i, p := range pods {
		p.TypeMeta, p.GenerateName, p.Namespace = metav1.TypeMeta{}, "", s.Namespace
		if p.Name == "" {
			p.Name = fmt.Sprintf("%s-%05d", s.Group, i)
		}
		if s.SignatureBatch > 0 {
			metav1.SetMetaDataLabel(&p.ObjectMeta, "signature", fmt.Sprintf("signature-label-%d", i/s.SignatureBatch))
		}
		if s.Claim != nil {
			p.Spec.Volumes = []v1.Volume{{Name: "vol", VolumeSource: v1.VolumeSource{
				PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(i)},
			}}}
		}
	}
	return pods, err
}

func claimName(i int) string { return fmt.Sprintf("pvc-%d", i) }

// Volumes makes the volumes of the step's pods and their claims, the first of
// each for the first pod, and bound to each other.
func (s *CreatePods) Volumes() ([]*v1.PersistentVolumeClaim, []*v1.PersistentVolume, error) {
	if s.Claim == nil {
		return nil, nil, nil
	}
	claims, err := filled[v1.PersistentVolumeClaim](s.Claim, s.Count)
	if err != nil {
		return nil, nil, err
	}
	volumes, err := filled[v1.PersistentVolume](s.Volume, s.Count)
	for i, v := range volumes {
		c := claims[i]
		c.TypeMeta, v.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
		c.Namespace, c.Name = s.Namespace, claimName(i)
		v.Name = fmt.Sprintf("%s-vol-%d", s.Namespace, i)
		c.Spec.VolumeName, c.Status.Phase = v.Name, v1.ClaimBound
		v.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: c.Name}
		v.Status.Phase = v1.VolumeBound
		switch source := &v.Spec.PersistentVolumeSource; {
		case source.CSI != nil:
			source.CSI.VolumeHandle = v.Name
		case source.AWSElasticBlockStore != nil:
			source.AWSElasticBlockStore.VolumeID = fmt.Sprintf("vol-%d", i)
		}
	}
	return claims, volumes, err
}

// All makes the step's objects.
func (s *CreateObjects) All() ([]*unstructured.Unstructured, error) {
	all := make([]*unstructured.Unstructured, s.Count)
	for i := range all {
		all[i] = &unstructured.Unstructured{}
		if err := s.Template.decode(i, s.Count, &all[i].Object); err != nil {
			return nil, err
		}
	}
	return all, nil
}
