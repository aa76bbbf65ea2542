package workload

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Like returns the workload of that kind and name, whose object is not known, as
// one of its pods shows it. Its pods are named after their controller.
func Like(kind, name string, p *v1.Pod, replicas int) *Workload {
	p = p.DeepCopy()
	w := &Workload{Kind: kind, Namespace: p.Namespace, Name: name, Replicas: replicas, FromPod: true, selector: labels.Nothing()}
	w.Template.Labels, w.Template.Annotations, w.Template.Spec = p.Labels, p.Annotations, p.Spec
	w.Template.Spec.NodeName = ""
	w.ordinals = kind == "StatefulSet"
	if owner := metav1.GetControllerOfNoCopy(p); owner != nil {
		w.owner = *owner
		w.owners = map[string]string{owner.Kind: owner.Name}
	}
	return w
}

// OfPod returns the kind and name of the workload that the pod is one of, as far
// as its controller tells: a ReplicaSet web-5d8f7c is taken for one of Deployment
// web if a hash of the pod template is in its name.
func OfPod(p *v1.Pod) (kind, name string) {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil {
		return "", ""
	}
	if hash := p.Labels["pod-template-hash"]; owner.Kind == "ReplicaSet" && hash != "" {
		if n := len(owner.Name) - len(hash) - 1; n > 0 && owner.Name[n:] == "-"+hash {
			return "Deployment", owner.Name[:n]
		}
	}
	return owner.Kind, owner.Name
}

// OnNode is a copy of a DaemonSet's pod that runs on another node.
func OnNode(p *v1.Pod, node string) *v1.Pod {
	c := p.DeepCopy()
	c.ObjectMeta = metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name + "-on-" + node, Labels: c.Labels, Annotations: c.Annotations, OwnerReferences: c.OwnerReferences}
	c.Status = v1.PodStatus{}
	pinToNode(&c.Spec, node)
	c.Spec.NodeName = node
	return c
}
