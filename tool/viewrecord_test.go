package tool

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/sim/day"
	"github.com/berth-scheduler/berth/sim/replay"
)

// packed is a configuration that fills nodes.
func packed(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "packing.yaml")
	if err := os.WriteFile(path, []byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A record is shown at any time of it: what the page is told of a time is the same whether it comes
// from before or from after it.
func TestViewRecord(t *testing.T) {
	dir := recorded(t)
	v := view(t, "--record", dir)
	var r struct {
		replay.Changed
		Decisions []time.Time
		Cut       string
	}
	if code := v.get("replay", &r); code != http.StatusOK || r.Cut != "" || len(r.Decisions) == 0 || r.Elsewhere == nil || len(r.Replayed.Samples) == 0 || r.Replayed.Placed != 100 {
		t.Fatalf("%d %+v", code, r)
	}
	at := func(when time.Time) (s api.Summary) {
		t.Helper()
		if code := v.get("summary?at="+url.QueryEscape(when.Format(time.RFC3339Nano)), &s); code != http.StatusOK || !s.Time.Equal(when) {
			t.Errorf("%s: %d %+v", when, code, s)
		}
		return s
	}
	var end api.Summary
	v.get("summary", &end)
	noon := r.Decisions[len(r.Decisions)/2]
	first, later := at(noon), at(r.To)
	if later.Pods != end.Pods || later.Queue != end.Queue {
		t.Errorf("at the end %+v, and from noon on %+v", end, later)
	}
	if again := at(noon); again.Pods != first.Pods || first.Nodes != 20 || first.Pods == later.Pods || again.Queue != first.Queue {
		t.Errorf("at noon %+v and again %+v; at the end %+v", first, again, later)
	}
	var list api.RecordList
	if v.get("records?at="+url.QueryEscape(noon.Format(time.RFC3339Nano)), &list); len(list.Records) == 0 || list.Records[len(list.Records)-1].Time.After(noon) {
		t.Errorf("records until %s: %d", noon, len(list.Records))
	}
	var p api.Problem
	if code := v.get("summary?at=noon", &p); code != http.StatusBadRequest {
		t.Errorf("%d %+v", code, p)
	}
	if code := v.get("compare", &p); code != http.StatusNotFound || !strings.Contains(p.Message, "--config NEW.yaml") {
		t.Errorf("%d %+v", code, p)
	}
}

// The comparison of the page is that of the command.
func TestViewCompare(t *testing.T) {
	dir, config := recorded(t), packed(t)
	v := view(t, "--record", dir, "--config", config)
	var got, want any
	_, out, errs := called("compare", "recorded", config, "--record", dir, "-o", "json")
	if err := json.Unmarshal([]byte(out), &want); err != nil {
		t.Fatal(err, errs)
	}
	if code := v.get("compare", &got); code != http.StatusOK || !sameJSON(got, want) {
		t.Errorf("%d\ngot  %.300v\nwant %.300v", code, got, want)
	}
}

// The other configuration is read for each comparison: a mistake in it is told with its file and
// field, and is over once the file is mended. What is shown of the record is not concerned.
func TestViewCompareAfterAnEdit(t *testing.T) {
	dir, config := recorded(t), packed(t)
	good, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	v := view(t, "--record", dir, "--config", config)
	var first, second struct {
		From time.Time
		B    replay.Side
	}
	if code := v.get("compare", &first); code != http.StatusOK {
		t.Fatal(code)
	}
	for text, want := range map[string]string{strings.Replace(string(good), "profiles:", "profile:", 1): `unknown field "profile"`, strings.Replace(string(good), "weight: 1", "weight: x", 1): "weight", "": ""} {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var p api.Problem
		if code := v.get("compare", &p); code != http.StatusBadRequest || !strings.Contains(p.Message, config) || !strings.Contains(p.Message, want) {
			t.Errorf("%s: %d %s", text, code, p.Message)
		}
		var s api.Summary
		if code := v.get("summary?at="+url.QueryEscape(first.From.Format(time.RFC3339Nano)), &s); code != http.StatusOK {
			t.Errorf("%s: the begin of the record: %d", text, code)
		}
	}
	if err := os.WriteFile(config, []byte(strings.Replace(string(good), "MostAllocated", "LeastAllocated", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := v.get("compare", &second); code != http.StatusOK || second.B.Placed != first.B.Placed || second.B.Empty >= first.B.Empty {
		t.Errorf("%d, packed %.1f nodes are empty, spread %.1f", code, first.B.Empty, second.B.Empty)
	}
}

// A record that is cut in the middle is shown as far as it goes, and says so.
func TestViewCutRecord(t *testing.T) {
	const pods = 400
	cluster, recorder, dir := recordedDay(t, headerOf(t, morning))
	day.Generate(cluster, day.Size{Nodes: 20, Pods: pods, Length: 24 * time.Hour, Seed: 1}, nil)
	recorder.Close(context.Background())
	path := filepath.Join(dir, "0000000001.berthrecord")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)*3/4] ^= 0xff
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	v := view(t, "--record", dir)
	var r struct {
		replay.Changed
		Cut string
	}
	if code := v.get("replay", &r); code != http.StatusOK || !strings.Contains(r.Cut, path) || r.Replayed.Placed == 0 || r.Replayed.Arrived >= pods {
		t.Errorf("%d %q, %d placed", code, r.Cut, r.Replayed.Placed)
	}
	var s api.Summary
	if code := v.get("summary?at="+url.QueryEscape(r.From.Format(time.RFC3339Nano)), &s); code != http.StatusOK {
		t.Errorf("at the begin: %d", code)
	}
	if code := v.get("summary", &s); code != http.StatusOK || s.Pods == 0 {
		t.Errorf("at the end: %d %+v", code, s)
	}
}

// In a browser, a record that replays as it went is shown, and says so.
func TestOwnReplayInABrowser(t *testing.T) {
	c := startChromium(t)
	c.enter(view(t, "--record", recorded(t)))
	c.route("#/replay")
	c.until(`document.querySelector("main").innerText.includes("100 pods on the node that the record has, 0 elsewhere")`)
	c.route("#/compare")
	c.until(`document.querySelector("main .note pre")?.innerText === "berth view --record DIR --config NEW.yaml" && !document.querySelector("[role=alert]")`)
}

// In a browser, the slider shows the cluster at a time, and the comparison has charts.
func TestReplayInABrowser(t *testing.T) {
	c := startChromium(t)
	config := packed(t)
	v := view(t, "--record", recorded(t), "--config", config)
	c.size(1280, 900, "light")
	c.enter(v)
	c.route("#/replay")
	c.until(`document.querySelector("[aria-label=Connection]").innerText === "Record"`)
	c.until(`document.querySelector("input[type=range]")`)
	for _, name := range []string{"Play", "Step"} {
		if c.named("button", name) == 0 {
			t.Errorf("there is no button %q", name)
		}
	}
	if c.named("slider", "Time") != 1 {
		t.Error("there is no slider")
	}
	c.eval(`document.querySelector("input[type=range]").focus()`)
	c.press("Home")
	c.until(`document.querySelector("input[type=range]").getAttribute("aria-valuetext").startsWith("2031-01-01T00:00:00")`)
	c.until(`document.querySelector("main").innerText.includes("0 nodes with 0 pods")`)
	c.until(`document.activeElement === document.querySelector("input[type=range]")`)
	c.eval(`[...document.querySelectorAll("button")].find(b => b.innerText === "Play").click()`)
	c.until(`Number(document.querySelector("input[type=range]").value) > Number(document.querySelector("input[type=range]").min) + 2 * 864000`)
	c.press("End")
	c.until(`document.querySelector("button[aria-pressed=false]") && document.querySelector("input[type=range]").getAttribute("aria-valuetext") === new Date(Number(document.querySelector("input[type=range]").max)).toISOString()`)
	c.press("Home")
	c.until(`document.querySelector("main").innerText.includes("0 nodes with 0 pods")`)
	c.eval(`[...document.querySelectorAll("button")].find(b => b.innerText === "Step").click()`)
	c.until(`/20 nodes with [1-9]/.test(document.querySelector("main").innerText)`)
	c.until(`location.hash.startsWith("#/replay?at=2031-01-01T")`)
	c.picture("replay")
	c.route("#/what-if")
	c.until(`document.querySelector("main").innerText.includes("is not answered on a record")`)
	c.route("#/compare")
	c.until(`document.querySelectorAll("polyline.second").length === 5`)
	if c.named("table", "Figures") != 1 {
		t.Error("there is no table of figures")
	}
	c.picture("compare")
	c.quiet()
	good, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, strings.Replace(string(good), "profiles:", "profile:", 1))
	c.route("#/replay")
	c.route("#/compare")
	c.until(`[...document.querySelectorAll("[role=alert]")].some(a => a.innerText.includes("packing.yaml: ") && a.innerText.includes('unknown field "profile"'))`)
	write(t, config, string(good))
	c.eval(`[...document.querySelectorAll("button")].find(b => b.innerText === "Ask again").click()`)
	c.until(`document.querySelectorAll("polyline.second").length === 5`)
}

// A question that is given up ends nothing, and moves nothing under one that follows.
func TestViewRecordGivenUp(t *testing.T) {
	v := viewing{source: newSource(nil), record: recorded(t), build: Build{Version: version}}
	tape, err := v.openTape(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string][]string{"at": {tape.from.Add(12 * time.Hour).Format(time.RFC3339Nano)}}
	gone, stop := context.WithCancel(t.Context())
	stop()
	if _, err := tape.ask(gone, "summary", at, nil); !errors.Is(err, context.Canceled) || !tape.at.Equal(tape.to) {
		t.Errorf("%v, at %s", err, tape.at)
	}
	if err := tape.move(gone, tape.from.Add(time.Hour)); !errors.Is(err, context.Canceled) || tape.player.World() != nil {
		t.Error(err)
	}
	for _, when := range []time.Time{tape.to, tape.from.Add(12 * time.Hour)} {
		reply, err := tape.ask(t.Context(), "summary", map[string][]string{"at": {when.Format(time.RFC3339Nano)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var s api.Summary
		if err := json.NewDecoder(reply.Body).Decode(&s); err != nil || !s.Time.Equal(when) || s.Nodes != 20 {
			t.Errorf("%s: %v %+v", when, err, s)
		}
	}
	tape.close()
}
