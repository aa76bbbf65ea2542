package decode

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// CheckPod reports the fields of a pod from a file that the API server would
// refuse and that make no sense to a scheduler. Each problem names field and
// reason. The caller names the pod.
func CheckPod(p *v1.Pod) (problems []error) {
	spec := &p.Spec
	lists := []struct {
		field string
		list  []v1.Container
	}{{"spec.initContainers", spec.InitContainers}, {"spec.containers", spec.Containers}}
	for _, l := range lists {
		for i := range l.list {
			problems = append(problems, checkContainer(&l.list[i], fmt.Sprintf("%s[%d]", l.field, i))...)
		}
	}
	if spec.Resources != nil {
		problems = append(problems, checkResources(spec.Resources, "spec.resources")...)
	}
	return append(problems, checkAmounts(spec.Overhead, "spec.overhead")...)
}

func checkContainer(c *v1.Container, field string) []error {
	problems := checkResources(&c.Resources, field+".resources")
	for i := range c.Ports {
		if p := c.Ports[i].HostPort; p < 0 || p > 65535 {
			problems = append(problems, fmt.Errorf("%s.ports[%d].hostPort: %d is not between 0 and 65535", field, i, p))
		}
	}
	return problems
}

func checkResources(r *v1.ResourceRequirements, field string) []error {
	return append(checkAmounts(r.Requests, field+".requests"), checkAmounts(r.Limits, field+".limits")...)
}

// CheckNode reports the fields of a node from a file that the API server would refuse and
// that make no sense to a scheduler: negative allocatable amounts.
func CheckNode(n *v1.Node) []error { return checkAmounts(n.Status.Allocatable, "status.allocatable") }

// checkAmounts reports negative amounts, sorted by name.
func checkAmounts(list v1.ResourceList, field string) (problems []error) {
	var negative []v1.ResourceName
	for name, q := range list { // any order: sorted below
		if q.Sign() < 0 {
			negative = append(negative, name)
		}
	}
	slices.Sort(negative)
	for _, name := range negative {
		q := list[name]
		problems = append(problems, fmt.Errorf("%s[%s]: %s is negative", field, name, q.String()))
	}
	return problems
}
