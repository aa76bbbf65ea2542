package why

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berth-scheduler/berth/core/devices"
	"github.com/berth-scheduler/berth/core/index/devicepools"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// deviceRequest is devices of one class that the pod wants.
type deviceRequest struct {
	who   string // the claim, or the container
	class string
	count int64
	// narrowed: not every device of the class will do.
	narrowed    bool
	tolerations []resourcev1.DeviceToleration
	// selects is the class with the selectors of the request.
	selects *resourcev1.DeviceClass
}

// deviceText names the claims that block, and says which devices are short. Where each
// request alone has enough, it names them all.
func (f *facts) deviceText(nodes []string) string {
	away := f.allocatedElsewhere(nodes)
	requests, missing, others := f.deviceRequests()
	var short, all []string
	for i := range requests {
		text, enough := f.devicesShort(&requests[i], nodes)
		if all = append(all, text); !enough {
			short = append(short, text)
		}
	}
	parts, end := others, ""
	switch {
	case len(away) > 0:
		parts = away
	case len(missing)+len(short) > 0:
		parts = append(missing, short...)
	case len(all) > 0:
		parts, end = append(others, all...), "; no node here has all that at once, as far as taints, constraints and capacities allow it"
	case len(others) == 0:
		return ""
	}
	return " (" + strings.Join(parts, "; ") + end + ")"
}

// allocatedElsewhere names the claims whose devices one of the nodes cannot use.
func (f *facts) allocatedElsewhere(nodes []string) (texts []string) {
	for i := range f.pod.Claims {
		name := f.pod.Claims[i].Claim
		c := table.Lookup[*object.ResourceClaim](f.cluster.Machine.Table(), object.ResourceClaims, f.pod.Namespace, name)
		if c == nil || c.Allocation() == nil || c.Allocation().NodeSelector == nil {
			continue
		}
		selector := match.NewNodeSelector(nil, c.Allocation().NodeSelector)
		if slices.ContainsFunc(nodes, func(node string) bool {
			n := f.node(node)
			return n != nil && !selector.Matches(match.Subject{Name: n.Name, Labels: n.Labels})
		}) {
			var terms []string
			for _, t := range c.Allocation().NodeSelector.NodeSelectorTerms {
				terms = append(terms, termText(t))
			}
			texts = append(texts, fmt.Sprintf("claim %s is allocated on nodes with %s", name, strings.Join(terms, ", or ")))
		}
	}
	return texts
}

// deviceRequests are the pod's requests that can be counted, and texts for the claims
// that are not there and for the others.
func (f *facts) deviceRequests() (requests []deviceRequest, missing, others []string) {
	t := f.cluster.Machine.Table()
	missing = f.missingTemplates()
	for i := range f.pod.Claims {
		name := f.pod.Claims[i].Claim
		if name == "" {
			continue
		}
		c := table.Lookup[*object.ResourceClaim](t, object.ResourceClaims, f.pod.Namespace, name)
		switch {
		case c == nil:
			missing = append(missing, "claim "+name+" is not there")
			continue
		case c.Allocation() != nil:
			others = append(others, "claim "+name+" is allocated")
			continue
		}
		for _, r := range c.API.Spec.Devices.Requests {
			e := r.Exactly
			if e == nil || e.AllocationMode == resourcev1.DeviceAllocationModeAll || e.AdminAccess != nil && *e.AdminAccess {
				others = append(others, fmt.Sprintf("request %s of claim %s", r.Name, name))
				continue
			}
			requests = append(requests, deviceRequest{who: "claim " + name, class: e.DeviceClassName, count: max(1, e.Count),
				narrowed: len(e.Selectors) > 0, tolerations: e.Tolerations, selects: f.classWith(e.DeviceClassName, e.Selectors)})
		}
	}
	for i := range f.pod.Extended {
		x := &f.pod.Extended[i]
		if class := devicepools.Of(t).ClassFor(x.Resource); class != nil && x.Count > 0 {
			requests = append(requests, deviceRequest{who: fmt.Sprintf("%s of container %q", x.Resource, x.Container), class: class.Name, count: x.Count, selects: class.API})
		}
	}
	return requests, missing, others
}

// missingTemplates says which templates are not there of which claims of the pod would be
// made.
func (f *facts) missingTemplates() (texts []string) {
	for _, c := range f.api.Spec.ResourceClaims {
		made := slices.ContainsFunc(f.api.Status.ResourceClaimStatuses, func(s v1.PodResourceClaimStatus) bool { return s.Name == c.Name })
		if name := c.ResourceClaimTemplateName; name != nil && !made && !f.cluster.Set.HasTemplate(f.pod.Namespace, *name) {
			texts = append(texts, fmt.Sprintf("ResourceClaimTemplate %s/%s is not there: create it", f.pod.Namespace, *name))
		}
	}
	return texts
}

// classWith is the class with more selectors; nil where it is not there.
func (f *facts) classWith(name string, more []resourcev1.DeviceSelector) *resourcev1.DeviceClass {
	c := table.Lookup[*object.DeviceClass](f.cluster.Machine.Table(), object.DeviceClasses, "", name)
	if c == nil {
		return nil
	}
	return &resourcev1.DeviceClass{Spec: resourcev1.DeviceClassSpec{Selectors: slices.Concat(c.API.Spec.Selectors, more)}}
}

