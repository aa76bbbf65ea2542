package chaos

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/berth-scheduler/berth/sim/apiserver"
)

// The classes of volumes that a story may use. Of both a volume is chosen when the
// node of the first pod is: one is made there, or is there.
const (
	madeClass  = "made"
	localClass = "local"
	zoneLabel  = "zone" // the part of a cluster in which a volume can be used
)

func classOfVolumes(name, provisioner string) *storagev1.StorageClass {
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode}
}

var volumeSize = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}

// claim makes a claim: its name and its class.
func (p *play) claim(words []string) error {
	if len(words) != 2 || !slices.Contains([]string{madeClass, localClass}, words[1]) {
		return errors.New("want a name, and made or local")
	}
	for _, class := range []*storagev1.StorageClass{classOfVolumes(madeClass, driver), classOfVolumes(localClass, volume.NotSupportedProvisioner)} {
		if err := p.server.Create(class); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return p.server.Create(&v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceDefault, Name: words[0]},
		Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: &words[1], AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources: v1.VolumeResourceRequirements{Requests: volumeSize},
		},
		Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending},
	})
}

// volume makes a volume of the class local: its name and its zone.
func (p *play) volume(words []string) error {
	if len(words) != 2 {
		return errors.New("want a name and a zone")
	}
	return p.server.Create(volumeIn(words[0], localClass, words[1]))
}

func volumeIn(name, class, zone string) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeSpec{
			StorageClassName: class, Capacity: volumeSize, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: zoneLabel, Operator: v1.NodeSelectorOpIn, Values: []string{zone}}}}}}},
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable},
	}
}

// volumes is the volume controller and the driver: volumes are made for claims
// with a node, and claims are bound to the volumes that name them.
func (p *play) volumes(c *apiserver.Change) {
	if c.Type == "DELETED" {
		return
	}
	drawn := mix(p.faults.seed, "volumes", c.Resource, c.Object.GetName(), c.Revision)
	later := func(do func()) { time.AfterFunc(20*time.Millisecond+time.Duration(drawn%2_000_000_000), do) }
	switch o := c.Object.(type) {
	case *v1.PersistentVolumeClaim:
		if o.Spec.VolumeName == "" && o.Annotations[volume.AnnSelectedNode] != "" {
			later(func() { p.provision(o, drawn) })
		}
	case *v1.PersistentVolume:
		if ref := o.Spec.ClaimRef; ref != nil && ref.UID != "" && o.Status.Phase != v1.VolumeBound {
			later(func() { p.bindVolume(o.Name) })
		}
	}
}

// resyncVolumes has the volume controller look at all claims and volumes again, as
// a restored backup tells of no change.
func (p *play) resyncVolumes() {
	for _, resource := range []string{"persistentvolumeclaims", "persistentvolumes"} {
		for _, o := range p.server.List(resource) {
			p.volumes(&apiserver.Change{Resource: resource, Object: o, Revision: p.server.Revision()})
		}
	}
}

// provision makes a volume for a claim on the node that was selected, or gives the
// claim back, as a driver does that has no room there.
func (p *play) provision(of *v1.PersistentVolumeClaim, drawn uint64) {
	claim, _ := p.server.Get("persistentvolumeclaims", of.Namespace, of.Name).(*v1.PersistentVolumeClaim)
	if claim == nil || claim.UID != of.UID || claim.Spec.VolumeName != "" || claim.Annotations[volume.AnnSelectedNode] == "" {
		return
	}
	node, _ := p.server.Get("nodes", "", claim.Annotations[volume.AnnSelectedNode]).(*v1.Node)
	if node == nil || drawn>>32%5 == 0 {
		p.logf("no volume for claim %s on node %s", claim.Name, claim.Annotations[volume.AnnSelectedNode])
		_ = p.server.Update("persistentvolumeclaims", claim.Namespace, claim.Name, func(o apiserver.Object) {
			annotations := o.GetAnnotations()
			delete(annotations, volume.AnnSelectedNode)
			o.SetAnnotations(annotations)
		})
		return
	}
	made := volumeIn("pvc-"+string(claim.UID), madeClass, node.Labels[zoneLabel])
	made.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: made.Name}
	made.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	_ = p.server.Create(made) // it may be there already
}

// bindVolume binds a volume and the claim that it names to each other, or frees the
// volume where the claim has another.
func (p *play) bindVolume(name string) {
	v, _ := p.server.Get("persistentvolumes", "", name).(*v1.PersistentVolume)
	if v == nil || v.Spec.ClaimRef == nil || v.Status.Phase == v1.VolumeBound {
		return
	}
	claim, _ := p.server.Get("persistentvolumeclaims", v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name).(*v1.PersistentVolumeClaim)
	if claim == nil || claim.UID != v.Spec.ClaimRef.UID || claim.Spec.VolumeName != "" && claim.Spec.VolumeName != name {
		_ = p.server.Update("persistentvolumes", "", name, func(o apiserver.Object) { o.(*v1.PersistentVolume).Spec.ClaimRef = nil })
		return
	}
	p.logf("volume %s is bound to claim %s", name, claim.Name)
	_ = p.server.Update("persistentvolumes", "", name, func(o apiserver.Object) { o.(*v1.PersistentVolume).Status.Phase = v1.VolumeBound })
	_ = p.server.Update("persistentvolumeclaims", claim.Namespace, claim.Name, func(o apiserver.Object) {
		c := o.(*v1.PersistentVolumeClaim)
		c.Spec.VolumeName, c.Status.Phase, c.Status.Capacity = name, v1.ClaimBound, volumeSize
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, volume.AnnBindCompleted, "yes")
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, volume.AnnBoundByController, "yes")
	})
}

