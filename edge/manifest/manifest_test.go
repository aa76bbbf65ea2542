package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	kjson "sigs.k8s.io/json"
)

func read(t *testing.T, files ...string) (*Set, error) {
	t.Helper()
	return readInto(t, NewSet(), files...)
}

func readInto(t *testing.T, s *Set, files ...string) (*Set, error) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	var paths []string
	for i := 0; i < len(files); i += 2 {
		paths = append(paths, files[i])
		if files[i] == "-" {
			continue
		}
		if err := os.WriteFile(files[i], []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := s.Files(paths, strings.NewReader(files[len(files)-1]), 2)
	if err == nil {
		err = s.Resolve()
	}
	return s, err
}

func names(s *Set) string {
	var all []string
	for _, n := range s.Nodes {
		all = append(all, n.Name)
	}
	for _, p := range s.Pods {
		all = append(all, p.Namespace+"/"+p.Name)
	}
	return strings.Join(all, " ")
}

// Every form of YAML and JSON that kubectl prints is read.
func TestForms(t *testing.T) {
	const node = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`
	node2 := strings.ReplaceAll(node, `"a"`, `"b"`)
	for name, c := range map[string]struct{ text, want string }{
		"one YAML document":   {"apiVersion: v1\nkind: Node\nmetadata: {name: a}\n", "a"},
		"several documents":   {"# first\n---\napiVersion: v1\nkind: Node\nmetadata: {name: a}\n--- # next\napiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec: {containers: [{name: c}]}\n---\n", "a default/p"},
		"JSON":                {node, "a"},
		"a stream of JSON":    {node + "\n" + node2, "a b"},
		"JSON between dashes": {node + "\n---\n" + node2, "a b"},
		"YAML in flow style":  {"{apiVersion: v1, kind: Node, metadata: {name: a}}", "a"},
		"a list":              {`{"apiVersion":"v1","kind":"List","items":[` + node + `]}`, "a"},
		"brackets in text":    {`{"apiVersion":"v1","items":[{"apiVersion":"v1","kind":"Node","metadata":{"annotations":{"a":"]}\\\"]","b":"\\\\"},"name":"a"}},` + node2 + `],"kind":"List"}`, "a b"},
		"a list in a list":    {`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"List","items":[` + node + `]}]}`, "a"},
		"a list of one kind":  {"apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: p, namespace: east}\n  spec: {containers: [{name: c}]}\n- metadata: {name: q}\n  spec: {containers: [{name: c}]}\n", "east/p default/q"},
		"an empty list":       {`{"apiVersion":"v1","kind":"List","items":[]}`, ""},
		"a list of nothing":   {`{"apiVersion":"v1","kind":"List","items":null}`, ""},
		"nothing":             {"# nobody here\n", ""},
		"inline after dashes": {"--- " + node + "\n--- {apiVersion: v1, kind: Node, metadata: {name: b}}\n", "a b"},
		"ends of documents":   {"apiVersion: v1\nkind: Node\nmetadata: {name: a}\n... # over\napiVersion: v1\nkind: Node\nmetadata: {name: b}\n...\n---\n" + strings.ReplaceAll(node, `"a"`, `"c"`), "a b c"},
		"directives":          {"# old\n%YAML 1.1\n---\napiVersion: v1\nkind: Node\nmetadata: {name: a}\n...\n%YAML 1.1\n---\n" + node2, "a b"},
		"dashes in a text":    {"apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n  annotations:\n    x: |\n      ---\n      ...\n---\n" + node2, "a b"},
		"a text like 1e99999": {`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a","labels":{"commit":"1e99999999"},"annotations":{"x":"a, 1e99999 \" [1e99999","y":"1e-99999"}},"status":{"allocatable":{"memory":"1e3"}}}`, "a"},
		"a byte order mark":   {"\ufeff" + node, "a"},
		"UTF-16":              {"\xff\xfe" + strings.Join(strings.Split(node+"\n---\n"+node2, ""), "\x00") + "\x00", "a b"},
		"UTF-16, big endian":  {"\xfe\xff\x00" + strings.Join(strings.Split(node+"\n---\n"+node2, ""), "\x00"), "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := read(t, "in.yaml", c.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := names(s); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A directory is read in the order of its file names, and - is standard input.
func TestFolderAndStandardInput(t *testing.T) {
	object := func(name string) string { return "apiVersion: v1\nkind: Node\nmetadata: {name: " + name + "}\n" }
	dir := t.TempDir()
	for file, text := range map[string]string{"2.yml": object("b"), "1.yaml": object("a"), "3.json": `{"apiVersion":"v1","kind":"Node","metadata":{"name":"c"}}`, "notes.txt": "hello"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := NewSet()
	if err := s.Files([]string{dir, "-"}, strings.NewReader(object("d")), 1); err != nil {
		t.Fatal(err)
	}
	if got := names(s); got != "a b c d" {
		t.Errorf("got %q", got)
	}
	if err := NewSet().Files([]string{t.TempDir()}, nil, 1); err == nil || !strings.Contains(err.Error(), "holds no") {
		t.Errorf("an empty folder: %v", err)
	}
}

// Objects of no use are counted, whatever they hold, except for their age.
func TestIgnored(t *testing.T) {
	s, err := read(t, "in.yaml", `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, creationTimestamp: "2026-01-02T03:04:05Z"}
