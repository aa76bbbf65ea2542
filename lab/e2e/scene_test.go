package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/restmapper"

	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/sim/generate"
)

// scene is a cluster with Berth in which the objects of files are made and cleared again.
type scene struct {
	*field
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
	bin     string // directory of kubectl
}

func newScene(t *testing.T) *scene {
	s := &scene{field: newFieldOn(t, start(t, cluster.Options{}, 0), "scene"), bin: t.TempDir()}
	var err error
	if s.dynamic, err = dynamic.NewForConfig(s.cluster.AdminConfig()); err != nil {
		t.Fatal(err)
	}
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.client.Discovery()))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' %s \"$@\"\n", self, kubectlCommand)
	if err := os.WriteFile(filepath.Join(s.bin, "kubectl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	s.berth(cluster.SchedulerOptions{})
	t.Cleanup(func() {
		if err := s.empty(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// unplayable says which of the objects cannot be as they are in a file; "" if all can.
func (s *scene) unplayable(all []*unstructured.Unstructured) string {
	for _, o := range all {
		if _, err := s.of(o); err != nil {
			return err.Error()
		}
		switch o.GetKind() {
		case "Node":
			conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			for _, c := range conditions {
				if c, ok := c.(map[string]any); ok && c["type"] == "Ready" && c["status"] != "True" {
					return "node " + o.GetName() + " is not ready"
				}
			}
		case "Pod":
			if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
				return "pod " + o.GetName() + " is terminating, and nothing holds it"
			}
		case "PodGroup", "Workload", "CompositePodGroup":
			return "pod groups need gates of the API server"
		}
	}
	return ""
}

// written returns the objects of a generated world as files hold them.
func written(t *testing.T, w *generate.World) (all []*unstructured.Unstructured) {
	t.Helper()
	add := func(o metav1.Object) {
		kinds, _, err := scheme.Scheme.ObjectKinds(o.(runtime.Object))
		if err != nil {
			t.Fatal(err)
		}
		o.(runtime.Object).GetObjectKind().SetGroupVersionKind(kinds[0])
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &unstructured.Unstructured{Object: content})
	}
	for _, o := range w.Namespaces {
		add(o)
	}
	for _, o := range w.Nodes {
		add(o)
	}
	for _, o := range slices.Concat(w.Objects, w.SelectorOwners) {
		add(o)
	}
	for _, o := range w.Budgets {
		add(o)
	}
	for _, o := range slices.Concat(w.Bound, w.Pending) {
		add(o)
	}
	return all
}

// stage says when an object is made: what pods need, pods that run, pods that wait, and
// controllers, which adopt the pods that are there.
func stage(o *unstructured.Unstructured) int {
	node, _, _ := unstructured.NestedString(o.Object, "spec", "nodeName")
	switch o.GetKind() {
	case "Namespace":
		return 0
	case "Pod":
		if node != "" {
			return 3
		}
		return 4
	case "ReplicaSet", "ReplicationController":
		return 5
	case "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob":
		return 6
	case "Node":
		return 1
	}
	return 2
}

// build clears the cluster and makes the objects.
func (s *scene) build(all []*unstructured.Unstructured) error {
	if err := s.empty(); err != nil {
		return err
	}
	var objects []*unstructured.Unstructured
	for _, o := range all {
		objects = append(objects, o.DeepCopy())
	}
	made, adopted := owners(objects)
	objects = append(objects, made...)
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return stage(a) - stage(b) })
	ready := false
	for _, o := range objects {
		if !ready && stage(o) > 2 { // KWOK plays pods of nodes that it knows
			if err := s.settled(nil, nil); err != nil {
				return err
			}
			ready = true
		}
		if err := s.make(o); err != nil {
			return fmt.Errorf("making %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return s.settled(objects, adopted)
}

func (s *scene) make(o *unstructured.Unstructured) error {
	client, err := s.of(o)
	if err != nil {
		return err
	}
	terminating, status := o.GetDeletionTimestamp() != nil, o.Object["status"]
	if o.GetKind() == "Event" { // those of the scene before are still there
		o.SetGenerateName(o.GetName() + ".")
		o.SetName("")
	}
	for _, member := range []string{"uid", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "creationTimestamp"} {
		unstructured.RemoveNestedField(o.Object, "metadata", member)
	}
	unstructured.RemoveNestedField(o.Object, "spec", "claimRef", "uid")
	if o.GetKind() == "Node" {
		node := &corev1.Node{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, node); err != nil {
			return err
		}
		node.Status.Capacity = node.Status.Allocatable
		_, err := s.client.CoreV1().Nodes().Create(s.Context(), node, metav1.CreateOptions{})
		return err
	}
	if o.GetKind() == "Pod" {
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "containers")
		for _, c := range containers {
			if c := c.(map[string]any); c["image"] == nil {
				c["image"] = "img" // files may leave it out
			}
		}
		if err := unstructured.SetNestedSlice(o.Object, containers, "spec", "containers"); err != nil {
			return err
		}
		if err := s.account(o.GetNamespace()); err != nil {
			return err
		}
		if err := s.priority(o); err != nil {
			return err
		}
	}
	if _, err := client.Create(s.Context(), o, metav1.CreateOptions{}); o.GetKind() == "Namespace" && apierrors.IsAlreadyExists(err) {
		_, err = client.Update(s.Context(), o, metav1.UpdateOptions{})
		return err
	} else if err != nil {
		return err
	}
	if err := s.makeStatus(client, o, status); err != nil {
		return err
	}
	if terminating {
		return client.Delete(s.Context(), o.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	}
	return nil
}

// priority gives the pod a class of its priority: admission takes no number alone.
func (s *scene) priority(o *unstructured.Unstructured) error {
	value, _, _ := unstructured.NestedInt64(o.Object, "spec", "priority")
	policy, _, _ := unstructured.NestedString(o.Object, "spec", "preemptionPolicy")
	class, _, _ := unstructured.NestedString(o.Object, "spec", "priorityClassName")
	unstructured.RemoveNestedField(o.Object, "spec", "priority")
	unstructured.RemoveNestedField(o.Object, "spec", "preemptionPolicy")
	policy = cmp.Or(policy, string(corev1.PreemptLowerPriority))
	if class != "" || value == 0 && policy == string(corev1.PreemptLowerPriority) {
		return nil
	}
	class = strings.ToLower(fmt.Sprintf("value%d-%s", value, policy))
	if err := unstructured.SetNestedField(o.Object, class, "spec", "priorityClassName"); err != nil {
		return err
	}
	_, err := s.client.SchedulingV1().PriorityClasses().Create(s.Context(), &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: class}, Value: int32(value), PreemptionPolicy: new(corev1.PreemptionPolicy(policy))}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// provision makes the volumes of claims for which the scheduler has selected a node, as a
// provisioner does. The volume controller binds them.
func (s *scene) provision(namespace string) error {
	list, err := s.client.CoreV1().PersistentVolumeClaims(namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		c := &list.Items[i]
		node := c.Annotations["volume.kubernetes.io/selected-node"]
		if _, err := s.client.CoreV1().Nodes().Get(s.Context(), node, metav1.GetOptions{}); c.Spec.VolumeName != "" || node == "" || err != nil {
			continue
		}
		_, err := s.client.CoreV1().PersistentVolumes().Create(s.Context(), &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "of-" + string(c.UID), Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "scene"}},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes: c.Spec.AccessModes, Capacity: c.Spec.Resources.Requests, StorageClassName: *c.Spec.StorageClassName, VolumeMode: c.Spec.VolumeMode,
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				ClaimRef:                      &corev1.ObjectReference{Namespace: c.Namespace, Name: c.Name, UID: c.UID},
				PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/mnt/" + c.Name}},
			},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// makeStatus writes what nobody else does: of claims of devices, and of containers that
// a kubelet resizes.
func (s *scene) makeStatus(client dynamic.ResourceInterface, o *unstructured.Unstructured, status any) error {
	text, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	switch {
	case o.GetKind() == "ResourceClaim" && status != nil:
	case o.GetKind() == "Pod" && strings.Contains(string(text), "containerStatuses"):
		if err := s.until(timeout, func() string {
			if p := s.pod(o.GetNamespace() + "/" + o.GetName()); p.Status.Phase != corev1.PodRunning {
				return "it is " + string(p.Status.Phase)
			}
			return ""
		}); err != nil {
			return err
		}
	default:
		return nil
	}
	_, err = client.Patch(s.Context(), o.GetName(), types.MergePatchType, text, metav1.PatchOptions{}, "status")
	return err
}

// account waits for the service account of a namespace.
func (s *scene) account(namespace string) error {
	return s.until(timeout, func() string {
		_, err := s.client.CoreV1().ServiceAccounts(namespace).Get(s.Context(), "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = s.client.CoreV1().Namespaces().Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
			if err == nil || apierrors.IsAlreadyExists(err) {
				return "its namespace has no service account"
			}
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// settled waits until the nodes are ready and the controllers have adopted the pods.
func (s *scene) settled(all []*unstructured.Unstructured, adopted []string) error {
	return s.until(timeout, func() string {
		nodes, err := s.client.CoreV1().Nodes().List(s.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for i := range nodes.Items {
			if n := &nodes.Items[i]; slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady }) {
				return "node " + n.Name + " is not ready"
			}
		}
		for _, o := range all {
			if o.GetKind() != "Pod" {
				continue
			}
			name := o.GetNamespace() + "/" + o.GetName()
			p := s.pod(name)
			if p == nil {
				continue
			}
			if slices.Contains(adopted, name) && metav1.GetControllerOf(p) == nil {
				return "pod " + p.Name + " is not adopted"
			}
		}
		return ""
	})
}

// of returns the client of the object's kind and namespace, "default" if it names none.
func (s *scene) of(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	mapping, err := s.mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return s.dynamic.Resource(mapping.Resource), nil
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(metav1.NamespaceDefault)
	}
	return s.dynamic.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
}

// pod returns the pod NAMESPACE/NAME, nil if it is not there.
func (s *scene) pod(name string) *corev1.Pod {
	namespace, name, _ := strings.Cut(name, "/")
	p, err := s.client.CoreV1().Pods(namespace).Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return p
}

// cleared are the resources that are cleared, controllers before what they make.
var cleared = []schema.GroupVersionResource{
	{Group: "batch", Version: "v1", Resource: "cronjobs"}, {Group: "batch", Version: "v1", Resource: "jobs"},
	{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "apps", Version: "v1", Resource: "daemonsets"}, {Group: "apps", Version: "v1", Resource: "replicasets"},
	{Version: "v1", Resource: "replicationcontrollers"}, {Version: "v1", Resource: "resourcequotas"}, {Version: "v1", Resource: "limitranges"},
	{Version: "v1", Resource: "pods"}, {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}, {Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaimtemplates"},
	{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}, {Group: "resource.k8s.io", Version: "v1", Resource: "deviceclasses"},
	{Version: "v1", Resource: "persistentvolumeclaims"}, {Version: "v1", Resource: "persistentvolumes"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}, {Group: "storage.k8s.io", Version: "v1", Resource: "csinodes"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"}, {Group: "storage.k8s.io", Version: "v1", Resource: "csistoragecapacities"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"},
	{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}, {Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses"},
	{Version: "v1", Resource: "services"}, {Version: "v1", Resource: "nodes"},
}

// empty deletes all objects, whatever holds them.
func (s *scene) empty() error {
	ctx := context.WithoutCancel(s.Context())
	for _, resource := range cleared {
		if err := s.until(timeout, func() string {
			list, err := s.dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err.Error()
			}
			left := 0
			for i := range list.Items {
				o := &list.Items[i]
				if strings.HasPrefix(o.GetName(), "system-") || o.GetName() == "kubernetes" {
					continue
				}
				left++
				client := s.dynamic.Resource(resource).Namespace(o.GetNamespace())
				if len(o.GetFinalizers()) > 0 {
					_, _ = client.Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}) // until is asked again
				}
				_ = client.Delete(ctx, o.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64), PropagationPolicy: new(metav1.DeletePropagationBackground)})
			}
			if left > 0 {
				return fmt.Sprintf("%d %s are left", left, resource.Resource)
			}
			return ""
		}); err != nil {
			return err
		}
	}
	return nil
}

// until asks again and again until lacking returns "".
func (s *scene) until(limit time.Duration, lacking func() string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	again := time.NewTicker(glance)
	defer again.Stop()
	for {
		what := lacking()
		if what == "" {
			return nil
		}
		select {
		case <-again.C:
		case err := <-s.cluster.Failed():
			return err
		case <-ctx.Done():
			return errors.New(what)
		}
	}
}
