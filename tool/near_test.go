package tool

import (
	"fmt"
	"strings"
	"testing"
)

// What nearly matches is told, and the first fix is what was meant.
func TestWhyNearMisses(t *testing.T) {
	node := func(allocatable, capacity, labels, taints string) string {
		return "apiVersion: v1\nkind: Node\nmetadata: {name: a, labels: {kubernetes.io/hostname: a, " + labels + "}}\nspec: {taints: [" + taints + "]}\n" +
			"status: {capacity: {cpu: \"4\", " + capacity + "}, allocatable: {cpu: \"4\", memory: 8Gi, pods: \"110\", " + allocatable + "}}\n---\n"
	}
	pod := func(spec, resource string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n" + spec + "  containers: [{name: c, image: i, resources: {limits: {cpu: 100m, " + resource + "}, requests: {cpu: 100m, " + resource + "}}}]\n"
	}
	for _, test := range []struct{ why, in, told, first string }{
		{"a device plugin that is down, with capacity left", node("nvidia.com/gpu: \"0\"", "nvidia.com/gpu: \"4\"", "", "") + pod("", "nvidia.com/gpu: \"1\""),
			"a has 4, none of which can be allocated: its device plugin is down, or they are unhealthy", ""},
		{"a device plugin that is down", node("nvidia.com/gpu: \"0\"", "nvidia.com/gpu: \"0\"", "", "") + pod("", "nvidia.com/gpu: \"1\""),
			"a lists it with 0: its device plugin is down, or has no device", ""},
		{"another MIG profile", node("nvidia.com/mig-1g.10gb: \"2\"", "", "", "") + pod("", "nvidia.com/mig-1g.5gb: \"1\""),
			"a offers 2 nvidia.com/mig-1g.10gb: was that meant?", "1. request nvidia.com/mig-1g.10gb in place of nvidia.com/mig-1g.5gb for container \"c\""},
		{"huge pages of the other size", node("hugepages-1Gi: 2Gi", "", "", "") + pod("", "hugepages-2Mi: 4Mi"),
			"a offers 2Gi hugepages-1Gi: was that meant?", "1. request hugepages-1Gi in place of hugepages-2Mi for container \"c\""},
		{"a value in another case", node("", "", "kubernetes.io/os: linux", "") + pod("  nodeSelector: {kubernetes.io/os: Linux}\n", ""),
			"a has kubernetes.io/os=linux: was that meant?", "1. select kubernetes.io/os=linux in place of kubernetes.io/os=Linux"},
		{"a key with other punctuation", node("", "", "disk-type: ssd", "") + pod("  nodeSelector: {disktype: ssd}\n", ""),
			"a has disk-type=ssd: was that meant?", "1. select disk-type=ssd in place of disktype=ssd"},
		{"an expression of the required affinity", node("", "", "topology.kubernetes.io/zone: z", "") +
			pod("  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: failure-domain.beta.kubernetes.io/zone, operator: In, values: [z]}]}]}}}\n", ""),
			"a has topology.kubernetes.io/zone=z: was that meant?", "1. have the required node affinity want topology.kubernetes.io/zone=z in place of failure-domain.beta.kubernetes.io/zone=z"},
		{"the effect of a toleration", node("", "", "", "{key: team, value: db, effect: NoSchedule}") + pod("  tolerations: [{key: team, value: db, effect: NoExecute}]\n", ""),
			"taint team=db:NoSchedule (a toleration has effect NoExecute) is not tolerated", "1. correct the toleration with effect NoExecute: tolerate the taint team=db:NoSchedule"},
		{"the value of a toleration", node("", "", "", "{key: team, value: database, effect: NoSchedule}") + pod("  tolerations: [{key: team, value: Database}]\n", ""),
			"(a toleration has value \"Database\")", "1. correct the toleration with value \"Database\": tolerate the taint team=database:NoSchedule"},
		{"a label of the pod that it wants to be near", node("", "", "", "") + "apiVersion: v1\nkind: Pod\nmetadata: {name: db, labels: {app: database}}\nspec: {nodeName: a, containers: [{name: c, image: i}]}\n---\n" +
			pod("  affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: databse}}}]}}\n", ""),
			"default/db has app=database: was that meant?", "1. have the required pod affinity want app=database in place of app=databse"},
	} {
		_, out, errs := berth(test.in, "why", "-f", "-", "p")
		if !strings.Contains(out, test.told) || !strings.Contains(out, "\n  "+test.first) {
			t.Errorf("%s: want %q and %q: %s\n%s", test.why, test.told, test.first, errs, out)
		}
	}
}

// Another team's toleration and another zone are no slips of the pen.
func TestWhyNoNearMiss(t *testing.T) {
	in := strings.Replace(nodeYAML, "status:", "spec: {taints: [{key: team, value: blue, effect: NoSchedule}]}\nstatus:", 1) + "---\n" +
		strings.Replace(podYAML, "{containers: ", "{tolerations: [{key: team, value: red}], nodeSelector: {topology.kubernetes.io/zone: eu-1b}, containers: ", 1)
	in = strings.Replace(in, "name: a", "name: a, labels: {topology.kubernetes.io/zone: eu-1a}", 1)
	if _, out, errs := berth(in, "why", "-f", "-", "p"); strings.Contains(out, "meant") || strings.Contains(out, "a toleration has") || strings.Contains(out, "in place of") {
		t.Errorf("%s\n%s", errs, out)
	}
}