data: {kind: 7}
---
apiVersion: v1
kind: ConfigMap
metadata: 3
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: d}
---
apiVersion: v1
kind: Service
metadata: {name: s, creationTimestamp: "2025-01-02T03:04:05Z"}
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.Ignored); got != "map[networking.k8s.io/v1/Ingress:1 v1/ConfigMap:2]" {
		t.Errorf("ignored: %s", got)
	}
	if want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC); !s.Newest.Equal(want) {
		t.Errorf("newest %v, want %v", s.Newest, want)
	}
}

// Pods get the API server's defaults and the priority of their class, wherever
// the class stands.
func TestDefaultsAndPriority(t *testing.T) {
	s, err := read(t, "in.yaml", `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  priorityClassName: high
  containers: [{name: c, resources: {limits: {cpu: 500m}}}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
preemptionPolicy: Never
`)
	if err != nil {
		t.Fatal(err)
	}
	p := s.Pods[0]
	if *p.Spec.Priority != 1000 || *p.Spec.PreemptionPolicy != "Never" {
		t.Errorf("priority %d, policy %s", *p.Spec.Priority, *p.Spec.PreemptionPolicy)
	}
	if got := p.Spec.Containers[0].Resources.Requests.Cpu().String(); got != "500m" {
		t.Errorf("the limit made a request of %s", got)
	}
	if p.UID == "" || p.Spec.SchedulerName != "default-scheduler" {
		t.Errorf("UID %q, scheduler %q", p.UID, p.Spec.SchedulerName)
	}
}

// Objects that are valid but have no effect are named.
func TestNotices(t *testing.T) {
	s, err := read(t, "in.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n")
	if err != nil || !slices.Equal(s.Notices, []string{"in.yaml: document 1: node a: status.allocatable: is empty, so nothing fits there"}) {
		t.Errorf("%v %q", err, s.Notices)
	}
	s, err = read(t, "in.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {cpu: 1}}\n---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b, namespace: x}\nspec: {maxUnavailable: 1}\n")
	if err != nil || !slices.Equal(s.Notices, []string{"in.yaml: document 2: poddisruptionbudget x/b: status: is empty, as in a manifest that was not applied to a cluster, where a controller writes it; the budget counts as allowing no disruption: write status.disruptionsAllowed to allow some"}) {
		t.Errorf("%v %q", err, s.Notices)
	}
	s, err = read(t, "in.yaml", "")
	if err != nil || !slices.Equal(s.Notices, []string{"the input has no node, so no pod can be placed: give nodes with -f, or a cluster with --kubeconfig"}) {
		t.Errorf("%v %q", err, s.Notices)
	}
}

