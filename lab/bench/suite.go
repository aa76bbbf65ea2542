package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// Known is a workload of some suite: one that Load takes, or one that is not
// understood, and why.
type Known struct {
	Name string // test case / workload
	Err  error
}

// testCase mirrors the format of performance-config.yaml, as far as it is
// understood here. Every workload runs with the defaults of Kubernetes' feature gates:
// those of workloads, which are variants of one another, are left aside.
type testCase struct {
	Name                   string            `json:"name"`
	FeatureGates           map[string]bool   `json:"featureGates"`
	DefaultPodTemplatePath string            `json:"defaultPodTemplatePath"`
	SchedulerConfigPath    string            `json:"schedulerConfigPath"`
	WorkloadTemplate       []json.RawMessage `json:"workloadTemplate"`
	Workloads              []parameters      `json:"workloads"`

	dir string // of the file; templates are found from there
}

type parameters struct {
	Name      string         `json:"name"`
	Params    map[string]any `json:"params"`
	Labels    []string       `json:"labels"`
	Threshold threshold      `json:"threshold"`
}

// threshold is the least number of pods a second that Kubernetes' own runs of a workload
// must come to; 0 if there is none.
type threshold float64

// UnmarshalJSON reads a number, or the one of a map from the topics of runs, of which the
// suite uses one in a workload.
func (t *threshold) UnmarshalJSON(data []byte) error {
	var one float64
	if json.Unmarshal(data, &one) == nil {
		*t = threshold(one)
		return nil
	}
	var byTopic map[string]float64
	if err := json.Unmarshal(data, &byTopic); err != nil {
		return fmt.Errorf("threshold: neither a number nor a map of numbers: %w", err)
	}
	for _, least := range byTopic {
		*t = max(*t, threshold(least))
	}
	return nil
}

// suites lists the files that workloads come from: kube-scheduler's own, in
// the k8s.io/kubernetes module that the lab is built from, and those of dir, if
// any is named.
func suites(dir string) ([]string, error) {
	theirs, err := suiteDir()
	if err != nil {
		return nil, err
	}
	var files []string
	err = filepath.WalkDir(theirs, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "performance-config.yaml" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no performance-config.yaml below %s", theirs)
	}
	if dir == "" {
		return files, nil
	}
	ours, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	return append(files, ours...), err
}

// suiteDir is where the module cache keeps kube-scheduler's suite.
func suiteDir() (string, error) {
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return "", fmt.Errorf("the benchmark suite is read from the Go module cache, and `go env GOMODCACHE` failed: %w", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(cache)), "k8s.io", "kubernetes@"+cluster.KubernetesVersion, "test", "integration", "scheduler_perf")
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("the benchmark suite is not in the Go module cache (run `go mod download k8s.io/kubernetes@%s`): %w", cluster.KubernetesVersion, err)
	}
	return dir, nil
}

// eachCase calls visit with every workload of the suites until it returns
// false.
func eachCase(dir string, visit func(c *testCase, name string, p parameters) bool) error {
	files, err := suites(dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		cases, err := readCases(file)
		if err != nil {
			return err
		}
		for i := range cases {
			c := &cases[i]
			for _, p := range c.Workloads {
				if !visit(c, c.Name+"/"+p.Name, p) {
					return nil
				}
			}
		}
	}
	return nil
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
	for i := range cases {
		cases[i].dir = filepath.Dir(file)
	}
	return cases, nil
}

// Load finds the workload "TestCase/Workload" in kube-scheduler's suite or in
// the files of dir.
func Load(dir, name string) (w *Workload, err error) {
	var alike []string
	searched := eachCase(dir, func(c *testCase, full string, p parameters) bool {
		if full == name {
			w, err = c.workload(full, p)
			return false
		}
		if test, _, _ := strings.Cut(name, "/"); strings.EqualFold(test, c.Name) {
			alike = append(alike, full)
		}
		return true
	})
	switch {
	case searched != nil:
		return nil, searched
	case w != nil || err != nil:
		return w, err
	case len(alike) > 0:
		return nil, fmt.Errorf("no workload is named %q; the test case has:\n  %s", name, strings.Join(alike, "\n  "))
	}
	err = fmt.Errorf("no workload is named %q; `berth-lab bench --list` shows them", name)
	if why := absent(dir); why != nil {
		err = fmt.Errorf("%w; %w", err, why)
	}
	return nil, err
}

// absent says so where the directory of Berth's own workloads is not there.
func absent(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	return fmt.Errorf("the directory of Berth's own workloads, %s, was not found: --workloads names it", dir)
}

