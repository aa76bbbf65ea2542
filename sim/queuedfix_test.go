package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sized returns a pod of a priority that requests CPU.
func sized(name, cpu string, priority int32) *v1.Pod {
	p := plainPod(name)
	p.Spec.Priority = &priority
	p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}
	return p
}

// Fixes are tried with the pods that come before the pod in the queue, by priority and then by
// age. One that adds nodes or uncordons them does so for those, too. One that does not help
// comes last, and names them.
func TestFixesInTheQueue(t *testing.T) {
	at := func(p *v1.Pod, second int64) *v1.Pod {
		p.CreationTimestamp = metav1.Unix(second, 0)
		return p
	}
	cordoned := func(name string) *v1.Node {
		n := plainNode(name)
		n.Spec.Unschedulable = true
		return n
	}
	runs := sized("runs", "3", 9)
	runs.Spec.NodeName = "n"
	for name, test := range map[string]struct {
		nodes   []*v1.Node
		others  []*v1.Pod
		has     string
		first   []string
		without string
	}{
		"alone":                         {nil, nil, "add a node like n", nil, "nothing"},
		"a higher priority":             {nil, []*v1.Pod{at(sized("a", "3", 9), 30)}, "add 2 nodes like n", []string{"default/a"}, "delete pod default/runs"},
		"an older one":                  {nil, []*v1.Pod{at(sized("a", "3", 0), 10)}, "add 2 nodes like n", []string{"default/a"}, "delete pod default/runs"},
		"one of the same second":        {nil, []*v1.Pod{at(sized("a", "3", 0), 20)}, "add 2 nodes like n", []string{"default/a"}, "delete pod default/runs"},
		"a younger one":                 {nil, []*v1.Pod{at(sized("a", "3", 0), 30)}, "add a node like n", nil, "nothing"},
		"a lower priority":              {nil, []*v1.Pod{at(sized("a", "3", -1), 10)}, "add a node like n", nil, "nothing"},
		"one that fits beside it":       {nil, []*v1.Pod{at(sized("a", "1500m", 9), 10)}, "add a node like n", nil, "nothing"},
		"one that fits nowhere":         {nil, []*v1.Pod{at(sized("a", "9", 9), 10)}, "add a node like n", nil, "nothing"},
		"three":                         {nil, []*v1.Pod{at(sized("a", "3", 9), 10), at(sized("b", "3", 9), 10), at(sized("c", "4", 9), 10)}, "add 4 nodes like n", []string{"default/a", "default/b", "default/c"}, "delete pod default/runs"},
		"cordons":                       {[]*v1.Node{cordoned("x"), cordoned("y")}, []*v1.Pod{at(sized("a", "3", 9), 30)}, "uncordon node x; likewise y", []string{"default/a"}, "delete pod default/runs"},
		"one that fits as it is":        {nil, []*v1.Pod{at(sized("a", "1", 0), 30)}, "add a node like n", nil, "lower the CPU request"},
		"one that it preempts":          {nil, []*v1.Pod{at(sized("a", "1", -1), 30)}, `lower the CPU request of container "c" from 2 to 1`, nil, "nothing"},
		"one that is made anew is last": {nil, []*v1.Pod{at(sized("a", "1500m", 0), 30)}, `lower the CPU request of container "c" from 2 to 1`, nil, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			p := at(sized("p", "2", 0), 20)
			c := clusterOf(t, append(test.nodes, plainNode("n")), append(test.others, runs, p)...)
			a := c.Why(t.Context(), p)
			var all []string
			found, last := false, false
			for i := range a.Fixes {
				f := &a.Fixes[i]
				if len(f.First) > 0 && len(f.More) == 0 {
					last = true
					continue
				}
				if last {
					t.Errorf("%s comes after what others take", f.Summary)
				}
				all = append(all, fmt.Sprint(f.Extended().Summary, f.First))
				found = found || f.Extended().Summary == test.has && slices.Equal(f.First, test.first)
			}
			if !found || strings.Contains(strings.Join(all, "\n"), test.without) {
				t.Errorf("fixes %q, want %q with %v first, and not %q", all, test.has, test.first, test.without)
			}
		})
	}
}

// Where others take what a fix frees, the answer says so.
func TestFixesThatOthersTake(t *testing.T) {
	n := plainNode("n")
	n.Spec.Unschedulable = true
	big := sized("big", "4", 9)
	big.Spec.NodeSelector = map[string]string{v1.LabelHostname: "n"}
	p := sized("p", "4", 0)
	p.Spec.NodeSelector = big.Spec.NodeSelector
	a := clusterOf(t, []*v1.Node{n}, big, p).Why(t.Context(), p)
	var text strings.Builder
	if err := a.Text(&text, true); err != nil {
		t.Fatal(err)
	}
	if len(a.Fixes) != 1 || !strings.Contains(text.String(), "1. uncordon node n; then it goes to n, but default/big comes first and may take its place\n") {
		t.Errorf("got %s", text.String())
	}
}

// Of many pods the first take their turn, and of very different ones as many as there is work for.
// The answer says that these were not all.
func TestFixesBesideManyPods(t *testing.T) {
	for name, test := range map[string]struct{ others, kinds int }{"many": {1100, 1}, "different": {900, 900}} {
		t.Run(name, func(t *testing.T) {
			p, runs := sized("p", "2", 0), sized("runs", "3500m", 9)
			runs.Spec.NodeName = "n"
			pods := []*v1.Pod{runs, p}
			for i := range test.others {
				pods = append(pods, sized(fmt.Sprint("o", i), fmt.Sprintf("%dm", 1001+i%test.kinds), 9))
			}
			a := clusterOf(t, []*v1.Node{plainNode("n")}, pods...).Why(t.Context(), p)
			if len(a.Fixes) == 0 || !strings.Contains(a.Cut, "not all were let take their turn first (at most 1000, and for 100000 units of work)") {
				t.Errorf("%d fixes, cut %q", len(a.Fixes), a.Cut)
			}
		})
	}
}
