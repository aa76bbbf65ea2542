package e2e

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// madeBy is a label of pods without labels, by which the scene's controllers adopt them.
const madeBy = "scene/made-by"

// owners returns the controllers that the pods name and that are not among the objects:
// ReplicaSets and their Deployments, and DaemonSets. They adopt the pods by their labels. A Job
// is a ReplicaSet here, as kwok lets the running pods of a Job succeed. The pods that they adopt
// are returned as NAMESPACE/NAME.
func owners(all []*unstructured.Unstructured) (made []*unstructured.Unstructured, adopted []string) {
	sets := map[string]*unstructured.Unstructured{}
	deployments := map[string][]*unstructured.Unstructured{}
	for _, o := range all {
		owner := metav1.GetControllerOf(o)
		if o.GetKind() != "Pod" || owner == nil {
			continue
		}
		if owner.Kind == "Job" {
			owner.Kind = "ReplicaSet"
		}
		if owner.Kind != "ReplicaSet" && owner.Kind != "DaemonSet" {
			continue
		}
		if len(o.GetLabels()) == 0 {
			o.SetLabels(map[string]string{madeBy: owner.Name})
		}
		adopted = append(adopted, o.GetNamespace()+"/"+o.GetName())
		set := sets[owner.Name]
		if set == nil {
			set = controller(owner.Kind, owner.Name, o, o.GetLabels())
			sets[owner.Name] = set
			made = append(made, set)
			if hash := o.GetLabels()["pod-template-hash"]; owner.Kind == "ReplicaSet" && hash != "" {
				name := strings.TrimSuffix(owner.Name, "-"+hash)
				deployments[name] = append(deployments[name], set)
			}
		}
		if owner.Kind == "ReplicaSet" {
			grow(set, 1)
		}
	}
	for name, of := range deployments {
		newest := of[len(of)-1]
		set := newest.DeepCopy()
		set.SetKind("Deployment")
		set.SetName(name)
		for _, path := range [][]string{{"metadata", "labels"}, {"spec", "selector", "matchLabels"}, {"spec", "template", "metadata", "labels"}} {
			unstructured.RemoveNestedField(set.Object, append(slices.Clone(path), "pod-template-hash")...)
		}
		if len(of) > 1 { // a rollout that is stuck: the pods of the old ones are those that are wanted
			set.Object["spec"].(map[string]any)["replicas"] = int64(0)
			for _, old := range of[:len(of)-1] {
				n, _, _ := unstructured.NestedInt64(old.Object, "spec", "replicas")
				grow(set, n)
			}
		}
		made = append(made, set)
	}
	return made, adopted
}

func grow(set *unstructured.Unstructured, by int64) {
	spec := set.Object["spec"].(map[string]any)
	n, _ := spec["replicas"].(int64)
	spec["replicas"] = n + by
}

// controller returns a controller whose template is the pod's.
func controller(kind, name string, pod *unstructured.Unstructured, labels map[string]string) *unstructured.Unstructured {
	spec, _, _ := unstructured.NestedMap(pod.Object, "spec")
	delete(spec, "nodeName")
	if kind == "DaemonSet" {
		unstructured.RemoveNestedField(spec, "affinity", "nodeAffinity")
	}
	of := map[string]any{}
	for key, value := range labels {
		of[key] = value
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": kind,
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": of},
			"template": map[string]any{
				// The controller of a Deployment tells ReplicaSets by their templates.
				"metadata": map[string]any{"labels": of, "annotations": map[string]any{"scene/controller": name}}, "spec": spec,
			},
		},
	}}
	o.SetName(name)
	o.SetNamespace(pod.GetNamespace())
	o.SetLabels(labels)
	return o.DeepCopy()
}
