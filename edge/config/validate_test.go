package config

import (
	"strings"
	"testing"
)

// What kube-scheduler accepts is accepted.
func TestValid(t *testing.T) {
	for _, text := range []string{
		"percentageOfNodesToScore: 100\n",
		"podInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 5\n",
		"leaderElection: {leaderElect: false, resourceLock: endpoints, renewDeadline: 1h}\n", // not looked at when off
		"clientConnection: {qps: -1}\n",                                                      // no limit
		"profiles: [{schedulerName: a}, {schedulerName: b}]\n",
		"profiles:\n- {schedulerName: a, plugins: {queueSort: {enabled: [{name: S}], disabled: [{name: '*'}]}}, pluginConfig: [{name: S, args: {x: 1}}]}\n" +
			"- {schedulerName: b, plugins: {queueSort: {enabled: [{name: S}], disabled: [{name: '*'}]}}, pluginConfig: [{name: S, args: {x: 1}}]}\n",
		"extenders: [{urlPrefix: 'http://e', prioritizeVerb: p, weight: 1, bindVerb: b, managedResources: [{name: a.io/b}]}, {urlPrefix: 'http://f', weight: -1}]\n",
		profileWith("DefaultPreemption", "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 1}"),
		profileWith("NodeAffinity", "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}}"),
		profileWith("NodeResourcesFit", "{ignoredResources: [example.com/foo, foo], ignoredResourceGroups: [example.com], scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 0, score: 10}, {utilization: 100, score: 0}]}, resources: [{name: cpu, weight: 100}]}}"),
		profileWith("PodTopologySpread", "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}"),
		profileWith("PodTopologySpread", "{defaultingType: List}"),
		profileWith("DynamicResources", "{filterTimeout: 0s, bindingTimeout: 1s}"),
	} {
		mustDecode(t, text)
	}
}

