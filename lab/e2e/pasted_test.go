package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"

	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/sim/generate"
)

var (
	pasted      = flag.Int("pasted", -1, "paste the fixes of all cases, and a fix each of that many generated pods that are stuck")
	pastedCases = flag.String("pasted-cases", ".", "with -pasted, the cases to paste: a regular expression")
)

const (
	casesDir = "../../tool/testdata/cases"
	// pasteLimit is how long a pod may take to be bound after a fix was pasted: a few
	// backoffs, and a rollout.
	pasteLimit = 45 * time.Second
	// kubectlCommand lets the test binary be kubectl.
	kubectlCommand = "run-kubectl"
)

// runKubectlIfAsked becomes kubectl when the command line asks for it.
func runKubectlIfAsked() {
	if len(os.Args) < 2 || os.Args[1] != kubectlCommand {
		return
	}
	os.Args = append([]string{"kubectl"}, os.Args[2:]...)
	os.Exit(cli.Run(kubectl.NewDefaultKubectlCommand()))
}

// Each fix that `berth why` prints for a case on a live cluster places the pod once its
// commands were pasted into a shell. With -pasted, all cases are tried and pods that are
// stuck in generated clusters.
func TestFixesHoldWhenPasted(t *testing.T) {
	s := newScene(t)
	cases := regexp.MustCompile(`^(why-cordoned|why-device-count|why-selected-node-gone|why-statefulset-ordered)$`)
	if *pasted >= 0 {
		cases = regexp.MustCompile(*pastedCases)
	}
	paths, err := filepath.Glob(casesDir + "/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	fixes := 0
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		if !cases.MatchString(name) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range askedPods(string(text)) {
			fixes += s.pasteAll(t, name, objects(t, string(text)), pod)
		}
	}
	t.Logf("%d fixes of cases", fixes)
	if *pasted < 0 && fixes < 4 {
		t.Errorf("only %d fixes of cases", fixes)
	}
	if *pasted > 0 {
		s.pasteGenerated(t, *pasted)
	}
}

// askedPods returns the pods that the commands of a case ask `berth why` about.
func askedPods(text string) (pods []string) {
	for _, m := range regexp.MustCompile(`(?m)^# \$ berth why -f THIS ([a-z0-9][a-z0-9-]*)( -o wide)?$`).FindAllStringSubmatch(text, -1) {
		pods = append(pods, "default/"+m[1])
	}
	slices.Sort(pods)
	return slices.Compact(pods)
}

// pasteAll pastes each fix of the pod into a cluster of the objects that is made anew, and
// returns how many there are.
func (s *scene) pasteAll(t *testing.T, name string, all []*unstructured.Unstructured, pod string) int {
	if reason := s.unplayable(all); reason != "" {
		t.Logf("%s %s: not played: %s", name, pod, reason)
		return 0
	}
	for i := 0; ; i++ {
		err := s.build(all)
		if refused := errors.Unwrap(err); apierrors.IsForbidden(refused) || apierrors.IsNotFound(refused) { // a quota, a namespace
			t.Logf("%s %s: not played: %v", name, pod, err)
			return i
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
			return i
		}
		if !s.awaitTried(pod) {
			t.Logf("%s %s: not played: no controller makes that pod", name, pod)
			return i
		}
		fixes, err := s.why(pod)
		if err != nil {
			t.Errorf("%s %s: %v", name, pod, err)
			return i
		}
		if i >= len(fixes) {
			return i
		}
		s.paste(t, name, pod, &fixes[i])
	}
}

// pasteGenerated pastes a fix each of n pods that are stuck in generated clusters.
func (s *scene) pasteGenerated(t *testing.T, n int) {
	tried, refused := 0, 0
	for seed := uint64(500); tried < n; seed++ {
		for _, mix := range generate.Mixes() {
			if tried == n {
				break
			}
			w, err := generate.Cluster(mix, seed)
			if err != nil {
				t.Fatal(err)
			}
			if w.Config != "" || len(w.Pending) == 0 {
				continue // another scheduler's configuration
			}
			w.Pending = w.Pending[:1]
			pod := w.Pending[0].Namespace + "/" + w.Pending[0].Name
			all := written(t, &w)
			if s.unplayable(all) != "" {
				continue
			}
			if err := s.build(all); err != nil {
				refused++ // by the API server: generated objects are broken on purpose
				continue
			}
			s.awaitTried(pod)
			fixes, err := s.why(pod)
			if err != nil {
				t.Errorf("%s %d %s: %v", mix, seed, pod, err)
			}
			if len(fixes) == 0 {
				continue
			}
			s.paste(t, fmt.Sprintf("%s %d", mix, seed), pod, &fixes[tried%len(fixes)])
			tried++
		}
	}
	t.Logf("%d fixes of generated pods; the API server refused %d clusters", tried, refused)
}

