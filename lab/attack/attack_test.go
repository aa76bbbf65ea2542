package attack

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/edge/api"
)

// A control character is found, whether it is C0 or C1, encoded or a byte of its own;
// tabs, newlines and other text are none.
func TestControl(t *testing.T) {
	for text, want := range map[string]int{
		"": -1, "plain\ttext\n": -1, "größer 中文 ☃": -1, "\x1b[2J": 0, "line\r": 4, "bell\a": 4, "nul\x00": 3,
		"c1 \u009b31m": 3, "byte \x9b31m": 5, "next\u0085": 4, "no-break\u00a0": -1, "cut \xe2\x98": 5, "latin \xe4": -1,
	} {
		if got := control(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if control(hostile) < 0 {
		t.Error("the hostile text has no control character")
	}
}

// --only and --short choose by name and by form.
func TestChosen(t *testing.T) {
	all, err := Options{}.chosen()
	if err != nil || len(all) != len(All) {
		t.Fatalf("%d of %d attacks, %v", len(all), len(All), err)
	}
	brief, err := Options{Short: true}.chosen()
	if err != nil || len(brief) == 0 || len(brief) >= len(all) {
		t.Errorf("the short form has %d attacks of %d, %v", len(brief), len(all), err)
	}
	files, err := Options{Only: "^files/"}.chosen()
	if err != nil || len(files) != len(fileAttacks) {
		t.Errorf("%d attacks with files, want %d: %v", len(files), len(fileAttacks), err)
	}
	for _, only := range []string{"nothing", "("} {
		if _, err := (Options{Only: only}).chosen(); err == nil || !strings.Contains(err.Error(), "--only "+only) {
			t.Errorf("--only %s: %v", only, err)
		}
	}
}

// Every path of the API is asked by those who may not.
func TestRecordPaths(t *testing.T) {
	w := httptest.NewRecorder()
	api.Handler(api.Options{Now: time.Now}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Prefix+"nothing", nil))
	var p api.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatal(err, w.Body)
	}
	_, list, _ := strings.Cut(p.Message, "there are ")
	list, _, _ = strings.Cut(list, " below ")
	served := strings.Split(list, ", ")
	if len(served) < 16 {
		t.Errorf("%d paths are served: %s", len(served), p.Message)
	}
	for _, path := range served {
		if !slices.ContainsFunc(recordPaths, func(asked string) bool { asked, _, _ = strings.Cut(asked, "?"); return asked == path }) {
			t.Errorf("%s is not asked for", path)
		}
	}
}

// The attacks are listed without the programs that they need.
func TestList(t *testing.T) {
	var out bytes.Buffer
	command := NewCommand()
	command.SetOut(&out)
	command.SetArgs([]string{"--list"})
	if err := command.Execute(); err != nil || strings.Count(out.String(), "\n") != len(All) {
		t.Errorf("%v, %d lines for %d attacks", err, strings.Count(out.String(), "\n"), len(All))
	}
}

// Each attack has a name of its own, below a topic, and says what it plays.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range All {
		if seen[a.Name] || !strings.Contains(a.Name, "/") || a.Title == "" || a.play == nil {
			t.Errorf("attack %q: seen %t, title %q", a.Name, seen[a.Name], a.Title)
		}
		seen[a.Name] = true
	}
}

// A result is a line with its figures, and a line for each broken bound.
func TestWrite(t *testing.T) {
	r := Result{Name: "a/b", Seconds: 1.5, BaseMiB: 100, PeakMiB: 612, HeldMS: 12.5, ProbeMS: 30, UsualMS: 10}
	var out bytes.Buffer
	r.write(&out)
	if got := out.String(); !strings.Contains(got, "+ 512") || !strings.HasSuffix(got, "holds\n") {
		t.Errorf("%q", got)
	}
	out.Reset()
	r.Broken = []string{"one", "two"}
	r.write(&out)
	if got := out.String(); strings.Count(got, "\n") != 3 || !strings.Contains(got, "BROKEN") {
		t.Errorf("%q", got)
	}
	out.Reset()
	(Result{Name: "a/b", NotPlayed: "no disk"}).write(&out)
	if got := out.String(); !strings.Contains(got, "not played: no disk") || strings.Contains(got, "holds") {
		t.Errorf("%q", got)
	}
	if body, err := json.Marshal(r); err != nil || !strings.Contains(string(body), `"broken":["one","two"]`) {
		t.Errorf("%s, %v", body, err)
	}
}

// What is kept of an output is bounded; its size is known.
func TestSaid(t *testing.T) {
	var o said
	part := bytes.Repeat([]byte("x"), 5<<20)
	for range 5 {
		if n, err := o.Write(part); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if o.text.Len() != mostSaid || o.size != 25<<20 {
		t.Errorf("%d kept of %d", o.text.Len(), o.size)
	}
}
