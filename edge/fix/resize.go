package fix

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/manifest"
)

// Resize is what a container wants to have of a resource and has not got yet. Its node
// counts all of it.
type Resize struct {
	Container int // its place in the spec
	Resource  v1.ResourceName
	Has       int64 // in units of the resource
	Wants     int64
}

// Deferred returns the resizes of the pod that its kubelet has deferred for want of room.
func Deferred(p *v1.Pod) (resizes []Resize) {
	if !slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodResizePending && c.Status == v1.ConditionTrue && c.Reason == v1.PodReasonDeferred
	}) {
		return nil
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		at := slices.IndexFunc(p.Status.ContainerStatuses, func(s v1.ContainerStatus) bool { return s.Name == c.Name })
		if at < 0 {
			continue
		}
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			has, known := p.Status.ContainerStatuses[at].AllocatedResources[name]
			if wants, ok := c.Resources.Requests[name]; ok && known && wants.Cmp(has) > 0 {
				resizes = append(resizes, Resize{i, name, units(name, has), units(name, wants)})
			}
		}
	}
	return resizes
}

// takeBack takes deferred resizes of pods on the row back: one, or all.
func (s *search) takeBack(row table.Row) [][]edit {
	var edits []edit
	node := s.table.Name(row)
	for _, p := range s.set.Pods {
		if p.Spec.NodeName != node {
			continue
		}
		if !s.spend(1) {
			return nil
		}
		for _, r := range Deferred(p) {
			edits = append(edits, edit{
				kind: takeBack, stage: undoes, target: target{"v1", "Pod", p.Namespace, p.Name},
				say: fmt.Sprintf("take the deferred resize of pod %s/%s back: %s %s for container %q", p.Namespace, p.Name, quantity(r.Resource, r.Has), noun(r.Resource), p.Spec.Containers[r.Container].Name),
				ops: []Op{{Op: "replace", Path: at("/spec/containers/%d/resources/requests/%s", r.Container, r.Resource), Value: quantity(r.Resource, r.Has)}},
			})
		}
	}
	return s.someOf(edits, row, names.NodeResourcesFit)
}

// runningPod is a pod of the set that runs; nil where there is none.
func (s *search) runningPod(namespace, name string) *v1.Pod {
	at := slices.IndexFunc(s.set.Pods, func(p *v1.Pod) bool { return p.Namespace == namespace && p.Name == name && p.Spec.NodeName != "" })
	if at < 0 {
		return nil
	}
	return s.set.Pods[at]
}

// changePod changes a pod that runs, and returns what undoes it; nil where it is not
// possible.
func (s *search) changePod(t target, ops []Op) func() {
	api := s.runningPod(t.namespace, t.name)
	if api == nil {
		return nil
	}
	placed := s.table.Pod(api.UID)
	changed := api.DeepCopy()
	if placed == nil || patch(changed, ops) != nil || manifest.Check(changed, t.kind) != nil {
		return nil
	}
	before, node := placed.Pod, s.table.Name(placed.Row)
	replace := func(p *object.Pod) {
		s.table.RemovePod(p.UID)
		s.table.AddPod(p, node)
	}
	replace(s.set.DecodePod(changed))
	return func() { replace(before) }
}