// pastedFix is the part of a fix that is pasted.
type pastedFix struct {
	Summary       string
	Commands      []string
	Changes, More []pastedChange
	First         []string
}

type pastedChange struct {
	Kind   string
	Create json.RawMessage
}

// why asks `berth why` on the live cluster.
func (s *scene) why(pod string) ([]pastedFix, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(s.Context(), filepath.Join(programs(s.T), "berth"),
		"why", pod, "--kubeconfig", s.cluster.Kubeconfig(cluster.Admin), "-o", "json")
	command.Stdout, command.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	var answer struct{ Fixes []pastedFix }
	if err := json.Unmarshal(stdout.Bytes(), &answer); err != nil {
		return nil, fmt.Errorf("berth why: %w: %s%s", err, &stdout, &stderr)
	}
	return slices.DeleteFunc(answer.Fixes, func(f pastedFix) bool { return len(f.First) > 0 && len(f.More) == 0 }), nil // it says that others may take its place
}

// paste runs the commands in a shell, creates the nodes that the fix adds, as their pool
// does, and waits until the pod is bound.
func (s *scene) paste(t *testing.T, name, pod string, f *pastedFix) {
	if !slices.ContainsFunc(f.Commands, func(c string) bool { return !strings.HasPrefix(c, "#") }) {
		t.Logf("%s %s: %s: not played: it is done by hand", name, pod, f.Summary)
		return
	}
	asked := s.pod(pod)
	for _, c := range slices.Concat(f.Changes, f.More) {
		if c.Kind != "Node" || c.Create == nil {
			continue
		}
		node := &corev1.Node{}
		if err := json.Unmarshal(c.Create, node); err != nil {
			t.Fatal(err)
		}
		node.UID, node.ResourceVersion = "", ""
		s.addNodes(node)
	}
	out := s.shell(strings.Join(f.Commands, "\n"))
	if err := s.awaitPlaced(pod, asked); err != nil {
		t.Errorf("%s %s: %s: %v\n%s\n%s", name, pod, f.Summary, err, strings.Join(f.Commands, "\n"), out)
		return
	}
	t.Logf("%s %s: %s: placed", name, pod, f.Summary)
}

// awaitTried waits for a while until the scheduler has tried the pod, and reports whether
// the pod is there.
func (s *scene) awaitTried(name string) bool {
	_ = s.until(5*time.Second, func() string { // some are not tried: gated, or of no scheduler
		if p := s.pod(name); p == nil || condition(p, corev1.PodScheduled) == nil {
			return "not tried"
		}
		return ""
	})
	return s.pod(name) != nil
}

// shell runs the commands with the kubectl of this binary in the PATH, and returns what they
// print. As in a terminal, one that fails does not stop the next: a pod that is to be deleted
// may have been preempted by then.
func (s *scene) shell(commands string) string {
	command := exec.CommandContext(s.Context(), "sh", "-c", commands)
	command.Env = append(os.Environ(), "PATH="+s.bin+":"+os.Getenv("PATH"), "KUBECONFIG="+s.cluster.Kubeconfig(cluster.Admin))
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s%v", out, err)
	}
	return string(out)
}

// awaitPlaced waits until the pod is bound; or it is gone, and its controller's pods are.
func (s *scene) awaitPlaced(name string, asked *corev1.Pod) error {
	set := labels.Set{}
	for key, value := range asked.Labels {
		if key != "pod-template-hash" && key != "controller-revision-hash" {
			set[key] = value
		}
	}
	controlled := metav1.GetControllerOf(asked) != nil
	return s.until(pasteLimit, func() string {
		if err := s.provision(asked.Namespace); err != nil {
			return err.Error()
		}
		list, err := s.client.CoreV1().Pods(asked.Namespace).List(s.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		placed, waiting := 0, ""
		for i := range list.Items {
			p := &list.Items[i]
			switch {
			case p.Name != asked.Name && !(controlled && set.AsSelector().Matches(labels.Set(p.Labels))):
			case p.Spec.NodeName == "":
				if c := condition(p, corev1.PodScheduled); c != nil {
					waiting = c.Message
				}
				waiting = p.Name + " waits: " + waiting
			case p.DeletionTimestamp == nil:
				placed++
			}
		}
		if p := s.pod(name); p != nil && p.Spec.NodeName != "" {
			return ""
		}
		if waiting != "" {
			return waiting
		}
		if placed == 0 {
			return "there is no pod in its place"
		}
		return ""
	})
}
