package suites

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const kubernetes = "k8s.io/kubernetes"

// What the tests need beside lab/go.mod and lab/go.sum.
var (
	//go:embed extra.mod
	extraMod []byte
	//go:embed extra.sum
	extraSum []byte
)

// added are the files that k8s.io/kubernetes does not have.
//
//go:embed overlay
var added embed.FS

var addedFiles = map[string]string{
	"cmd/kube-scheduler/app/testing/berth.go": "overlay/testserver.go.txt",
	"pkg/scheduler/berth.go":                  "overlay/scheduler.go.txt",
	"test/e2e/scheduling/berth_test.go":       "overlay/e2e_test.go.txt",
}

// edits are the lines of k8s.io/kubernetes that are changed: each Old stands in its
// file once.
var edits = []struct{ File, Old, New string }{
	{"pkg/scheduler/scheduler.go",
		"\tsched.applyDefaultHandlers()\n",
		"\tsched.applyDefaultHandlers()\n\tif err := sched.putBerth(ctx, &options); err != nil {\n\t\treturn nil, err\n\t}\n"},
	{"pkg/scheduler/scheduler.go",
		"func (sched *Scheduler) Run(ctx context.Context) {\n",
		"func (sched *Scheduler) Run(ctx context.Context) {\n\tif sched.runBerth(ctx) {\n\t\treturn\n\t}\n"},
	// The queue of a scheduler that Berth replaces asks no plugin: a test may count.
	{"pkg/scheduler/scheduler.go",
		"\tpodQueue := internalqueue.NewSchedulingQueue(\n",
		"\tif berthDecides() {\n\t\tclear(preEnqueuePluginMap)\n\t}\n\tpodQueue := internalqueue.NewSchedulingQueue(\n"},
	{"pkg/scheduler/schedule_one.go",
		"func (sched *Scheduler) ScheduleOne(ctx context.Context) {\n",
		"func (sched *Scheduler) ScheduleOne(ctx context.Context) {\n\tsched.drivenByHand()\n"},
	{"cmd/kube-scheduler/app/testing/testserver.go", "app.Setup(ctx, opts)", "app.Setup(apart(ctx), opts)"},
	{"cmd/kube-scheduler/app/testing/testserver.go", "err := app.Run(ctx, cc, sched); err != nil",
		"err := serve(ctx, cc, opts, customFlags, result.TmpDir, func() error { return app.Run(ctx, cc, sched) }); err != nil"},
	// The lab's nodes are played and have no add-ons. A spec would wait a minute for them,
	// and go on without.
	{"test/e2e/framework/node/wait.go",
		"for _, requiredPod := range requiredPerNodePods {", "for _, requiredPod := range requiredPerNodePods[:0] {"},
	// An API server that a test has stopped before it had its roles ends the process half
	// a minute later, and with it the tests that run then.
	{"pkg/registry/rbac/rest/storage_rbac.go",
		`return fmt.Errorf("unable to initialize roles: %v", err)`, `utilruntime.HandleError(fmt.Errorf("unable to initialize roles: %v", err))`},
	// How long goroutines may take to end after a test. Those of a transport that is not
	// used any more end with a collection, which an idle process sees after two minutes.
	{"test/integration/framework/goleak.go", "timeout := 600 * time.Second", "runtime.GC()\n\ttimeout := 20 * time.Second"},
}

// workspace is where the tests are built.
type workspace struct {
	lab    string   // the module that builds them
	bin    string   // of the programs of Berth and the lab
	module string   // k8s.io/kubernetes, by another name than its own in the module cache
	dir    string   // of files that live as long as the run
	exec   []string // what runs the test binaries, with its arguments; none: they run by themselves
	runs   int      // of tests, so far
}

// newWorkspace makes ready to build. dir is an empty directory.
func newWorkspace(lab, dir string) (*workspace, error) {
	w := &workspace{lab: lab, dir: dir}
	var err error
	if w.bin, err = filepath.Abs(filepath.Join(lab, "..", "bin")); err != nil {
		return nil, err
	}
	source, err := w.output("go", "list", "-m", "-f", "{{.Dir}}", kubernetes)
	if err != nil {
		return nil, err
	}
	if w.module, err = link(source); err != nil {
		return nil, err
	}
	return w, errors.Join(w.writeModFiles(), w.writeOverlay())
}

