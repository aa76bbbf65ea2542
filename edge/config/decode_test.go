package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/edge/config/features"
)

const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

func mustDecode(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Decode([]byte(header+text), "test.yaml")
	if err != nil {
		t.Fatalf("unexpected error: %v\nin:\n%s", err, text)
	}
	return c
}

// profileWith is a file with one profile that configures one plugin.
func profileWith(plugin, args string) string {
	return "profiles:\n- pluginConfig:\n  - name: " + plugin + "\n    args: " + args + "\n"
}

// A file that sets nothing is the default configuration.
func TestMinimalFileIsTheDefault(t *testing.T) {
	want := Default()
	for _, text := range []string{"", "profiles: []\n", "profiles: [{}]\n", "profiles: [null]\n",
		"profiles: [{schedulerName: default-scheduler}]\n", "leaderElection: {}\nclientConnection: {}\n",
		"profiles: [{pluginConfig: [{name: NodeAffinity}]}]\n"} {
		got := mustDecode(t, text)
		slices.SortFunc(got.Profiles[0].PluginConfig, func(a, b configv1.PluginConfig) int { return strings.Compare(a.Name, b.Name) })
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q differs from the default:\n got %+v\nwant %+v", text, got, want)
		}
	}
}

// A configuration may be JSON.
func TestJSONIsRead(t *testing.T) {
	c, err := Decode([]byte(`{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 3}`), "test.json")
	if err != nil || *c.Parallelism != 3 {
		t.Fatalf("got %v, %v", c, err)
	}
}

// Errors of a file begin with its path.
func TestLoadNamesTheFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.yaml")
	if _, err := Load(missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("missing file: %v", err)
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte(header+"parallelism: 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(bad); err == nil || !strings.HasPrefix(err.Error(), bad+": parallelism: ") {
		t.Errorf("bad file: %v", err)
	}
}

// A file that is no configuration is refused, and the error says why.
func TestUnreadable(t *testing.T) {
	for _, tc := range []struct {
		name, text string // text is a whole document
		want       []string
	}{
		{"empty", "", []string{`apiVersion: Required value: must be "kubescheduler.config.k8s.io/v1"`, `kind: Required value`}},
		{"not YAML", "a: [", []string{"yaml: line 1"}},
		{"control characters", "%PDF\x00", []string{"control characters are not allowed"}},
		{"list", "- a", []string{"must be an object"}},
		{"old version", "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n",
			[]string{`apiVersion: Unsupported value: "kubescheduler.config.k8s.io/v1beta3": supported values: "kubescheduler.config.k8s.io/v1"`}},
		{"other kind", "apiVersion: kubescheduler.config.k8s.io/v1\nkind: NodeAffinityArgs\n",
			[]string{`kind: Unsupported value: "NodeAffinityArgs": supported values: "KubeSchedulerConfiguration"`}},
		{"unknown fields", header + "foo: 1\nleaderElection: {bar: 2}\n", []string{`unknown field "foo"`, `unknown field "leaderElection.bar"`}},
		{"case of a field", header + "Parallelism: 1\n", []string{`unknown field "Parallelism"`}},
		{"repeated field", header + "parallelism: 1\nparallelism: 2\n", []string{`line 4: key "parallelism" already set in map`}},
		{"repeated field, JSON", `{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 1, "parallelism": 2}`,
			[]string{`duplicate field "parallelism"`}},
		{"wrong types", header + "parallelism: x\nextenders:\n- {urlPrefix: a}\n- {weight: 1.5, httpTimeout: 5x}\nprofiles: {}\n", []string{
			"parallelism: Invalid value: must be a whole number of at most 32 bits",
			"extenders[1].weight: Invalid value: must be a whole number of at most 64 bits",
			`extenders[1].httpTimeout: Invalid value: must be a duration such as "10s"`,
			"profiles: Invalid value: must be a list",
		}},
		{"number out of range", header + "parallelism: 99999999999\n", []string{"parallelism: Invalid value"}},
		{"base64", header + "extenders: [{tlsConfig: {keyData: '@@'}}]\n", []string{"extenders[0].tlsConfig.keyData: Invalid value: must be bytes in base64"}},
		{"plugin arguments", header + `
profiles:
- pluginConfig:
  - {name: NodeResourcesFit, args: {a: 1, scoringStrategy: {b: 1}}}
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: x}}
  - {name: DynamicResources, args: {filterTimeout: 7, bindingTimeout: 5x}}
- pluginConfig:
  - {name: NodeAffinity, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: InterPodAffinityArgs}}
  - {name: PodTopologySpread, args: {apiVersion: kubescheduler.config.k8s.io/v1beta3, kind: PodTopologySpreadArgs}}
  - {name: VolumeBinding, args: 7}
`, []string{
			`decoding .profiles[0].pluginConfig[0]: decoding args for plugin NodeResourcesFit: unknown field "a"`,
			`unknown field "scoringStrategy.b"`,
			"decoding .profiles[0].pluginConfig[1]: decoding args for plugin InterPodAffinity: args.hardPodAffinityWeight: Invalid value",
			"args.filterTimeout: Invalid value", "args.bindingTimeout: Invalid value",
			"decoding .profiles[1].pluginConfig[0]: decoding args for plugin NodeAffinity: args for plugin NodeAffinity were not of type NodeAffinityArgs.kubescheduler.config.k8s.io, got InterPodAffinityArgs.kubescheduler.config.k8s.io",
			`decoding .profiles[1].pluginConfig[1]: decoding args for plugin PodTopologySpread: no kind "PodTopologySpreadArgs" is registered for version "kubescheduler.config.k8s.io/v1beta3"`,
			"decoding .profiles[1].pluginConfig[2]: decoding args for plugin VolumeBinding: args: Invalid value",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Decode([]byte(tc.text), "test.yaml")
			wantErrors(t, err, tc.want)
		})
	}
}