// What kube-scheduler refuses is refused, and the error names the field.
func TestInvalid(t *testing.T) {
	arg := func(plugin, args string, want ...string) (string, []string) {
		for i := range want {
			want[i] = "profiles[0].pluginConfig[0].args." + want[i]
		}
		return profileWith(plugin, args), want
	}
	check := func(text string, want []string) {
		t.Helper()
		_, err := Decode([]byte(header+text), "test.yaml")
		if err == nil {
			t.Errorf("accepted:\n%s", text)
			return
		}
		wantErrors(t, err, want)
		if n := strings.Count(err.Error(), " value") + strings.Count(err.Error(), "Forbidden"); n < len(want) {
			t.Errorf("%d errors, want %d: %v", n, len(want), err)
		}
	}

	check("parallelism: 0\npercentageOfNodesToScore: 101\npodInitialBackoffSeconds: 0\npodMaxBackoffSeconds: -1\n", []string{
		"parallelism: Invalid value: 0: should be an integer value greater than zero",
		"percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
		"podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
		"podMaxBackoffSeconds: Invalid value: -1: must be greater than or equal to PodInitialBackoffSeconds",
	})
	check("podMaxBackoffSeconds: 9223372037\n", []string{"podMaxBackoffSeconds: Invalid value: 9223372037: must not be greater than 9223372036"})
	check("clientConnection: {burst: -1}\nleaderElection: {leaseDuration: 1s, retryPeriod: -1s, resourceLock: endpoints}\n", []string{
		"clientConnection.burst: Invalid value: -1: must be non-negative",
		"leaderElection.leaseDuration: Invalid value: \"10s\": must be greater than `RenewDeadline`",
		`leaderElection.retryPeriod: Invalid value: "-1s": must be greater than zero`,
		`leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"`,
	})
	check("leaderElection: {renewDeadline: 12s, retryPeriod: 10s}\n", []string{
		`leaderElection.renewDeadline: Invalid value: "12s": must be greater than 1.2 times retryPeriod`,
	})
	check("profiles: [{schedulerName: a, percentageOfNodesToScore: -1}, {schedulerName: a}, {}, {schedulerName: ''}]\n", []string{
		"profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
		`profiles[1].schedulerName: Duplicate value: "a, as in profiles[0].schedulerName"`,
		"profiles[2].schedulerName: Required value",
		"profiles[3].schedulerName: Required value",
	})
	check("profiles: [{schedulerName: ''}]\n", []string{"profiles[0].schedulerName: Required value"})
	check("profiles: [{plugins: {filter: {enabled: [{name: X}, {name: AzureDiskLimits}]}, multiPoint: {enabled: [{name: CinderLimits}]}}, pluginConfig: [{name: EBSLimits}, {name: A}, {name: A}]}]\n", []string{
		`profiles[0].plugins.filter.enabled[1]: Invalid value: "AzureDiskLimits": was invalid in version "v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")`,
		`profiles[0].plugins.multiPoint.enabled[20]: Invalid value: "CinderLimits": was invalid`,
		`profiles[0].pluginConfig[0]: Invalid value: "EBSLimits": was invalid`,
		`profiles[0].pluginConfig[2]: Duplicate value: "A"`,
	})
	check("podMaxBackoffSeconds: 9223372037\n", []string{"podMaxBackoffSeconds: Invalid value: 9223372037: must not be greater than 9223372036"})
	check("profiles: [{plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}, pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: ['a b']}}]}]\n", []string{
		`ignoredResources[0]: Invalid value: "a b"`}) // disabled or not
	check("profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: -2}]}}}]\n", []string{
		"profiles[0].plugins.score.enabled[0].weight: Invalid value: -2: weight of NodeAffinity must not be negative"})
	check("profiles: [{schedulerName: a, plugins: {queueSort: {enabled: [{name: S}, {name: T}]}}}, {schedulerName: b}]\n", []string{
		"profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled",
		`profiles[1].plugins.queueSort: Invalid value: "": must be the same for all profiles`,
	})
	check("profiles: [{schedulerName: a, plugins: {queueSort: {enabled: [{name: S}]}}, pluginConfig: [{name: S, args: {x: 1}}]}, "+
		"{schedulerName: b, plugins: {queueSort: {enabled: [{name: S}]}}, pluginConfig: [{name: S, args: {x: 2}}]}]\n", []string{
		`profiles[1].pluginConfig.args: Invalid value: "{\"x\":2}": queueSort must be the same for all profiles`})
	check("extenders: [{prioritizeVerb: p, bindVerb: b, managedResources: [{name: cpu}, {name: a.io/b}, {name: 'a b'}]}, {bindVerb: b, managedResources: [{name: a.io/b}, {name: requests.a/b}, {name: x.kubernetes.io/y}]}]\n", []string{
		"extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
		`extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name`,
		`extenders[0].managedResources[2].name: Invalid value: "a b": name part must consist of`,
		`extenders[1].managedResources[0].name: Invalid value: "a.io/b": duplicate extender managed resource name`,
		`extenders[1].managedResources[1].name: Invalid value: "requests.a/b": is an invalid extended resource name`,
		`extenders[1].managedResources[2].name: Invalid value: "x.kubernetes.io/y": is an invalid extended resource name`,
		`extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind`,
	})

	check(arg("DefaultPreemption", "{minCandidateNodesPercentage: 101, minCandidateNodesAbsolute: -1}",
		"minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
		"minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)"))
	check(arg("DefaultPreemption", "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
		"minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute",
		"minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage"))
	check(arg("InterPodAffinity", "{hardPodAffinityWeight: 101}", "hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"))
	check(arg("NodeAffinity", "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Foo}]}]}, preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: In}]}}]}}",
		"addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: \"Foo\"",
		"addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].matchExpressions[0].values: Invalid value"))
	check(arg("NodeResourcesFit", "{ignoredResources: ['a b'], ignoredResourceGroups: [a/b, '-'], scoringStrategy: {type: Foo, resources: [{name: cpu, weight: 101}, {name: memory, weight: -1}], requestedToCapacityRatio: {}}}",
		`ignoredResources[0]: Invalid value: "a b"`,
		`ignoredResourceGroups[0]: Invalid value: "a/b": resource group name can't contain '/'`,
		`ignoredResourceGroups[1]: Invalid value: "-"`,
		`scoringStrategy.type: Unsupported value: "Foo": supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"`,
		"scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
		"scoringStrategy.resources[1].weight: Invalid value: -1: resource weight of memory not in valid range (0, 100]",
		"scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio"))
	check(arg("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio}}",
		"scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio"))
	check(arg("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {}}}",
		"scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point must be specified"))
	check(arg("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 50, score: 11}, {utilization: 50, score: -1}, {utilization: 101, score: 0}]}}}",
		"scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 50: values must be sorted in increasing order",
		"scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: not in valid range [0, 10]",
		"scoringStrategy.requestedToCapacityRatio.shape[1].score: Invalid value: -1: not in valid range [0, 10]",
		"scoringStrategy.requestedToCapacityRatio.shape[2].utilization: Invalid value: 101: not in valid range [0, 100]"))
	check(arg("NodeResourcesBalancedAllocation", "{resources: [{name: cpu, weight: 2}, {name: cpu}]}",
		"resources[0].weight: Invalid value: 2: must be 1",
		`resources[1].name: Duplicate value: "cpu"`))
	check(arg("PodTopologySpread", "{defaultConstraints: [{maxSkew: 0, topologyKey: '', whenUnsatisfiable: '', labelSelector: {}}, {maxSkew: 1, topologyKey: 'a b', whenUnsatisfiable: X}, {maxSkew: 1, topologyKey: 'a b', whenUnsatisfiable: X}]}",
		`defaultingType: Invalid value: "System": when .defaultConstraints are not empty`,
		"defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
		"defaultConstraints[0].topologyKey: Required value: can not be empty",
		"defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
		"defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod",
		`defaultConstraints[1].topologyKey: Invalid value: "a b"`,
		`defaultConstraints[1].whenUnsatisfiable: Unsupported value: "X": supported values: "DoNotSchedule", "ScheduleAnyway"`,
		`defaultConstraints[2]: Duplicate value: "{a b, X}"`))
	check(arg("PodTopologySpread", "{defaultingType: Foo}", `defaultingType: Unsupported value: "Foo": supported values: "System", "List"`))
	check(arg("VolumeBinding", "{bindTimeoutSeconds: -1}",
		"bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value"))
	check(arg("DynamicResources", "{filterTimeout: -1s, bindingTimeout: 999ms}",
		`filterTimeout: Invalid value: "-1s": must be zero or positive`,
		`bindingTimeout: Invalid value: "999ms": must be at least 1 second`))
}

