package fix

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

const (
	bindCompleted   = "pv.kubernetes.io/bind-completed"
	noProvisioner   = "kubernetes.io/no-provisioner"
	someProvisioner = "example.com/provisioner" // stands for one of the user's
	someSize        = 1 << 30                   // of a claim that nobody has written

	// LostHandle stands for the handle of a volume whose object is gone.
	LostHandle = "as-in-the-backup"
)

// missing makes what the pod names and is not there: without it no node is looked
// at. With correct it names what is there, where the name of that is near.
func (s *search) missing(correct bool) (edits []edit) {
	for i := range s.pod.Volumes {
		if v := &s.pod.Volumes[i]; v.Claimed {
			edits = append(edits, s.missingVolume(v, correct)...)
		}
	}
	for i := range s.pod.Claims {
		if len(edits) > mostEdits {
			break
		}
		edits = append(edits, s.missingDevices(&s.pod.Claims[i], correct)...)
	}
	return edits
}

func made(c *creation, format string, args ...any) edit {
	return edit{kind: makeMissing, create: c, say: fmt.Sprintf(format, args...)}
}

// missingVolume makes the claim, its class or its volume, or corrects their names.
func (s *search) missingVolume(v *object.Volume, correct bool) []edit {
	claim := table.Lookup[*object.PersistentVolumeClaim](s.table, object.PersistentVolumeClaims, s.pod.Namespace, v.Claim)
	switch {
	case claim == nil:
		if meant := meantClaim(s.table, s.pod, s.spec, v); correct && meant != nil {
			return meant
		}
		return s.newClaim(v)
	case claim.Terminating:
		return nil
	case claim.Lost:
		return []edit{restored(s.table, claim), {kind: makeMissing, target: claimTarget(claim), say: "the volume controller then has claim " + claim.Name + " bound again",
			ops: []Op{{Op: "replace", Path: "/status/phase", Value: string(v1.ClaimBound)}}}}
	case claim.Bound():
		if table.Lookup[*object.PersistentVolume](s.table, object.PersistentVolumes, "", claim.VolumeName) == nil {
			return []edit{restored(s.table, claim)}
		}
		return nil
	}
	class := table.Lookup[*object.StorageClass](s.table, object.StorageClasses, "", claim.Class)
	switch {
	case class == nil && claim.Class != "" && claim.VolumeName == "":
		if meant := MeantObject(s.table, object.StorageClasses, "", claim.Class); correct && meant != "" {
			return []edit{correctClass(claim, meant)}
		}
		return []edit{made(newClass(s.table, claim.Class), "create the StorageClass %s, which the claim %s names (set your provisioner)", claim.Class, claim.Name)}
	case class == nil || !class.WaitForFirstConsumer || claim.VolumeName != "":
		return s.bindClaim(claim)
	}
	return nil
}

// Provisioned reports whether something makes the volumes of the class: nobody else does.
func Provisioned(class *object.StorageClass) bool {
	return class != nil && class.Provisioner != "" && class.Provisioner != noProvisioner
}

// newClaim makes a claim of a class whose volumes are made where the pod goes.
func (s *search) newClaim(v *object.Volume) []edit {
	var class string
	for _, o := range s.table.Objects().List(object.StorageClasses) {
		c := o.(*object.StorageClass)
		if c.WaitForFirstConsumer && Provisioned(c) && (class == "" || c.Name < class) {
			class = c.Name
		}
	}
	var edits []edit
	if class == "" {
		class = "berth-example"
		edits = append(edits, made(newClass(s.table, class), "create a StorageClass (set your provisioner)"))
	}
	claim := &v1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.pod.Namespace, Name: v.Claim},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: &class,
			Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(someSize, resource.BinarySI)}},
		},
	}
	if v.Ephemeral {
		claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: s.pod.Name, UID: s.pod.UID, Controller: new(true), BlockOwnerDeletion: new(true)}}
	}
	return append(edits, made(newCreation("v1", "PersistentVolumeClaim", claim), "create the PersistentVolumeClaim %s/%s, of the class %s", s.pod.Namespace, v.Claim, class))
}

// newClass is a storage class whose volumes are made where the pod goes.
func newClass(t *table.Table, name string) *creation {
	provisioner := someProvisioner
	for _, o := range t.Objects().List(object.StorageClasses) {
		if c := o.(*object.StorageClass); Provisioned(c) && (provisioner == someProvisioner || c.Provisioner < provisioner) {
			provisioner = c.Provisioner
		}
	}
	return newCreation("storage.k8s.io/v1", "StorageClass", &storagev1.StorageClass{
		TypeMeta:    metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"},
		ObjectMeta:  metav1.ObjectMeta{Name: name},
		Provisioner: provisioner, VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	})
}