// wantErrors: one line that starts with the source and holds each text.
func wantErrors(t *testing.T, err error, want []string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", want)
	}
	if text := err.Error(); !strings.HasPrefix(text, "test.yaml: ") || strings.Contains(text, "\n") {
		t.Errorf("not one line that names its source: %q", text)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error lacks %q:\n%v", w, err)
		}
	}
}

// An error never quotes a secret of the file.
func TestErrorsDoNotQuoteKeys(t *testing.T) {
	_, err := Decode([]byte("extenders: [{tlsConfig: {keyData: c2VjcmV0}}]\n"), "test.yaml")
	if err == nil || strings.Contains(err.Error(), "c2VjcmV0") {
		t.Errorf("got %v", err)
	}
}

// Arguments are read the same with and without apiVersion and kind.
func TestArgsWithAndWithoutKind(t *testing.T) {
	plain := mustDecode(t, profileWith("InterPodAffinity", "{hardPodAffinityWeight: 7}"))
	typed := mustDecode(t, profileWith("InterPodAffinity", "{apiVersion: kubescheduler.config.k8s.io/v1, kind: InterPodAffinityArgs, hardPodAffinityWeight: 7}"))
	if !reflect.DeepEqual(plain, typed) {
		t.Errorf("differ:\n%+v\n%+v", plain, typed)
	}
	args := plain.Profiles[0].PluginConfig[0].Args
	if a, ok := args.Object.(*configv1.InterPodAffinityArgs); !ok || *a.HardPodAffinityWeight != 7 || args.Raw != nil {
		t.Errorf("got %+v", args)
	}
}

// Arguments of a plugin that is not in-tree stay as they are.
func TestArgsOfOtherPluginsStayRaw(t *testing.T) {
	c := mustDecode(t, profileWith("Custom", `{anything: [1, {deep: x}]}`))
	args := c.Profiles[0].PluginConfig[0].Args
	if string(args.Raw) != `{"anything":[1,{"deep":"x"}]}` || args.Object != nil {
		t.Errorf("got %q, %v", args.Raw, args.Object)
	}
}

// A written configuration reads back as the same one.
func TestYAMLReadsBack(t *testing.T) {
	for _, text := range []string{
		"",
		"profiles: [{schedulerName: a}, {schedulerName: b, percentageOfNodesToScore: 5}]\nparallelism: 2\n",
		profileWith("Custom", "{x: 1}") + "  plugins: {filter: {enabled: [{name: Custom}], disabled: [{name: '*'}]}}\n",
		"extenders: [{urlPrefix: 'https://e', httpTimeout: 3s, managedResources: [{name: a/b, ignoredByScheduler: true}]}]\n",
	} {
		first := mustDecode(t, text)
		written, err := YAML(first)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(written, "written.yaml")
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		rewritten, _ := YAML(again)
		if string(written) != string(rewritten) {
			t.Errorf("%q: not the same when read back:\n%s\n%s", text, written, rewritten)
		}
	}
}

