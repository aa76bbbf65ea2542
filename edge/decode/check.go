package decode

import (
	"fmt"
	"maps"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ours "github.com/berth-scheduler/berth/core/resource"
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
// that make no sense to a scheduler: allocatable amounts that are negative, or not whole.
func CheckNode(n *v1.Node) []error { return checkAmounts(n.Status.Allocatable, "status.allocatable") }

// checkAmounts reports amounts that are negative, and parts of what has no parts, sorted by name.
func checkAmounts(list v1.ResourceList, field string) (problems []error) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		switch q := list[name]; {
		case q.Sign() < 0:
			problems = append(problems, fmt.Errorf("%s[%s]: %s is negative", field, name, q.String()))
		case !isWhole(name, q):
			problems = append(problems, fmt.Errorf("%s[%s]: %s is not a whole number", field, name, q.String()))
		}
	}
	return problems
}

// isWhole reports whether the API server takes the amount of the resource: pods and extended resources
// are counted in whole numbers.
func isWhole(name v1.ResourceName, q resource.Quantity) bool {
	if name != v1.ResourcePods && !ours.IsExtended(name) || q.AsApproximateFloat64() > math.MaxInt32 {
		return true // so many are refused as too many, if at all; exact arithmetic may take for ever
	}
	return q.MilliValue()%1000 == 0
}

// CheckCustom reports the amounts of an ElasticQuota or a PodGroup of scheduling.x-k8s.io from a file
// that an API server would refuse in its own kinds: parts of an extended resource. The schema of a
// CustomResourceDefinition cannot, so objects of a cluster may have them.
func CheckCustom(o metav1.Object) (problems []error) {
	switch o := o.(type) {
	case *ElasticQuota:
		problems = append(o.Spec.Min.parts("spec.min"), o.Spec.Max.parts("spec.max")...)
	case *PodGroup:
		problems = o.Spec.minResources().parts("spec.minResources")
	}
	return problems
}

// parts reports the amounts of the list at the path that are parts of an extended resource.
func (q Quantities) parts(path string) (problems []error) {
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if amount, err := q[name].parse(); err == nil && !isWhole(name, amount) {
			problems = append(problems, fmt.Errorf("%s[%s]: %s is not a whole number", path, name, q[name]))
		}
	}
	return problems
}
