package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

var fileAttacks = []Attack{
	{Name: "files/fifo", Short: true, Title: "a FIFO as a file, in a folder, as configuration, kubeconfig and record", play: fifos},
	{Name: "files/endless", Short: true, Title: "links to a file without end, and a gigabyte of NULs", play: endlessFiles},
	{Name: "files/controls", Short: true, Title: "files with control characters in names, values and file names", play: controlFiles},
	{Name: "files/bombs", Title: "YAML that unfolds, JSON that nests, very many documents, very long numbers", play: bombs},
}

// fileCalls are the ways in which the tool is given a file.
func (s *stage) fileCalls(file string) [][]string {
	return [][]string{{"simulate", "-f", file}, {"why", "-f", file, "a/b"}, {"config", "check", file}, {"config", "show", file},
		{"simulate", "-f", s.nodes(), "--config", file}, {"replay", file}, {"compare", file, file, "--record", filepath.Dir(file)},
		{"simulate", "--kubeconfig", file}, {"top", "--once", "--daemon", "https://127.0.0.1:1", "--daemon-ca", file}}
}

// refused calls the tool with a file that is none, which it has to say.
func (s *stage) refused(calls [][]string) {
	s.calls(calls, func(call []string, a answer) {
		if a.status != 2 {
			s.broke("berth %v: exit status %d: %s", call, a.status, short(a.stdout))
		}
	})
}

// nodes is a file with a node.
func (s *stage) nodes() string {
	return s.file("node.yaml", "{kind: Node, apiVersion: v1, metadata: {name: n1}, status: {allocatable: {cpu: 1, pods: 10}}}\n")
}

func fifos(s *stage) {
	folder := filepath.Join(s.dir, "folder")
	s.note(os.Mkdir(folder, 0o700))
	fifo := filepath.Join(folder, "pods.yaml")
	s.note(syscall.Mkfifo(fifo, 0o600))
	s.note(syscall.Mkfifo(filepath.Join(folder, "00000001.berth"), 0o600))
	s.refused(s.fileCalls(fifo))
	s.berth("simulate", "-f", folder) // what is no file may be left out
	s.berth("replay", folder)
}

func endlessFiles(s *stage) {
	folder := filepath.Join(s.dir, "folder")
	s.note(os.Mkdir(folder, 0o700))
	link := filepath.Join(folder, "pods.yaml")
	s.note(os.Symlink("/dev/zero", link))
	s.refused(s.fileCalls(link))
	zeros := filepath.Join(s.dir, "zeros.json")
	s.note(os.WriteFile(zeros, nil, 0o600))
	s.note(os.Truncate(zeros, 1<<30)) // no block of it is written
	s.refused(s.fileCalls(zeros))
	self := filepath.Join(folder, "self")
	s.note(os.Symlink(folder, self))
	s.berth("simulate", "-f", folder)
}

func controlFiles(s *stage) {
	quoted := strings.NewReplacer("\x1b", `\e`, "\a", `\a`, "\r", `\r`, "\n", `\n`, "\u009b", `\x9b`, "\u0085", `\x85`).Replace(hostile)
	file := s.file("hostile.yaml", fmt.Sprintf(`
{kind: Node, apiVersion: v1, metadata: {name: "%[1]s", labels: {"%[1]s": "%[1]s"}}, status: {allocatable: {cpu: "%[1]s", pods: 10}}}
---
{kind: Node, apiVersion: v1, metadata: {name: n1}, spec: {taints: [{key: "%[1]s", value: "%[1]s", effect: "%[1]s"}]}, status: {allocatable: {cpu: 1, pods: 10, "%[1]s": 1}}}
---
{kind: Pod, apiVersion: v1, metadata: {name: "%[1]s", namespace: "%[1]s"}, spec: {priorityClassName: "%[1]s", schedulerName: "%[1]s", containers: [{name: c}], "%[1]s": 1}}
---
{kind: Pod, apiVersion: v1, metadata: {name: p, namespace: a}, spec: {nodeSelector: {"%[1]s": "%[1]s"}, containers: [{name: c}], volumes: [{name: v, persistentVolumeClaim: {claimName: "%[1]s"}}]}}
---
{kind: "%[1]s", apiVersion: "%[1]s", metadata: {name: x}}
`, quoted))
	config := s.file("config.yaml", fmt.Sprintf(`{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, "%[1]s": 1, profiles: [{schedulerName: "%[1]s", plugins: {filter: {enabled: [{name: "%[1]s"}]}}}]}
`, quoted))
	named := s.file("n\x1b[2J\a.yaml", "{kind: \x1b[31m")
	for _, f := range []string{file, config, named} {
		for _, call := range s.fileCalls(f) {
			s.berth(call...)
		}
		s.berth("simulate", "-f", f, "-o", "wide", "--explain")
		s.berth("simulate", "-f", f, "-o", "json")
		s.berth("why", "-f", f, "--all")
		s.berth("what-if", "-f", f, "drain", hostile)
		s.berth("fit", "-f", f, "--nodes-like", hostile+"=1")
	}
	for _, call := range [][]string{{hostile}, {"why", hostile}, {"simulate", "--" + hostile}, {"simulate", "-o", hostile}, {"simulate", "-f", hostile}, {"config", "check", hostile}} {
		s.berth(call...)
	}
	s.berth("config", "show", "--effective", "--diff", config)
}

func bombs(s *stage) {
	folds := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		folds += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	many := strings.Repeat("{kind: ConfigMap, apiVersion: v1, metadata: {name: c}}\n---\n", 200_000)
	for name, text := range map[string]string{ // any order: each by itself
		"folds.yaml":   folds,
		"nests.json":   strings.Repeat("[", 20<<20),
		"objects.json": strings.Repeat(`{"a":`, 5<<20),
		"many.yaml":    many,
		"number.yaml":  "{kind: Node, apiVersion: v1, metadata: {name: n}, status: {allocatable: {cpu: 1" + strings.Repeat("0", 8<<20) + "}}}",
		"exponent.yaml": `{kind: Node, apiVersion: v1, metadata: {name: n}, status: {allocatable: {cpu: "1e999999999"}}}
`,
		"line.yaml":  "{kind: Node, apiVersion: v1, metadata: {name: " + strings.Repeat("n", 32<<20) + "}}",
		"kind.yaml":  "{kind: " + strings.Repeat("n", 32<<20) + ", apiVersion: v1, metadata: {name: n}}",
		"label.yaml": "{kind: Node, apiVersion: v1, metadata: {name: n, labels: {a: " + strings.Repeat("n", 32<<20) + "}}}",
	} {
		file := s.file(name, text)
		s.berth("simulate", "-f", file)
		s.berth("config", "check", file)
		s.note(os.Remove(file))
	}
}
