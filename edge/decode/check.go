package decode

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// CheckPod tells what of a pod from a file the API server would not accept
// and a scheduler could not make sense of. The error names pod, field and
// reason.
func CheckPod(p *v1.Pod) error {
	if p.Name == "" {
		return fmt.Errorf("pod in namespace %q: metadata.name: is empty", p.Namespace)
	}
	if err := checkPod(p); err != nil {
		return fmt.Errorf("pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

func checkPod(p *v1.Pod) error {
	spec := &p.Spec
	lists := []struct {
		field string
		list  []v1.Container
	}{{"spec.initContainers", spec.InitContainers}, {"spec.containers", spec.Containers}}
	for _, l := range lists {
		for i := range l.list {
			if err := checkContainer(&l.list[i], fmt.Sprintf("%s[%d]", l.field, i)); err != nil {
				return err
			}
		}
	}
	if spec.Resources != nil {
		if err := checkAmounts(spec.Resources.Requests, "spec.resources.requests"); err != nil {
			return err
		}
	}
	return checkAmounts(spec.Overhead, "spec.overhead")
}

func checkContainer(c *v1.Container, field string) error {
	if err := checkAmounts(c.Resources.Requests, field+".resources.requests"); err != nil {
		return err
	}
	if err := checkAmounts(c.Resources.Limits, field+".resources.limits"); err != nil {
		return err
	}
	for i := range c.Ports {
		if p := c.Ports[i].HostPort; p < 0 || p > 65535 {
			return fmt.Errorf("%s.ports[%d].hostPort: %d is not between 0 and 65535", field, i, p)
		}
	}
	return nil
}

// CheckNode is CheckPod for nodes.
func CheckNode(n *v1.Node) error {
	if n.Name == "" {
		return fmt.Errorf("node: metadata.name: is empty")
	}
	if err := checkAmounts(n.Status.Allocatable, "status.allocatable"); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	return nil
}

// checkAmounts reports a negative amount, of several the first by name.
func checkAmounts(list v1.ResourceList, field string) error {
	var negative []string
	for name, q := range list {
		if q.Sign() < 0 {
			negative = append(negative, string(name))
		}
	}
	if len(negative) == 0 {
		return nil
	}
	first := slices.Min(negative)
	q := list[v1.ResourceName(first)]
	return fmt.Errorf("%s[%s]: %s is negative", field, first, q.String())
}