// devicesShort says how many devices the request wants, and how many of them the freest
// of the nodes has.
func (f *facts) devicesShort(r *deviceRequest, nodes []string) (text string, enough bool) {
	text = fmt.Sprintf("%s wants %s of class %s", r.who, terminal.Count(int(r.count), "device"), r.class)
	if r.narrowed {
		text += " that its selectors take"
	}
	if r.selects == nil {
		return text + ", and there is no such class" + meantObject(f.cluster.Machine.Table(), object.DeviceClasses, "", r.class), false
	}
	best, free, whole, largest := f.freestDevices(r.selects, nodes)
	hints := f.deviceHints(r, nodes)
	switch {
	case largest == 0:
		if r.narrowed {
			if _, _, _, largest := f.freestDevices(f.classWith(r.class, nil), nodes); largest > 0 {
				return fmt.Sprintf("%s, and none does (the largest node has %d of the class)", text, largest) + hints, false
			}
		}
		return text + ", and no node here has any" + rejecting(f.cluster.Machine.Table(), f.classWith(r.class, nil), func(c *resourcev1.DeviceClass) bool {
			_, _, _, largest := f.freestDevices(c, nodes)
			return largest > 0
		}) + hints, false
	case r.count > largest:
		return fmt.Sprintf("%s, more than any node here has (the largest has %d)", text, largest) + hints, false
	case len(nodes) > 1:
		best = "the freest of them, " + best + ","
	}
	return fmt.Sprintf("%s; %s has %d of %d free", text, best, free, whole) + hints, free >= r.count && hints == ""
}

// rejecting names the selector of the class that takes none of the devices that nodes have; ""
// where they have none. has reports whether they have a device of a class.
func rejecting(t *table.Table, class *resourcev1.DeviceClass, has func(*resourcev1.DeviceClass) bool) string {
	if class == nil || !has(&resourcev1.DeviceClass{}) {
		return ""
	}
	for i := range class.Spec.Selectors {
		s := &class.Spec.Selectors[i]
		if s.CEL == nil || has(&resourcev1.DeviceClass{Spec: resourcev1.DeviceClassSpec{Selectors: class.Spec.Selectors[i : i+1]}}) {
			continue
		}
		text := "; there are devices, and the selector of the class takes none: " + fix.SelectorText(s)
		if _, wrong, meant, ok := fix.MeantExpression(fix.DeviceValues(t), s); ok {
			text += fmt.Sprintf("; they have %q in place of %q: was that meant?", meant, wrong)
		}
		return text
	}
	return ""
}

// mostHinted bounds the nodes whose devices are looked at one by one.
const mostHinted = 8

// deviceHints say why devices that the nodes see cannot all be used: slices of their pool
// are missing, they have taints, or they share counters.
func (f *facts) deviceHints(r *deviceRequest, nodes []string) string {
	var hints []string
	say := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(hints, text) {
			hints = append(hints, text)
		}
	}
	t := f.cluster.Machine.Table()
	counter := devices.NewCounter(structured.Features{ConsumableCapacity: true, ListTypeAttributes: true})
	shared := devices.Shared(t, counter.Shares)
	for _, name := range nodes[:min(mostHinted, len(nodes))] {
		row, ok := t.Find(name)
		if !ok || t.Node(row) == nil {
			continue
		}
		offer := shared.WithNode(t, name, counter.Shares)
		for _, s := range offer.Slices {
			if all, _ := counter.Count(t.Node(row), r.selects, &devices.Offer{Slices: []*resourcev1.ResourceSlice{s}, Taken: offer.Taken}); all == 0 {
				continue
			}
			pool := &s.Spec.Pool
			if has := slicesOf(offer.Slices, s); has < pool.ResourceSliceCount {
				say("pool %s of %s has %d of its %s: its driver has to publish the rest first", pool.Name, s.Spec.Driver, has, terminal.Count(int(pool.ResourceSliceCount), "slice"))
			}
			for i := range s.Spec.Devices {
				d := &s.Spec.Devices[i]
				for _, taint := range d.Taints {
					if !slices.ContainsFunc(r.tolerations, func(o resourcev1.DeviceToleration) bool { return resourceclaim.ToleratesTaint(o, taint) }) {
						say("devices have the taint %s:%s, which is not tolerated", taint.Key, taint.Effect)
					}
				}
				if len(d.ConsumesCounters) > 0 {
					say("devices of pool %s share counters, so that not all can be had at once", pool.Name)
				}
			}
		}
	}
	if len(hints) == 0 {
		return ""
	}
	return "; " + list(hints, 3)
}

// slicesOf counts the slices of the pool of one of them, of its generation.
func slicesOf(all []*resourcev1.ResourceSlice, one *resourcev1.ResourceSlice) (n int64) {
	for _, s := range all {
		if s.Spec.Driver == one.Spec.Driver && s.Spec.Pool.Name == one.Spec.Pool.Name && s.Spec.Pool.Generation == one.Spec.Pool.Generation {
			n++
		}
	}
	return n
}

// freestDevices is the node that can use the most free devices of the class, with how
// many, and how many there are; and the most that any of the nodes can use.
func (f *facts) freestDevices(class *resourcev1.DeviceClass, nodes []string) (best string, free, whole, largest int64) {
	t := f.cluster.Machine.Table()
	counter := devices.NewCounter(structured.Features{ConsumableCapacity: true, ListTypeAttributes: true})
	shared := devices.Shared(t, counter.Shares)
	for _, name := range nodes {
		row, ok := t.Find(name)
		if !ok || t.Node(row) == nil {
			continue
		}
		all, taken := counter.Count(t.Node(row), class, shared.WithNode(t, name, counter.Shares))
		largest = max(largest, all)
		if best == "" || all-taken > free || all-taken == free && all > whole {
			best, free, whole = name, all-taken, all
		}
	}
	return best, free, whole, largest
}
