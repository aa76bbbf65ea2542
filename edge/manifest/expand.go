package manifest

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/workload"
)

// Expand says of which workloads in files pods are made.
type Expand uint8

const (
	// ExpandNew: of those that no pod of the input belongs to.
	ExpandNew Expand = iota
	// ExpandAll: of all, so many that each has what it wants. Claims are made
	// for pending pods of the files, too.
	ExpandAll
	// ExpandNone: of none. The kinds that only controllers read are ignored.
	ExpandNone
)

// expand makes the pods of workloads, and the claims of pods.
func (s *Set) expand() error {
	if s.Expand == ExpandNone {
		return nil
	}
	if s.Expand == ExpandAll {
		for _, p := range slices.Clone(s.Pods) {
			if p.Spec.NodeName == "" && p.DeletionTimestamp == nil {
				if err := s.claims(nil, p); err != nil {
					return err
				}
			}
		}
	}
	index := workload.NewIndex(s.Pods)
	made := 0
	for _, o := range s.Workloads {
		w, ok := workload.Of(o)
		if m, err := meta.Accessor(o); !ok || err != nil || m.GetDeletionTimestamp() != nil {
			continue // its controller makes no pods, or none any more
		}
		have := index.PodsOf(w)
		if len(have) > 0 && s.Expand == ExpandNew {
			continue
		}
		if len(w.Template.Spec.Containers) == 0 && decode.SelectorOwner(o) == nil {
			s.Notices = append(s.Notices, w.Title()+": spec.template: has no containers, so no pods are made of it")
		}
		if w.Paused && len(have) == 0 {
			s.Notices = append(s.Notices, w.Title()+": is paused and has no pods, so none are made")
		}
		have = w.Active(have)
		if made+w.Replicas-len(have) > workload.MaxPods && made > 0 {
			return fmt.Errorf("%s: wants %d pods; with those of the workloads before it, more than %d are made", w.Title(), w.Replicas, workload.MaxPods)
		}
		pods, err := s.Make(w, have)
		if err != nil {
			return err
		}
		made += len(pods)
	}
	return nil
}

// Make adds the pods that the workload wants beyond those that it has, and their claims. It
// returns the pods, without those that admission refuses.
func (s *Set) Make(w *workload.Workload, have []*v1.Pod) ([]*v1.Pod, error) {
	pods, err := w.Pods(have, s.Nodes, func(name string) bool { return s.known[title("pod", w.Namespace, name)] != "" })
	if err != nil {
		return nil, err
	}
	if rs := w.ReplicaSet; rs != nil && len(pods) > 0 && s.known[title("replicaset", rs.Namespace, rs.Name)] == "" {
		if err := s.Add(rs.DeepCopy(), "apps/v1/ReplicaSet", w.Title()); err != nil {
			return nil, err
		}
	}
	for _, p := range pods {
		if err := s.Add(p, "v1/Pod", w.Title()); err != nil {
			return nil, err
		}
	}
	if pods, err = s.admitArrived(); err != nil {
		return nil, err
	}
	for _, p := range pods {
		s.Made[p] = true
		if err := s.claims(w, p); err != nil {
			return nil, err
		}
	}
	return pods, nil
}

// AddPod adds an admitted pod after Resolve, with the claims that controllers make for it.
func (s *Set) AddPod(p *v1.Pod, where string) error {
	if err := s.Add(p, "v1/Pod", where); err != nil {
		return err
	}
	return s.claims(nil, p)
}

// Clone returns a set with the same objects, which may be added to without
// effect on this one.
func (s *Set) Clone() *Set {
	c := *s
	c.Nodes, c.Pods, c.Budgets, c.Workloads = slices.Clone(s.Nodes), slices.Clone(s.Pods), slices.Clone(s.Budgets), slices.Clone(s.Workloads)
	c.Namespaces, c.SelectorOwners, c.Objects, c.Running = slices.Clip(s.Namespaces), slices.Clip(s.SelectorOwners), slices.Clip(s.Objects), slices.Clip(s.Running)
	c.known, c.uids, c.places = maps.Clone(s.known), maps.Clone(s.uids), maps.Clone(s.places)
	c.Made = maps.Clone(s.Made)
	c.templates, c.rules, c.Refused, c.fresh = maps.Clone(s.templates), s.rules.Clone(), maps.Clone(s.Refused), maps.Clone(s.fresh)
	return &c
}

// Priority gives a pod that was added after Resolve its priority.
func (s *Set) Priority(p *v1.Pod) error { return s.classes.Resolve(p) }

// claims adds the claims that controllers make for the pod, except for those that
// are there.
func (s *Set) claims(w *workload.Workload, p *v1.Pod) error {
	for _, c := range workload.VolumeClaims(w, p) {
		if s.known[title("persistentvolumeclaim", c.Namespace, c.Name)] != "" {
			continue
		}
		s.rules.SetClass(c)
		c.UID = types.UID(title("persistentvolumeclaim", c.Namespace, c.Name))
		if err := s.bindNow(c, p); err != nil {
			return err
		}
		if err := s.Add(c, "v1/PersistentVolumeClaim", s.places[p]); err != nil {
			return err
		}
	}
	template := func(name string) *resourcev1.ResourceClaimTemplate { return s.templates[p.Namespace+"/"+name] }
	for _, c := range workload.DeviceClaims(p, template) {
		if s.known[title("resourceclaim", c.Namespace, c.Name)] != "" {
			continue
		}
		if err := s.Add(c, "resource.k8s.io/v1/ResourceClaim", s.places[p]); err != nil {
			return err
		}
	}
	return nil
}

// bindNow makes the volume of a claim whose class does not wait for a pod. It is
// reachable from everywhere.
func (s *Set) bindNow(c *v1.PersistentVolumeClaim, p *v1.Pod) error {
	class := s.rules.StorageClass(volume.GetPersistentVolumeClaimClass(c))
	if class == nil || class.Provisioner == volume.NotSupportedProvisioner || c.Spec.VolumeName != "" ||
		*class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer {
		return nil
	}
	v := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(c.UID)}}
	v.Spec = v1.PersistentVolumeSpec{
		Capacity: c.Spec.Resources.Requests, AccessModes: c.Spec.AccessModes, VolumeMode: c.Spec.VolumeMode,
		StorageClassName: class.Name,
		ClaimRef:         &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID},
	}
	v.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: v.Name}
	v.Status.Phase = v1.VolumeBound
	c.Spec.VolumeName, c.Status.Phase = v.Name, v1.ClaimBound
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, volume.AnnBindCompleted, "yes")
	return s.Add(v, "v1/PersistentVolume", s.places[p])
}