// restored is the volume that the claim is bound to, which is gone. Only a backup has its source.
func restored(t *table.Table, c *object.PersistentVolumeClaim) edit {
	driver := someProvisioner
	if class := table.Lookup[*object.StorageClass](t, object.StorageClasses, "", c.Class); Provisioned(class) {
		driver = class.Provisioner
	}
	source := v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: LostHandle}}
	return made(newVolume(c, c.VolumeName, true, source), "restore the PersistentVolume %s, which the claim %s is bound to, from a backup, with the same driver and handle: without these its data is lost", c.VolumeName, c.Name)
}

// handmade is the source of a volume that nothing provisions.
func handmade(name string) v1.PersistentVolumeSource {
	return v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/mnt/" + name}}
}

// newVolume is a volume for the claim, bound to it or free.
func newVolume(c *object.PersistentVolumeClaim, name string, bound bool, source v1.PersistentVolumeSource) *creation {
	v := &v1.PersistentVolume{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: selected(c.Selector)},
		Spec: v1.PersistentVolumeSpec{
			Capacity:    v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(max(c.Bytes, someSize), resource.BinarySI)},
			AccessModes: slices.Clone(c.Modes), StorageClassName: c.Class, VolumeMode: new(c.VolumeMode),
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        source,
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable},
	}
	if len(v.Spec.AccessModes) == 0 {
		v.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	}
	if c.Attributes != "" {
		v.Spec.VolumeAttributesClassName = &c.Attributes
	}
	if bound {
		v.Spec.ClaimRef = &v1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID}
		v.Status.Phase = v1.VolumeBound
	}
	return newCreation("v1", "PersistentVolume", v)
}

// selected are labels that the selector matches, if there are any.
func selected(selector labels.Selector) map[string]string {
	if selector == nil {
		return nil
	}
	set := map[string]string{}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			set[r.Key()] = slices.Min(r.ValuesUnsorted())
		case selection.Exists:
			set[r.Key()] = ""
		}
	}
	return set
}

// bindClaim makes a volume for a claim that is to be bound before the pod is
// scheduled, and binds the two. What the class's provisioner is to make is not made by hand.
func (s *search) bindClaim(c *object.PersistentVolumeClaim) []edit {
	class := table.Lookup[*object.StorageClass](s.table, object.StorageClasses, "", c.Class)
	if c.VolumeName == "" && Provisioned(class) || s.set.Written("PersistentVolumeClaim", c.Namespace, c.Name) == nil {
		return nil
	}
	var edits []edit
	name := cmp.Or(c.VolumeName, "pv-"+c.Namespace+"-"+c.Name)
	if table.Lookup[*object.PersistentVolume](s.table, object.PersistentVolumes, "", name) == nil {
		edits = append(edits, made(newVolume(c, name, true, handmade(name)), "create the PersistentVolume %s for the claim %s", name, c.Name))
	}
	t := target{"v1", "PersistentVolumeClaim", c.Namespace, c.Name}
	if c.VolumeName == "" {
		edits = append(edits, edit{kind: makeMissing, target: t, say: fmt.Sprintf("have the claim %s name it", c.Name),
			ops: []Op{{Op: "add", Path: "/spec/volumeName", Value: name}}})
	}
	return append(edits, edit{kind: makeMissing, target: t, say: fmt.Sprintf("bind the claim %s (the volume controller does)", c.Name),
		ops: []Op{{Op: "add", Path: "/metadata/annotations/" + escape(bindCompleted), Value: "yes"}}})
}

// makeVolumes makes a volume for each claim that waits for the pod's node and whose class makes
// none.
func (s *search) makeVolumes() [][]edit {
	var edits []edit
	for _, c := range s.unbound() {
		class := table.Lookup[*object.StorageClass](s.table, object.StorageClasses, "", c.Class)
		name := "pv-" + c.Namespace + "-" + c.Name
		switch {
		case Provisioned(class):
		case c.SelectedNode != "": // its driver is to make one: no free volume is looked for
			edits = append(edits, s.bindClaim(c)...)
		default:
			edits = append(edits, made(newVolume(c, name, false, handmade(name)), "create the PersistentVolume %s for the claim %s", name, c.Name))
		}
	}
	return [][]edit{edits}
}