// link gives the module a name outside the module cache: the go command lays
// nothing over files there. The name is the same each time, so that what was
// compiled is found in the build cache.
func link(source string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	name := filepath.Join(cache, "berth", filepath.Base(source))
	if at, err := os.Readlink(name); err == nil && at == source {
		return name, nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return "", err
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return name, os.Symlink(source, name)
}

func (w *workspace) modFile() string     { return filepath.Join(w.dir, "suites.mod") }
func (w *workspace) overlayFile() string { return filepath.Join(w.dir, "overlay.json") }

// writeModFiles writes the lab's go.mod and go.sum with what the tests need
// beside.
func (w *workspace) writeModFiles() error {
	mod, err := os.ReadFile(filepath.Join(w.lab, "go.mod"))
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(filepath.Join(w.lab, "go.sum"))
	if err != nil {
		return err
	}
	replace := fmt.Sprintf("\nreplace %s => %s\n", kubernetes, w.module)
	return errors.Join(
		os.WriteFile(w.modFile(), bytes.Join([][]byte{mod, extraMod, []byte(replace)}, []byte("\n")), 0o600),
		os.WriteFile(filepath.Join(w.dir, "suites.sum"), append(sum, extraSum...), 0o600))
}

// writeOverlay writes what lies over k8s.io/kubernetes.
func (w *workspace) writeOverlay() error {
	texts := map[string]string{}
	for file, from := range addedFiles {
		text, err := added.ReadFile(from)
		if err != nil {
			return err
		}
		texts[file] = string(text)
	}
	for _, e := range edits {
		if _, known := texts[e.File]; !known {
			text, err := os.ReadFile(filepath.Join(w.module, e.File))
			if err != nil {
				return err
			}
			texts[e.File] = string(text)
		}
		text, err := replaceOnce(texts[e.File], e.Old, e.New)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", e.File, kubernetes, err)
		}
		texts[e.File] = text
	}
	replace := map[string]string{}
	for file, text := range texts {
		instead := filepath.Join(w.dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(instead, []byte(text), 0o600); err != nil {
			return err
		}
		replace[filepath.Join(w.module, file)] = instead
	}
	body, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(w.overlayFile(), body, 0o600)
}

func replaceOnce(text, old, instead string) (string, error) {
	if n := strings.Count(text, old); n != 1 {
		return "", fmt.Errorf("it has %q %d times, not once", old, n)
	}
	return strings.Replace(text, old, instead, 1), nil
}

// packages are those of a pattern that have tests.
func (w *workspace) packages(pattern string) ([]string, error) {
	out, err := w.output("go", "list", "-modfile", w.modFile(), "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", pattern)
	return strings.Fields(out), err
}

// buildTests builds the tests of a package.
func (w *workspace) buildTests(pkg string) (binary string, err error) {
	binary = filepath.Join(w.dir, strings.ReplaceAll(strings.TrimPrefix(pkg, kubernetes+"/"), "/", "_")+".test")
	_, err = w.output("go", "test", "-c", "-ldflags=-s -w", "-modfile", w.modFile(), "-overlay", w.overlayFile(), "-o", binary, pkg)
	return binary, err
}

// buildEtcd builds the etcd that the tests start. They look for it in PATH.
func (w *workspace) buildEtcd() error {
	_, err := w.output("go", "build", "-ldflags=-s -w", "-modfile", w.modFile(), "-o", filepath.Join(w.dir, "bin", "etcd"), "go.etcd.io/etcd/server/v3")
	return err
}

// dirOf is where the package's sources are.
func (w *workspace) dirOf(pkg string) string {
	return filepath.Join(w.module, strings.TrimPrefix(pkg, kubernetes))
}

// output runs a command in the lab's module.
func (w *workspace) output(name string, args ...string) (string, error) {
	var said bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = w.lab, &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
