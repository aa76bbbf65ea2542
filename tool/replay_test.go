package tool

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
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

// smallDay holds the segment of a small day's record once a test asked for it.
var smallDay []byte

// recorded returns a directory of the test's own with the record of a small day. The day
// is scheduled once for all tests, as that takes seconds.
func recorded(t *testing.T) string {
	t.Helper()
	const segment = "0000000001.berthrecord"
	if smallDay == nil {
		c, r, dir := recordedDay(t, headerOf(t, morning))
		day.Generate(c, day.Size{Nodes: 20, Pods: 100, Length: 24 * time.Hour, Seed: 1}, nil)
		r.Close(context.Background())
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %d segments, want 1", err, len(files))
		}
		if smallDay, err = os.ReadFile(filepath.Join(dir, segment)); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, segment), smallDay, 0o600); err != nil {
		t.Fatal(err)
	}
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
	if status, out, errs := called("replay", dir); status != 0 || !strings.Contains(out, "All 100 decisions") {
		t.Errorf("exit status %d: %s%s", status, out, errs)
	}
	var exact struct {
		Kind      string
		Same      int
		Decisions []struct{ Pod, Result, Node string }
	}
	status, out, errs := called("replay", dir, "-o", "json")
	if err := json.Unmarshal([]byte(out), &exact); err != nil || status != 0 || exact.Kind != "ReplayResult" || exact.Same != 100 || len(exact.Decisions) != 100 || exact.Decisions[0].Node == "" {
		t.Errorf("exit status %d, %v: %.300s%s", status, err, out, errs)
	}
	if status, out, errs := called("replay", dir, "--seed", "9"); status != 0 || !strings.Contains(out, "seed 9") || !strings.Contains(out, "RECORDED, REPLAYED") {
		t.Errorf("exit status %d: %s%s", status, out, errs)
	}
	packing := packed(t)
	page := filepath.Join(t.TempDir(), "day.html")
	status, out, errs = called("compare", "recorded", packing, "--record", dir, "--html", page)
	if status != 0 || !strings.Contains(out, "ELSEWHERE UNDER B") || !strings.Contains(out, "CPU requested, mean") {
		t.Errorf("exit status %d: %s%s", status, out, errs)
	}
	if text, err := os.ReadFile(page); err != nil || !bytes.Contains(text, []byte(`"route":"#/compare"`)) {
		t.Errorf("the page: %v, %.100s", err, text)
	}
	var compared replay.Comparison
	status, out, errs = called("compare", packing, packing, "--record", dir, "-o", "json")
	if err := json.Unmarshal([]byte(out), &compared); err != nil || status != 0 || compared.Same != 100 || len(compared.Elsewhere) > 0 {
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

// older is a directory with the record as a berth on Kubernetes 1.36 wrote it, with this value
// in its header.
func older(t *testing.T, dir, field, value string) string {
	t.Helper()
	const segment, magic, frame = "0000000001.berthrecord", 8, 12
	b, err := os.ReadFile(filepath.Join(dir, segment))
	if err != nil {
		t.Fatal(err)
	}
	end := magic + frame + int(binary.LittleEndian.Uint32(b[magic:]))
	var h map[string]any
	if err := json.Unmarshal(b[magic+frame:end], &h); err != nil {
		t.Fatal(err)
	}
	h["version"], h["berth"], h[field] = 3, "v0.9", json.RawMessage(value)
	delete(h, "kubernetes")
	header, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	sum := func(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
	out := binary.LittleEndian.AppendUint32(bytes.Clone(b[:magic]), uint32(len(header)))
	out = binary.LittleEndian.AppendUint32(out, sum(header))
	out = binary.LittleEndian.AppendUint32(out, sum(out[magic:]))
	out = append(append(out, header...), b[end:]...)
	to := t.TempDir()
	if err := os.WriteFile(filepath.Join(to, segment), out, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// A record of a berth that follows another Kubernetes is replayed. Where decisions may differ a
// note says so, once; gates that ended are refused with what to do.
func TestReplayOfAnOlderMinor(t *testing.T) {
	dir := recorded(t)
	same := older(t, dir, "segment", `1`)
	if status, out, errs := called("replay", same); status != 0 || !strings.Contains(out, "All 100 decisions") || errs != "" {
		t.Errorf("exit status %d: %s%s", status, out, errs)
	}
	const note = "berth: note: the record (version 3 of the format) is of berth v0.9, which follows Kubernetes 1.36; this berth follows "
	different := older(t, dir, "seed", `"6"`)
	if status, out, errs := called("replay", different); status != 1 || !strings.Contains(out, "first difference") || !strings.HasPrefix(errs, note) {
		t.Errorf("exit status %d: %s%s", status, out, errs)
	}
	one := configured(t, v1.DefaultSchedulerName)
	for _, call := range [][]string{{"replay", same, "--seed", "9"}, {"compare", "recorded", one, "--record", same}} {
		if status, _, errs := called(call...); status != 0 || !strings.HasPrefix(errs, note) || !strings.HasSuffix(errs, ": it may decide otherwise where the rules changed\n") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit status %d: %s", call[0], status, errs)
		}
	}
	// v1.36 had this gate, and v1.37 has not.
	ended := older(t, dir, "featureGates", `{"GangScheduling": true}`)
	for _, call := range [][]string{{"replay", ended}, {"replay", ended, "--seed", "9"}, {"compare", "recorded", one, "--record", ended}} {
		status, _, errs := called(call...)
		for _, want := range []string{filepath.Join(ended, "0000000001.berthrecord") + ": ", "GangScheduling", "version 3 of the format", "berth v0.9", ": use the berth that wrote it"} {
			if status != exitInvalid || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("%s: exit status %d, no %q: %s", call[0], status, want, errs)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "0000000001.berthrecord"))
	if err != nil || !bytes.Contains(text, []byte(`"kubernetes":"1.`)) {
		t.Errorf("the header does not name Kubernetes: %v", err)
	}
}
