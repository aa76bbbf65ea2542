package suites

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const said = `=== RUN   TestOne
SUITES: Berth decides
=== RUN   TestOne/a
    some_test.go:7: a line
=== RUN   TestOne/b
--- FAIL: TestOne (2.00s)
    --- PASS: TestOne/a (1.00s)
    --- FAIL: TestOne/b (1.00s)
=== RUN   TestTwo
--- PASS: TestTwo (0.00s)
=== RUN   TestThree
--- SKIP: TestThree (0.00s)
=== RUN   TestFour
SUITES: Berth decides
SUITES: kube-scheduler decides
--- PASS: TestFour (0.00s)
=== RUN   TestFive
=== RUN   TestFive/a
panic: five
`

// Of a process that dies, the cases that have ended are known, and the others run again.
func TestDeadProcess(t *testing.T) {
	dead := parse("\x16=== RUN   TestOne\nSUITES: Berth decides\n\x16=== RUN   TestOne/a\nand so\x16--- PASS: TestOne/a (1.00s)\n" +
		"\x16=== NAME  TestOne\n\x16=== RUN   TestOne/b\n\x16=== RUN   TestOne/b/c\nfatal: the port is taken\n")
	if want := map[string]verdict{"TestOne/a": passed, "TestOne/b/c": failed}; !dead.died || !maps.Equal(dead.cases, want) {
		t.Errorf("got %v, died: %t, want %v", dead.cases, dead.died, want)
	}
	again := &outcome{cases: map[string]verdict{"TestOne/a": failed, "TestOne/b/c": passed, "TestOne/d": failed}}
	plays, got := []*outcome{dead, again, again}, []string(nil)
	s := suite{options: &options{}}
	results, err := s.judge("pkg", func(scheduler string, cases []string) (*outcome, error) {
		got = append(got, fmt.Sprint(scheduler, " ", cases))
		return plays[len(got)-1], nil
	})
	if want := []string{"berth []", "berth []", "kube-scheduler [TestOne/d]"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	classes := map[string]class{}
	for _, r := range results {
		classes[r.name] = r.class
	}
	if want := map[string]class{"TestOne/a": passes, "TestOne/b/c": flaky, "TestOne/d": both}; !maps.Equal(classes, want) {
		t.Errorf("got %v, want %v", classes, want)
	}
}

func TestParse(t *testing.T) {
	o := parse(said)
	want := map[string]verdict{"TestOne/a": passed, "TestOne/b": failed, "TestTwo": passed, "TestThree": skipped, "TestFour": passed, "TestFive/a": failed}
	if !maps.Equal(o.cases, want) {
		t.Errorf("got %v, want %v", o.cases, want)
	}
	for name, want := range map[string]bool{"TestOne/a": true, "TestTwo": false, "TestFour": false} {
		if o.onBerth(name) != want {
			t.Errorf("%s: Berth decides: %t", name, !want)
		}
	}
}

// A case that fails is a fault, unless a rule names it, it passes the next time, or
// kube-scheduler fails it too.
func TestFailedCaseIsAFaultUnlessExcused(t *testing.T) {
	rules, err := parseRules("= a reason\npkg TestOne/*\n")
	if err != nil {
		t.Fatal(err)
	}
	alone := parse("=== RUN   TestFive\n--- PASS: TestFive (0.00s)\n")
	for _, tt := range []struct {
		pkg            string
		again, control *outcome
		one, five      class
	}{
		{"pkg", nil, nil, allowed, fault},
		{"other", nil, nil, fault, fault},
		{"pkg", nil, parse(said), allowed, both},
		{"pkg", &outcome{cases: map[string]verdict{"TestFive/a": passed}}, alone, allowed, flaky},
		{"pkg", parse("=== RUN   TestFive\n=== RUN   TestFive/a\n=== RUN   TestFive/a/b\n--- PASS: TestFive/a (0.00s)\n    --- PASS: TestFive/a/b (0.00s)\n"), alone, allowed, flaky},
		{"pkg", parse(said), alone, allowed, fault},
	} {
		got := map[string]class{}
		for _, r := range compare(tt.pkg, rules, parse(said), tt.again, tt.control) {
			got[r.name] = r.class
		}
		want := map[string]class{"TestOne/a": passes, "TestOne/b": tt.one, "TestTwo": byHand, "TestThree": skip, "TestFour": byHand, "TestFive/a": tt.five}
		if !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// Only what fails on Berth runs again, and only what fails again with kube-scheduler.
func TestOnlyFailuresRunAgain(t *testing.T) {
	outcomes := func(verdicts ...verdict) *outcome {
		return &outcome{cases: map[string]verdict{"TestOne/a": verdicts[0], "TestOne/b": verdicts[1]}}
	}
	for _, tt := range []struct {
		control bool
		plays   []*outcome
		want    []string
	}{
		{false, []*outcome{outcomes(passed, passed)}, []string{"berth []"}},
		{true, []*outcome{outcomes(passed, passed), outcomes(passed, passed)}, []string{"berth []", "kube-scheduler []"}},
		{false, []*outcome{outcomes(passed, failed), outcomes("", passed)}, []string{"berth []", "berth [TestOne/b]"}},
		{false, []*outcome{outcomes(failed, failed), outcomes(passed, failed), outcomes("", failed)},
			[]string{"berth []", "berth [TestOne/a TestOne/b]", "kube-scheduler [TestOne/b]"}},
	} {
		s, got := suite{options: &options{control: tt.control}}, []string(nil)
		_, err := s.judge("pkg", func(scheduler string, cases []string) (*outcome, error) {
			got = append(got, fmt.Sprint(scheduler, " ", cases))
			return tt.plays[len(got)-1], nil
		})
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("got %q, %v, want %q", got, err, tt.want)
		}
	}
}

// Cases that are named run, whatever characters they have; if none is, all of the test
// do.
func TestPattern(t *testing.T) {
	for want, cases := range map[string][]string{
		`^TestOne$`: nil,
		`^TestOne$/^a_\(b:_1\)$|^TestOne$/^c$/^d$`: {"TestOne/a_(b:_1)", "TestOne/c/d"},
	} {
		if got := pattern("TestOne", cases); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// The lists name tests that exist, and each case on the allow-list has a reason. What
// is laid over Kubernetes fits its files.
func TestListsNameTestsThatExist(t *testing.T) {
	w, err := newWorkspace("..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{allowedText, quickText} {
		rules, err := parseRules(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rules {
			tests, err := w.tests(pathOf(r.pkg))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(tests, r.names) {
				t.Errorf("%s has no test that %s names", r.pkg, r.name)
			}
			if text == allowedText && r.reason == "" {
				t.Errorf("%s %s: no reason is given", r.pkg, r.name)
			}
		}
	}
}

// Each file of the overlay has its place.
func TestAllFilesAreAdded(t *testing.T) {
	files, err := added.ReadDir("overlay")
	if err != nil {
		t.Fatal(err)
	}
	places := slices.Collect(maps.Values(addedFiles))
	for _, f := range files {
		if name := "overlay/" + f.Name(); !slices.Contains(places, name) {
			t.Errorf("%s is added nowhere", name)
		}
	}
}

// A file that has changed is not edited in the wrong place.
func TestEditsFitOnce(t *testing.T) {
	for text, ok := range map[string]bool{"": false, "old": true, "old old": false} {
		if got, err := replaceOnce(text, "old", "new"); (err == nil) != ok || ok && got != "new" {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
}

// A spec's name is that of its containers and its own; what neither passes nor is
// skipped fails.
func TestReadReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	err := os.WriteFile(path, []byte(`[{"SpecReports":[
		{"ContainerHierarchyTexts":["[sig-scheduling] A"],"LeafNodeType":"It","LeafNodeText":"works","State":"passed"},
		{"ContainerHierarchyTexts":["[sig-scheduling] A"],"LeafNodeType":"It","LeafNodeText":"hangs","State":"timedout"},
		{"ContainerHierarchyTexts":null,"LeafNodeType":"It","LeafNodeText":"waits","State":"skipped"},
		{"ContainerHierarchyTexts":null,"LeafNodeType":"AfterSuite","LeafNodeText":"","State":"failed"}]}]`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	o, err := readReport(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]verdict{specs + "[sig-scheduling] A works": passed, specs + "[sig-scheduling] A hangs": failed, specs + "waits": skipped}
	if !maps.Equal(o.cases, want) {
		t.Errorf("got %v, want %v", o.cases, want)
	}
}
