package fix

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/plugins/names"
	ours "github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// request is an amount of one resource that a container, or the pod, asks for.
type request struct {
	path    string // of the resources
	of      string // in words
	written v1.ResourceRequirements
	name    v1.ResourceName
	amount  int64 // in units
	least   int64 // that it may be
}

// lower lowers the pod's requests to what the row has, for each resource of which the row is short.
func (s *search) lower(b decision.Blocker, row table.Row) [][]edit {
	if len(b.Insufficient) > mostEdits {
		return nil
	}
	var all []edit
	for _, name := range b.Insufficient {
		if name == v1.ResourcePods {
			return nil // no request can be lowered for it
		}
		edits := s.lowerOne(name, row)
		if edits == nil {
			return nil
		}
		all = append(all, edits...)
	}
	if len(all) == 0 {
		return nil
	}
	return [][]edit{all}
}

// lowerOne lowers the largest request that alone makes the difference, or else all
// of them by the same share.
func (s *search) lowerOne(name v1.ResourceName, row table.Row) []edit {
	requests := s.requests(name)
	fits := func(edits ...edit) bool {
		blockers, ok := s.blockers(join(s.base, edits), row)
		return ok && !slices.ContainsFunc(blockers, func(b decision.Blocker) bool {
			return b.Plugin == names.NodeResourcesFit && slices.Contains(b.Insufficient, name)
		})
	}
	for _, r := range requests[:min(mostEdits, len(requests))] {
		if fits(r.lowered(r.least)) {
			most := bisect(r.least/r.unit(), r.amount/r.unit(), func(n int64) bool { return fits(r.lowered(n * r.unit())) })
			return []edit{r.lowered(most * r.unit())}
		}
	}
	if s.podLevel(name) != nil {
		return s.lowerBoth(requests[0], row, fits)
	}
	shares := func(n int64) (edits []edit) {
		for _, r := range requests {
			amount := max(r.least, int64(float64(r.amount)*float64(n)/1000))
			edits = append(edits, r.lowered(amount/r.unit()*r.unit()))
		}
		return edits
	}
	if len(requests) < 2 || len(requests) > mostEdits || !fits(shares(0)...) {
		return nil
	}
	return shares(bisect(0, 1000, func(n int64) bool { return fits(shares(n)...) }))
}

// lowerBoth lowers the pod's own request to what is free, with that of the container
// that is in the way of it, or else with those of all.
func (s *search) lowerBoth(own request, row table.Row, fits func(...edit) bool) []edit {
	overhead := s.api.Spec.Overhead[own.name]
	pod := own.lowered(min(own.amount, s.free(row, own.name)-units(own.name, overhead)) / own.unit() * own.unit())
	all := []edit{pod}
	for _, r := range s.containerRequests(own.name) {
		if len(all) > mostEdits {
			return nil
		}
		if pair := []edit{pod, r.lowered(0)}; fits(pair...) {
			return pair
		}
		all = append(all, r.lowered(0))
	}
	if fits(all...) {
		return all
	}
	return nil
}

// lowerDevices lowers how many devices the pod requests as extended resources.
func (s *search) lowerDevices(row table.Row) [][]edit {
	var none []edit
	var resources []v1.ResourceName
	for i := range s.pod.Extended {
		if name := s.pod.Extended[i].Resource; !slices.Contains(resources, name) {
			resources = append(resources, name)
			for _, r := range s.requests(name) {
				none = append(none, r.lowered(0))
			}
		}
	}
	if len(none) == 0 {
		return nil
	}
	return s.someOf(none, row, names.DynamicResources)
}

// bisect is the largest number from low on, and below high, for which f holds. It
// holds for low.
func bisect(low, high int64, f func(int64) bool) int64 {
	for low+1 < high {
		if n := low + (high-low)/2; f(n) {
			low = n
		} else {
			high = n
		}
	}
	return low
}

// requests are the pod's for the resource, the largest first. Where the pod has one
// of its own, that one counts.
func (s *search) requests(name v1.ResourceName) []request {
	if own := s.podLevel(name); own != nil {
		return []request{*own}
	}
	return s.containerRequests(name)
}

// podLevel is the pod's own request for the resource, if it has one.
func (s *search) podLevel(name v1.ResourceName) *request {
	r := s.api.Spec.Resources
	if r == nil {
		return nil
	}
	q, ok := r.Requests[name]
	if !ok {
		return nil
	}
	sum := helper.AggregateContainerRequests(s.api, helper.PodResourcesOptions{})[name]
	own := &request{path: "/spec/resources", of: "the pod", name: name, amount: units(name, q), least: units(name, sum)}
	if w := s.spec.Resources; w != nil {
		own.written = *w
	}
	return own
}

// containerRequests are those of the pod's containers, the largest first.
func (s *search) containerRequests(name v1.ResourceName) (all []request) {
	add := func(list, what string, written, api []v1.Container) {
		for i := range api {
			q, ok := api[i].Resources.Requests[name]
			if !ok || i >= len(written) || units(name, q) <= 0 {
				continue
			}
			all = append(all, request{path: at("/spec/%s/%d/resources", list, i), of: fmt.Sprintf("%s %q", what, api[i].Name),
				written: written[i].Resources, name: name, amount: units(name, q)})
		}
	}
	add("containers", "container", s.spec.Containers, s.api.Spec.Containers)
	add("initContainers", "init container", s.spec.InitContainers, s.api.Spec.InitContainers)
	slices.SortStableFunc(all, func(a, b request) int { return cmp.Compare(b.amount, a.amount) })
	return all
}

func units(name v1.ResourceName, q resource.Quantity) int64 {
	if name == v1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// unit is the least by which a request can change.
func (r *request) unit() int64 {
	if size, is := strings.CutPrefix(string(r.name), v1.ResourceHugePagesPrefix); is {
		if q, err := resource.ParseQuantity(size); err == nil && q.Value() > 0 {
			return q.Value()
		}
	}
	return 1
}

// lowered is the edit that has the request be that amount.
func (r request) lowered(amount int64) edit {
	value := quantity(r.name, amount)
	field := escape(string(r.name))
	_, requested := r.written.Requests[r.name]
	_, limited := r.written.Limits[r.name]
	fixed := ours.IsExtended(r.name) || strings.HasPrefix(string(r.name), v1.ResourceHugePagesPrefix) // requests and limits are equal
	e := edit{kind: lowerRequest, say: fmt.Sprintf("lower the %s request of %s from %s to %s", noun(r.name), r.of, quantity(r.name, r.amount), value)}
	switch {
	case requested:
		e.ops = []Op{{Op: "replace", Path: r.path + "/requests/" + field, Value: value}}
		if fixed && limited {
			e.ops = append(e.ops, Op{Op: "replace", Path: r.path + "/limits/" + field, Value: value})
		}
	case limited && fixed:
		e.ops = []Op{{Op: "replace", Path: r.path + "/limits/" + field, Value: value}}
	default:
		e.ops = []Op{{Op: "add", Path: r.path + "/requests/" + field, Value: value}}
	}
	if amount == 0 && ours.IsExtended(r.name) {
		e.stage = lastResort // the pod asked for the device
	}
	e.tune = &tune{value: amount, best: r.amount - r.unit(), step: r.unit(), with: r.lowered}
	return e
}

// quantity is an amount as people write it.
func quantity(name v1.ResourceName, amount int64) string {
	return ours.Quantity(name, amount).String()
}

// noun is what people call the resource.
func noun(name v1.ResourceName) string {
	if name == v1.ResourceCPU {
		return "CPU"
	}
	return string(name)
}
