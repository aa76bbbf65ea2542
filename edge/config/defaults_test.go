package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/edge/config/features"
)

// setText is in validate.go; this one shows weights too.
func withWeights(set configv1.PluginSet) string {
	var words []string
	for _, p := range set.Enabled {
		word := p.Name
		if p.Weight != nil {
			word += fmt.Sprintf("(%d)", *p.Weight)
		}
		words = append(words, word)
	}
	for _, p := range set.Disabled {
		words = append(words, "-"+p.Name)
	}
	return strings.Join(words, " ")
}

func gatesWith(t *testing.T, on map[string]bool) featuregate.FeatureGate {
	t.Helper()
	gates := features.New()
	if err := gates.SetFromMap(on); err != nil {
		t.Fatal(err)
	}
	return gates
}

// Every field has v1.37's default.
func TestDefaultFields(t *testing.T) {
	text, err := YAML(Default())
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "profiles")
	want := map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"parallelism": 16.0, "percentageOfNodesToScore": 0.0, "podInitialBackoffSeconds": 1.0, "podMaxBackoffSeconds": 10.0,
		"enableProfiling": true, "enableContentionProfiling": true,
		"clientConnection": map[string]any{"kubeconfig": "", "acceptContentTypes": "", "contentType": "application/vnd.kubernetes.protobuf", "qps": 50.0, "burst": 100.0},
		"leaderElection": map[string]any{"leaderElect": true, "leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s",
			"resourceLock": "leases", "resourceName": "kube-scheduler", "resourceNamespace": "kube-system"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf(" got %v\nwant %v", got, want)
	}
}

// A default never replaces a value that the file sets.
func TestDefaultsKeepWhatIsSet(t *testing.T) {
	c := mustDecode(t, "enableProfiling: false\nleaderElection: {leaderElect: false}\nclientConnection: {qps: 7, burst: 9}\npodMaxBackoffSeconds: 60\n")
	if *c.EnableProfiling || *c.EnableContentionProfiling || *c.LeaderElection.LeaderElect {
		t.Errorf("a false became true: %+v", c)
	}
	if c.ClientConnection.QPS != 7 || c.ClientConnection.Burst != 9 || *c.PodMaxBackoffSeconds != 60 {
		t.Errorf("got %+v", c)
	}
}

// The default profile has v1.37's plugins in v1.37's order, by feature gates.
func TestDefaultPlugins(t *testing.T) {
	const (
		head  = "SchedulingGates PrioritySort NodeName NodeUnschedulable TaintToleration(3) NodeAffinity(2) NodePorts NodeResourcesFit(1) VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread(2) InterPodAffinity(2) DynamicResources(2) DefaultPreemption NodeResourcesBalancedAllocation(1) ImageLocality(1) DefaultBinder"
		gangs = " GangScheduling TopologyPlacementGenerator PodGroupPodsCount(1)"
	)
	for _, tc := range []struct {
		gates map[string]bool
		want  string
	}{
		{nil, head + " NodeDeclaredFeatures"},
		{map[string]bool{"GenericWorkload": true, "TopologyAwareWorkloadScheduling": true}, head + " NodeDeclaredFeatures" + gangs},
	} {
		c := With(gatesWith(t, tc.gates)).Default()
		if got := withWeights(c.Profiles[0].Plugins.MultiPoint); got != tc.want {
			t.Errorf("%v:\n got %s\nwant %s", tc.gates, got, tc.want)
		}
	}
}