// A written configuration shows no key and no password.
func TestYAMLHidesSecrets(t *testing.T) {
	c := mustDecode(t, "extenders: [{urlPrefix: 'https://me:hush@e/x', tlsConfig: {keyData: c2VjcmV0, certData: Y2VydA==}}]\n")
	text, err := YAML(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{"c2VjcmV0", "hush"} {
		if strings.Contains(string(text), hidden) {
			t.Errorf("%s is shown:\n%s", hidden, text)
		}
	}
	for _, shown := range []string{"keyData: DATA+OMITTED", "certData: Y2VydA==", "urlPrefix: https://me:xxxxx@e/x"} {
		if !strings.Contains(string(text), shown) {
			t.Errorf("%s is not shown:\n%s", shown, text)
		}
	}
	if string(c.Extenders[0].TLSConfig.KeyData) != "secret" {
		t.Errorf("the configuration itself lost its key")
	}
}

// A written profile has the arguments of its enabled plugins, sorted by name.
func TestYAMLShowsArgsOfEnabledPluginsByName(t *testing.T) {
	c := mustDecode(t, `
profiles:
- plugins: {multiPoint: {disabled: [{name: '*'}], enabled: [{name: VolumeBinding}, {name: PrioritySort}]}, bind: {enabled: [{name: DefaultBinder}, {name: Custom}]}}
  pluginConfig: [{name: InterPodAffinity, args: {}}, {name: VolumeBinding, args: {}}, {name: GroupTopology, args: {levels: [rack]}}, {name: PreemptionBudgets, args: {strict: true}}, {name: Custom, args: {}}]
`)
	text, err := YAML(c)
	if err != nil {
		t.Fatal(err)
	}
	written, err := With(features.New()).Decode(text, "written.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pc := range written.Profiles[0].PluginConfig {
		names = append(names, pc.Name)
	}
	if want := []string{"Custom", "GroupTopology", "PreemptionBudgets", "VolumeBinding"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// Whatever a file holds, reading it ends with a valid configuration or an
// error.
func FuzzDecode(f *testing.F) {
	f.Add("profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio}}}]}]\n")
	f.Add("leaderElection: {leaseDuration: 5x}\n")
	f.Add("profiles: [{plugins: {score: {enabled: [{name: a, weight: -3}]}}}]\n")
	f.Add("profiles: [{pluginConfig: [null, {name: VolumeBinding, args: []}, {name: PodTopologySpread, args: {defaultConstraints: [{}]}}]}]\n")
	r := With(features.New())
	f.Fuzz(func(t *testing.T, text string) {
		c, err := r.Decode([]byte(header+text), "test.yaml")
		if err != nil {
			return
		}
		if _, err := YAML(c); err != nil {
			t.Errorf("accepted, but cannot be written: %v", err)
		}
	})
}

// An error about a configuration names so many fields of a wrong type and no more.
func TestManyWrongTypes(t *testing.T) {
	text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n" + strings.Repeat("- schedulerName: 1\n", 1000)
	_, err := Decode([]byte(text), "many.yaml")
	if err == nil || strings.Count(err.Error(), "schedulerName") != mostNamed {
		t.Errorf("%.300v", err)
	}
}

// A configuration whose aliases stand for gigabytes is refused.
func TestBombOfAliases(t *testing.T) {
	text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: &k " + strings.Repeat("x", 1<<16) + "\nprofiles: [" + strings.Repeat("*k,", 1000) + "]\n"
	const want = "the aliases of the YAML document stand for more than 16 MiB"
	if _, err := Decode([]byte(text), "bomb.yaml"); err == nil || err.Error() != "bomb.yaml: "+want {
		t.Errorf("%.300v", err)
	}
	if problems := With(features.New()).Check([]byte(text), nil); len(problems) != 1 || problems[0].Reason != want {
		t.Errorf("%.300v", problems)
	}
}
