package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config/features"
)

func checked(text string, own ...string) []string {
	var lines []string
	for _, p := range With(features.New()).Check([]byte(text), own) {
		lines = append(lines, fmt.Sprintf("%d %s: %s", p.Line, p.Field, p.Reason))
	}
	return lines
}

// All problems of a text are told at once, by line, with what was meant and
// without a name of a Go type.
func TestCheckTellsAll(t *testing.T) {
	got := checked(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
paralellism: 3
parallelism: many
podMaxBackoffSeconds: 1
podMaxBackoffSeconds: 2
profiles:
- schedulerName: a
  plugins:
    multiPoint:
      enabled:
      - {name: NodeResourceFit, weight: -1}
  pluginConfig:
  - name: InterPodAffinity
    args:
      hardPodAffinityWeight: 200
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: Least, resource: []}}
  - {name: VolumeBinding, args: {bindTimeoutSeconds: 5s}}
  - {name: DefaultPreemption, args: {kind: Preemption}}
extenders:
- urlPrefix: http://x
  httpTimeout: 5x
`)
	want := []string{
		"3 paralellism: there is no such field; did you mean parallelism?",
		"4 parallelism: must be a whole number of at most 32 bits",
		"6 podMaxBackoffSeconds: is set twice",
		`12 profiles[0].plugins.multiPoint.enabled[0].weight: Invalid value: -1: weight of NodeResourceFit must not be negative`,
		`12 profiles[0].plugins.multiPoint.enabled[0].name: there is no plugin "NodeResourceFit"; did you mean NodeResourcesFit?`,
		"16 profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 200: not in valid range [0, 100]",
		"18 profiles[0].pluginConfig[1].args.scoringStrategy.resource: there is no such field; did you mean resources?",
		`18 profiles[0].pluginConfig[1].args.scoringStrategy.type: Unsupported value: "Least": supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"`,
		"19 profiles[0].pluginConfig[2].args.bindTimeoutSeconds: must be a whole number of at most 64 bits",
		`20 profiles[0].pluginConfig[3].args.kind: "Preemption" does not belong to plugin DefaultPreemption; write "DefaultPreemptionArgs", or leave it out`,
		`23 extenders[0].httpTimeout: must be a duration such as "10s"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A text that is no configuration at all is told apart, and an older version is
// checked as the one that is served.
func TestCheckOfOtherTexts(t *testing.T) {
	const object = "0 : must be an object with apiVersion, kind and the fields of a KubeSchedulerConfiguration"
	for text, want := range map[string][]string{
		"":                      {object},
		"- a":                   {object},
		"a: b\nc: [":            {"2 : is not YAML: did not find expected node content"},
		header:                  nil,
		header + "profiles: {}": {"3 profiles: must be a list"},
		header + "leaderElection: {leaseDuration: 5, renewDeadline: 20s}":                    {`3 leaderElection.leaseDuration: must be a duration such as "10s"`},
		header + "leaderElection: {leaseDuration: 8s, renewDeadline: 5}":                     {`3 leaderElection.renewDeadline: must be a duration such as "10s"`},
		header + "podMaxBackoffSeconds: 5s\npodInitialBackoffSeconds: 60":                    {"3 podMaxBackoffSeconds: must be a whole number of at most 64 bits"},
		header + "profiles: [{plugins: {queueSort: {disabled: [{name: '*'}]}}}]":             {"3 profiles[0]: only one queue sort plugin required for profile with scheduler name \"default-scheduler\", but got 0"},
		header + "profiles: [{plugins: {score: {enabled: [{name: Mine}]}}}]":                 {`3 profiles[0].plugins.score.enabled[0].name: there is no plugin "Mine"; if your scheduler has it, name it with --plugins`},
		header + "profiles: [{plugins: {multiPoint: {disabled: [{name: GangScheduling}]}}}]": nil,
		header + "profiles: [{plugins: {permit: {enabled: [{name: TargetLoadPacking}]}}}]":   {`3 profiles[0].plugins.permit.enabled[0].name: there is no plugin "TargetLoadPacking"; if your scheduler has it, name it with --plugins`},
		header + "profiles: [{plugins: {multiPoint: {enabled: [{name: GangScheduling}, {name: PodGroupPodsCount}]}}}]": {
			`3 profiles[0]: initializing plugin "GangScheduling": it needs the feature gate GenericWorkload`,
			`3 profiles[0]: initializing plugin "PodGroupPodsCount": it needs the feature gate TopologyAwareWorkloadScheduling`},
		strings.Replace(header, "/v1", "/v1beta3", 1) + "parallelism: 0": {`1 apiVersion: "kubescheduler.config.k8s.io/v1beta3" is not served any more`, "3 parallelism: Invalid value: 0"},
		strings.Replace(header, "kind: ", "kind: X", 1):                  {`2 kind: "XKubeSchedulerConfiguration" is not supported; write "KubeSchedulerConfiguration"`},
		header + "profiles: [{pluginConfig: [{name: NodeAffinity}]}]":    nil,
		"apiVersion: v1\nkind: ConfigMap\ndata: {}":                      {"2 kind: this is a ConfigMap of v1, not a KubeSchedulerConfiguration; check the text that its data holds"},
		"apiVersion: apps/v1\nkind: Deployment\nspec: {}":                {"2 kind: this is a Deployment of apps/v1, not a KubeSchedulerConfiguration"},
		header + "---\n# nothing more\n":                                 nil,
		header + "---\n" + header:                                        {"4 : no scheduler reads what stands after the first document"},
		header + "profiles: [{pluginConfig: [{name: NodeAffinity,\n args: {apiVersion: kubescheduler.config.k8s.io/v1beta2, kind: NodeAffinityArgs}}]}]": {
			`4 profiles[0].pluginConfig[0].args.apiVersion: "kubescheduler.config.k8s.io/v1beta2" is not supported; write "kubescheduler.config.k8s.io/v1", or leave it out`},
		header + "profiles:\n- schedulerName: a\n  plugins:\n    filter: {enabled: [{name: NodeName},\n     {name: ImageLocality}]}\n    score: {enabled: [{name: ImageLocality},\n     {name: ImageLocality}]}\n- {schedulerName: b, plugins: {bind: {disabled: [{name: '*'}]}}}": {
			`7 profiles[0].plugins.filter.enabled[1].name: plugin "ImageLocality" does not extend FilterPlugin plugin`,
			`9 profiles[0].plugins.score.enabled[1].name: plugin "ImageLocality" already registered as "ScorePlugin"`,
			`10 profiles[1]: at least one bind plugin is needed`},
		header + "parallelism: 0\nprofiles:\n- schedulerName: a\n  plugins: {bind: {disabled: [{name: '*'}]},\n    filter: {enabled: [{name: ImageLocality}]}, score: {enabled: [{name: NodeAffinity, weight: -1}]}}\n  pluginConfig: [{name: NodeResourcesFit,\n     args: {scoringStrategy: {type: Odd}}}]\n- {}\n- schedulerName: c\n  plugins: {multiPoint: {enabled: [{name: NodeName}, {name: NodeName}]}}": {
			"3 parallelism: Invalid value: 0",
			"5 profiles[0]: at least one bind plugin is needed",
			"7 profiles[0].plugins.score.enabled[0].weight: Invalid value: -1",
			`7 profiles[0].plugins.filter.enabled[0].name: plugin "ImageLocality" does not extend FilterPlugin plugin`,
			`9 profiles[0].pluginConfig[0].args.scoringStrategy.type: Unsupported value: "Odd"`,
			"10 profiles[1].schedulerName: Required value",
			`11 profiles[2]: plugin "NodeName" already registered as "PreFilterPlugin"`,
			`11 profiles[2]: plugin "NodeName" already registered as "FilterPlugin"`},
		header + "profiles: [{pluginConfig: [{name: NodeAffinity, args: 7}]}]":   {"3 profiles[0].pluginConfig[0].args: must be an object"},
		strings.Replace(header, "/v1", "/v1alpha2", 1):                           {`1 apiVersion: "kubescheduler.config.k8s.io/v1alpha2" is not served any more; write "kubescheduler.config.k8s.io/v1". Instead of`},
		"apiVersion: componentconfig/v1alpha1\nkind: KubeSchedulerConfiguration": {`1 apiVersion: "componentconfig/v1alpha1" is not served any more; write "kubescheduler.config.k8s.io/v1". Instead of`},
		"apiVersion: v1\nkind: Policy\npredicates: []":                           {"2 kind: this is a Policy of v1, not a KubeSchedulerConfiguration; policies were removed in Kubernetes v1.23"},
		header + "profiles: [{plugins: {score: {enabled: [{name: SelectorSpread}], disabled: [{name: NodeLabel}]}, filter: {enabled: [{name: EBSLimits}]}}, pluginConfig: [{name: NodeResourcesMostAllocated}]}]": {
			`3 profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in version "v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1"); use NodeVolumeLimits`,
			`3 profiles[0].plugins.score.enabled[0].name: there is no plugin "SelectorSpread" any more; use PodTopologySpread`,
			`3 profiles[0].plugins.score.disabled[0].name: there is no plugin "NodeLabel" any more; use NodeAffinity; to disable it changes nothing`,
			`3 profiles[0].pluginConfig[0].name: there is no plugin "NodeResourcesMostAllocated" any more; use NodeResourcesFit with scoringStrategy.type MostAllocated`},
		header + "profiles: " + strings.Repeat("[", 200) + strings.Repeat("]", 200): {"3 profiles" + strings.Repeat("[0]", 60)},
	} {
		got := checked(text)
		if len(got) != len(want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
			continue
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%q: got %q, want %q", text, got[i], want[i])
			}
		}
	}
	if got := checked(header+"profiles: [{plugins: {score: {enabled: [{name: Mine}]}}}]", "Mine"); got != nil {
		t.Errorf("a plugin of one's own: %q", got)
	}
}

// A text that begins with a brace is JSON to schedulers, and what is YAML alone is refused.
func TestCheckOfJSON(t *testing.T) {
	const object = `{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"`
	for text, want := range map[string][]string{
		object + "}":         nil,
		" \n" + object + "}": nil,
		object + ",\n}":      {"2 : is not JSON, which a text that begins with { has to be: invalid character '}' looking for beginning of object key string"},
		object + "}\n\n}":    {"3 : is not JSON, which a text that begins with { has to be: invalid character '}' after top-level value"},
		"{apiVersion: x}":    {"1 : is not JSON, which a text that begins with { has to be: invalid character 'a' looking for beginning of object key string"},
	} {
		if got := checked(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if _, err := Decode([]byte(text), "file"); (err == nil) != (want == nil) {
			t.Errorf("%q: Decode says %v", text, err)
		}
	}
}

// An extender that could never be called, or that no scheduler starts with, is told.
func TestCheckOfExtenders(t *testing.T) {
	const noPEM = "bm8gUEVN"
	for extender, want := range map[string][]string{
		"urlPrefix: 'https://x:8443/path', filterVerb: f, enableHTTPS: true": nil,
		"urlPrefix: '::x', filterVerb: f":                                    {`4 extenders[0].urlPrefix: must be a URL such as "https://extender.example/scheduler", or no call reaches the extender`},
		"urlPrefix: 'ftp://x', filterVerb: f":                                {`4 extenders[0].urlPrefix: must be a URL such as "https://extender.example/scheduler", or no call reaches the extender`},
		"filterVerb: f":                                                      {`4 extenders[0].urlPrefix: must be a URL such as "https://extender.example/scheduler", or no call reaches the extender`},
		"urlPrefix: 'https://x', filterVerb: f, tlsConfig: {insecure: true, caFile: /missing}":           {"4 extenders[0].tlsConfig: specifying a root certificates file with the insecure flag is not allowed"},
		"urlPrefix: 'https://x', filterVerb: f, tlsConfig: {caFile: /missing}":                           nil, // it may be there where the scheduler runs
		"urlPrefix: 'https://x', filterVerb: f, tlsConfig: {certFile: /missing}":                         {"4 extenders[0].tlsConfig: a certificate and its key have to be given together"},
		"urlPrefix: 'https://x', filterVerb: f, tlsConfig: {certFile: /missing, keyData: " + noPEM + "}": nil,
		"urlPrefix: 'https://x', filterVerb: f, tlsConfig: {caData: " + noPEM + "}":                      {"4 extenders[0].tlsConfig: unable to load root certificates: unable to parse bytes as PEM block"},
	} {
		if got := checked(header + "extenders:\n- {" + extender + "}\n"); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", extender, got, want)
		}
	}
}

