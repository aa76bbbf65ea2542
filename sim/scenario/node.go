package scenario

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// attribute is one word of a node or pod directive: key=value, key alone, or
// -key, which takes away what an earlier directive gave.
type attribute struct {
	key, value string
	remove     bool
}

func parseAttribute(word string) attribute {
	key, remove := strings.CutPrefix(word, "-")
	key, value, _ := strings.Cut(key, "=")
	return attribute{key, value, remove}
}

func newNode(name string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node " + name)},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			v1.ResourceCPU:    resource.MustParse("4"),
			v1.ResourceMemory: resource.MustParse("8Gi"),
			v1.ResourcePods:   resource.MustParse("110"),
		}},
	}
}

// setNode changes the node by one attribute.
func setNode(n *v1.Node, a attribute) error {
	kind, name, prefixed := strings.Cut(a.key, ":")
	switch {
	case prefixed && kind == "label":
		setEntry(&n.Labels, name, a)
	case prefixed && kind == "annotation":
		setEntry(&n.Annotations, name, a)
	case prefixed && kind == "condition":
		return setCondition(n, name, a)
	case a.key == "taint":
		return setTaint(n, a)
	case a.key == "unschedulable":
		n.Spec.Unschedulable = !a.remove
	case a.key == "image":
		return setImage(n, a)
	default:
		return setAmount(&n.Status.Allocatable, a)
	}
	return nil
}

func setEntry(m *map[string]string, key string, a attribute) {
	if *m == nil {
		*m = map[string]string{}
	}
	if a.remove {
		delete(*m, key)
		return
	}
	(*m)[key] = a.value
}

// setAmount takes a resource's name and quantity.
func setAmount(list *v1.ResourceList, a attribute) error {
	if *list == nil {
		*list = v1.ResourceList{}
	}
	name := v1.ResourceName(a.key)
	if !slices.Contains([]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourcePods, v1.ResourceEphemeralStorage}, name) &&
		!strings.Contains(a.key, "/") && !strings.HasPrefix(a.key, v1.ResourceHugePagesPrefix) {
		return fmt.Errorf("%q: no such attribute or resource", a.key)
	}
	if a.remove {
		delete(*list, name)
		return nil
	}
	q, err := resource.ParseQuantity(a.value)
	if err != nil {
		return fmt.Errorf("%s=%s: %w", a.key, a.value, err)
	}
	(*list)[name] = q
	return nil
}

func setCondition(n *v1.Node, name string, a attribute) error {
	n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(c v1.NodeCondition) bool { return string(c.Type) == name })
	if !a.remove {
		n.Status.Conditions = append(n.Status.Conditions, v1.NodeCondition{Type: v1.NodeConditionType(name), Status: v1.ConditionStatus(a.value)})
	}
	return nil
}

// setTaint takes key[=value]:Effect; -taint takes all away.
func setTaint(n *v1.Node, a attribute) error {
	if a.remove {
		n.Spec.Taints = nil
		return nil
	}
	key, effect, ok := strings.Cut(a.value, ":")
	if !ok {
		return fmt.Errorf("taint=%s: want key[=value]:Effect", a.value)
	}
	key, value, _ := strings.Cut(key, "=")
	n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: key, Value: value, Effect: v1.TaintEffect(effect)})
	return nil
}

// setImage takes name@size, the name as nodes report it.
func setImage(n *v1.Node, a attribute) error {
	name, size, ok := strings.Cut(a.value, "@")
	q, err := resource.ParseQuantity(size)
	if !ok || err != nil {
		return fmt.Errorf("image=%s: want name:tag@size", a.value)
	}
	n.Status.Images = append(n.Status.Images, v1.ContainerImage{Names: []string{name}, SizeBytes: q.Value()})
	return nil
}
