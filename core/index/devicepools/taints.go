package devicepools

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// RetaintedSlice is a ResourceSlice whose devices got other taints by a change of a
// DeviceTaintRule: Old before the change, New after it. An event is made from it.
type RetaintedSlice struct{ Old, New *object.ResourceSlice }

// Retainted returns the slices, sorted by name, whose taints the last change of a
// DeviceTaintRule changed, and clears the list. The caller owns the result.
func (d *Index) Retainted() []RetaintedSlice {
	list := d.retainted
	d.retainted = nil
	return list
}

// Tainted returns s with the taints that DeviceTaintRules add to its devices; s itself if
// there are none. Read only.
func (d *Index) Tainted(s *object.ResourceSlice) *object.ResourceSlice {
	if tainted := d.tainted[s.Name]; tainted != nil {
		return tainted
	}
	return s
}

// taint returns two states of a ResourceSlice with the taints that DeviceTaintRules add to its
// devices: old with the taints that were computed for was, now with those of the present rules. It
// keeps now for Tainted. nil stands for no slice.
func (d *Index) taint(was, is object.Object) (old, now *object.ResourceSlice) {
	if s, ok := was.(*object.ResourceSlice); ok {
		old = d.Tainted(s)
		delete(d.tainted, s.Name)
	}
	if s, ok := is.(*object.ResourceSlice); ok {
		if now = d.withRules(s); now != s {
			d.tainted[s.Name] = now
		}
	}
	return old, now
}

// followTaintRule computes the taints anew of the slices that a DeviceTaintRule selects after
// its change or did before. It lists those whose taints changed for Retainted, in place of
// those that an earlier change left there.
func (d *Index) followTaintRule(was, is object.Object) {
	d.retainted = nil
	old, _ := was.(*object.DeviceTaintRule)
	now, _ := is.(*object.DeviceTaintRule)
	for _, o := range d.table.Objects().List(object.ResourceSlices) {
		s := o.(*object.ResourceSlice)
		if !selectsSlice(old, s) && !selectsSlice(now, s) {
			continue
		}
		before := d.Tainted(s)
		d.followSlice(s, s)
		if after := d.Tainted(s); !sameTaints(before.API, after.API) {
			d.retainted = append(d.retainted, RetaintedSlice{before, after})
		}
	}
}

// sameTaints reports whether the devices of two states of a slice have the same taints.
func sameTaints(a, b *resourcev1.ResourceSlice) bool {
	return slices.EqualFunc(a.Spec.Devices, b.Spec.Devices, func(a, b resourcev1.Device) bool {
		return slices.EqualFunc(a.Taints, b.Taints, func(a, b resourcev1.DeviceTaint) bool {
			return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && a.TimeAdded.Equal(b.TimeAdded)
		})
	})
}

// withRules returns a copy of the slice with the taints of all rules added, in the order of
// their names; s itself if no rule taints one of its devices.
func (d *Index) withRules(s *object.ResourceSlice) *object.ResourceSlice {
	tainted := s
	for _, o := range d.table.Objects().List(object.DeviceTaintRules) {
		rule := o.(*object.DeviceTaintRule)
		if !selectsSlice(rule, s) {
			continue
		}
		for i := range s.API.Spec.Devices {
			if rule.Device != nil && *rule.Device != s.API.Spec.Devices[i].Name {
				continue
			}
			if tainted == s {
				tainted = &object.ResourceSlice{Meta: s.Meta, API: s.API.DeepCopy()}
			}
			device := &tainted.API.Spec.Devices[i]
			device.Taints = append(device.Taints, rule.Taint)
		}
	}
	return tainted
}

// selectsSlice reports whether the rule's driver and pool are those of the slice; one that is
// not set selects all. The caller checks the rule's Device. The result is false for a nil
// rule and for one without a selector.
func selectsSlice(rule *object.DeviceTaintRule, s *object.ResourceSlice) bool {
	return rule != nil && !rule.SelectsNone && (rule.Driver == nil || *rule.Driver == s.API.Spec.Driver) && (rule.Pool == nil || *rule.Pool == s.API.Spec.Pool.Name)
}