// Without expansion, what makes pods is told of where no pending pod stands
// beside it.
func TestMakersOfPods(t *testing.T) {
	const node = "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {cpu: 1}}\n---\n"
	const makers = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n---\napiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: r}\n---\n"
	pod := func(more string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {" + more + "containers: [{name: c}]}\n---\n"
	}
	notice := []string{"ignored: apps/v1/ReplicaSet, batch/v1/Job: a simulation places only pods, and no pod in the files is pending"}
	for text, want := range map[string][]string{
		node:                                 nil,
		node + makers:                        notice,
		node + makers + pod("nodeName: a, "): notice,
		node + makers + pod(""):              nil,
		node + "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n": nil,
	} {
		s := NewSet()
		s.Expand = ExpandNone
		s, err := readInto(t, s, "in.yaml", text)
		if err != nil || !slices.Equal(s.Notices, want) {
			t.Errorf("%s: %v %q", text, err, s.Notices)
		}
	}
}

// A field that is not known is left out, or an error, as asked for.
func TestUnknownFields(t *testing.T) {
	const text = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c}, {name: d, shape: round, image: i}]}\n---\n"
	a, b := fmt.Sprintf(text, "a"), fmt.Sprintf(text, "b")
	const node = "apiVersion: v1\nkind: Node\nmetadata: {name: m}\nstatus: {shape: {}, allocatable: {cpu: 1}}\n"
	s, err := read(t, "in.yaml", a+b+node)
	want := []string{"in.yaml: document 1: pod default/a: spec.containers[1].shape: is not known and left out (2 times)",
		"in.yaml: document 3: node m: status.shape: is not known and left out"}
	if err != nil || !slices.Equal(s.Notices, want) {
		t.Errorf("%v %q", err, s.Notices)
	}
	if got := s.Pods[0].Spec.Containers[1].Image; got != "i" {
		t.Errorf("the image is %q", got)
	}
	strict := NewSet()
	strict.Strict = true
	err = strict.Files([]string{"-"}, strings.NewReader(a), 1)
	if err == nil || err.Error() != `standard input: document 1: pod default/a: unknown field "spec.containers[1].shape"` {
		t.Errorf("strict: %v", err)
	}
}

