package workload

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// conditions are the taints that a controller or an agent sets for as long as a node is in
// a condition, with that condition: "the node is ...". A pod that tolerates them does not
// start there, and a taint that is removed comes back.
var conditions = map[string]string{
	v1.TaintNodeNotReady:                             "NotReady",
	v1.TaintNodeUnreachable:                          "unreachable",
	v1.TaintNodeMemoryPressure:                       "under MemoryPressure",
	v1.TaintNodeDiskPressure:                         "under DiskPressure",
	v1.TaintNodePIDPressure:                          "under PIDPressure",
	v1.TaintNodeNetworkUnavailable:                   "without network",
	"node.cloudprovider.kubernetes.io/uninitialized": "not initialized by its cloud controller manager",
	"node.cloudprovider.kubernetes.io/shutdown":      "shut down",
	"ToBeDeletedByClusterAutoscaler":                 "being removed by the cluster autoscaler",
	"karpenter.sh/disrupted":                         "being removed by Karpenter",
	"karpenter.sh/unregistered":                      "not registered by Karpenter",
}

// Condition returns the condition of a node that a taint with this key stands for, as in
// "the node is ...": "" for a taint that people set.
func Condition(key string) string {
	if agent, is := strings.CutSuffix(key, "/agent-not-ready"); is {
		return "waiting for its agent of " + agent
	}
	return conditions[key]
}

// Leaving reports whether a taint with this key says that the node is on its way out:
// there is nothing to mend.
func Leaving(key string) bool { return strings.HasPrefix(conditions[key], "being removed") }

// Starting reports whether a taint with this key is on every node that comes, until something
// that runs in the cluster takes it off.
func Starting(key string) bool {
	return key == "node.cloudprovider.kubernetes.io/uninitialized" || key == "karpenter.sh/unregistered" || strings.HasSuffix(key, "/agent-not-ready")
}

// Leaves reports whether the node is on its way out.
func Leaves(n *v1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return Leaving(t.Key) })
}
