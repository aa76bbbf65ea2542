package decode

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PriorityClasses gives pods from files the priority that the API server's
// Priority admission would give them. The zero value knows the two classes
// that every cluster has.
type PriorityClasses struct {
	byName map[string]*schedulingv1.PriorityClass
}

// SystemPriorityClasses returns those that every cluster has, by value.
func SystemPriorityClasses() []*schedulingv1.PriorityClass {
	return []*schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "system-cluster-critical"}, Value: 2000000000},
		{ObjectMeta: metav1.ObjectMeta{Name: "system-node-critical"}, Value: 2000001000},
	}
}

// Sorted are the classes that were added, by name.
func (c *PriorityClasses) Sorted() []*schedulingv1.PriorityClass {
	var all []*schedulingv1.PriorityClass
	for _, name := range slices.Sorted(maps.Keys(c.byName)) {
		all = append(all, c.byName[name])
	}
	return all
}

// Add makes the class known. Of two with the same name the later one counts.
func (c *PriorityClasses) Add(class *schedulingv1.PriorityClass) {
	if c.byName == nil {
		c.byName = map[string]*schedulingv1.PriorityClass{}
	}
	c.byName[class.Name] = class
}

// Resolve sets spec.priority and spec.preemptionPolicy where they are not
// set. A priority that is there stays: the pod was created before. A class
// that is not known is an error, unless the priority is there.
func (c *PriorityClasses) Resolve(p *v1.Pod) error {
	class, err := c.class(p.Spec.PriorityClassName)
	if err != nil && p.Spec.Priority == nil {
		return fmt.Errorf("pod %s/%s: spec.priorityClassName: %w", p.Namespace, p.Name, err)
	}
	if p.Spec.Priority == nil {
		value := class.Value
		p.Spec.Priority = &value
	}
	if p.Spec.PreemptionPolicy == nil {
		policy := v1.PreemptLowerPriority
		if class.PreemptionPolicy != nil {
			policy = *class.PreemptionPolicy
		}
		p.Spec.PreemptionPolicy = &policy
	}
	return nil
}

func (c *PriorityClasses) class(name string) (schedulingv1.PriorityClass, error) {
	if known := c.byName[name]; known != nil {
		return *known, nil
	}
	if name == "" {
		return c.global(), nil
	}
	for _, class := range SystemPriorityClasses() {
		if class.Name == name {
			return *class, nil
		}
	}
	return schedulingv1.PriorityClass{}, fmt.Errorf("no PriorityClass with name %s", name)
}

// global is the class of pods that name none: of several global defaults the
// one with the lowest value, without one the empty class.
func (c *PriorityClasses) global() schedulingv1.PriorityClass {
	var lowest *schedulingv1.PriorityClass
	for _, class := range c.byName {
		if !class.GlobalDefault {
			continue
		}
		if lowest == nil || class.Value < lowest.Value || class.Value == lowest.Value && class.Name < lowest.Name {
			lowest = class
		}
	}
	if lowest == nil {
		return schedulingv1.PriorityClass{}
	}
	return *lowest
}