// Every error is one line that names file, document, object, field and why.
func TestBadInput(t *testing.T) {
	pod := func(spec string) string {
		if !strings.Contains(spec, "containers") {
			spec += "\ncontainers: [{name: c}]"
		}
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  " + strings.ReplaceAll(spec, "\n", "\n  ") + "\n"
	}
	const at = "in.yaml: document 1: "
	const web = at + "pod default/web: "
	for name, c := range map[string]struct{ text, want string }{
		"not YAML":             {"# a comment\napiVersion: v1\nkind: ConfigMap\n---\nkind: [Node\nx: y\n", "in.yaml: document 2: not YAML: line 5: "},
		"not JSON":             {"{\"apiVersion\": \"v1\",\n \"kind\" \"Node\"}", at + "line 2: not JSON: invalid character"},
		"not JSON in a list":   {"{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n{\"apiVersion\": \"v1\", \"kind\": \"Node\",\n \"metadata\" {}}]}", at + "line 3: not JSON: invalid character"},
		"not JSON, unused":     {"{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"data\":\n {\"a\" 1}}", at + "line 2: not JSON: invalid character"},
		"garbage after JSON":   {`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}} garbage`, at + "line 1: not JSON: invalid character 'g'"},
		"YAML after JSON":      {"{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"}}\napiVersion: v1\nkind: Node\nmetadata: {name: b}\n", at + "line 2: not JSON: invalid character 'a'"},
		"garbage after flow":   {"# flow\n{apiVersion: v1, kind: Node, metadata: {name: a}} garbage", at + "not YAML: something follows the object; begin the next one with ---"},
		"YAML out of line":     {"  apiVersion: v1\n  kind: Node\n  metadata: {name: a}\nspec: {}\n", at + "not YAML: something follows the object"},
		"old line ends":        {"apiVersion: v1\rkind: Node\rmetadata: {name: a}\r---\rapiVersion: v1\rkind: Node\rmetadata: {name: b}\r", at + "not YAML: something follows the object"},
		"half a UTF-16":        {"\xff\xfe{\x00}\x00a", at},
		"JSON cut off":         {"{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [", at + "not JSON: unexpected EOF"},
		"no object":            {"hello\n", at + "is not a Kubernetes object"},
		"a JSON array":         {"[]", at + "is not a Kubernetes object"},
		"no kind":              {"apiVersion: v1\n", at + "kind: is missing"},
		"no apiVersion":        {"kind: Node\n", at + "Node: apiVersion: is missing"},
		"a kind that is none":  {"apiVersion: v1\nkind: 3\n", at + "kind: wrong type: number where string belongs"},
		"items that are none":  {"apiVersion: v1\nkind: List\nitems: {a: b}\n", at + "List: items: must be an array"},
		"a list item":          {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: a}}\n- {apiVersion: v1, kind: Node}\n", "in.yaml: document 1, item 2: node: metadata.name: is empty"},
		"a repeated YAML key":  {"apiVersion: v1\nkind: Node\nkind: Node\n", at + "not YAML: line 3: key \"kind\" already set in map"},
		"a repeated JSON key":  {`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a","name":"b"}}`, at + `node b: duplicate field "metadata.name"`},
		"a wrong type":         {pod("containers: [{name: c, ports: [{hostPort: many}]}]"), web + "spec.containers[0].ports[0].hostPort: wrong type: string where a whole number of 32 bits belongs"},
		"a fraction":           {pod("activeDeadlineSeconds: 1.5"), web + "spec.activeDeadlineSeconds: wrong type: number 1.5 where a whole number belongs"},
		"an object, no array":  {pod("tolerations: {key: {}}"), web + "spec.tolerations: wrong type: object where array belongs"},
		"an array, no number":  {pod("priority: [1]"), web + "spec.priority: wrong type: array where a whole number of 32 bits belongs"},
		"an array of texts":    {pod("tolerations: [{key: a, operator: [Exists]}]"), web + "spec.tolerations[0].operator: wrong type: array where string belongs"},
		"a misspelt field":     {"apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {container: [{name: c}]}\n", web + "spec.containers: is empty (there is an unknown field spec.container: is it misspelt?)"},
		"misspelt fields":      {pod("containers: [{name: c, resources: {request: {cpu: 1}}}]\ntolerations: [{kee: a}]"), web + "spec.tolerations[0].operator: must be Exists where there is no key (there are unknown fields spec.containers[0].resources.request, spec.tolerations[0].kee: are they misspelt?)"},
		"a text for an object": {pod("nodeSelector: zone"), web + "spec.nodeSelector: wrong type: string where object belongs"},
		"no quantity":          {pod("containers: [{name: c, resources: {requests: {cpu: lots}}}]"), web + "spec.containers[0].resources.requests.cpu: is not a quantity, such as 500m, 2 or 1Gi"},
		"no time":              {"apiVersion: v1\nkind: Node\nmetadata: {name: a, creationTimestamp: yesterday}\n", at + "node a: metadata.creationTimestamp: "},
		"a negative request":   {pod("containers: [{name: c, resources: {requests: {cpu: -1}}}]"), web + "spec.containers[0].resources.requests[cpu]: -1 is negative"},
		"less than containers": {pod("resources: {requests: {cpu: 1}}\ncontainers: [{name: c, resources: {requests: {cpu: 1}}}, {name: d, resources: {requests: {cpu: 500m}}}]"), web + "spec.resources.requests[cpu]: 1 is less than what the containers request together, 1500m"},
		"more than the limit":  {pod("containers: [{name: c, resources: {requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 1500m, memory: 1Gi}}}]"), web + "spec.containers[0].resources.requests[cpu]: 2 is more than the limit of 1500m"},
		"no containers":        {pod("containers: []"), web + "spec.containers: is empty"},
		"a namespace":          {"apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: Team_A}\n", at + `service Team_A/s: metadata.namespace: "Team_A": a lowercase RFC 1123 label must consist of`},
		"several problems": {pod("containers: [{name: c, resources: {requests: {cpu: -1}}}, {name: d, ports: [{hostPort: 70000}]}]\ntolerations: [{key: a, operator: Likes}]"),
			web + "spec.containers[0].resources.requests[cpu]: -1 is negative; spec.containers[1].ports[0].hostPort: 70000 is not between 0 and 65535; spec.tolerations[0].operator: \"Likes\" is none of"},
		"an absurd request":     {pod("containers: [{name: c, resources: {requests: {cpu: 10P}}}]"), web + "spec.containers[0].resources.requests[cpu]: 10P is more than can be counted"},
		"an absurd node":        {"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {memory: 9E, cpu: 20P}}\n", at + "node a: status.allocatable[cpu]: 20P is more than can be counted"},
		"a huge exponent":       {"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {memory: \"1e99999999\"}}\n", at + "node a: status.allocatable.memory: an exponent of more than 3 digits"},
		"a tiny exponent":       {pod("containers: [{name: c, resources: {limits: {cpu: 1, memory: ' 1E-99999999'}}}]"), web + "spec.containers[0].resources.limits.memory: an exponent of more than 3 digits"},
		"a huge number":         {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"overhead":{"a":1,"b":1e99999999}}}`, web + "spec.overhead.b: an exponent of more than 3 digits"},
		"an exponent in spaces": {"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {memory: \"\\u00a01e99999999\\u2003\"}}\n", at + "node a: status.allocatable.memory: an exponent of more than 3 digits"},
		"many digits":           {"apiVersion: v1\nkind: Node\nmetadata: {name: a, labels: {a: b}}\nstatus: {allocatable: {memory: 1" + strings.Repeat("0", 1<<20) + "Ki}}\n", at + "node a: status.allocatable.memory: a number of more than 100 digits"},
		"a number of megabytes": {"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {memory: 1" + strings.Repeat("0", 1<<20) + "}}\n", at + "node a: status.allocatable.memory: a number of more than 100 digits"},
		"a long number":         {pod("overhead: {memory: 1e999}"), web + "spec.overhead[memory]: "},
		"a name that is a bool": {"apiVersion: v1\nkind: Node\nmetadata: {name: n}\n", at + "node: metadata.name: wrong type: bool where string belongs (y, n, yes, no, on and off are bools in YAML: quote them)"},
		"a negative node":       {"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {memory: -1Gi}}\n", at + "node a: status.allocatable[memory]: -1Gi is negative"},
		"half a GPU":            {pod("resources: {requests: {example.com/gpu: 500m}}"), web + "spec.resources.requests[example.com/gpu]: 500m is not a whole number"},
		"a node's half GPU":     {"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {example.com/gpu: 1500m}}\n", at + "node a: status.allocatable[example.com/gpu]: 1500m is not a whole number"},
		"a quota's half GPU":    {custom("ElasticQuota", `{"min": {"cpu": "500m", "example.com/gpu": "1500m"}, "max": {"example.com/gpu": 2.5}}`), at + "elasticquota default/a: spec.min[example.com/gpu]: 1500m is not a whole number; spec.max[example.com/gpu]: 2.5 is not a whole number"},
		"a group's half GPU":    {custom("PodGroup", `{"minMember": 1, "minResources": {"example.com/gpu": "500m"}}`), at + "podgroup.scheduling.x-k8s.io default/a: spec.minResources[example.com/gpu]: 500m is not a whole number"},
		"a quota's name twice":  {custom("ElasticQuota", `{"min": {"cpu": 1, "cpu": 2}}`), at + `elasticquota default/a: duplicate field "spec.min.cpu"`},
		"a quota's list twice":  {custom("ElasticQuota", `{"min": {"cpu": 1}, "min": {"cpu": 2}}`), at + `elasticquota default/a: duplicate field "spec.min"`},
		"a group's field twice": {custom("PodGroup", `{"minMember": 1, "minMember": 2}`), at + `podgroup.scheduling.x-k8s.io default/a: duplicate field "spec.minMember"`},
		"a taint's effect":      {"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nspec: {taints: [{key: k, effect: Never}]}\n", at + `node a: spec.taints[0].effect: "Never" is none of [NoSchedule PreferNoSchedule NoExecute]`},
		"no name":               {"apiVersion: v1\nkind: Namespace\n", at + "namespace: metadata.name: is empty"},
		"a long name":           {"apiVersion: v1\nkind: Node\nmetadata: {name: " + strings.Repeat("n", 254) + "}\n", at + "node " + strings.Repeat("n", 40) + "...: metadata.name: has 254 bytes; it may have 253"},
		"a node selector":       {pod("nodeSelector: {zone: 'a b'}"), web + "spec.nodeSelector: "},
		"a node affinity":       {pod("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Near}]}]}}}"), web + `spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Near"`},
		"a pod affinity":        {pod("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchExpressions: [{key: a, operator: In}]}}]}}"), web + "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: "},
		"a spread":              {pod("topologySpreadConstraints: [{topologyKey: zone, maxSkew: 0, whenUnsatisfiable: DoNotSchedule}]"), web + "spec.topologySpreadConstraints[0].maxSkew: 0 is not positive"},
		"a spread twice":        {pod("topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}, {topologyKey: zone, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}]"), web + "spec.topologySpreadConstraints[1]: a second constraint by zone with DoNotSchedule"},
		"a spread's domains":    {pod("topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, minDomains: 0, whenUnsatisfiable: DoNotSchedule}]"), web + "spec.topologySpreadConstraints[0].minDomains: 0 is not positive"},
		"a soft minDomains":     {pod("topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, minDomains: 2, whenUnsatisfiable: ScheduleAnyway}]"), web + "spec.topologySpreadConstraints[0].minDomains: is only valid with DoNotSchedule"},
		"a spread's policy":     {pod("topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, nodeTaintsPolicy: Obey, whenUnsatisfiable: ScheduleAnyway}]"), web + `spec.topologySpreadConstraints[0].nodeTaintsPolicy: "Obey" is none of [Honor Ignore]`},
		"a spread's keys":       {pod("topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, matchLabelKeys: [rev], whenUnsatisfiable: ScheduleAnyway}]"), web + "spec.topologySpreadConstraints[0].matchLabelKeys: is only valid with a labelSelector"},
		"a toleration":          {pod("tolerations: [{key: a, operator: Likes}]"), web + `spec.tolerations[0].operator: "Likes" is none of`},
		"a budget's selector":   {"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: {selector: {matchExpressions: [{key: a, operator: Is}]}}\n", at + "poddisruptionbudget default/b: spec.selector: "},
		"a priority class":      {pod("priorityClassName: high"), web + "spec.priorityClassName: no PriorityClass with name high"},
		"a duplicate":           {pod("hostNetwork: true") + "---\n" + pod("hostNetwork: true"), "in.yaml: document 2: pod default/web: metadata.name: the same object is in in.yaml: document 1"},
		"a repeated UID":        {"apiVersion: v1\nkind: Node\nmetadata: {name: a, uid: u}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: b, uid: u}\n", "in.yaml: document 2: node b: metadata.uid: the object in in.yaml: document 1 has the same"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, "in.yaml", c.text)
			if err == nil {
				t.Fatal("it was accepted")
			}
			if !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %s\nwant %s", err, c.want)
			}
		})
	}
}

