package trace

import (
	"slices"
	"time"

	"github.com/berth-scheduler/berth/edge/metrics"
)

// point is an extension point with the plugins that were called there.
type point struct {
	name        string
	first, last time.Time
	laps        []metrics.Lap
}

// byPoint groups what was timed by extension point, in the order of time.
func byPoint(laps []metrics.Lap) (points []*point) {
	slices.SortStableFunc(laps, func(a, b metrics.Lap) int { return a.First.Compare(b.First) })
	for _, l := range laps {
		i := slices.IndexFunc(points, func(p *point) bool { return p.name == l.Point })
		if i < 0 {
			i, points = len(points), append(points, &point{name: l.Point, first: l.First})
		}
		p := points[i]
		p.laps = append(p.laps, l)
		if l.Last.After(p.last) {
			p.last = l.Last
		}
	}
	return points
}
