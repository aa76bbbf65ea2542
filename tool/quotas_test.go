package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// why says what the quota of a pod uses beside its min and max.
func TestWhyQuota(t *testing.T) {
	_, out, errs := berth("", "why", "-f", "testdata/quotas.yaml", "--config", "testdata/quotas-config.yaml", "web/web-3")
	if want := "web/web-3 waits for quota: it requests 1 example.com/gpu; ElasticQuota web/web uses 4 of at most 4.\n"; !strings.HasPrefix(out, want) {
		t.Errorf("%s%s", out, errs)
	}
	if want := "QUOTAS\n  ElasticQuota web/web: 4 of example.com/gpu used, min 2, max 4; 2 above its min\n"; !strings.Contains(out, want) {
		t.Errorf("%s%s", out, errs)
	}
}

// Each ElasticQuota that matters to a pod has a line of its own.
func TestWhyQuotas(t *testing.T) {
	_, out, errs := berth("", "why", "-f", "testdata/quotas.yaml", "--config", "testdata/quotas-config.yaml", "research/train-2")
	if want := "QUOTAS\n  ElasticQuota research/research: 4 of example.com/gpu used, min 6, max 8\n  ElasticQuota web/web: "; !strings.Contains(out, want) {
		t.Errorf("%s%s", out, errs)
	}
}

// A pod within its quota's min takes back what another one has borrowed, as docs/batch.md shows.
func TestSimulateQuotas(t *testing.T) {
	_, out, errs := berth("", "simulate", "-f", "testdata/quotas.yaml", "--config", "testdata/quotas-config.yaml")
	if want := "EVICTED\n  web/web-2 on node-1, for research/train-2\n"; !strings.Contains(out, want) {
		t.Errorf("%s%s", out, errs)
	}
}

// why says of an ElasticQuota what it has lent and borrowed, what a pod may request, what of it is
// wrong, and which pods wait, as docs/batch.md shows.
func TestWhyElasticQuota(t *testing.T) {
	const files, tree = "testdata/quotas.yaml", "testdata/quotas-tree.yaml"
	var all strings.Builder
	for _, c := range []struct{ file, name string }{{files, "eq/research"}, {files, "elasticquotas/web"}, {tree, "team/eq/all"}, {tree, "a/eq/a"}, {tree, "eq/b"}, {tree, "eq/lab"}, {tree, "eq/odd"}, {tree, "eq/late"}} {
		_, out, errs := berth("", "why", "-f", c.file, "--config", "testdata/quotas-config.yaml", c.name)
		if errs != "" {
			t.Errorf("%s: stderr %q", c.name, errs)
		}
		all.WriteString("$ berth why " + c.name + "\n" + out + "\n")
	}
	golden(t, "why-elasticquota.text", all.String())
	_, out, _ := berth("", "why", "-f", tree, "--config", "testdata/quotas-config.yaml", "-o", "json", "eq/b")
	golden(t, "why-elasticquota.json", out)
}