// custom returns an object of scheduling.x-k8s.io named a, in JSON.
func custom(kind, spec string) string {
	return fmt.Sprintf(`{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": %q, "metadata": {"name": "a"}, "spec": %s}`, kind, spec)
}

// Of an object of scheduling.x-k8s.io, too, a notice names the fields that are not known.
func TestUnknownFieldsOfCustomKinds(t *testing.T) {
	for kind, field := range map[string]string{"ElasticQuota": "spec.mni", "PodGroup": "spec.minMembers"} {
		set, err := read(t, "in.yaml", custom(kind, fmt.Sprintf("{%q: 1}", strings.TrimPrefix(field, "spec."))))
		if err != nil || !slices.ContainsFunc(set.Notices, func(n string) bool { return strings.HasSuffix(n, field+": is not known and left out") }) {
			t.Errorf("%s: %v, %v", kind, set, err)
		}
	}
}

// A file that does not exist is named.
func TestMissingFile(t *testing.T) {
	err := NewSet().Files([]string{"no-such-file.yaml"}, nil, 1)
	if err == nil || err.Error() != "no-such-file.yaml: no such file or directory" {
		t.Errorf("got %v", err)
	}
}

// A stream that does not end is refused at a size, and so is a file. Whoever waits for
// the stream is told that it is read.
func TestEndlessInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "long.yaml")
	if err := os.WriteFile(file, bytes.Repeat([]byte(" "), 1001), 0o600); err != nil {
		t.Fatal(err)
	}
	const long = ": is longer than 1000 bytes, the most that is read at once"
	for path, want := range map[string]string{"-": "standard input" + long, file: file + long, "/dev/zero": "/dev/zero: is no text: byte 0 is NUL"} {
		s := NewSet()
		s.most = 1000
		told, over := "", false
		s.Reading = func(name string) func() { told = name; return func() { over = true } }
		err := s.Files([]string{path}, endless{}, 1)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v", path, err)
		}
		if stream := path != file; stream != over || stream != (told != "" && strings.HasPrefix(want, told)) {
			t.Errorf("%s: told of %q, over %t", path, told, over)
		}
	}
}