// stored are the claims, volumes and devices that there are.
type stored struct {
	claims       map[string]*v1.PersistentVolumeClaim // by name
	volumes      map[string]*v1.PersistentVolume
	limits       map[string]int // of the volumes of nodes
	deviceClaims map[string]*resourcev1.ResourceClaim
	slices       map[string]*resourcev1.ResourceSlice // by node
}

func (p *play) stored() *stored {
	s := &stored{map[string]*v1.PersistentVolumeClaim{}, map[string]*v1.PersistentVolume{}, map[string]int{},
		map[string]*resourcev1.ResourceClaim{}, map[string]*resourcev1.ResourceSlice{}}
	for _, o := range p.server.List(csiNodes) {
		s.limits[o.GetName()] = limitOf(o.(*storagev1.CSINode))
	}
	for _, o := range p.server.List(resourceClaims) {
		s.deviceClaims[o.GetName()] = o.(*resourcev1.ResourceClaim)
	}
	for _, o := range p.server.List(resourceSlices) {
		s.slices[o.GetName()] = o.(*resourcev1.ResourceSlice)
	}
	for _, o := range p.server.List("persistentvolumeclaims") {
		s.claims[o.GetName()] = o.(*v1.PersistentVolumeClaim)
	}
	for _, o := range p.server.List("persistentvolumes") {
		s.volumes[o.GetName()] = o.(*v1.PersistentVolume)
	}
	return s
}

// reach tells whether the pod's volumes can be used on the node, or made there.
func (s *stored) reach(pod *v1.Pod, n *v1.Node) bool {
	for i := range pod.Spec.Volumes {
		source := pod.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		claim := s.claims[source.ClaimName]
		switch {
		case claim == nil:
			return false
		case claim.Spec.VolumeName != "":
			if v := s.volumes[claim.Spec.VolumeName]; v == nil || !usable(v, n) {
				return false
			}
		case *claim.Spec.StorageClassName == localClass && !s.offers(claim, n):
			return false
		}
	}
	return true
}

// offers tells whether a volume is free for the claim on the node.
func (s *stored) offers(claim *v1.PersistentVolumeClaim, n *v1.Node) bool {
	for _, v := range s.volumes { // any order: one is enough
		if ref := v.Spec.ClaimRef; v.Spec.StorageClassName == localClass && usable(v, n) && (ref == nil || ref.UID == claim.UID) {
			return true
		}
	}
	return false
}

func usable(v *v1.PersistentVolume, n *v1.Node) bool {
	return slices.Contains(v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values, n.Labels[zoneLabel])
}

// unsettled says for what a controller has still to do something, "" if it is at rest.
func (s *stored) unsettled(pods []*v1.Pod) string {
	for name, claim := range s.claims { // any order: one of them
		if claim.Spec.VolumeName == "" && claim.Annotations[volume.AnnSelectedNode] != "" {
			return fmt.Sprintf("claim %s has a node and no volume", name)
		}
	}
	for name, v := range s.volumes { // any order: one of them
		if ref := v.Spec.ClaimRef; ref != nil && ref.UID != "" && v.Status.Phase != v1.VolumeBound {
			return fmt.Sprintf("volume %s is not bound yet", name)
		}
	}
	for name, claim := range s.deviceClaims { // any order: one of them
		for _, r := range claim.Status.ReservedFor {
			if !slices.ContainsFunc(pods, func(p *v1.Pod) bool { return p.UID == r.UID }) {
				return fmt.Sprintf("claim %s is reserved for a pod that is gone", name)
			}
		}
	}
	return ""
}

// volumeChanged looks that no scheduler takes a volume from a claim.
func (c *check) volumeChanged(v *v1.PersistentVolume, change *apiserver.Change) {
	before, _ := change.Before.(*v1.PersistentVolume)
	if change.By == "" || before == nil || before.Spec.ClaimRef == nil || before.Spec.ClaimRef.UID == "" {
		return
	}
	if ref := v.Spec.ClaimRef; ref == nil || ref.UID != before.Spec.ClaimRef.UID {
		c.note("%s takes volume %s from claim %s", change.By, v.Name, before.Spec.ClaimRef.Name)
	}
}

// boundWithVolumes looks that a pod which is bound has its volumes. After a
// restored backup a scheduler may have been told of volumes that are no more.
func (c *check) boundWithVolumes(p *v1.Pod, by string) {
	if c.setBack {
		return
	}
	for i := range p.Spec.Volumes {
		if source := p.Spec.Volumes[i].PersistentVolumeClaim; source != nil && c.claims[source.ClaimName] == "" {
			c.note("%s binds pod %s, whose claim %s has no volume", by, p.Name, source.ClaimName)
		}
	}
}

// writesClaim tells whether a request changes a claim or a volume.
func writesClaim(method, path string) bool {
	return method != "GET" && (strings.Contains(path, "/persistentvolume") || strings.Contains(path, "/resourceclaims"))
}
