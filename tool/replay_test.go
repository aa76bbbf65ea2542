package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/sim/day"
	"github.com/berth-scheduler/berth/sim/replay"
)

var morning = time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)

// headerOf is that of a scheduler with kube-scheduler's defaults.
func headerOf(t *testing.T, start time.Time) recording.Header {
	t.Helper()
	text, err := yaml.Marshal(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	return recording.Header{Source: recording.Scheduler, Berth: "test", Seed: 5, Config: string(text), Start: start}
}

// recordedDay returns an empty cluster whose scheduler is recorded in the directory.
func recordedDay(t *testing.T, h recording.Header) (c *day.Cluster, r *recording.Recorder, dir string) {
	t.Helper()
	o, err := replay.Options(&h)
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "record")
	r, err = recording.Start(recording.Options{Dir: dir, Limit: 1 << 30, Wait: true, Header: h, Logger: klog.Background()})
	if err != nil {
		t.Fatal(err)
	}
	c = day.NewCluster(machine.New(o), morning)
	c.Objects, c.Observe = recording.NewObjects(nil), r.Observe
	return c, r, dir
}

// recorded is a directory with the record of a small day.
func recorded(t *testing.T) string {
	t.Helper()
	c, r, dir := recordedDay(t, headerOf(t, morning))
	day.Generate(c, day.Size{Nodes: 20, Pods: 200, Length: 24 * time.Hour, Seed: 1}, nil)
	r.Close(context.Background())
	return dir
}

// called runs berth with the arguments.
func called(arguments ...string) (status int, out, errs string) {
	var o, e bytes.Buffer
	status = run(append([]string{"berth"}, arguments...), nil, &o, &e)
	return status, o.String(), e.String()
}

// A record is replayed, tried with another seed and configuration, and compared.
func TestReplay(t *testing.T) {
	dir := recorded(t)
	if status, out, errs := called("replay", dir); status != 0 || !strings.Contains(out, "All 200 decisions") {
		t.Errorf("exit status %d: %s%s", status, out, errs)
	}
	var exact struct {
		Kind      string
		Same      int
		Decisions []struct{ Pod, Result, Node string }
	}
	status, out, errs := called("replay", dir, "-o", "json")
	if err := json.Unmarshal([]byte(out), &exact); err != nil || status != 0 || exact.Kind != "ReplayResult" || exact.Same != 200 || len(exact.Decisions) != 200 || exact.Decisions[0].Node == "" {
		t.Errorf("exit status %d, %v: %.300s%s", status, err, out, errs)
	}
	if status, out, errs := called("replay", dir, "--seed", "9"); status != 0 || !strings.Contains(out, "seed 9") || !strings.Contains(out, "RECORDED, REPLAYED") {
		t.Errorf("exit status %d: %s%s", status, out, errs)
	}
	packing := filepath.Join(t.TempDir(), "packing.yaml")
	if err := os.WriteFile(packing, []byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "day.html")
	status, out, errs = called("compare", "recorded", packing, "--record", dir, "--html", page)
	if status != 0 || !strings.Contains(out, "ELSEWHERE UNDER B") || !strings.Contains(out, "CPU requested, mean") {
		t.Errorf("exit status %d: %s%s", status, out, errs)
	}
	if text, err := os.ReadFile(page); err != nil || !bytes.Contains(text, []byte("<svg")) {
		t.Errorf("the page: %v, %.100s", err, text)
	}
	var compared replay.Comparison
	status, out, errs = called("compare", packing, packing, "--record", dir, "-o", "json")
	if err := json.Unmarshal([]byte(out), &compared); err != nil || status != 0 || compared.Same != 200 || len(compared.Elsewhere) > 0 {
		t.Errorf("exit status %d, %v: %.300s%s", status, err, out, errs)
	}
}

// What cannot be replayed is said in one line, which names the file.
func TestReplayBadRecords(t *testing.T) {
	whole := recorded(t)
	segment := "0000000001.berthrecord"
	text, err := os.ReadFile(filepath.Join(whole, segment))
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func([]byte) []byte) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, segment), change(bytes.Clone(text)), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	flipped := with(func(b []byte) []byte { b[len(b)/2] ^= 4; return b })
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "notes.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir    string
		status int
		want   string
	}{
		{with(func(b []byte) []byte { return b[:len(b)-7] }), 0, "the end is cut off"},
		{flipped, 2, filepath.Join(flipped, segment) + ": offset "},
		{with(func([]byte) []byte { return []byte("not this") }), 2, "not a segment of a record"},
		{other, 2, "no record"},
		{filepath.Join(other, "notes.txt"), 2, "not a directory"},
		{filepath.Join(other, "none"), 2, "no such file"},
	} {
		status, out, errs := called("replay", c.dir)
		if status != c.status || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit status %d, want %d; %q does not say %q\n%s", c.dir, status, c.status, errs, c.want, out)
		}
	}
	for _, bad := range [][]string{{"replay"}, {"replay", whole, "-o", "xml"}, {"compare", "recorded"}, {"compare", "recorded", "/none.yaml", "--record", whole}, {"record"}} {
		if status, _, errs := called(bad...); status != 2 || errs == "" {
			t.Errorf("%v: exit status %d, %q", bad, status, errs)
		}
	}
}
