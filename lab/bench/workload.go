package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Workload is one workload of the suite: steps that are taken in order.
type Workload struct {
	Name  string // test case / workload
	Steps []Step
}

// Step creates objects from a template.
type Step struct {
	Kind    string // "nodes" or "pods"
	Count   int
	Node    *v1.Node // the template, by Kind
	Pod     *v1.Pod
	Measure bool // this is the phase that is measured
}

// testCase mirrors the format of performance-config.yaml, as far as it is
// understood here.
type testCase struct {
	Name                   string         `json:"name"`
	DefaultPodTemplatePath string         `json:"defaultPodTemplatePath"`
	WorkloadTemplate       []operation    `json:"workloadTemplate"`
	Workloads              []workloadCase `json:"workloads"`
}

type operation struct {
	Opcode           string `json:"opcode"`
	Count            int    `json:"count"`
	CountParam       string `json:"countParam"`
	NodeTemplatePath string `json:"nodeTemplatePath"`
	PodTemplatePath  string `json:"podTemplatePath"`
	CollectMetrics   bool   `json:"collectMetrics"`
}

type workloadCase struct {
	Name   string         `json:"name"`
	Params map[string]any `json:"params"`
}

// Load finds the workload "TestCase/Workload" in the suite's files.
func Load(name string) (*Workload, error) {
	dir, err := suiteDir()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "performance-config.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no performance-config.yaml below %s", dir)
	}
	var known []string
	for _, file := range files {
		cases, err := readCases(file)
		if err != nil {
			return nil, err
		}
		for _, c := range cases {
			for _, w := range c.Workloads {
				full := c.Name + "/" + w.Name
				if full == name {
					return c.workload(full, w, filepath.Dir(file))
				}
				known = append(known, full)
			}
		}
	}
	sort.Strings(known)
	return nil, fmt.Errorf("workload %q: there is none of that name; there are:\n  %s", name, strings.Join(known, "\n  "))
}

// suiteDir is where the k8s.io/kubernetes module that the lab is built from
// keeps the suite.
func suiteDir() (string, error) {
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return "", fmt.Errorf("the benchmark suite is read from the Go module cache, and `go env GOMODCACHE` failed: %w", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(cache)), "k8s.io", "kubernetes@v1.36.3", "test", "integration", "scheduler_perf")
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("the benchmark suite is not in the Go module cache (run `go mod download k8s.io/kubernetes@v1.36.3`): %w", err)
	}
	return dir, nil
}

func readCases(file string) ([]testCase, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var cases []testCase
	if err := yaml.Unmarshal(data, &cases); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return cases, nil
}

func (c *testCase) workload(name string, w workloadCase, dir string) (*Workload, error) {
	out := &Workload{Name: name}
	for i, op := range c.WorkloadTemplate {
		step, err := c.step(op, w, dir)
		if err != nil {
			return nil, fmt.Errorf("workload %s, step %d (%s): %w", name, i+1, op.Opcode, err)
		}
		if step != nil {
			out.Steps = append(out.Steps, *step)
		}
	}
	return out, nil
}

func (c *testCase) step(op operation, w workloadCase, dir string) (*Step, error) {
	count, err := op.count(w)
	if err != nil {
		return nil, err
	}
	switch op.Opcode {
	case "createNodes":
		s := &Step{Kind: "nodes", Count: count, Node: &v1.Node{}}
		path := op.NodeTemplatePath
		if path == "" {
			path = "../templates/node-default.yaml" // the suite's built-in node is the same
		}
		return s, readTemplate(dir, path, s.Node)
	case "createPods":
		s := &Step{Kind: "pods", Count: count, Pod: &v1.Pod{}, Measure: op.CollectMetrics}
		path := op.PodTemplatePath
		if path == "" {
			path = c.DefaultPodTemplatePath
		}
		return s, readTemplate(dir, path, s.Pod)
	case "barrier":
		return nil, nil // every step here waits for its pods
	}
	return nil, fmt.Errorf("this operation is not understood yet")
}

func (op *operation) count(w workloadCase) (int, error) {
	if op.CountParam == "" {
		return op.Count, nil
	}
	n, ok := w.Params[strings.TrimPrefix(op.CountParam, "$")].(float64)
	if !ok {
		return 0, fmt.Errorf("parameter %s has no number", op.CountParam)
	}
	return int(n), nil
}

func readTemplate(dir, path string, into any) error {
	data, err := os.ReadFile(filepath.Join(dir, path))
	if err != nil {
		return err
	}
	return yaml.Unmarshal(data, into)
}

// Nodes makes the step's nodes; names begin with the prefix.
func (s *Step) Nodes(prefix string) []*v1.Node {
	nodes := make([]*v1.Node, s.Count)
	for i := range nodes {
		n := s.Node.DeepCopy()
		n.GenerateName, n.Name = "", fmt.Sprintf("%s-%05d", prefix, i)
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[v1.LabelHostname] = n.Name
		if n.Status.Allocatable == nil {
			n.Status.Allocatable = n.Status.Capacity.DeepCopy()
		}
		nodes[i] = n
	}
	return nodes
}

// Pods makes the step's pods; names begin with the prefix.
func (s *Step) Pods(prefix string) []*v1.Pod {
	pods := make([]*v1.Pod, s.Count)
	for i := range pods {
		p := s.Pod.DeepCopy()
		p.GenerateName, p.Name = "", fmt.Sprintf("%s-%05d", prefix, i)
		if p.Namespace == "" {
			p.Namespace = "default"
		}
		pods[i] = p
	}
	return pods
}
