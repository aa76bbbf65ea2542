package suites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A scheduler that tests run with.
const (
	berth         = "berth"
	kubeScheduler = "kube-scheduler"
)

// testTime is how long a top-level test may take. Most take less than four minutes,
// TestPreemption about 25: it waits half a minute in each case of a gate that is refused.
const testTime = 30 * time.Minute

// verdict is what came of a case.
type verdict string

const (
	passed  verdict = "pass"
	failed  verdict = "fail"
	skipped verdict = "skip"
)

// outcome is what came of a top-level test.
type outcome struct {
	cases map[string]verdict // of tests without subtests, by name
	// berth names the tests that have made a scheduler that Berth has replaced;
	// byHand those of them that run kube-scheduler's cycles themselves.
	berth, byHand []string
	died          bool   // before all cases had run
	log           string // file
}

// run runs a top-level test with a scheduler: the cases that are named, or all if
// none is. Each test has a process of its own, so that one that hangs or panics ends
// no other.
func (w *workspace) run(ctx context.Context, binary, pkg, test, scheduler string, cases []string) (*outcome, error) {
	w.runs++
	log := filepath.Join(w.dir, fmt.Sprintf("%03d-%s-%s-%s.log", w.runs, path.Base(pkg), test, scheduler))
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	ctx, cancel := context.WithTimeout(ctx, testTime+time.Minute) // the test times itself out before
	defer cancel()
	args := append(slices.Clone(w.exec), binary, "-test.run="+pattern(test, cases), "-test.v=test2json", "-test.timeout="+testTime.String())
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) // #nosec G204 -- the tests, as they are asked for
	cmd.Dir, cmd.Stderr = w.dirOf(pkg), file
	cmd.Env = append(os.Environ(), "SUITES_SCHEDULER="+scheduler, "SUITES_BERTH="+filepath.Join(w.bin, "berth-scheduler"), "BERTH_CHECK=1",
		"PATH="+filepath.Join(w.dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBE_INTEGRATION_ETCD_URL=http://127.0.0.1:1", // no other etcd than the test's
		"ETCD_UNSAFE_NO_FSYNC=true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 10 * time.Second
	var said strings.Builder
	cmd.Stdout = &said
	if err = cmd.Run(); cmd.Process == nil {
		return nil, err // it did not start
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // an etcd that a panic has left
	if _, writeErr := file.WriteString("\n== stdout\n" + said.String()); writeErr != nil {
		return nil, writeErr
	}
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		return nil, err
	}
	o := parse(said.String())
	o.log = log
	if err != nil && !o.has(failed) {
		o.cases[test] = failed // the process says so: goroutines that are left, a panic
	}
	return o, nil
}

// pattern is what the flag -test.run has to be for a test's cases; none: for all.
func pattern(test string, cases []string) string {
	if len(cases) == 0 {
		cases = []string{test}
	}
	patterns := make([]string, len(cases))
	for i, name := range cases {
		levels := strings.Split(name, "/")
		for j, level := range levels {
			levels[j] = "^" + regexp.QuoteMeta(level) + "$"
		}
		patterns[i] = strings.Join(levels, "/")
	}
	return strings.Join(patterns, "|")
}

var (
	begun    = regexp.MustCompile(`^=== (RUN|CONT|NAME) +(\S+)$`)
	caseLine = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): (\S+) \([0-9.]+s\)$`)
)

// What the overlay prints.
const (
	berthDecides = "SUITES: Berth decides"
	drivenByHand = "SUITES: kube-scheduler decides"
)

// marker comes before what the testing package itself says.
const marker = "\x16"

// parse reads what a test binary says with -test.v=test2json: other than with
// -test.v, it tells at once what came of a subtest, so that a process that dies takes
// nothing of it along.
func parse(said string) *outcome {
	o := &outcome{cases: map[string]verdict{}, died: true}
	parents, current := map[string]bool{}, ""
	for line := range strings.Lines(said) {
		line = strings.TrimRight(line, "\n")
		line = line[strings.LastIndex(line, marker)+1:]
		if m := begun.FindStringSubmatch(line); m != nil {
			current = m[2]
			if at := strings.LastIndexByte(current, '/'); at >= 0 {
				parents[current[:at]] = true
			}
			if _, known := o.cases[current]; !known {
				o.cases[current] = failed // until it is judged
			}
		} else if m := caseLine.FindStringSubmatch(line); m != nil {
			o.died = o.died && strings.Contains(m[2], "/")
			o.cases[m[2]] = map[string]verdict{"PASS": passed, "FAIL": failed, "SKIP": skipped}[m[1]]
		} else if strings.HasSuffix(line, berthDecides) {
			o.berth = append(o.berth, current)
		} else if strings.HasSuffix(line, drivenByHand) {
			o.byHand = append(o.byHand, current)
		}
	}
	for parent := range parents { // any order: deletes
		if o.cases[parent] != failed || o.failsBelow(parent) {
			delete(o.cases, parent)
		}
	}
	return o
}

// learn adds what a second run tells of cases that the process died before.
func (o *outcome) learn(again *outcome) {
	for name, v := range again.cases { // any order: each adds itself, and its parents go
		if _, known := o.cases[name]; !known {
			o.cases[name] = v
		}
		for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
			delete(o.cases, parent)
		}
	}
	o.berth, o.byHand = append(o.berth, again.berth...), append(o.byHand, again.byHand...)
}

// of is what came of a case. A test that has subtests now passes if none of them
// fails: it is no case of its own any more.
func (o *outcome) of(name string) verdict {
	if v, ran := o.cases[name]; ran {
		return v
	}
	for other := range o.cases { // any order: a yes or no
		if strings.HasPrefix(other, name+"/") && !o.failsBelow(name) {
			return passed
		}
	}
	return ""
}

// failsBelow tells whether a subtest fails.
func (o *outcome) failsBelow(test string) bool {
	for name, v := range o.cases { // any order: a yes or no
		if v == failed && strings.HasPrefix(name, test+"/") {
			return true
		}
	}
	return false
}

func (o *outcome) has(v verdict) bool {
	for _, other := range o.cases { // any order: a yes or no
		if other == v {
			return true
		}
	}
	return false
}

// onBerth tells whether Berth decided in a case: a scheduler was made in the test
// itself, or in one around it, and the case does not drive kube-scheduler by hand.
func (o *outcome) onBerth(name string) bool { return within(o.berth, name) && !within(o.byHand, name) }

// within tells whether a test is among others, or below one of them.
func within(tests []string, name string) bool {
	return slices.ContainsFunc(tests, func(test string) bool { return name == test || strings.HasPrefix(name, test+"/") })
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)

// tests are the top-level tests of a package, in the order of its files.
func (w *workspace) tests(pkg string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(w.dirOf(pkg), "*_test.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names, nil
}