// endless are spaces without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return copy(b, bytes.Repeat([]byte(" "), len(b))), nil }

// Files count together: one that is short may make the input too long.
func TestInputIsBoundedAsAWhole(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "1.yaml"), filepath.Join(dir, "2.yaml")
	for _, file := range []string{first, second} {
		if err := os.WriteFile(file, bytes.Repeat([]byte(" "), 600), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, paths := range [][]string{{first, second}, {dir}} {
		s := NewSet()
		s.most = 1000
		if err := s.Files(paths, nil, 1); err == nil || err.Error() != second+": makes the input longer than 1000 bytes, the most that is read at once" {
			t.Errorf("%s: %v", paths, err)
		}
	}
}

// Input that is small and would become large is refused: aliases that stand for
// gigabytes, lists in lists, which are searched again and again.
func TestSmallInputStaysSmall(t *testing.T) {
	bomb := "apiVersion: v1\nkind: Node\nmetadata: {name: n, annotations: {a: &a " + strings.Repeat("x", 1<<16) + "}}\nb: [" + strings.Repeat("*a,", 1000) + "]\n"
	lists := strings.Repeat(`{"apiVersion":"v1","kind":"List","items":[`, 9) + strings.Repeat("]}", 9)
	for text, want := range map[string]string{
		bomb:  "standard input: document 1: the aliases of the YAML document stand for more than 16 MiB",
		lists: "standard input: document 1" + strings.Repeat(", item 1", 8) + ": List: is a list in more than 7 others",
	} {
		if err := NewSet().Files([]string{"-"}, strings.NewReader(text), 1); err == nil || err.Error() != want {
			t.Errorf("%.200v, want %s", err, want)
		}
	}
}

// What is wrong first in the input is told first, however many read it.
func TestFirstErrorIsTold(t *testing.T) {
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n%d"},"spec":{"podCIDR":%d}}`+"\n", i, i)
	}
	for _, workers := range []int{1, 2, 7} {
		err := NewSet().Files([]string{"-"}, strings.NewReader(b.String()), workers)
		if err == nil || !strings.HasPrefix(err.Error(), "standard input: document 1, value 1: node n0: spec.podCIDR: ") {
			t.Errorf("%d workers: %v", workers, err)
		}
	}
}

