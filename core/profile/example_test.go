package profile_test

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// A configuration enables each plugin at every point that it implements. Then it disables one at
// Score, and gives another a weight there.
func Example() {
	rejects := framework.FilterPlugin{
		Filter:  func(*framework.Input, []table.Row, []framework.Verdict) {},
		Explain: func(*framework.Input, table.Row, framework.Verdict) decision.Blocker { return decision.Blocker{} },
	}
	scores := framework.ScorePlugin{Score: func(*framework.Input, []table.Row, []int64) {}}
	registry, all := profile.Registry{}, profile.Set{}
	for _, pl := range []*framework.Plugin{
		{Name: "Sort", Less: func(a, b *framework.QueuedPodInfo) bool { return a.Priority() > b.Priority() }},
		{Name: "Taints", FilterPlugin: rejects, ScorePlugin: scores},
		{Name: "Fit", FilterPlugin: rejects, ScorePlugin: scores},
		{Name: "Bind", Bind: func(*object.Pod, string) bool { return true }},
	} {
		registry[pl.Name] = func(any) (*framework.Plugin, error) { return pl, nil }
		all.Enabled = append(all.Enabled, profile.Enabled{Plugin: pl.Name})
	}
	c := &profile.Config{Name: "default-scheduler", MultiPoint: all}
	c.Points[profile.Score] = profile.Set{Disabled: []string{"Taints"}, Enabled: []profile.Enabled{{Plugin: "Fit", Weight: 5}}}
	p, err := profile.Build(c, registry)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, at := range p.Enabled() {
		if len(at.Plugins) > 0 {
			fmt.Println(at.Point, at.Plugins)
		}
	}
	fmt.Println("weight of Fit:", p.Score[0].Weight)

	c.Points[profile.Bind].Enabled = []profile.Enabled{{Plugin: "Taints"}}
	_, err = profile.Build(c, registry)
	fmt.Println(err)

	// Output:
	// QueueSort [Sort]
	// Filter [Taints Fit]
	// Score [Fit]
	// Bind [Bind]
	// weight of Fit: 5
	// plugin "Taints" does not extend BindPlugin plugin
}
