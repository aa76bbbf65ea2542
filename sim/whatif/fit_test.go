package whatif_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/whatif"
)

// As many copies are counted as there is room for beside the other pods, and
// what stops the next is said.
func TestFit(t *testing.T) {
	two := node("a", "") + node("b", "")
	const full = "0/2 nodes are available: 2 Insufficient cpu."
	for name, c := range map[string]struct {
		text, pod, want string
	}{
		"the only pending one":      {two + pod("p", "", 1, "") + pod("r", "a", 3, ""), "", "5 a:1 b:4; " + full},
		"pending ones of a kind":    {two + pod("p", "", 1, "") + pod("q", "", 1, ""), "", "8 a:4 b:4; " + full},
		"a running pod":             {two + pod("p", "a", 2, ""), "p", "3 a:1 b:2; " + full},
		"a workload":                {two + pod("p", "a", 2, ""), "rs/web", "3 a:1 b:2; " + full},
		"none":                      {two + pod("p", "", 5, ""), "", "0; " + full},
		"others come first":         {two + pod("p", "b", 2, "") + strings.NewReplacer("uid: r,", "uid: s,", "name: web,", "name: other,").Replace(pod("q", "", 3, "")), "p", "1 b:1; " + full},
		"nobody is evicted for it":  {two + pod("p", "", 2, "priority: 9, ") + pod("r", "a", 3, "") + pod("s", "b", 1, ""), "", "1 b:1; " + full},
		"one on a node":             {two + pod("p", "", 1, "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}, "), "", "2 a:1 b:1; 0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."},
		"a host port, and a volume": {two + pod("p", "", 1, "hostNetwork: true, volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: now}}}}], ") + "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: now}\nprovisioner: csi.example.com\n", "", "8 a:4 b:4; " + full},
	} {
		t.Run(name, func(t *testing.T) {
			set, in := cluster(t, c.text)
			r, err := whatif.Fit(set, in, nil, c.pod, whatif.Names{})
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(r.Fits)
			for _, n := range slices.Sorted(maps.Keys(r.Nodes)) {
				got += fmt.Sprintf(" %s:%d", n, r.Nodes[n])
			}
			if got += "; " + r.Stops; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A copy takes little memory, however large the pod is: of 2,000 tolerations or terms all
// copies share what is made.
func TestFitOfLargePod(t *testing.T) {
	var tolerations, terms []string
	for i := range 2000 {
		tolerations = append(tolerations, fmt.Sprintf("{key: k%d, operator: Exists}", i))
		terms = append(terms, fmt.Sprintf("{weight: 1, podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {app: a%d}}}}", i))
	}
	for name, spec := range map[string]string{
		"tolerations": "tolerations: [" + strings.Join(tolerations, ", ") + "], ",
		"terms":       "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [" + strings.Join(terms, ", ") + "]}}, ",
	} {
		t.Run(name, func(t *testing.T) {
			nodes := ""
			for i := range 50 {
				nodes += node(fmt.Sprint("n", i), "")
			}
			set, in := cluster(t, nodes+pod("p", "", 1, spec))
			in.Machine.Check = false // checks allocate, too
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := whatif.Fit(set, in, nil, "", whatif.Names{})
			if err != nil || r.Fits != 200 {
				t.Fatalf("%+v, %v", r, err)
			}
			runtime.ReadMemStats(&after)
			if each := (after.TotalAlloc - before.TotalAlloc) / 200; each > 80_000 {
				t.Errorf("a copy takes %d bytes", each)
			}
		})
	}
}

// Where it is not clear which pod is meant, the error says so.
func TestFitWhich(t *testing.T) {
	for text, want := range map[string]string{
		node("a", ""): "no pod is pending; name one with --pod",
		node("a", "") + pod("p", "", 1, "") + strings.NewReplacer("uid: r,", "uid: s,", "name: web,", "name: other,").Replace(pod("q", "", 1, "")): "2 pods are pending, default/p and default/q for example; name one with --pod",
	} {
		set, in := cluster(t, text)
		if _, err := whatif.Fit(set, in, nil, "", whatif.Names{}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func options() (machine.Options, error) { return sim.Options(config.Default()) }

// The least number of nodes is found that places what such nodes can place. One
// less leaves a pod pending.
func TestFitNodes(t *testing.T) {
	one := node("a", "")
	many := ""
	for i := range 9 {
		many += pod(fmt.Sprintf("p%d", i), "", 2, "")
	}
	for name, c := range map[string]struct {
		text, shape             string
		nodes, placed, unplaced int
	}{
		"nothing is missing":       {one + pod("p", "", 1, ""), "a", 0, 0, 0},
		"some are":                 {one + many, "a", 4, 7, 0},
		"larger ones":              {one + many, "cpu=7", 3, 7, 0},
		"one that no node can run": {one + many + pod("big", "", 5, ""), "a", 4, 7, 1},
		"none helps":               {one + pod("big", "", 5, ""), "a", 0, 0, 1},
		"victims need a place":     {one + pod("low", "a", 4, "") + pod("high", "", 4, "priority: 9, "), "a", 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			set, in := cluster(t, c.text)
			r, err := whatif.FitNodes(set, in, options, nil, []whatif.PricedShape{{Shape: c.shape}})
			if err != nil {
				t.Fatal(err)
			}
			if r.Nodes() != c.nodes || !r.Proven || r.Placed != c.placed || len(r.Unplaced) != c.unplaced {
				t.Errorf("got %+v, want %+v", r, c)
			}
			if c.nodes < 2 {
				return
			}
			if fewer := run(t, c.text, "add-nodes", fmt.Sprint(c.nodes-1), c.shape); len(fewer.Unplaced) <= c.unplaced {
				t.Errorf("one less will do: %v", fewer.Unplaced)
			}
		})
	}
}

// Pods that DaemonSets make for the new nodes and that have no place there are named apart:
// more nodes are no worse for them.
func TestFitNodesWithDaemonSets(t *testing.T) {
	daemons := func(cpu string) string {
		return fmt.Sprintf("---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent, uid: d}\nspec: {selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, resources: {requests: {cpu: %s}}}]}}}\n", cpu)
	}
	pods := pod("p", "", 3, "") + pod("q", "", 3, "") + pod("r", "", 3, "")
	for name, c := range map[string]struct {
		cpu  string
		want string
	}{
		"they fit":                 {`"1"`, "2 nodes, 2 placed, [] pending, [] without a place"},
		"they fit on an empty one": {`"3"`, "2 nodes, 2 placed, [default/agent-a] pending, [default/agent-new-1 default/agent-new-2] without a place"},
		"they never fit":           {`"8"`, "2 nodes, 2 placed, [default/agent-a] pending, [default/agent-new-1 default/agent-new-2] without a place"},
	} {
		t.Run(name, func(t *testing.T) {
			r := fitNodes(t, node("a", "")+pods+daemons(c.cpu), "cpu=4")
			got := fmt.Sprintf("%d nodes, %d placed, %v pending, %v without a place", r.Nodes(), r.Placed, slices.Sorted(maps.Keys(r.Unplaced)), slices.Sorted(maps.Keys(r.NoPlace)))
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// Changes are made before the question. Pods that lose their node for them come before the
// copies, and may be chosen if they come with the changes.
func TestFitAfterChanges(t *testing.T) {
	text := node("a", "") + node("b", "") + pod("w", "a", 2, "") + pod("x", "b", 1, "")
	for words, want := range map[string]string{
		"":               "2 map[a:1 b:1]",
		"lose-zone a":    "0 map[]",
		"drain a":        "0 map[]",
		"cordon a":       "1 map[b:1]",
		"scale rs/web=3": "1 map[a:1]",
		"remove b":       "0 map[]",
	} {
		set, in := cluster(t, text)
		after, err := whatif.Parse(strings.Fields(words))
		if err != nil {
			t.Fatal(err)
		}
		r, err := whatif.Fit(set, in, after, "w", whatif.Names{})
		if err != nil || fmt.Sprint(r.Fits, " ", r.Nodes) != want {
			t.Errorf("%s: %v, %+v, want %s", words, err, r, want)
		}
	}
	set, in := cluster(t, text)
	options := func() (machine.Options, error) { return sim.Options(config.Default()) }
	n, err := whatif.FitNodes(set, in, options, []whatif.Change{{Verb: "scale", Operands: []string{"rs/web=6"}}, {Verb: "cordon", Operands: []string{"a"}}}, []whatif.PricedShape{{Shape: "a"}})
	if err != nil || n.Nodes() != 2 || n.Placed != 3 {
		t.Errorf("%v, %+v", err, n)
	}
	set, in = cluster(t, text)
	if _, err := whatif.Fit(set, in, []whatif.Change{{Verb: "drain", Operands: []string{"c"}}}, "w", whatif.Names{}); err == nil || err.Error() != "--after: drain: no node is called c" {
		t.Error(err)
	}
}
