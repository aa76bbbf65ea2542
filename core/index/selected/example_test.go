package selected_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/index/selected"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// A pod may run in zone a or b, on nodes with an SSD. A selection says so of each row, until the
// row's node changes; the next one knows the change.
func Example() {
	t := table.New()
	set := func(name, zone, disk string) {
		t.SetNode(&object.Node{Name: name, Labels: map[string]string{"zone": zone, "disk": disk}})
	}
	set("n1", "a", "ssd")
	set("n2", "b", "hdd")
	set("n3", "c", "ssd")
	selector := match.NewNodeSelector(map[string]string{"disk": "ssd"}, &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{"a", "b"}}},
	}}})
	show := func(what string, s selected.Selection) {
		fmt.Print(what, ":")
		for _, row := range t.All() {
			switch admits, known := s.Admits(t, row); {
			case !known:
				fmt.Printf(" %s not known", t.Name(row))
			case admits:
				fmt.Printf(" %s admitted", t.Name(row))
			default:
				fmt.Printf(" %s excluded", t.Name(row))
			}
		}
		fmt.Println()
	}
	s := selected.Of(t).Select(selector)
	show("selected", s)
	set("n2", "b", "ssd")
	show("n2 changed", s)
	show("selected anew", selected.Of(t).Select(selector))

	// Output:
	// selected: n1 admitted n2 excluded n3 excluded
	// n2 changed: n1 admitted n2 not known n3 excluded
	// selected anew: n1 admitted n2 admitted n3 excluded
}