// With strict budgets no pod gets back what pods use that a budget protects, and why says so of the
// pod and of its quota.
func TestWhyQuotaWithStrictBudgets(t *testing.T) {
	config, err := os.ReadFile("testdata/quotas-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	strict, budget := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "budget.yaml")
	for path, text := range map[string]string{
		strict: string(config) + "  pluginConfig: [{name: PreemptionBudgets, args: {strict: true}}]\n",
		budget: "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: keep, namespace: web}, spec: {selector: {}}, status: {disruptionsAllowed: 0, observedGeneration: 1}}\n",
	} { // any order: each is a file
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, config string
		gets         bool
	}{{"eq/research", "testdata/quotas-config.yaml", true}, {"eq/research", strict, false}} {
		_, out, errs := berth("", "why", "-f", "testdata/quotas.yaml", "-f", budget, "--config", c.config, c.name)
		if got := strings.Contains(out, "gets back"); got != c.gets || out == "" {
			t.Errorf("%s with %s: %s%s", c.name, c.config, out, errs)
		}
	}
	_, out, errs := berth("", "why", "-f", "testdata/quotas.yaml", "-f", budget, "--config", strict, "research/train-2")
	if strings.Contains(out, "preempts") || !strings.Contains(out, "web/keep") {
		t.Errorf("%s%s", out, errs)
	}
}

// An ElasticQuota that is not there, or does not count, is not valid input; similar names are told.
func TestWhyNoElasticQuota(t *testing.T) {
	for want, args := range map[string][]string{
		"berth: elasticquota default/reserch: there is none; did you mean research/research?\n":                {"eq/reserch", "--config", "testdata/quotas-config.yaml"},
		"berth: elasticquota web/research: there is none; did you mean research/research?\n":                   {"-n", "web", "eq/research", "--config", "testdata/quotas-config.yaml"},
		"berth: elasticquota default/none: there is none among 2\n":                                            {"eq/none", "--config", "testdata/quotas-config.yaml"},
		"berth: pod web/web: there is no such pod; there is elasticquota web/web: give web/elasticquota/web\n": {"web/web", "--config", "testdata/quotas-config.yaml"},
		"berth: note: ElasticQuota research/research (and 1 more) does not count here, whatever the scheduler does with it: give the scheduler's configuration, --config FILE; the one used here does not enable CapacityScheduling, or ask it with --daemon\n" +
			"berth: elasticquota default/web: no profile of the configuration used here enables the plugin CapacityScheduling, so no ElasticQuota counts: give --config FILE of the scheduler, or --daemon auto\n": {"eq/web"},
	} {
		if code, out, errs := berth("", append([]string{"why", "-f", "testdata/quotas.yaml"}, args...)...); code != exitInvalid || out != "" || errs != want {
			t.Errorf("%q: exit status %d, %s%s", args, code, out, errs)
		}
	}
}

// what-if changes what a quota guarantees and allows, and a pod that waited for it is placed, or no
// longer makes another one go.
func TestWhatIfQuota(t *testing.T) {
	whatIf := func(file string, words ...string) string {
		t.Helper()
		code, out, errs := berth("", append([]string{"what-if", "-f", file, "--config", "testdata/quotas-config.yaml", "-o", "json"}, words...)...)
		if code != exitPlaced || errs != "" {
			t.Errorf("%q: exit status %d, stderr %q", words, code, errs)
		}
		return out
	}
	const tree = "testdata/quotas-tree.yaml"
	if out := whatIf(tree, "quota", "a", "max:example.com/gpu=12,", "quota", "team/all", "max:example.com/gpu=12", "min:example.com/gpu=10"); !strings.Contains(out, `"quota team/all max:example.com/gpu=12 min:example.com/gpu=10"`) || !strings.Contains(out, `"a/a-3": "n1"`) {
		t.Error(out)
	}
	if out := whatIf("testdata/quotas.yaml", "quota", "research/research", "min:example.com/gpu=4"); !strings.Contains(out, `"evicted": []`) {
		t.Error("research takes back more than it is guaranteed:", out)
	}
}

// A change of a quota that cannot be made is one line that says why, and what was meant.
func TestWhatIfQuotaInvalid(t *testing.T) {
	for words, want := range map[string]string{
		"quota reserch max:cpu=4":             "no ElasticQuota is called reserch; did you mean research?",
		"quota web/wep max:cpu=4":             "no ElasticQuota is called web/wep; did you mean web/web?",
		"quota web":                           "web: want amounts of its min and max, such as max:cpu=8",
		"quota web most:cpu=4":                "most:cpu=4: want min:RESOURCE=QUANTITY or max:RESOURCE=QUANTITY, such as max:cpu=8",
		"quota web max:cpu=":                  "max:cpu=: want min:RESOURCE=QUANTITY or max:RESOURCE=QUANTITY, such as max:cpu=8",
		"quota web max:example.com/gpus=4":    "max:example.com/gpus=4: neither the quota nor a node has a resource example.com/gpus; did you mean example.com/gpu?",
		"quota web max:pods=4":                "max:pods=4: no quota counts pods",
		"quota web max:cpu=four":              `max:cpu=four: "four" is not a quantity, such as 500m, 2 or 1Gi`,
		"quota web max:cpu=1e9999":            `max:cpu=1e9999: "1e9999" is not a quantity, such as 500m, 2 or 1Gi`,
		"quota web max:cpu=-4":                "max:cpu=-4: -4 is negative",
		"quota web max:example.com/gpu=2500m": "max:example.com/gpu=2500m: 2500m is not a whole number",
		"quota web min:example.com/gpu=5":     "ElasticQuota web/web: its min of example.com/gpu, 5, would be above its max, 4",
		"quota web max:cpu=1 min:cpu=1500m":   "ElasticQuota web/web: its min of cpu, 1500m, would be above its max, 1",
	} {
		code, out, errs := berth("", append([]string{"what-if", "-f", "testdata/quotas.yaml", "--config", "testdata/quotas-config.yaml"}, strings.Fields(words)...)...)
		if code != exitInvalid || out != "" || errs != "berth: quota: "+want+"\n" {
			t.Errorf("%s: exit status %d, stdout %q, stderr %q, want %q", words, code, out, errs, want)
		}
	}
	for file, want := range map[string]string{
		"testdata/quotas-config.yaml": `berth: quota: ElasticQuota odd/odd cannot be read: spec.max of memory, "much", is not a quantity, such as 500m, 2 or 1Gi` + "\n",
		"testdata/most.yaml":          "berth: quota: no profile of the configuration used here enables the plugin CapacityScheduling, so no ElasticQuota counts: give --config FILE of the scheduler\n",
	} {
		if code, _, errs := berth("", "what-if", "-f", "testdata/quotas-tree.yaml", "--config", file, "quota", "odd/odd", "max:cpu=4"); code != exitInvalid || errs != want {
			t.Errorf("exit status %d, stderr %q, want %q", code, errs, want)
		}
	}
}

// What does not count is told with what helps: gates for Kubernetes' PodGroups, a configuration for
// the kinds that plugins read.
func TestUncountedGroupsAndQuotas(t *testing.T) {
	const group = "---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: 2}\n"
	const quota = "---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: ElasticQuota\nmetadata: {name: q}\nspec: {max: {cpu: 1}}\n"
	const native = "---\napiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: {schedulingPolicy: {gang: {minCount: 2}}}\n"
	const both = "testdata/gangs-config.yaml"
	for name, c := range map[string]struct{ cluster, flags, want string }{
		"a group, and no plugin":  {group, "", "PodGroup.scheduling.x-k8s.io default/g does not count here, whatever the scheduler does with it: give the scheduler's configuration, --config FILE; the one used here does not enable Coscheduling, or ask it with --daemon"},
		"a quota, and no plugin":  {quota, "", "ElasticQuota default/q does not count here, whatever the scheduler does with it: give the scheduler's configuration, --config FILE; the one used here does not enable CapacityScheduling, or ask it with --daemon"},
		"both, with the plugins":  {group + quota, "--config " + both, ""},
		"Kubernetes', no gate":    {native, "--config " + both, "PodGroup default/g (minCount 2) does not count here, whatever the scheduler does with it: give the gates that the scheduler has, --feature-gates GenericWorkload=true, or ask it with --daemon"},
		"Kubernetes', and a gate": {native, "--feature-gates GenericWorkload=true", ""},
	} {
		if c.want != "" {
			c.want = "berth: note: " + c.want + "\n"
		}
		if _, _, errs := berth(nodeYAML+c.cluster, append([]string{"simulate", "-f", "-"}, strings.Fields(c.flags)...)...); errs != c.want {
			t.Errorf("%s: got %q, want %q", name, errs, c.want)
		}
	}
}

// Of a part of a quota, what it gets back from others beside it is bounded by its own min. Who has
// borrowed most comes first. Nominated pods and resources that no list names are told.
func TestWhyElasticQuotaTold(t *testing.T) {
	config, err := os.ReadFile("testdata/quotas-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	zero := filepath.Join(t.TempDir(), "zero.yaml")
	if err := os.WriteFile(zero, append(config, "  pluginConfig: [{name: CapacityScheduling, args: {unlisted: zero}}]\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"a pod that requests at most 3 gets back what it lacks":                                      {"eq/a"},
		"to web/web (3 above its min), lab/lab (1 above its min)":                                    {"eq/team"},
		"all ElasticQuotas together use 12 of 13 guaranteed, and 1 are kept for nominated pods":      {"eq/web"},
		"no pod is let through now: ElasticQuota team/team uses 0 of at most 0, as no list names it": {"eq/a", "--config", zero},
	} {
		if len(args) == 1 {
			args = append(args, "--config", "testdata/quotas-config.yaml")
		}
		if _, out, errs := berth("", append([]string{"why", "-f", "testdata/quotas-more.yaml"}, args...)...); !strings.Contains(out, want) || errs != "" {
			t.Errorf("%q lacks %q:\n%s%s", args, want, out, errs)
		}
	}
}

// What nominated pods of the namespace keep of a min is not given back to another pod, also where
// an ancestor guarantees more.
func TestWhyElasticQuotaNominated(t *testing.T) {
	file, err := os.ReadFile("testdata/quotas-more.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const nominated = `---
apiVersion: v1
kind: Pod
metadata: {name: next, namespace: a}
spec: {containers: [{name: main, image: main, resources: {requests: {example.com/gpu: %d}, limits: {example.com/gpu: %[1]d}}}]}
status: {nominatedNodeName: n1}
`
	for kept, want := range map[int]string{1: "requests at most 2 gets back", 2: "requests at most 1 gets back", 3: ""} {
		_, out, errs := berth(string(file)+fmt.Sprintf(nominated, kept), "why", "-f", "-", "--config", "testdata/quotas-config.yaml", "a/eq/a")
		if errs != "" || want == "" && strings.Contains(out, "gets back") || !strings.Contains(out, want) {
			t.Errorf("%d kept, want %q: %s%s", kept, want, out, errs)
		}
	}
}