// Check finds something wrong with each text that Decode refuses, and nothing
// with those that it takes (except for plugins, which Decode does not know).
func FuzzCheck(f *testing.F) {
	for _, text := range []string{"", header, header + "parallelism: x", "a: &a [*a]", header + "profiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAffinity: {}}}]}]", "{\"\": 1}"} {
		f.Add(text)
	}
	r := With(features.New()) // gates take longer to make than a text to check
	f.Fuzz(func(t *testing.T, text string) {
		_, err := r.Decode([]byte(text), "fuzz")
		if got := r.Check([]byte(text), []string{"any"}); err != nil && len(got) == 0 {
			t.Errorf("Decode says %v, Check nothing", err)
		}
	})
}

// A disabled plugin that is not there is a warning: Decode and the profiles' builder take it,
// and what else is wrong is told still.
func TestCheckOfDisabledPlugins(t *testing.T) {
	const disabled = header + "profiles: [{plugins: {score: {disabled: [{name: SelectorSpread}, {name: EBSLimits}, {name: Mine}]}"
	problems := With(features.New()).Check([]byte(disabled+"}}]"), nil)
	for _, p := range problems {
		if !p.Warning || !strings.HasSuffix(p.Reason, "; to disable it changes nothing") {
			t.Errorf("%+v", p)
		}
	}
	if len(problems) != 3 {
		t.Errorf("%d problems", len(problems))
	}
	c, err := Decode([]byte(disabled+"}}]"), "file")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := profile.BuildAll(Profiles(c), plugins.Registry(features.Plugins(features.New()))); err != nil {
		t.Error(err)
	}
	problems = With(features.New()).Check([]byte(disabled+", filter: {enabled: [{name: ImageLocality}]}}}]"), nil)
	if !slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning && strings.Contains(p.Reason, "does not extend") }) {
		t.Errorf("%+v", problems)
	}
}

