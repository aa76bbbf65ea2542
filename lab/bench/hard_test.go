package bench

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/sim/generate"
)

// Hard measures each mix with each scheduler: within its budget every pod is decided on,
// and some are placed.
func TestHardMeasures(t *testing.T) {
	o := HardOptions{
		Mixes: generate.HardMixes(), Schedulers: []string{Berth, KubeSchedulerAll},
		Nodes: 20, Running: 40, Pending: 20, Seed: 1, Budget: 2 * time.Second,
	}
	runs, err := Hard(t.Context(), o, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(o.Mixes) * len(o.Schedulers); len(runs) != want {
		t.Fatalf("%d runs, want %d", len(runs), want)
	}
	for _, r := range runs {
		if r.Decisions == 0 || r.Micros <= 0 || r.CPUMicros <= 0 || r.P50Micros <= 0 || r.P99Micros < r.P50Micros || r.MaxMicros < r.P99Micros || r.PeakRSSMiB <= 0 {
			t.Errorf("%+v: a figure is missing, or out of order", r)
		}
		if r.Placed == 0 || r.Tried > r.Pending || r.Attempts < 1 {
			t.Errorf("%+v: %d of %d pods tried %v times, %d placed", r, r.Tried, r.Pending, r.Attempts, r.Placed)
		}
		if r.Scheduler == Berth && r.Mix != "devices" && r.Mix != "all" && !r.Done { // claims may not be there
			t.Errorf("%+v: not every pod was decided on", r)
		}
	}
	for _, format := range []string{"table", "csv", "json"} {
		var b bytes.Buffer
		if err := writeHard(&b, format, runs); err != nil || strings.Count(b.String(), KubeSchedulerAll) != len(o.Mixes) {
			t.Errorf("%s: %v\n%s", format, err, &b)
		}
	}
	for d := xml.NewDecoder(bytes.NewReader(plotHard(runs))); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// What was measured is printed though the plot cannot be written.
func TestHardPrintsBeforeItPlots(t *testing.T) {
	c := newHardCommand()
	var out bytes.Buffer
	c.SetOut(&out)
	svg := filepath.Join(t.TempDir(), "no-such-directory", "hard.svg")
	c.SetArgs([]string{"--mix", "spread", "--schedulers", Berth, "--nodes", "20", "--running", "20", "--pending", "5", "-o", "csv", "--svg", svg})
	if err := c.ExecuteContext(t.Context()); !os.IsNotExist(err) {
		t.Errorf("error is %v, want that there is no such directory", err)
	}
	if lines := strings.Split(out.String(), "\n"); !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "spread,berth,") }) {
		t.Errorf("what was measured is lost: %q", &out)
	}
}

func TestHardOptions(t *testing.T) {
	for _, test := range []struct {
		change func(*HardOptions)
		err    string
	}{
		{func(*HardOptions) {}, ""},
		{func(o *HardOptions) { o.Mixes = nil }, "--mix"},
		{func(o *HardOptions) { o.Mixes = []string{"taints"} }, "--mix taints"},
		{func(o *HardOptions) { o.Schedulers = nil }, "--schedulers"},
		{func(o *HardOptions) { o.Schedulers = []string{"other"} }, "--schedulers other"},
		{func(o *HardOptions) { o.Nodes = 0 }, "--nodes"},
		{func(o *HardOptions) { o.Running = -1 }, "--running"},
		{func(o *HardOptions) { o.Pending = 0 }, "--pending"},
		{func(o *HardOptions) { o.Budget = 0 }, "--budget"},
		{func(o *HardOptions) { o.Output = "xml" }, `--output "xml"`},
	} {
		o := HardOptions{Mixes: []string{"spread"}, Schedulers: []string{Berth}, Nodes: 1, Pending: 1, Budget: time.Second, Output: "table"}
		test.change(&o)
		err := o.validate()
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%+v: error is %v, want %q", o, err, test.err)
		}
	}
}
