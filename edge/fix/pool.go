package fix

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// poolLabels name the pool that a node was made for.
var poolLabels = []string{
	"cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "kubernetes.azure.com/agentpool",
	"karpenter.sh/nodepool", "kops.k8s.io/instancegroup", "doks.digitalocean.com/node-pool",
}

// poolOf is equal for nodes of one pool. Where no label names the pool, named is false, and
// it is the nodes with the same labels and CPUs, wherever they are.
func poolOf(n *v1.Node) (pool string, named bool) {
	for _, key := range poolLabels {
		if name := n.Labels[key]; name != "" {
			return key + "=" + name, true
		}
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		switch key {
		case v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion:
		default:
			if n.Labels[key] != n.Name {
				fmt.Fprintf(&b, "%q=%q ", key, n.Labels[key])
			}
		}
	}
	return b.String() + n.Status.Allocatable.Cpu().String(), false
}

// leftBehind reports whether only some nodes of the node's pool have the taint: fewer than
// half of them where no label names the pool. Roles are given to nodes for good.
func (s *search) leftBehind(n *v1.Node, t *v1.Taint) bool {
	if strings.HasPrefix(t.Key, "node-role.kubernetes.io/") || !s.spend(1+len(s.nodes)/20) {
		return false
	}
	pool, named := poolOf(n)
	all, tainted := 0, 0
	for _, other := range s.nodes { // any order: they are counted
		if of, _ := poolOf(other); of != pool {
			continue
		}
		all++
		if slices.ContainsFunc(other.Spec.Taints, func(o v1.Taint) bool { return o.MatchTaint(t) && o.Value == t.Value }) {
			tainted++
		}
	}
	return named && tainted < all || 2*tainted < all
}