// A plugin that is enabled where kube-scheduler reads its state, but not where it makes it, is a warning
// that names the profile. One that makes it in both places is none, nor is one without a say.
func TestCheckOfMissingStates(t *testing.T) {
	const does = ". kube-scheduler starts, and fails each attempt that comes to them at "
	const filters = "NodePorts, NodeResourcesFit, VolumeRestrictions, VolumeBinding, PodTopologySpread, InterPodAffinity, DynamicResources, NodeDeclaredFeatures"
	for profiles, want := range map[string][]string{
		"[{plugins: {preFilter: {disabled: [{name: '*'}]}}}]": {
			`3 profiles[0].plugins.preFilter: profile "default-scheduler" enables plugins at filter, but not at preFilter: ` + filters + does + "filter; Berth runs them at preFilter all the same"},
		"[{plugins: {preScore: {disabled: [{name: '*'}]}}}]": {
			`3 profiles[0].plugins.preScore: profile "default-scheduler" enables plugins at score, but not at preScore: TaintToleration, PodTopologySpread, InterPodAffinity` + does + "score; "},
		"[{schedulerName: a},\n {schedulerName: b, plugins: {preFilter: {disabled: [{name: NodePorts}, {name: NodeAffinity}, {name: VolumeZone}]}}}]": {
			`4 profiles[1].plugins.preFilter: profile "b" enables plugins at filter, but not at preFilter: NodePorts` + does},
		"[{plugins: {preFilter: {disabled: [{name: '*'}]}, filter: {disabled: [{name: '*'}]}, score: {disabled: [{name: DynamicResources}]}}}]": {
			`3 profiles[0].plugins.preFilter: profile "default-scheduler" enables plugins at reserve, but not at preFilter: VolumeBinding, DynamicResources` + does},
		"[{plugins: {multiPoint: {disabled: [{name: TaintToleration}]}, score: {enabled: [{name: TaintToleration}]}}}]": {
			`3 profiles[0].plugins.preScore: profile "default-scheduler" enables plugins at score, but not at preScore: TaintToleration` + does},
		"[{plugins: {preFilter: {disabled: [{name: '*'}], enabled: [{name: NodePorts}]}, multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodePorts}]}}}]": nil,
		"[{plugins: {preFilter: {disabled: [{name: NodeAffinity}]}, preScore: {disabled: [{name: NodeResourcesFit}]}, filter: {disabled: [{name: NodePorts}]}}}]":                                             nil,
	} {
		for _, own := range [][]string{nil, {"Mine"}} {
			problems := With(features.New()).Check([]byte(header+"profiles: "+profiles), own)
			var got []string
			for _, p := range problems {
				if got = append(got, fmt.Sprintf("%d %s: %s", p.Line, p.Field, p.Reason)); !p.Warning {
					t.Errorf("%s: an error: %+v", profiles, p)
				}
			}
			if len(got) != len(want) || len(want) > 0 && !strings.HasPrefix(got[0], want[0]) {
				t.Errorf("%s: got\n%q, want\n%q", profiles, got, want)
			}
		}
	}
}
