package recovered_test

import (
	"fmt"
	"strings"

	"github.com/berth-scheduler/berth/core/recovered"
)

// A plugin panics. Its caller goes on, and can say who panicked, with which value, and where.
func ExampleFrom() {
	ask := func(plugin string, filter func() bool) (fits bool, p *recovered.Panic) {
		defer func() {
			if r := recover(); r != nil {
				p = recovered.From(fmt.Sprintf("running Filter plugin %q", plugin), r)
			}
		}()
		return filter(), nil
	}
	fmt.Println(ask("Fit", func() bool { return true }))
	_, p := ask("Tier", func() bool { panic("the tier is unknown") })
	file, _, _ := strings.Cut(p.Site, ":") // the line changes whenever this file does
	fmt.Println(p.What, "failed:", p.Value, "in", file)

	// Output:
	// true <nil>
	// running Filter plugin "Tier" failed: the tier is unknown in example_test.go
}
