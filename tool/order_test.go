package tool

import (
	"strings"
	"testing"
)

// A taint that only some nodes of a pool have is removed first. One that most have, that
// marks a dedicated pool, or that keeps nodes for the control plane is not.
func TestWhyLeftoversFirst(t *testing.T) {
	node := func(name, labels, taint string) string {
		if taint != "" {
			taint = "{key: " + taint + ", effect: NoSchedule}"
		}
		return "apiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", labels: {kubernetes.io/hostname: " + name + ", " + labels + "}}\nspec: {taints: [" + taint + "]}\nstatus: {allocatable: {cpu: \"4\", memory: 8Gi, pods: \"110\"}}\n---\n"
	}
	full := func(node string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: on-" + node + "}\nspec: {nodeName: " + node + ", containers: [{name: c, image: i, resources: {requests: {cpu: 3}}}]}\n---\n"
	}
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}\n"
	const removal = "\n  1. remove the taint "
	for _, test := range []struct {
		why, in string
		first   bool
	}{
		{"one of three equal nodes", node("a", "", "") + node("b", "", "") + node("c", "", "drain") + full("a") + full("b"), true},
		{"one of two nodes of a named pool", node("a", "karpenter.sh/nodepool: x", "") + node("c", "karpenter.sh/nodepool: x", "drain") + full("a"), true},
		{"one of two nodes, and no label names the pool", node("a", "", "") + node("c", "", "team") + full("a"), false},
		{"a pool of its own", node("a", "", "") + node("b", "", "") + node("c", "team: x", "team") + full("a") + full("b"), false},
		{"the control plane", node("a", "", "") + node("b", "", "") + node("c", "", "node-role.kubernetes.io/control-plane") + full("a") + full("b"), false},
	} {
		_, out, errs := berth(test.in+pod, "why", "-f", "-", "p", "-o", "wide")
		if !strings.Contains(out, "remove the taint ") || strings.Contains(out, removal) != test.first {
			t.Errorf("%s: want the removal first: %t: %s\n%s", test.why, test.first, errs, out)
		}
	}
	_, out, _ := berth(node("a", "", "")+node("c", "", "node-role.kubernetes.io/control-plane")+full("a")+pod, "why", "-f", "-", "p", "-o", "wide")
	if strings.Index(out, "tolerate the taint node-role") < strings.Index(out, "add a node like a") {
		t.Errorf("the control plane is no last resort:\n%s", out)
	}
}
