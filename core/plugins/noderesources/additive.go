package noderesources

import (
	"math"

	v1 "k8s.io/api/core/v1"

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
		// What the node has none of is a device class's to give: pods neither take nor free it.
		c, short := &checks[i], int64(math.MinInt64)
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

// exchanged returns the verdict on what the row's pods take up less what those of a priority
// below that do, and with those that came. It is not known where a sum is saturated, or
// where Explain would look at the row.
func exchanged(in *framework.Input, row table.Row, below int32, came []*object.Pod) (v framework.Verdict, known bool) {
	t := in.Table
	gone := lower{pods: t.Pods(row), summaries: t.Summaries(row), below: below}
	if t.PodCount()[row]-int64(t.CountLower(row, below))+int64(len(came)) >= t.AllowedPods()[row] {
		v = tooManyPods
	}
	checks := in.State.([]check)
	for i := range checks {
		c := &checks[i]
		column, ok := c.find(t)
		if !ok || c.flag == noOwnBit {
			return 0, false
		}
		allocatable, used := t.Allocatable(column)[row], t.Used(column)[row]
		if len(came) > 0 {
			used = resource.Add(used, usageOf(came, c.name))
		}
		switch {
		case used == math.MaxInt64 || used == math.MinInt64:
			return 0, false
		case c.delegated && allocatable <= 0:
		case c.request > allocatable:
			v = c.short(v) | unresolvable
		case c.request > allocatable-used && c.request > allocatable-used+gone.usage(c.name):
			v = c.short(v)
		}
	}
	return v, true
}

// lower is pods on a row that have a priority below that.
type lower struct {
	pods      []*table.Placed
	summaries []table.Summary
	below     int32
}

// usage returns how much of the resource the pods take up.
func (l *lower) usage(name v1.ResourceName) (sum int64) {
	for i := range l.summaries {
		s := &l.summaries[i]
		switch {
		case s.Priority >= l.below:
		case name == v1.ResourceCPU:
			sum = resource.Add(sum, s.MilliCPU)
		case name == v1.ResourceMemory:
			sum = resource.Add(sum, s.Memory)
		default:
			sum = resource.Add(sum, l.pods[i].Pod.Demand.Usage.Of(name))
		}
	}
	return sum
}

// usageOf returns how much of the resource the pods take up.
func usageOf(pods []*object.Pod, name v1.ResourceName) (sum int64) {
	for _, p := range pods {
		sum = resource.Add(sum, p.Demand.Usage.Of(name))
	}
	return sum
}
