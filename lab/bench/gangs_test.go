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
		{gangCase{Name: "GPUs", Nodes: 2, Gangs: 17, Pods: 1, CPU: 100, GPU: true}, 16, 0},
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

// On a real API server a scheduler places the gangs that fit, and the run says what a watch shows.
func TestGangsOnACluster(t *testing.T) {
	c := gangCase{Name: "in part", Nodes: 5, Gangs: 3, Pods: 2, CPU: 4000, Singles: 3, Rate: 100, Budget: time.Minute}
	o := &GangOptions{Mode: clusterMode, Settle: 5 * time.Second}
	r, err := c.measureOnCluster(t.Context(), o, KubeScheduler)
	if err != nil {
		t.Fatal(err)
	}
	if r.Placed != 2 || r.Partial != 0 || r.Pods != 4 || r.Singles != 3 || r.SingleP99 <= 0 || r.Set == "" || r.LastMillis <= 0 || r.CPUMillis <= 0 {
		t.Errorf("%+v", r)
	}
}

func TestGangsAreWritten(t *testing.T) {
	runs := []GangRun{{Case: "one-of-512", Scheduler: Berth, Placed: 1}, {Case: "one-of-512", Scheduler: KubeScheduler}}
	for _, mode := range []string{decideMode, clusterMode} {
		for _, format := range []string{"table", "json", "markdown"} {
			var b bytes.Buffer
			o := GangOptions{Mode: mode, Output: format}
			if err := o.write(&b, runs); err != nil || strings.Count(b.String(), "one-of-512") != 2 {
				t.Errorf("%s, %s: %v\n%s", mode, format, err, &b)
			}
		}
	}
}

func TestGangOptions(t *testing.T) {
	for _, c := range []struct {
		arguments, want string
	}{
		{"", ""},
		{"--mode cluster --peers p --case reclaim-250", ""},
		{"--mode cluster --schedulers kube-scheduler", ""},
		{"--case one", "--case one"},
		{"--case reclaim-250", "--case reclaim-250"},
		{"--budget 0s", "--budget"},
		{"--output csv", `--output "csv"`},
		{"--mode x", `--mode "x"`},
		{"--peers p", "--peers"},
		{"--schedulers x", "--schedulers x"},
		{"--schedulers peers", "--schedulers peers"},
	} {
		var o GangOptions
		flags := o.flags()
		if err := flags.Parse(strings.Fields(c.arguments)); err != nil {
			t.Fatal(err)
		}
		if err := o.validate(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want %q", c.arguments, err, c.want)
		}
	}
}
