package suites

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const long = `Run Kubernetes' own tests of scheduling with Berth in kube-scheduler's place.

The tests come from the module k8s.io/kubernetes, unmodified. A case that fails on
Berth runs once more, and then with kube-scheduler. The exit status is 1 if a case
fails on Berth alone and lab/suites/allowed.txt gives no reason for it.`

// patterns are the packages, below k8s.io/kubernetes/test/integration.
var patterns = []string{"scheduler/...", "dra/...", "volumescheduling", "daemonset", "serving"}

// options of a run.
type options struct {
	lab, dir       string
	only, exec     string
	quick, control bool
	keep           bool // the binaries: --dir is given
}

// NewCommand is the command suites.
func NewCommand() *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use: "suites", Short: "Run Kubernetes' own tests with Berth", Long: long,
		Example: `  make suites
  cd lab && go run ./cmd/suites --only 'scheduler/filters TestTaint'`,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	cmd.Flags().StringVar(&o.lab, "lab", ".", "folder of the lab's module")
	cmd.Flags().StringVar(&o.dir, "dir", "", "keep test binaries and logs in this folder; the default is a temporary one")
	cmd.Flags().StringVar(&o.only, "only", "", "run only the top-level tests of which \"PACKAGE TEST\" matches this regular expression")
	cmd.Flags().StringVar(&o.exec, "exec", "", "run the test binaries with this program, such as \"nice -n 10\"")
	cmd.Flags().BoolVar(&o.quick, "quick", false, "run only the tests of lab/suites/quick.txt")
	cmd.Flags().BoolVar(&o.control, "control", false, "run each test with kube-scheduler too, not only those that fail with Berth")
	return cmd
}

// run runs the tests and prints what came of them.
func (o *options) run(ctx context.Context, out io.Writer) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("--only: %w", err)
	}
	if o.keep = o.dir != ""; !o.keep {
		if o.dir, err = os.MkdirTemp("", "suites"); err != nil {
			return err
		}
		defer os.RemoveAll(o.dir)
	} else if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	s, err := newSuite(o, only, out)
	if err != nil {
		return err
	}
	for _, pattern := range patterns {
		if err := s.runPattern(ctx, pattern); err != nil {
			return err
		}
	}
	if err := s.runSpecs(ctx); err != nil {
		return err
	}
	return s.end()
}

// suite is a run.
type suite struct {
	*options
	w       *workspace
	pick    func(pkg, test string) bool
	allow   []*rule
	out     io.Writer
	results []result
}

func newSuite(o *options, only *regexp.Regexp, out io.Writer) (*suite, error) {
	allow, err := parseRules(allowedText)
	if err != nil {
		return nil, fmt.Errorf("allowed.txt: %w", err)
	}
	quick, err := parseRules(quickText)
	if err != nil {
		return nil, fmt.Errorf("quick.txt: %w", err)
	}
	w, err := newWorkspace(o.lab, o.dir)
	if err != nil {
		return nil, err
	}
	w.exec = strings.Fields(o.exec)
	s := &suite{options: o, w: w, allow: allow, out: out}
	s.pick = func(pkg, test string) bool {
		return only.MatchString(pkg+" "+test) && (!o.quick || slices.ContainsFunc(quick, func(r *rule) bool { return r.pkg == pkg && r.names(test) }))
	}
	return s, w.buildEtcd()
}

const below = kubernetes + "/test/integration/"

// pathOf is the path of a package that the lists and --only name.
func pathOf(pkg string) string {
	if pkg == e2ePackage {
		return kubernetes + "/test/" + pkg
	}
	return below + pkg
}

func (s *suite) runPattern(ctx context.Context, pattern string) error {
	pkgs, err := s.w.packages(below + pattern)
	if err != nil {
		return err
	}
	for _, pkg := range pkgs {
		if err := s.runPackage(ctx, strings.TrimPrefix(pkg, below)); err != nil {
			return err
		}
	}
	return nil
}

// runPackage runs the tests that are asked for.
func (s *suite) runPackage(ctx context.Context, pkg string) error {
	path := pathOf(pkg)
	tests, err := s.w.tests(path)
	if err != nil {
		return err
	}
	tests = slices.DeleteFunc(tests, func(test string) bool { return !s.pick(pkg, test) || s.leftOut(pkg, test) })
	if len(tests) == 0 {
		return nil
	}
	binary, err := s.w.buildTests(path)
	if err != nil {
		return err
	}
	if !s.keep {
		defer os.Remove(binary)
	}
	for _, test := range tests {
		if err := s.runTest(ctx, binary, path, pkg, test); err != nil {
			return err
		}
	}
	return nil
}

// leftOut tells whether a test is not run, which it says.
func (s *suite) leftOut(pkg, test string) bool {
	r := find(s.allow, pkg, test)
	if r == nil || !strings.HasPrefix(r.reason, notRun) {
		return false
	}
	fmt.Fprintf(s.out, "%s %s: %s\n", pkg, test, r.reason)
	return true
}

// runTest runs a test on Berth, what fails without leave once more, and what fails
// then with kube-scheduler.
func (s *suite) runTest(ctx context.Context, binary, path, pkg, test string) error {
	results, err := s.judge(pkg, func(scheduler string, cases []string) (*outcome, error) {
		return s.w.run(ctx, binary, path, test, scheduler, cases)
	})
	if err != nil {
		return err
	}
	s.results = append(s.results, results...)
	fmt.Fprintf(s.out, "%s %s:%s\n", pkg, test, inWords(results))
	return nil
}

// judge compares what play gives with a scheduler for the cases that are named, or
// for all if none is.
func (s *suite) judge(pkg string, play func(scheduler string, cases []string) (*outcome, error)) ([]result, error) {
	first, err := play(berth, nil)
	if err != nil {
		return nil, err
	}
	var again, control *outcome
	cases := first.failing(pkg, s.allow)
	switch {
	case first.died:
		if again, err = play(berth, nil); err != nil {
			return nil, err
		}
		first.learn(again)
		cases = first.failing(pkg, s.allow)
	case len(cases) > 0:
		if again, err = play(berth, cases); err != nil {
			return nil, err
		}
	}
	if again != nil {
		cases = slices.DeleteFunc(cases, func(name string) bool { return again.of(name) == passed })
	}
	switch {
	case s.control:
		control, err = play(kubeScheduler, nil)
	case len(cases) > 0:
		control, err = play(kubeScheduler, cases)
	}
	if err != nil {
		return nil, err
	}
	return compare(pkg, s.allow, first, again, control), nil
}

// end prints what came of all tests. It is an error if there is a fault.
func (s *suite) end() error {
	if len(s.results) == 0 {
		return errors.New("no test is asked for")
	}
	summarise(s.out, s.results)
	for _, r := range s.allow {
		if r.tried && !r.needed {
			fmt.Fprintf(s.out, "allowed.txt: %s %s has not failed: it may need no reason any more\n", r.pkg, r.name)
		}
	}
	if n := counts(s.results)[fault]; n > 0 {
		return fmt.Errorf("%d cases fail on Berth alone, and allowed.txt does not name them", n)
	}
	return nil
}