// An argument of a feature is refused while its gate is off.
func TestGatesDecideWhichArgsAreAllowed(t *testing.T) {
	for _, tc := range []struct {
		gates        map[string]bool
		plugin, args string
		want         string // "" for valid
	}{
		{map[string]bool{"StorageCapacityScoring": true}, "VolumeBinding", "{shape: [{utilization: 0, score: 0}]}", ""},
		{map[string]bool{"StorageCapacityScoring": true}, "VolumeBinding", "{shape: [{utilization: 0, score: 11}]}", "args.shape[0].score: Invalid value: 11"},
		{map[string]bool{"StorageCapacityScoring": false}, "VolumeBinding", "{shape: [{utilization: 0, score: 0}]}",
			"args.shape: Invalid value: unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"},
		{map[string]bool{"DRASchedulerFilterTimeout": false}, "DynamicResources", "{filterTimeout: 1s}", "args.filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled"},
		{map[string]bool{"DRADeviceBindingConditions": false}, "DynamicResources", "{bindingTimeout: 1s}", "args.bindingTimeout: Forbidden: DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"},
	} {
		_, err := With(gatesWith(t, tc.gates)).Decode([]byte(header+profileWith(tc.plugin, tc.args)), "test.yaml")
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v %s: got %v, want %q", tc.gates, tc.args, err, tc.want)
		}
	}
}
