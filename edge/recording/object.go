package recording

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
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

// kinds lists the kinds by their numbers. The kinds of package object follow the
// others, in its order.
var kinds = append([]string{
	kindPod: "Pod", kindNode: "Node", kindNamespace: "Namespace", kindBudget: "PodDisruptionBudget",
	kindService: "Service", kindReplicationController: "ReplicationController", kindReplicaSet: "ReplicaSet", kindStatefulSet: "StatefulSet",
}, object.KindNames()...)

const (
	kindPod kind = 1 + iota
	kindNode
	kindNamespace
	kindBudget
	kindService
	kindReplicationController
	kindReplicaSet
	kindStatefulSet
	firstObject
)

// known tells whether the format has the number.
func (k kind) known() bool { return k > 0 && int(k) < len(kinds) }

// empty is a new API object of a kind that is known.
func (k kind) empty() api { return decode.Named(kinds[k]).New().(api) }

// numberOf is the number of a kind of package object, and objectOf finds the kind
// of a number.
func numberOf(k object.Kind) kind { return firstObject + kind(k) }

func objectOf(k kind) (object.Kind, bool) {
	return object.Kind(k - firstObject), k >= firstObject && k.known()
}

var ownerKinds = map[object.SelectorOwnerKind]kind{object.Service: kindService, object.ReplicationController: kindReplicationController,
	object.ReplicaSet: kindReplicaSet, object.StatefulSet: kindStatefulSet}

// ownerOf is the map above, read the other way.
var ownerOf = func() map[kind]object.SelectorOwnerKind {
	back := map[kind]object.SelectorOwnerKind{}
	for k, v := range ownerKinds {
		back[v] = k
	}
	return back
}()

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
	if !k.known() {
		return nil, fmt.Errorf("no kind of objects has the number %d", k)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("an object cannot be decoded: %v", r)
		}
	}()
	version, body := split(text)
	o = k.empty()
	if err := o.Unmarshal([]byte(body)); err != nil {
		return nil, err
	}
	o.SetResourceVersion(version)
	return o, nil
}

// PodOf returns the API object of a pod that was read from a record, as far as the record
// keeps it.
func PodOf(p *object.Pod) (*v1.Pod, error) {
	o, err := read(kindPod, p.Recorded)
	if err != nil {
		return nil, err
	}
	return o.(*v1.Pod), nil
}

// NodeOf returns the API object of a node that was read from a record, as far as the record
// keeps it.
func NodeOf(n *object.Node) (*v1.Node, error) {
	o, err := read(kindNode, n.Recorded)
	if err != nil {
		return nil, err
	}
	return o.(*v1.Node), nil
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
	of, _ := objectOf(k)
	return machine.ObjectGone{Kind: of, Namespace: namespace, Name: name}
}
