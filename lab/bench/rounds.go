package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Speed is how fast decisions were taken.
type Speed struct {
	Decisions int     `json:"decisions"`
	PerSecond float64 `json:"decisionsPerSecond"`
	P50Micros float64 `json:"p50Micros"`
	P99Micros float64 `json:"p99Micros"`
}

func (t *timing) speed() Speed {
	return Speed{
		Decisions: t.decisions,
		PerSecond: round(float64(t.decisions) / t.wall.Seconds()),
		P50Micros: round(1000 * percentile(millis(t.took), 0.5)),
		P99Micros: round(1000 * percentile(millis(t.took), 0.99)),
	}
}

// rounds lets the schedulers take turns (A B A B ...), so that a drift of the
// machine's speed hits all. It returns the results by scheduler, in the order
// of their rounds. done is told of each.
func rounds[R any](ctx context.Context, schedulers []string, runs int, turnOf func(scheduler string, run int) turn, done func(run int, r R)) (map[string][]R, error) {
	results := map[string][]R{}
	for run := range runs {
		for _, scheduler := range schedulers {
			var r R
			if err := turnOf(scheduler, run).in(ctx, &r); err != nil {
				return nil, fmt.Errorf("%s: %w", scheduler, err)
			}
			done(run, r)
			results[scheduler] = append(results[scheduler], r)
		}
	}
	return results, nil
}

// medianOf is the result in the middle by a figure. It sorts results.
func medianOf[R any](results []R, figure func(R) float64) R {
	slices.SortFunc(results, func(a, b R) int { return cmp.Compare(figure(a), figure(b)) })
	return results[len(results)/2]
}