// List returns every workload of kube-scheduler's suite and of dir, by name.
func List(dir string) ([]Known, error) {
	var all []Known
	err := eachCase(dir, func(c *testCase, name string, p parameters) bool {
		_, err := c.workload(name, p)
		all = append(all, Known{name, err})
		return true
	})
	slices.SortFunc(all, func(a, b Known) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}

// memory is the workload of Berth's own that peak memory is measured on.
const memory = "Memory/5000Nodes_30000Pods"

// Suite names one workload of each test case of kube-scheduler's suite that is
// understood, and the one for memory.
func Suite() ([]string, error) {
	theirs, err := suites("")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range theirs {
		cases, err := readCases(file)
		if err != nil {
			return nil, err
		}
		for i := range cases {
			c := &cases[i]
			p := c.typical()
			if _, err := c.workload(c.Name+"/"+p.Name, p); err == nil {
				names = append(names, c.Name+"/"+p.Name)
			}
		}
	}
	return append(names, memory), nil
}

// typical is the first workload that Kubernetes' own runs hold against a
// threshold; else the first that they run for performance; else the last.
// Those that differ from one before in feature gates alone come after it.
func (c *testCase) typical() parameters {
	performance := func(p parameters) bool { return slices.Contains(p.Labels, "performance") }
	for _, good := range []func(parameters) bool{
		func(p parameters) bool { return performance(p) && p.Threshold > 0 },
		performance,
	} {
		if i := slices.IndexFunc(c.Workloads, good); i >= 0 {
			return c.Workloads[i]
		}
	}
	last := c.Workloads[0]
	for _, p := range c.Workloads[1:] {
		if !strings.HasSuffix(p.Name, "Enabled") {
			last = p
		}
	}
	return last
}

// inGo says what the Go tests of test cases do that their files do not say, and
// that cannot be done from outside.
var inGo = map[string]string{
	"NodeDeclaredFeaturesEnabled": "Go code of the suite adds features to the library inside kube-scheduler, which pods then ask nodes for",
}

// missing returns the first of the feature gates that the test case needs and that is off by
// default, "" if there is none. The API server drops the fields behind such a gate, and Berth
// refuses that of pod groups.
func (c *testCase) missing() string {
	for _, gate := range slices.Sorted(maps.Keys(c.FeatureGates)) {
		if c.FeatureGates[gate] && !utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(gate)) {
			return gate
		}
	}
	return ""
}

func (c *testCase) workload(name string, p parameters) (*Workload, error) {
	if why := inGo[c.Name]; why != "" {
		return nil, fmt.Errorf("workload %s: %s", name, why)
	}
	if gate := c.missing(); gate != "" {
		return nil, fmt.Errorf("workload %s: needs the feature gate %s, which is off by default", name, gate)
	}
	w := &Workload{Name: name, Threshold: float64(p.Threshold)}
	if c.SchedulerConfigPath != "" {
		config, err := os.ReadFile(filepath.Join(c.dir, c.SchedulerConfigPath))
		if err != nil {
			return nil, fmt.Errorf("workload %s: %w", name, err)
		}
		w.Config = string(config)
	}
	for i, raw := range c.WorkloadTemplate {
		steps, err := c.steps(i, raw, p)
		if err != nil {
			return nil, fmt.Errorf("workload %s, step %d: %w", name, i, err)
		}
		w.Steps = append(w.Steps, steps...)
	}
	if w.Measured() == 0 {
		return nil, fmt.Errorf("workload %s: no pods are measured", name)
	}
	return w, nil
}

// steps reads one operation of the template.
func (c *testCase) steps(i int, raw json.RawMessage, p parameters) ([]Step, error) {
	var head struct {
		Opcode string `json:"opcode"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	read, ok := opcodes[head.Opcode]
	if !ok {
		return nil, fmt.Errorf("the opcode %s is not understood", head.Opcode)
	}
	var op operation
	err := strict(raw, &op)
	if err == nil {
		err = p.resolve(op.TemplateParams)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", head.Opcode, err)
	}
	steps, err := read(c, i, &op, p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", head.Opcode, err)
	}
	return steps, nil
}

// strict decodes JSON and names the first field that is not understood.
func strict(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		return nil
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("the field %s is not understood", field)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// number is a count given as such or by the name of a parameter.
func (p *parameters) number(count int, name string) (int, error) {
	if name == "" {
		return count, nil
	}
	given, ok := p.Params[strings.TrimPrefix(name, "$")]
	if !ok {
		return 0, fmt.Errorf("there is no parameter %s", name)
	}
	value, ok := given.(float64)
	if !ok || value < 0 || value != float64(int(value)) {
		return 0, fmt.Errorf("parameter %s is not a count", name)
	}
	return int(value), nil
}

// resolve replaces each value "$name" or "$name|default" with the parameter of that name,
// and with the default, read as YAML, if there is none.
func (p *parameters) resolve(params map[string]any) error {
	for key, value := range params { // any order: each value by itself
		text, _ := value.(string)
		reference, ok := strings.CutPrefix(text, "$")
		if !ok {
			continue
		}
		name, fallback, optional := strings.Cut(reference, "|")
		given, ok := p.Params[name]
		switch {
		case ok:
		case !optional:
			return fmt.Errorf("templateParams: there is no parameter $%s", name)
		default:
			if err := yaml.Unmarshal([]byte(fallback), &given); err != nil {
				return fmt.Errorf("templateParams: the default of $%s: %w", name, err)
			}
		}
		params[key] = given
	}
	return nil
}