// What a skimmer takes for an object has the same parts when it is decoded.
func TestSkimmerAgreesWithADecoder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`\{("(kind|items|apiVersion|a\\"|\\\\)": ?("x\\""|\[( ?[0-9], ?\{\}){0,2}\[\]\]|\{"a":[\[{]?\},|7) ?,? ?){0,3}\}?`),
			rapid.StringMatching(`\{ ?"items" ?: ?null ?(, ?"items": ?(null|\[1\]|7))? ?\}`),
			rapid.StringMatching(`\{ ?"items" ?: ?\[(1, ?\{"a":"\]"\}, ?)?"[a\\]*"\] ?\}`),
		).Draw(t, "text")
		o := (&skimmer{data: []byte(text)}).outline()
		var want struct {
			Items json.RawMessage `json:"items"`
		}
		if !json.Valid([]byte(text)) {
			return // the decoder tells, whatever the skimmer said
		}
		if o == nil {
			t.Fatalf("the skimmer rejects %s", text)
		}
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		var items []json.RawMessage
		if list := want.Items != nil && json.Unmarshal(want.Items, &items) == nil; list != o.list || len(items) != len(o.items) {
			t.Fatalf("%s: the skimmer sees list %v with %d items, a decoder %v with %d", text, o.list, len(o.items), list, len(items))
		}
		for i := range items {
			if string(items[i]) != string(o.items[i]) {
				t.Fatalf("%s: item %d is %s, the skimmer says %s", text, i, items[i], o.items[i])
			}
		}
	})
}

