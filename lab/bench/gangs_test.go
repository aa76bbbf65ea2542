package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Both schedulers place the gangs that fit, as a whole, and none of those that do not; pods
// without a group are placed beside them.
func TestGangsMeasure(t *testing.T) {
	for _, c := range []struct {
		gangCase
		placed, singles int
	}{
		{gangCase{Name: "fits", Nodes: 4, Gangs: 2, Pods: 2, CPU: 4000}, 2, 0},
		{gangCase{Name: "in part", Nodes: 5, Gangs: 3, Pods: 2, CPU: 4000}, 2, 0},
		{gangCase{Name: "hopeless", Nodes: 5, Pool: 3, Gangs: 4, Pods: 4, CPU: 4000, Singles: 2}, 0, 2},
		{gangCase{Name: "sizes", Nodes: 40, Gangs: 6, Pods: 2, Most: 5, CPU: 1000}, 6, 0},
	} {
		c.Budget = time.Minute
		for _, scheduler := range []string{Berth, KubeScheduler} {
			r, err := c.measure(turn{Scheduler: scheduler})
			if err != nil {
				t.Fatalf("%s, %s: %v", c.Name, scheduler, err)
			}
			if r.Placed != c.placed || r.Singles != c.singles || r.Partial != 0 || r.Attempts != c.Gangs || !r.Done {
				t.Errorf("%s, %s: %+v", c.Name, scheduler, r)
			}
			if r.MeanMicros <= 0 || r.P99Micros <= 0 || r.MaxMillis <= 0 || (r.LastMillis > 0) != (r.Placed+r.Singles > 0) {
				t.Errorf("%s, %s: a figure is missing: %+v", c.Name, scheduler, r)
			}
		}
	}
}

func TestGangsAreWritten(t *testing.T) {
	runs := []GangRun{{Case: "one-of-512", Scheduler: Berth, Placed: 1}, {Case: "one-of-512", Scheduler: KubeScheduler}}
	for _, format := range []string{"table", "json", "markdown"} {
		var b bytes.Buffer
		if err := writeGangs(&b, format, runs); err != nil || strings.Count(b.String(), "one-of-512") != 2 {
			t.Errorf("%s: %v\n%s", format, err, &b)
		}
	}
}

func TestGangOptions(t *testing.T) {
	for want, o := range map[string]GangOptions{
		"":               {Cases: caseNames(), Schedulers: []string{Berth}, Budget: time.Second, Output: "json"},
		"--case one":     {Cases: []string{"one"}, Schedulers: []string{Berth}, Budget: time.Second, Output: "json"},
		"--budget":       {Schedulers: []string{Berth}, Output: "json"},
		`--output "csv"`: {Schedulers: []string{Berth}, Budget: time.Second, Output: "csv"},
		"--schedulers x": {Schedulers: []string{"x"}, Budget: time.Second, Output: "table"},
	} {
		if err := o.validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error is %v, want %q", o, err, want)
		}
	}
}