// A profile's plugins replace, disable and reorder the defaults as in kube-scheduler.
func TestMergePluginSet(t *testing.T) {
	one, two, three := int32(1), int32(2), int32(3)
	plugin := func(name string, weight *int32) configv1.Plugin { return configv1.Plugin{Name: name, Weight: weight} }
	type list = []configv1.Plugin
	defaults := configv1.PluginSet{Enabled: list{plugin("A", &one), plugin("B", nil), plugin("C", &one)}}
	for _, tc := range []struct {
		name   string
		custom configv1.PluginSet
		want   string
	}{
		{"nothing", configv1.PluginSet{}, "A(1) B C(1)"},
		{"appended", configv1.PluginSet{Enabled: list{plugin("X", &two), plugin("D", nil)}}, "A(1) B C(1) X(2) D"},
		{"in place", configv1.PluginSet{Enabled: list{plugin("D", nil), plugin("B", &two)}}, "A(1) B(2) C(1) D"},
		{"one disabled", configv1.PluginSet{Disabled: list{plugin("B", nil)}}, "A(1) C(1) -B"},
		{"disabled and enabled goes to the end", configv1.PluginSet{Enabled: list{plugin("A", &three)}, Disabled: list{plugin("A", nil)}}, "B C(1) A(3) -A"},
		{"all disabled", configv1.PluginSet{Enabled: list{plugin("C", &two), plugin("A", nil)}, Disabled: list{plugin("*", nil)}}, "C(2) A -*"},
		{"unknown disabled", configv1.PluginSet{Disabled: list{plugin("Z", &one)}}, "A(1) B C(1) -Z"},
		{"the last of several replaces", configv1.PluginSet{Enabled: list{plugin("A", &two), plugin("A", &three)}}, "A(3) B C(1) A(2)"},
	} {
		if got := withWeights(mergePluginSet(defaults, tc.custom)); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
	fromDefaults := mergePluginSet(configv1.PluginSet{Enabled: defaults.Enabled, Disabled: list{plugin("C", nil)}}, configv1.PluginSet{Disabled: list{plugin("A", nil)}})
	if got := withWeights(fromDefaults); got != "B -A -C" {
		t.Errorf("disabled by default: got %s", got)
	}
}

// Plugins are merged at every extension point.
func TestMergeReachesEveryPoint(t *testing.T) {
	custom := &configv1.Plugins{}
	for _, pt := range points(custom) {
		pt.set.Enabled = []configv1.Plugin{{Name: "at-" + pt.name}}
	}
	merged := mergePlugins(&configv1.Plugins{}, custom)
	if !reflect.DeepEqual(merged, custom) {
		t.Errorf("got %+v", merged)
	}
	if n, all := len(enabledNames(merged)), reflect.TypeFor[configv1.Plugins]().NumField(); n != all {
		t.Errorf("%d points, the API has %d", n, all)
	}
}

// A profile's change of its defaults does not show in another profile.
func TestProfilesGetTheirOwnDefaults(t *testing.T) {
	c := mustDecode(t, "profiles:\n- {schedulerName: a}\n- {schedulerName: b, plugins: {multiPoint: {disabled: [{name: ImageLocality}]}}}\n")
	a, b := withWeights(c.Profiles[0].Plugins.MultiPoint), withWeights(c.Profiles[1].Plugins.MultiPoint)
	if !strings.Contains(a, "ImageLocality") || strings.Contains(b, " ImageLocality") {
		t.Errorf("a %s\nb %s", a, b)
	}
	for _, pc := range c.Profiles[0].PluginConfig {
		if fit, ok := pc.Args.Object.(*configv1.NodeResourcesFitArgs); ok {
			fit.ScoringStrategy.Resources[0].Weight = 99
		}
	}
	if text, _ := YAML(&Config{Profiles: c.Profiles[1:]}); strings.Contains(string(text), "99") {
		t.Errorf("two profiles share their arguments")
	}
}

// argsText is what a profile ends up with for one plugin, without apiVersion and kind.
func argsText(t *testing.T, c *Config, plugin string) string {
	t.Helper()
	for _, pc := range c.Profiles[0].PluginConfig {
		if pc.Name != plugin {
			continue
		}
		text, err := pc.Args.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Replace(string(text), `"kind":"`+plugin+`Args","apiVersion":"kubescheduler.config.k8s.io/v1"`, "", 1)
	}
	return "none"
}

// Arguments get v1.37's defaults, by feature gates.
func TestDefaultArgs(t *testing.T) {
	off := map[string]bool{"DRASchedulerFilterTimeout": false, "DRADeviceBindingConditions": false}
	const cpuAndMemory = `"resources":[{"name":"cpu","weight":1},{"name":"memory","weight":1}]`
	for _, tc := range []struct {
		plugin, args string
		gates        map[string]bool
		want         string
	}{
		{"DefaultPreemption", "{}", nil, `{,"minCandidateNodesPercentage":10,"minCandidateNodesAbsolute":100}`},
		{"DefaultPreemption", "{minCandidateNodesAbsolute: 0}", nil, `{,"minCandidateNodesPercentage":10,"minCandidateNodesAbsolute":0}`},
		{"InterPodAffinity", "{}", nil, `{,"hardPodAffinityWeight":1,"ignorePreferredTermsOfExistingPods":false}`},
		{"NodeAffinity", "{}", nil, `{}`},
		{"NodeResourcesFit", "{}", nil, `{,"scoringStrategy":{"type":"LeastAllocated",` + cpuAndMemory + `}}`},
		{"NodeResourcesFit", "{scoringStrategy: {type: MostAllocated}}", nil, `{,"scoringStrategy":{"type":"MostAllocated",` + cpuAndMemory + `}}`},
		{"NodeResourcesFit", "{scoringStrategy: {type: MostAllocated, resources: [{name: a/b}, {name: cpu, weight: 3}]}}", nil,
			`{,"scoringStrategy":{"type":"MostAllocated","resources":[{"name":"a/b","weight":1},{"name":"cpu","weight":3}]}}`},
		{"NodeResourcesBalancedAllocation", "{}", nil, `{,` + cpuAndMemory + `}`},
		{"NodeResourcesBalancedAllocation", "{resources: [{name: cpu, weight: 0}]}", nil, `{,"resources":[{"name":"cpu","weight":1}]}`},
		{"PodTopologySpread", "{}", nil, `{,"defaultingType":"System"}`},
		{"VolumeBinding", "{}", map[string]bool{"StorageCapacityScoring": false}, `{,"bindTimeoutSeconds":600}`},
		{"VolumeBinding", "{bindTimeoutSeconds: 0}", map[string]bool{"StorageCapacityScoring": false}, `{,"bindTimeoutSeconds":0}`},
		{"VolumeBinding", "{}", nil, `{,"bindTimeoutSeconds":600,"shape":[{"utilization":0,"score":10},{"utilization":100,"score":0}]}`},
		{"VolumeBinding", "{shape: [{utilization: 5, score: 5}]}", nil, `{,"bindTimeoutSeconds":600,"shape":[{"utilization":5,"score":5}]}`},
		{"DynamicResources", "{}", nil, `{,"filterTimeout":"10s","bindingTimeout":"10m0s"}`},
		{"DynamicResources", "{}", off, `{,"filterTimeout":null}`},
		{"PrioritySort", "null", nil, "null"},
	} {
		c, err := With(gatesWith(t, tc.gates)).Decode([]byte(header+profileWith(tc.plugin, tc.args)), "test.yaml")
		if err != nil {
			t.Errorf("%s %s: %v", tc.plugin, tc.args, err)
			continue
		}
		if got := argsText(t, c, tc.plugin); got != tc.want {
			t.Errorf("%s %s:\n got %s\nwant %s", tc.plugin, tc.args, got, tc.want)
		}
	}
	if got := argsText(t, Default(), "PrioritySort"); got != "none" {
		t.Errorf("PrioritySort takes no arguments, got %s", got)
	}
}

// NodeResourcesFit ignores the resources that extenders manage and the
// scheduler ignores.
func TestExtendersResourcesAreIgnoredByFit(t *testing.T) {
	c := mustDecode(t, profileWith("NodeResourcesFit", "{ignoredResources: [own.io/x]}")+
		"extenders: [{managedResources: [{name: a.io/b, ignoredByScheduler: true}, {name: a.io/c}]}]\n")
	if got := argsText(t, c, "NodeResourcesFit"); !strings.Contains(got, `"ignoredResources":["a.io/b"]`) {
		t.Errorf("got %s", got)
	}
}