// An API server that took such an amount hands it on without any text to look at.
func TestHugeAmountsOfAnAPIServer(t *testing.T) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{"memory": resource.MustParse("1e99999999")}}}
	err := NewSet().Add(n, "v1/Node", "server")
	if err == nil || err.Error() != "server: node a: status.allocatable[memory]: 1e99999999 is more than can be counted" {
		t.Errorf("got %v", err)
	}
}

// A kind that is spelt nearly like one of its version is an error. One that is not, and one
// of another API, is counted as ignored.
func TestMisspeltKind(t *testing.T) {
	for text, want := range map[string]string{
		"apiVersion: apps/v1\nkind: deployment":           "in.yaml: document 1: kind: apps/v1 has no deployment; did you mean Deployment?",
		"apiVersion: v1\nkind: Pdo":                       "in.yaml: document 1: kind: v1 has no Pdo; did you mean Pod?",
		"apiVersion: v1\nkind: Lsit\nitems: []":           "in.yaml: document 1: kind: v1 has no Lsit; did you mean List?",
		"apiVersion: v1\nkind: Secret":                    "",
		"apiVersion: v1\nkind: SomethingOfTomorrow":       "",
		"apiVersion: example.com/v1\nkind: Pods":          "",
		"apiVersion: scheduling.x-k8s.io/v1\nkind: PodGr": "",
	} {
		s, err := read(t, "in.yaml", text)
		if want == "" && (err != nil || len(s.Ignored) != 1) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
