package noderesources

import (
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// additiveFilter compares sums as the filter does: the number of pods, then what the
// pod requests, in the order of the checks.
var additiveFilter = &framework.AdditiveFilter{Shortfall: shortfall, Frees: frees}

func shortfall(in *framework.Input, row table.Row, out []int64) []int64 {
	t := in.Table
	out = append(out, resource.Sub(t.PodCount()[row]+1, t.AllowedPods()[row]))
	checks := in.State.([]check)
	for i := range checks {
		c, short := &checks[i], int64(0)
		// What no node has of its own is none of the pods' to give back.
		if column, ok := c.find(t); ok && t.Allocatable(column)[row] > 0 {
			short = resource.Sub(c.request, resource.Sub(t.Allocatable(column)[row], t.Used(column)[row]))
		}
		out = append(out, short)
	}
	return out
}

func frees(in *framework.Input, p *object.Pod, out []int64) []int64 {
	out = append(out, 1)
	checks := in.State.([]check)
	for i := range checks {
		out = append(out, p.Demand.Usage.Of(checks[i].name))
	}
	return out
}
