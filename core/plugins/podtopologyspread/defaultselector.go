package podtopologyspread

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// defaultSelector says which pods the profile's constraints count for a pod: those that
// match the selectors of the Services which select it, and of its controller (kube-scheduler's
// helper.DefaultSelector).
type defaultSelector struct {
	services   []*object.SelectorOwner
	controller *object.SelectorOwner // nil: none
}

// defaultSelectorOf returns the pod's default selector.
func defaultSelectorOf(t *table.Table, p *object.Pod) defaultSelector {
	return defaultSelector{t.SelectorOwners().ServicesOf(p), t.SelectorOwners().ControllerOf(p)}
}

// empty reports whether the selector selects no pods: there are no Services, and no controller or
// one without a selector.
func (f defaultSelector) empty() bool {
	return len(f.services) == 0 && (f.controller == nil || len(f.controller.Labels) == 0 && len(f.controller.Requirements) == 0)
}

// appendKey appends the selector to a key, and whether the controller's selector matches the pod
// itself. It sorts f.services.
func (f defaultSelector) appendKey(b []byte, p *object.Pod) []byte {
	slices.SortFunc(f.services, func(a, b *object.SelectorOwner) int { return cmp.Compare(a.Key, b.Key) })
	for i, s := range f.services {
		if i > 0 && s.Key == f.services[i-1].Key {
			continue
		}
		b = match.AppendField(append(b, 's'), s.Key)
	}
	if c := f.controller; c != nil {
		b = match.AppendField(strconv.AppendInt(b, int64(c.Kind), 10), c.Key)
		if !selects(c, p) {
			b = append(b, '-')
		}
	}
	return b
}

// selects reports whether the controller's selector matches the pod.
func selects(c *object.SelectorOwner, p *object.Pod) bool {
	for k, v := range c.Labels { // any order: all must hold
		if got, ok := p.Labels[k]; !ok || got != v {
			return false
		}
	}
	for i := range c.Requirements {
		if !c.Requirements[i].Matches(labels.Set(p.Labels)) {
			return false
		}
	}
	return true
}

// selector returns one selector that requires what the Services and the controller do. If two of
// them require different values of a label, the last counts, a ReplicationController after the
// Services. They can differ only if the controller does not select its own pod.
func (f defaultSelector) selector() match.Selector {
	set := labels.Set{}
	for _, s := range f.services {
		maps.Copy(set, s.Labels)
	}
	if f.controller == nil {
		return match.NewSelector(labels.SelectorFromSet(set))
	}
	maps.Copy(set, f.controller.Labels)
	return match.NewSelector(labels.SelectorFromSet(set).Add(f.controller.Requirements...))
}

// byDefault returns the profile's constraints for a pod without its own, with the pod's default
// selector: the soft ones if soft is set, else the hard ones. It returns nil if the profile has
// none of them, or no Service or controller selects the pod.
func (pl *plugin) byDefault(t *table.Table, p *object.Pod, soft bool) []match.SpreadConstraint {
	if pl.defaults == nil {
		return nil
	}
	list := pl.defaults.Hard
	if soft {
		list = pl.defaults.Soft
	}
	f := defaultSelectorOf(t, p)
	if len(list) == 0 || f.empty() {
		return nil
	}
	list, selector := slices.Clone(list), f.selector()
	for i := range list {
		list[i].Select(selector, p.Labels)
	}
	return list
}
