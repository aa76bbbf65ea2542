package recording

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// kind numbers the kinds of API objects. The numbers are part of the format.
type kind uint8

// api is an API object that knows its protobuf form.
type api interface {
	metav1.Object
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// kinds makes empty objects, by kind.
var kinds = []func() api{
	1:  func() api { return &v1.Pod{} },
	2:  func() api { return &v1.Node{} },
	3:  func() api { return &v1.Namespace{} },
	4:  func() api { return &policyv1.PodDisruptionBudget{} },
	5:  func() api { return &v1.Service{} },
	6:  func() api { return &v1.ReplicationController{} },
	7:  func() api { return &appsv1.ReplicaSet{} },
	8:  func() api { return &appsv1.StatefulSet{} },
	9:  func() api { return &v1.PersistentVolumeClaim{} },
	10: func() api { return &v1.PersistentVolume{} },
	11: func() api { return &storagev1.StorageClass{} },
	12: func() api { return &storagev1.CSINode{} },
	13: func() api { return &storagev1.CSIDriver{} },
	14: func() api { return &storagev1.CSIStorageCapacity{} },
	15: func() api { return &storagev1.VolumeAttachment{} },
	16: func() api { return &resourcev1.ResourceClaim{} },
	17: func() api { return &resourcev1.ResourceSlice{} },
	18: func() api { return &resourcev1.DeviceClass{} },
	19: func() api { return &resourcev1beta2.DeviceTaintRule{} },
}

const (
	kindPod       kind = 1
	kindNode      kind = 2
	kindNamespace kind = 3
	kindBudget    kind = 4
)

var ownerKinds = map[object.SelectorOwnerKind]kind{object.Service: 5, object.ReplicationController: 6, object.ReplicaSet: 7, object.StatefulSet: 8}

var objectKinds = map[object.Kind]kind{
	object.PersistentVolumeClaims: 9, object.PersistentVolumes: 10, object.StorageClasses: 11, object.CSINodes: 12,
	object.CSIDrivers: 13, object.CSIStorageCapacities: 14, object.VolumeAttachments: 15,
	object.ResourceClaims: 16, object.ResourceSlices: 17, object.DeviceClasses: 18, object.DeviceTaintRules: 19,
}

// ownerOf and objectOf are the maps above, read the other way.
var ownerOf, objectOf = inverse(ownerKinds), inverse(objectKinds)

func inverse[K comparable](m map[K]kind) map[kind]K {
	back := map[kind]K{}
	for k, v := range m {
		back[v] = k
	}
	return back
}

// Objects writes API objects as a record holds them.
type Objects struct{ names *Names }

// NewObjects returns a writer of objects; names nil: nothing is redacted.
func NewObjects(names *Names) *Objects { return &Objects{names} }

// Attach gives the objects of the event what a record holds of the API object that
// they were decoded from. Nobody else may know them yet.
func (w *Objects) Attach(e machine.Event, o metav1.Object) {
	carry(e, w.write(o))
}

// carry has the object of the event carry the text.
func carry(e machine.Event, text string) {
	switch e := e.(type) {
	case machine.PodSet:
		e.Pod.Recorded = text
	case machine.NodeSet:
		e.Node.Recorded = text
	case machine.NamespaceSet:
		e.Namespace.Recorded = text
	case machine.BudgetSet:
		e.Budget.Recorded = text
	case machine.SelectorOwnerSet:
		e.Owner.Recorded = text
	case machine.ObjectSet:
		e.Object.Head().Recorded = text
	case machine.ReadReply:
		e.Pod.Recorded = text
	}
}

// write is the object's resource version, with its length before it, and the
// protobuf form of what counts of it; "" if the object is of no known kind.
func (w *Objects) write(o metav1.Object) string {
	kept := keep(o)
	if kept == nil {
		return ""
	}
	version := o.GetResourceVersion()
	kept.SetResourceVersion("")
	if w.names != nil {
		w.names.redact(kept)
	}
	body, err := kept.Marshal()
	if err != nil || len(version) > 127 {
		return ""
	}
	return string(append(append(make([]byte, 0, 1+len(version)+len(body)), byte(len(version))), version...)) + string(body)
}

// split is the resource version and the body of what write made.
func split(text string) (version, body string) {
	if text == "" || len(text) < 1+int(text[0]) {
		return "", ""
	}
	return text[1 : 1+int(text[0])], text[1+int(text[0]):]
}

func join(version, body string) string { return string(rune(len(version))) + version + body }

// read is the API object that write was given, as far as it counts.
func read(k kind, text string) (o api, err error) {
	if int(k) >= len(kinds) || kinds[k] == nil {
		return nil, fmt.Errorf("no kind of objects has the number %d", k)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("an object cannot be decoded: %v", r)
		}
	}()
	version, body := split(text)
	o = kinds[k]()
	if err := o.Unmarshal([]byte(body)); err != nil {
		return nil, err
	}
	o.SetResourceVersion(version)
	return o, nil
}

// set is the event that tells of the object.
func set(k kind, text string) (e machine.Event, o api, err error) {
	if o, err = read(k, text); err != nil {
		return nil, nil, err
	}
	if e, err = setOf(o); err == nil {
		carry(e, text)
	}
	return e, o, err
}

// setOf is the event that tells of the API object.
func setOf(o api) (e machine.Event, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("an object cannot be decoded: %v", r)
		}
	}()
	switch a := o.(type) {
	case *v1.Pod:
		return machine.PodSet{Pod: decode.Pod(a)}, nil
	case *v1.Node:
		return machine.NodeSet{Node: decode.Node(a)}, nil
	case *v1.Namespace:
		return machine.NamespaceSet{Namespace: decode.Namespace(a)}, nil
	case *policyv1.PodDisruptionBudget:
		return machine.BudgetSet{Budget: decode.Budget(a)}, nil
	}
	if f := decode.SelectorOwner(o); f != nil {
		return machine.SelectorOwnerSet{Owner: f}, nil
	}
	return machine.ObjectSet{Object: decode.Object(o)}, nil
}

// gone is the event that tells that the object is no more.
func gone(k kind, o metav1.Object) machine.Event {
	namespace, name := o.GetNamespace(), o.GetName()
	switch k {
	case kindPod:
		return machine.PodGone{UID: o.GetUID(), Namespace: namespace, Name: name}
	case kindNode:
		return machine.NodeGone{Name: name}
	case kindNamespace:
		return machine.NamespaceGone{Name: name}
	case kindBudget:
		return machine.BudgetGone{Namespace: namespace, Name: name}
	}
	if owner, ok := ownerOf[k]; ok {
		return machine.SelectorOwnerGone{Kind: owner, Namespace: namespace, Name: name}
	}
	return machine.ObjectGone{Kind: objectOf[k], Namespace: namespace, Name: name}
}
