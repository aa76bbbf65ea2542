package suites

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// e2ePackage has the specs of SIG Scheduling.
const e2ePackage = "e2e/scheduling"

// specs is before the names of the specs, as if they were subtests.
const specs = "TestSpecs/"

// e2eNodes is how many nodes the specs find. They are played: no container runs.
const e2eNodes = 6

// specTime is how long all specs may take.
const specTime = 40 * time.Minute

// runSpecs runs the specs that match --only on a lab's cluster with Berth. Those that
// fail run again with kube-scheduler.
func (s *suite) runSpecs(ctx context.Context) error {
	if s.quick || !s.pick(e2ePackage, "TestSpecs") {
		return nil
	}
	binary, err := s.w.buildTests(pathOf(e2ePackage))
	if err != nil {
		return err
	}
	if !s.keep {
		defer os.Remove(binary)
	}
	results, err := s.judge(e2ePackage, func(scheduler string, focus []string) (*outcome, error) {
		return s.playSpecs(ctx, binary, scheduler, focus)
	})
	if err != nil {
		return err
	}
	s.results = append(s.results, results...)
	fmt.Fprintf(s.out, "%s:%s\n", e2ePackage, inWords(results))
	return nil
}

// playSpecs runs specs on a cluster of its own: those named by focus, or all.
func (s *suite) playSpecs(ctx context.Context, binary, scheduler string, focus []string) (*outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, specTime)
	defer cancel()
	kubeconfig, down, err := s.up(ctx, scheduler)
	if err != nil {
		return nil, err
	}
	defer down()
	s.w.runs++
	log := filepath.Join(s.w.dir, fmt.Sprintf("%03d-e2e-%s.log", s.w.runs, scheduler))
	report := strings.TrimSuffix(log, ".log") + ".json"
	args := append(s.w.exec[:len(s.w.exec):len(s.w.exec)], binary, "-kubeconfig="+kubeconfig, "-provider=skeleton", fmt.Sprintf("-num-nodes=%d", e2eNodes),
		"-dump-logs-on-failure=false", "-ginkgo.v", "-ginkgo.timeout="+specTime.String(), "-ginkgo.json-report="+report, "-test.timeout=0")
	for _, name := range focus {
		args = append(args, "-ginkgo.focus="+regexp.QuoteMeta(strings.TrimPrefix(name, specs)))
	}
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) // #nosec G204 -- the specs
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.w.dirOf(pathOf(e2ePackage)), file, file
	var status *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &status) {
		return nil, err
	}
	o, err := readReport(report)
	if err != nil {
		return nil, fmt.Errorf("%w; see %s", err, log)
	}
	o.log = log
	return o, nil
}

// up starts a lab with a scheduler, which down ends.
func (s *suite) up(ctx context.Context, scheduler string) (kubeconfig string, down func(), err error) {
	cmd := exec.Command(filepath.Join(s.w.bin, "berth-lab"), "up", "--scheduler", scheduler, "--nodes", fmt.Sprint(e2eNodes)) // #nosec G204 -- the lab's own program
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("%w: build it first (make build lab)", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	down = func() {
		stop()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "export KUBECONFIG="); ok {
			kubeconfig = at
		}
		if strings.HasPrefix(lines.Text(), "The cluster is up") {
			return kubeconfig, down, nil
		}
	}
	down()
	return "", nil, errors.New("the lab did not come up")
}

// readReport reads ginkgo's report of a run.
func readReport(path string) (*outcome, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts []string
			LeafNodeText, State     string
			LeafNodeType            string
		}
	}
	if err := json.Unmarshal(body, &suites); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	o := &outcome{cases: map[string]verdict{}}
	states := map[string]verdict{"passed": passed, "skipped": skipped, "pending": skipped}
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			if spec.LeafNodeType != "It" {
				continue
			}
			v, known := states[spec.State]
			if !known {
				v = failed
			}
			name := specs + strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " ")
			o.cases[name] = v
			o.berth = append(o.berth, name)
		}
	}
	return o, nil
}
