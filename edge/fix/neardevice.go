package fix

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/spelling"
)

// mostValues bounds the values of devices that texts in selectors are compared with.
const mostValues = 1000

// quoted are texts in expressions, without those that have escapes.
var quoted = regexp.MustCompile(`"[^"\\]+"|'[^'\\]+'`)

// MeantExpression returns the expression of a selector with what a device has, as the value of an
// attribute, in the place of a text that no device has and that is near to it. ok is false if there
// is none. The values are those of DeviceValues.
func MeantExpression(values []string, s *resourcev1.DeviceSelector) (right, wrong, meant string, ok bool) {
	expression := expressionOf(s)
	for _, place := range quoted.FindAllStringIndex(expression, mostMeant) {
		text := expression[place[0]+1 : place[1]-1]
		if slices.Contains(values, text) {
			continue
		}
		for _, value := range values {
			if spelling.Near(text, value) {
				return expression[:place[0]+1] + value + expression[place[1]-1:], text, value, true
			}
		}
	}
	return "", "", "", false
}

// DeviceValues returns the first texts, in order, that devices have as the values of attributes.
func DeviceValues(t *table.Table) []string {
	values := map[string]bool{}
	for _, o := range t.Objects().List(object.ResourceSlices) {
		for _, d := range o.(*object.ResourceSlice).API.Spec.Devices {
			for _, a := range d.Attributes { // any order: a set
				if a.StringValue != nil {
					values[*a.StringValue] = true
				}
			}
		}
	}
	sorted := slices.Sorted(maps.Keys(values))
	return sorted[:min(mostValues, len(sorted))]
}

// meantSelectors corrects texts in the selectors of the claim and of its classes.
func meantSelectors(t *table.Table, c *object.ResourceClaim) (edits []edit) {
	var values []string
	correct := func(of target, path string, selectors []resourcev1.DeviceSelector) {
		if values == nil && len(selectors) > 0 {
			values = DeviceValues(t)
		}
		for k := range selectors[:min(mostMeant, len(selectors))] {
			if right, wrong, meant, ok := MeantExpression(values, &selectors[k]); ok {
				edits = append(edits, edit{kind: correctName, target: of, say: fmt.Sprintf("have the selector of %s %s want %q in place of %q", of.kind, of.name, meant, wrong),
					ops: []Op{{Op: "replace", Path: at("%s/selectors/%d/cel/expression", path, k), Value: right}}})
			}
		}
	}
	for _, name := range classNames(c.API) {
		if class := table.Lookup[*object.DeviceClass](t, object.DeviceClasses, "", name); class != nil {
			correct(target{"resource.k8s.io/v1", "DeviceClass", "", name}, "/spec", class.API.Spec.Selectors)
		}
	}
	for i, r := range c.API.Spec.Devices.Requests {
		if r.Exactly != nil {
			correct(target{"resource.k8s.io/v1", "ResourceClaim", c.Namespace, c.Name}, at("/spec/devices/requests/%d/exactly", i), r.Exactly.Selectors)
		}
	}
	return edits
}
