package fix

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// devices tries claims for devices, and their classes, that ask for less or for what there is: each change alone, or else all of
// them at once.
func (s *search) devices() {
	var all []edit
	for i := range s.pod.Claims {
		c := table.Lookup[*object.ResourceClaim](s.table, object.ResourceClaims, s.pod.Namespace, s.pod.Claims[i].Claim)
		if c != nil && c.Allocation() == nil {
			all = append(all, meantSelectors(s.table, c)...)
			all = append(all, s.loosenClaim(c)...)
		}
	}
	if len(all) > mostEdits {
		return
	}
	s.considerEach(all)
}

// loosenClaim asks for fewer devices, drops selectors and constraints, and tolerates taints
// of devices.
func (s *search) loosenClaim(c *object.ResourceClaim) (edits []edit) {
	spec := &c.API.Spec.Devices
	of := target{"resource.k8s.io/v1", "ResourceClaim", c.Namespace, c.Name}
	loosen := func(k kind, op Op, format string, args ...any) {
		edits = append(edits, edit{kind: k, target: of, say: fmt.Sprintf(format, args...), ops: []Op{op}})
	}
	for i := range spec.Requests {
		r := spec.Requests[i].Exactly
		if r == nil {
			continue
		}
		path := at("/spec/devices/requests/%d/exactly", i)
		if r.AllocationMode != resourcev1.DeviceAllocationModeAll && r.Count > 1 {
			edits = append(edits, fewerDevices(of, path, r.DeviceClassName, r.Count, 1))
		}
		for _, t := range s.deviceTaints(r) {
			loosen(addToleration, Op{Op: "add", Path: path + "/tolerations/-", Value: map[string]any{"key": t.Key, "operator": "Exists", "effect": string(t.Effect)}},
				"have claim %s tolerate the taint %s:%s of devices", c.Name, t.Key, t.Effect)
		}
		for k := range r.Selectors {
			loosen(loosenTerm, Op{Op: "remove", Path: at("%s/selectors/%d", path, k)}, "drop the selector %s from claim %s", SelectorText(&r.Selectors[k]), c.Name)
		}
	}
	for i := range spec.Constraints {
		loosen(loosenTerm, Op{Op: "remove", Path: at("/spec/devices/constraints/%d", i)}, "drop the constraint %s from claim %s", constraintText(&spec.Constraints[i]), c.Name)
	}
	return edits
}

func fewerDevices(of target, path, class string, count, n int64) edit {
	return edit{
		kind: lowerRequest, target: of, say: fmt.Sprintf("lower the devices of class %s that claim %s wants from %d to %d", class, of.name, count, n),
		ops:  []Op{{Op: "add", Path: path + "/count", Value: n}},
		tune: &tune{value: n, best: count - 1, step: 1, with: func(n int64) edit { return fewerDevices(of, path, class, count, n) }},
	}
}

// deviceTaints are the taints of devices that the request does not tolerate, as slices and
// rules have them.
func (s *search) deviceTaints(r *resourcev1.ExactDeviceRequest) (taints []resourcev1.DeviceTaint) {
	add := func(t resourcev1.DeviceTaint) {
		same := func(o resourcev1.DeviceTaint) bool { return o.Key == t.Key && o.Effect == t.Effect }
		tolerates := func(o resourcev1.DeviceToleration) bool { return resourceclaim.ToleratesTaint(o, t) }
		if len(taints) < mostMeant && !slices.ContainsFunc(taints, same) && !slices.ContainsFunc(r.Tolerations, tolerates) {
			taints = append(taints, t)
		}
	}
	for _, o := range s.table.Objects().List(object.ResourceSlices) {
		devices := o.(*object.ResourceSlice).API.Spec.Devices
		if !s.spend(1 + len(devices)/20) {
			return nil
		}
		for i := range devices {
			for _, t := range devices[i].Taints {
				add(t)
			}
		}
	}
	for _, o := range s.table.Objects().List(object.DeviceTaintRules) {
		add(o.(*object.DeviceTaintRule).Taint)
	}
	return taints
}

// SelectorText returns the expression of the selector, or how it begins.
func SelectorText(s *resourcev1.DeviceSelector) string { return short(expressionOf(s)) }

func expressionOf(s *resourcev1.DeviceSelector) string {
	if s.CEL == nil {
		return ""
	}
	return s.CEL.Expression
}

func constraintText(c *resourcev1.DeviceConstraint) string {
	switch {
	case c.MatchAttribute != nil:
		return "matchAttribute " + string(*c.MatchAttribute)
	case c.DistinctAttribute != nil:
		return "distinctAttribute " + string(*c.DistinctAttribute)
	}
	return "of devices"
}
