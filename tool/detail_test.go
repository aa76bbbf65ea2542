package tool

import (
	"fmt"
	"strings"
	"testing"
)

// detailed is a cluster whose nodes a1 and a2 are in zone a, and b1 in zone b; bare has
// no zone.
func detailed() string {
	var b strings.Builder
	for _, n := range []string{"a1, labels: {zone: a, disk: ssd}", "a2, labels: {zone: a, disk: ssd}", "b1, labels: {zone: b, disk: ssd}", "bare, labels: {disk: ssd}"} {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}\n", n)
	}
	for _, p := range []string{
		"r1, labels: {app: db}}\nspec: {nodeName: a1, containers: [{name: c, ports: [{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}]}]}",
		"r2, labels: {app: dbx}}\nspec: {nodeName: a1, containers: [{name: c, ports: [{containerPort: 80, hostPort: 80, hostIP: 10.0.0.2}]}]}",
		"r3, namespace: blue, labels: {app: web}}\nspec: {nodeName: bare, containers: [{name: c}]}",
		"r4, namespace: red, labels: {app: web}}\nspec: {nodeName: a2, containers: [{name: c}]}",
		"first}\nspec: {priority: 1000, containers: [{name: c, resources: {requests: {cpu: 3}}}]}\nstatus: {nominatedNodeName: b1}",
	} {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s\n", p)
	}
	for _, ns := range []string{"red", "blue"} {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {team: %[1]s}}\n", ns)
	}
	return b.String()
}

// on is a required node affinity to one node.
func on(node string) string {
	return "nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [" + node + "]}]}]}}"
}

// The text names what blocks the pod, and nothing that does not.
func TestWhyNamesWhatBlocks(t *testing.T) {
	for name, c := range map[string]struct{ spec, want, not string }{
		"room that a nominated pod will take": {
			"affinity: {" + on("b1") + "}, containers: [{name: c, resources: {requests: {cpu: 2}}}]",
			"it requests 2 CPUs; b1 has 1 of 4 free, as default/first is nominated to it", "has 4 of 4 free",
		},
		"what has to go beside a nominated pod": {
			"affinity: {" + on("b1") + "}, containers: [{name: c, resources: {requests: {cpu: 2}}}]",
			"a pod on b1 that frees 1 CPU goes", "frees -",
		},
		"a host port on another address": {
			"affinity: {" + on("a1") + "}, containers: [{name: c, ports: [{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}]}]",
			"host port 80/TCP is taken by default/r1 (", "default/r2",
		},
		"one of two anti-affinity terms": {
			"affinity: {" + on("a1") + ", podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: none}}}, {topologyKey: zone, labelSelector: {matchLabels: {app: db}}}]}}, containers: [{name: c}]",
			"its anti-affinity forbids app=db in the same zone, and default/r1 is there", "app=none in",
		},
		"anti-affinity to some namespaces": {
			"affinity: {" + on("a1") + ", podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: disk, namespaceSelector: {matchLabels: {team: red}}, labelSelector: {matchLabels: {app: web}}}]}}, containers: [{name: c}]",
			"and red/r4 is there", "blue/r3",
		},
		"pod affinity where nodes lack the label": {
			"affinity: {" + on("bare") + ", podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: db}}}, {topologyKey: disk, labelSelector: {matchLabels: {app: db}}}]}}, containers: [{name: c}]",
			"its affinity wants a pod with app=db in the same zone, and nodes have no such label", "same disk",
		},
		"pod affinity that no one pod meets": {
			"affinity: {" + on("a1") + ", podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: db}}}, {topologyKey: zone, labelSelector: {matchLabels: {app: dbx}}}]}}, containers: [{name: c}]",
			"its affinity wants a pod with app=db in the same zone; its affinity wants a pod with app=dbx in the same zone; one pod has to meet all of these", "",
		},
		"a node selector beside an affinity that is met": {
			"nodeSelector: {disk: hdd}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In, values: [ssd, hdd]}]}]}}}, containers: [{name: c}]",
			"the node selector wants disk=hdd, nodes have disk=ssd (", "the required node affinity wants",
		},
		"one expression of a node affinity": {
			"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In, values: [ssd]}, {key: cores, operator: Gt, values: ['8']}]}]}}}, containers: [{name: c}]",
			"the required node affinity wants disk In [ssd] and cores Gt [8], nodes have no label cores (", "nodes have disk",
		},
		"too few domains": {
			"affinity: {" + on("a1") + "}, topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, minDomains: 4, nodeAffinityPolicy: Ignore, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: db}}}, {maxSkew: 5, topologyKey: disk, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: db}}}], containers: [{name: c}]",
			"spread by zone allows maxSkew 1; matching pods: a has 1, and 0 is the fewest, as minDomains 4 is more than the domains there are (2)", "spread by disk",
		},
		"a label that no node has": {
			"topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: db}}}, {maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: db}}}], containers: [{name: c}]",
			"nodes have no label rack, by which pods are to be spread", "spread by zone",
		},
		"labels that choose the pods": {
			"affinity: {" + on("a1") + "}, topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, matchLabelKeys: [app], nodeAffinityPolicy: Ignore, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}], containers: [{name: c}]",
			"matching pods: a has 1, b has 0", "a has 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {app: db}}\nspec: {" + c.spec + "}\n"
			_, out, errs := berth(detailed()+pod, "why", "-f", "-", "p")
			said, _, _ := strings.Cut(out, "\nWHAT WOULD HELP")
			_, events, _ := strings.Cut(out, "\nIT IS TRIED AGAIN WHEN")
			said += events
			if errs != "" || !strings.Contains(said, c.want) || c.not != "" && strings.Contains(said, c.not) {
				t.Errorf("want %q, and not %q: %s%s", c.want, c.not, errs, out)
			}
		})
	}
}

// A gate that goes and a toleration that comes need no new pod.
func TestGatesAndTolerationsAreChangedInPlace(t *testing.T) {
	const cluster = `
apiVersion: v1
kind: Node
metadata: {name: a}
spec: {taints: [{key: team, value: red, effect: NoSchedule}]}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {schedulingGates: [{name: example.com/quota}], containers: [{name: c}]}
`
	const want = `kubectl patch pod p -n default --type=json -p '[{"op":"add","path":"/spec/tolerations/-","value":{"effect":"NoSchedule","key":"team","operator":"Equal","value":"red"}},{"op":"remove","path":"/spec/schedulingGates"}]'`
	if _, out, errs := berth(cluster, "why", "-f", "-", "p"); errs != "" || !strings.Contains(out, want) || strings.Contains(out, "replace --force") {
		t.Errorf("want %q: %s%s", want, errs, out)
	}
}