// volumeLabels are sets of labels with which the node reaches the pod's volumes.
func (s *search) volumeLabels(n *v1.Node) []map[string]*string {
	sets := []map[string]*string{{}}
	for i := range s.pod.Volumes {
		c := table.Lookup[*object.PersistentVolumeClaim](s.table, object.PersistentVolumeClaims, s.pod.Namespace, s.pod.Volumes[i].Claim)
		if c == nil {
			continue
		}
		v := table.Lookup[*object.PersistentVolume](s.table, object.PersistentVolumes, "", c.VolumeName)
		if v == nil {
			continue
		}
		var all []map[string]*string
		for _, one := range reaching(v, n) {
			for _, set := range sets {
				if len(all) == mostCombos || len(set)+len(one) > mostEdits || !s.spend(1+len(set)/20) {
					break
				}
				both := maps.Clone(set)
				maps.Copy(both, one)
				all = append(all, both)
			}
		}
		sets = all
	}
	return sets
}

// reaching are sets of labels that the node lacks, each of which has it reach the
// volume: those of one term of its node affinity, as it is written or as the CSI driver
// has it that took its plugin's place, and those of its zone.
func reaching(v *object.PersistentVolume, n *v1.Node) (sets []map[string]*string) {
	zone := map[string]*string{}
	for _, key := range []string{v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion} {
		if value, has := v.Labels[key]; has {
			if zones := strings.Split(value, "__"); !slices.Contains(zones, n.Labels[key]) {
				zone[key] = new(slices.Min(zones))
			}
		}
	}
	terms := v.Nodes.Demands()
	if v.Migrated != nil {
		terms = append(terms, v.Migrated.Nodes.Demands()...)
	}
	for _, term := range terms {
		set := maps.Clone(zone)
		for _, e := range term {
			if !holds(e, n) {
				set[e.Key] = wanted(e)
			}
		}
		sets = append(sets, set)
	}
	if len(sets) == 0 {
		sets = append(sets, zone)
	}
	return sets
}

// missingDevices makes the claim for devices, or the class that it names, or corrects their names.
func (s *search) missingDevices(pc *object.PodClaim, correct bool) (edits []edit) {
	if pc.Claim == "" || pc.Error != "" {
		return nil
	}
	claim := table.Lookup[*object.ResourceClaim](s.table, object.ResourceClaims, s.pod.Namespace, pc.Claim)
	if claim == nil {
		if meant := meantDeviceClaim(s.table, s.pod, s.spec, pc); correct && meant != nil {
			return meant
		}
		return s.newDeviceClaim(pc)
	}
	for _, name := range classNames(claim.API) {
		if table.Lookup[*object.DeviceClass](s.table, object.DeviceClasses, "", name) == nil {
			if meant := MeantObject(s.table, object.DeviceClasses, "", name); correct && meant != "" {
				edits = append(edits, correctDeviceClass(claim, name, meant)...)
				continue
			}
			edits = append(edits, made(newDeviceClass(name), "create the DeviceClass %s, which the claim %s names (set your selectors)", name, claim.Name))
		}
	}
	return edits
}

// classNames are the device classes that a claim names.
func classNames(c *resourcev1.ResourceClaim) (all []string) {
	for _, r := range c.Spec.Devices.Requests {
		if r.Exactly != nil {
			all = append(all, r.Exactly.DeviceClassName)
		}
		for _, sub := range r.FirstAvailable {
			all = append(all, sub.DeviceClassName)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func newDeviceClass(name string) *creation {
	return newCreation("resource.k8s.io/v1", "DeviceClass", &resourcev1.DeviceClass{
		TypeMeta: metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "DeviceClass"}, ObjectMeta: metav1.ObjectMeta{Name: name},
	})
}

// newDeviceClaim makes a claim for one device of the first class of which there is
// one to be had.
func (s *search) newDeviceClaim(pc *object.PodClaim) (first []edit) {
	for _, o := range s.table.Objects().List(object.DeviceClasses) {
		class := o.Head().Name
		claim := &resourcev1.ResourceClaim{
			TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaim"},
			ObjectMeta: metav1.ObjectMeta{Namespace: s.pod.Namespace, Name: pc.Claim, UID: types.UID("resourceclaim " + s.pod.Namespace + "/" + pc.Claim)},
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
				Name: "device", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
			}}}},
		}
		if pc.Owned {
			claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: s.pod.Name, UID: s.pod.UID, Controller: new(true), BlockOwnerDeletion: new(true)}}
		}
		edits := []edit{made(newCreation("resource.k8s.io/v1", "ResourceClaim", claim), "create the ResourceClaim %s/%s for a device of the class %s", s.pod.Namespace, pc.Claim, class)}
		if s.try(edits).ok {
			return edits
		}
		if first == nil {
			first = edits
		}
	}
	return first
}
