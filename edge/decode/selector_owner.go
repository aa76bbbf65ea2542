package decode

import (
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
)

// selectorOwners are the kinds of controllers that are owners of selectors.
var selectorOwners = map[schema.GroupVersionKind]object.SelectorOwnerKind{
	v1.SchemeGroupVersion.WithKind("ReplicationController"): object.ReplicationController,
	appsv1.SchemeGroupVersion.WithKind("ReplicaSet"):        object.ReplicaSet,
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"):       object.StatefulSet,
}

func controller(p *v1.Pod) object.Controller {
	c := object.Controller{Replacement: replacement(p)}
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil {
		return c
	}
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return c
	}
	if c.Kind = selectorOwners[version.WithKind(owner.Kind)]; c.Kind != object.NoSelectorOwner {
		c.Name = owner.Name
	}
	return c
}

// replacement returns what comes in the place of the pod: a mirror pod shows one that its
// node's kubelet runs.
func replacement(p *v1.Pod) object.Replacement {
	owner := metav1.GetControllerOfNoCopy(p)
	switch {
	case p.Annotations[v1.MirrorPodAnnotationKey] != "", owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node"):
		return object.SameNode
	case owner != nil:
		return object.AnyNode
	}
	return object.NoReplacement
}

// SelectorOwner decodes a Service, ReplicationController, ReplicaSet or StatefulSet;
// nil for any other object.
func SelectorOwner(o any) *object.SelectorOwner {
	switch o := o.(type) {
	case *v1.Service:
		return byLabels(object.Service, &o.ObjectMeta, o.Spec.Selector)
	case *v1.ReplicationController:
		return byLabels(object.ReplicationController, &o.ObjectMeta, o.Spec.Selector)
	case *appsv1.ReplicaSet:
		return bySelector(object.ReplicaSet, &o.ObjectMeta, o.Spec.Selector)
	case *appsv1.StatefulSet:
		return bySelector(object.StatefulSet, &o.ObjectMeta, o.Spec.Selector)
	}
	return nil
}

func byLabels(kind object.SelectorOwnerKind, meta *metav1.ObjectMeta, set map[string]string) *object.SelectorOwner {
	key := match.NewSelector(labels.SelectorFromSet(set)).Key
	return &object.SelectorOwner{Kind: kind, Namespace: meta.Namespace, Name: meta.Name, Labels: set, Key: key}
}

// bySelector: a selector that does not parse is as good as none.
func bySelector(kind object.SelectorOwnerKind, meta *metav1.ObjectMeta, s *metav1.LabelSelector) *object.SelectorOwner {
	f := &object.SelectorOwner{Kind: kind, Namespace: meta.Namespace, Name: meta.Name}
	if parsed, err := metav1.LabelSelectorAsSelector(s); err == nil {
		f.Requirements, _ = parsed.Requirements()
		f.Key = match.NewSelector(labels.NewSelector().Add(f.Requirements...)).Key
	}
	return f
}