// Each node is blocked by the terms of anti-affinity that keep the pod off it, and by no
// other.
func TestWhyNamesTermsByNode(t *testing.T) {
	var in string
	for _, name := range []string{"a1", "a2", "b1"} {
		in += "apiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", labels: {kubernetes.io/hostname: " + name + ", zone: " + name[:1] + "}}\nstatus: {allocatable: {cpu: \"4\", memory: 8Gi, pods: \"110\"}}\n---\n"
	}
	run := func(name, app, node string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", labels: {app: " + app + "}}\nspec: {nodeName: " + node + ", containers: [{name: c, image: i}]}\n---\n"
	}
	const term = "{topologyKey: KEY, labelSelector: {matchLabels: {app: APP}}}"
	in += run("db", "db", "a1") + run("web", "web", "b1") + run("web2", "web", "a1") +
		"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}], affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" +
		strings.NewReplacer("KEY", "zone", "APP", "db").Replace(term) + ", " + strings.NewReplacer("KEY", "kubernetes.io/hostname", "APP", "web").Replace(term) + "]}}}\n"
	const zone, host = "its anti-affinity forbids app=db in the same zone, and default/db is there", "its anti-affinity forbids app=web in the same kubernetes.io/hostname, and default/web"
	_, out, errs := berth(in, "why", "-f", "-", "p")
	for _, want := range []string{"1 node: a1\n    " + zone + "; " + host + "2 is there\n", "1 node: a2\n    " + zone + "\n", "1 node: b1\n    " + host + " is there\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q: %s\n%s", want, errs, out)
		}
	}
}

// Where many pods keep a pod off, the text says how many there are and in how many domains: none
// reads as if it were the only one.
func TestWhyCountsPodsThatKeepOthersOff(t *testing.T) {
	nodes := func(cordoned string) (all string) {
		for _, name := range []string{"a1", "a2", "b1", "c1"} {
			all += fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {zone: %s}}\nspec: {unschedulable: %t}\nstatus: {allocatable: {cpu: \"4\", memory: 8Gi, pods: \"110\"}}\n---\n", name, name[:1], strings.Contains(cordoned, name))
		}
		return all
	}
	pod := func(name, app, node, spec string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", labels: {app: " + app + "}}\nspec: {nodeName: '" + node + "', containers: [{name: c, image: i}]" + spec + "}\n---\n"
	}
	anti := func(app string) string {
		return ", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: " + app + "}}}]}}"
	}
	const forbids, keeps = "its anti-affinity forbids app=web in the same zone, and ", "pod default/w1 on a1 keeps pods like this one away (its anti-affinity by zone)"
	a := pod("web1", "web", "a1", "") + pod("web2", "web", "a2", "")
	b, c, away := pod("web3", "web", "b1", ""), pod("web4", "web", "c1", ""), pod("p", "p", "", anti("web"))
	w1, w2, w3 := pod("w1", "w", "a1", anti("p")), pod("w2", "w", "b1", anti("p")), pod("w3", "w", "c1", anti("p"))
	spread := pod("p", "web", "", ", topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]")
	for name, test := range map[string]struct{ cordoned, pods, want string }{
		"one domain":      {"b1 c1", a + away, "2 nodes: a1, a2\n    " + forbids + "2 such pods are there, e.g. default/web1\n"},
		"some domains":    {"c1", a + b + away, "3 nodes: a1, a2, b1\n    " + forbids + "3 such pods are in 2 of 3 domains, e.g. default/web1\n"},
		"all domains":     {"", a + b + c + away, "4 nodes: a1, a2, b1, c1\n    " + forbids + "4 such pods are in all 3 domains, e.g. default/web1\n"},
		"cordoned, too":   {"a2 b1", a + b + c + away, "2 nodes: a2, b1\n    cordoned (spec.unschedulable)\n    " + forbids + "4 such pods are in all 3 domains, e.g. default/web1\n"},
		"one that keeps":  {"b1 c1", w1 + pod("p", "p", "", ""), "2 nodes: a1, a2\n    " + keeps + "\n"},
		"two that keep":   {"c1", w1 + w2 + pod("p", "p", "", ""), "3 nodes: a1, a2, b1\n    " + keeps + ", as does 1 other pod\n"},
		"three that keep": {"", w1 + w2 + w3 + pod("p", "p", "", ""), "4 nodes: a1, a2, b1, c1\n    " + keeps + ", as do 2 other pods\n"},
		"spread":          {"b1 c1", a + spread, "2 nodes: a1, a2\n    spread by zone allows maxSkew 1; matching pods: a has 2, b has 0\n"},
		"spread further":  {"c1", a + b + spread, "3 nodes: a1, a2, b1\n    spread by zone allows maxSkew 1; matching pods: a has 2, c has 0; 1 more domain has too many\n"},
	} {
		if _, out, errs := berth(nodes(test.cordoned)+test.pods, "why", "-f", "-", "p"); !strings.Contains(out, test.want) {
			t.Errorf("%s: no %q: %s\n%s", name, test.want, errs, out)
		}
	}
}
