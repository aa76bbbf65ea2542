package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// NewNode returns an empty node as the node's pool gets it under another name: with its
// labels, its size and the taints of the pool.
func NewNode(n *v1.Node, name string) *v1.Node {
	c := n.DeepCopy()
	c.Name, c.UID, c.ResourceVersion, c.Labels = name, "", "", maps.Clone(n.Labels)
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	for key, value := range c.Labels { // any order: each is looked at alone
		if value == n.Name {
			c.Labels[key] = name
		}
	}
	c.Labels[v1.LabelHostname] = name
	c.Spec.Unschedulable = false
	c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, func(t v1.Taint) bool { return passing(t.Key) })
	return c
}

// passing reports whether a taint of that key says in which state one node is, and nothing
// of its pool.
func passing(key string) bool {
	return strings.HasPrefix(key, "node.kubernetes.io/") || conditions[key] != "" || slices.Contains(marks, key)
}

// marks are taints that say no more than what an autoscaler may do with the node.
var marks = []string{"DeletionCandidateOfClusterAutoscaler", "karpenter.sh/disruption"}

// OwnLabel reports whether kubelets, or drivers and the cloud through them, set the label:
// it says what and where a node is, and nobody else changes it.
func OwnLabel(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return strings.HasPrefix(domain, "topology.") || strings.HasPrefix(domain, "failure-domain.") || slices.Contains(ownLabels, key)
}

var ownLabels = []string{
	v1.LabelHostname, v1.LabelOSStable, v1.LabelArchStable, v1.LabelInstanceType, v1.LabelInstanceTypeStable, v1.LabelWindowsBuild,
	"beta.kubernetes.io/os", "beta.kubernetes.io/arch",
}

// PoolKey returns a text that nodes share if they differ in their names and states alone.
func PoolKey(n *v1.Node) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(n.Status.Allocatable)) {
		q := n.Status.Allocatable[name]
		fmt.Fprintf(&text, "%s=%s,", name, q.String())
	}
	writeLabels(&text, n)
	for i := range n.Spec.Taints {
		if t := &n.Spec.Taints[i]; !passing(t.Key) {
			fmt.Fprintf(&text, "%q,", t.ToString())
		}
	}
	fmt.Fprint(&text, n.Status.DeclaredFeatures)
	return text.String()
}

// writeLabels writes the labels that do not name the node, sorted, but for those left out.
func writeLabels(text *strings.Builder, n *v1.Node, leftOut ...string) {
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		if value := n.Labels[key]; value != n.Name && key != v1.LabelHostname && !slices.Contains(leftOut, key) {
			fmt.Fprintf(text, "%q=%q,", key, value)
		}
	}
}

// poolLabels name the pool that a node was made for.
var poolLabels = []string{
	"cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "kubernetes.azure.com/agentpool",
	"karpenter.sh/nodepool", "kops.k8s.io/instancegroup", "doks.digitalocean.com/node-pool",
}

// MadeFor returns a text that nodes share if they were made for the same work, wherever they are
// and whatever their taints. named is set if a label names the pool; otherwise nodes with the same
// labels and CPUs share it.
func MadeFor(n *v1.Node) (pool string, named bool) {
	for _, key := range poolLabels {
		if name := n.Labels[key]; name != "" {
			return key + "=" + name, true
		}
	}
	var text strings.Builder
	writeLabels(&text, n, v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion)
	return text.String() + n.Status.Allocatable.Cpu().String(), false
}

// StaticName returns what a static pod of the node is called in its manifest, "" for the
// name of another pod.
func StaticName(pod, node string) string {
	if name, static := strings.CutSuffix(pod, "-"+node); static {
		return name
	}
	return ""
}
