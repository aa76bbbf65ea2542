package interpodaffinity

import (
	"fmt"
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// prefers is a preference for being near the pods by the key, or away from them.
func prefers(key string, weight int32, of *metav1.LabelSelector) *v1.Affinity {
	list := []v1.WeightedPodAffinityTerm{{Weight: weight, PodAffinityTerm: v1.PodAffinityTerm{TopologyKey: key, LabelSelector: of}}}
	return &v1.Affinity{PodAffinity: &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: list}}
}

// zones is a table of nodes n0 to n5 in the zones a, a, b, b, a, a; n5 has no zone.
func zones() *table.Table {
	tb := plugintest.Table()
	for i := range 6 {
		tb.SetNode(inZone(i, []string{"a", "b"}[i/2%2]))
	}
	return tb
}

func inZone(i int, zone string) *object.Node {
	name := fmt.Sprint("n", i)
	n := &object.Node{Name: name, Labels: map[string]string{v1.LabelHostname: name, "zone": zone}}
	if i == 5 {
		delete(n.Labels, "zone")
	}
	return n
}

// What terms of others come to follows the pods that have them, and all that happens to
// these and to the nodes; one class after the other reads it.
func TestTermsOfOthersAreFollowed(t *testing.T) {
	p, tb := mustNew(t, nil), zones()
	place := func(name, node string, a *v1.Affinity) { tb.AddPod(pod(name, "x", node, a), node) }
	serial := 0
	scores := func(what string, want ...int64) {
		t.Helper()
		serial++
		got := plugintest.Ask(t, p, tb, pod(fmt.Sprint("asks-", serial), "web", "", nil)).Scores
		all := map[string]int64{}
		for i, n := range want {
			if n < 0 {
				continue // the node is gone
			}
			all[fmt.Sprint("n", i)] = n
		}
		if !maps.Equal(got, all) {
			t.Errorf("%s: %v, want %v", what, got, all)
		}
	}
	zone, host := prefers("zone", 7, app("web")), prefers(v1.LabelHostname, 3, app("web"))
	place("a", "n0", zone)
	place("none", "n5", zone)
	scores("one term", 7, 7, 0, 0, 7, 0)
	place("b", "n2", zone)
	scores("a pod came", 7, 7, 7, 7, 7, 0)
	place("c", "n1", host)
	scores("a term came", 7, 10, 7, 7, 7, 0)
	place("d", "n1", host)
	scores("a pod came with a term that came", 7, 13, 7, 7, 7, 0)
	tb.RemovePod("a")
	scores("a pod left", 0, 6, 7, 7, 0, 0)
	tb.SetNode(inZone(2, "a"))
	scores("a node moved", 7, 13, 7, 0, 7, 0)
	for i := range 200 {
		place(fmt.Sprint("many-", i), "n3", zone)
	}
	scores("many came", 7, 13, 7, 1400, 7, 0)
	mark := tb.Checkpoint()
	tb.RemovePod("b")
	tb.Undo(mark)
	scores("a try is undone", 7, 13, 7, 1400, 7, 0)
	tb.RemovePod("c")
	tb.RemovePod("d")
	scores("nobody has a term any more", 7, 7, 7, 1400, 7, 0)
	place("c", "n4", host)
	scores("somebody has it again", 7, 7, 7, 1400, 10, 0)
	tb.RemoveNode("n2")
	tb.SetNode(inZone(4, "b"))
	scores("nodes went and moved", 0, 0, -1, 1400, 1403, 0)
}

// A term that comes is nothing to a class that was made before: its pods may be others
// than those that the term is about.
func TestTermsThatComeAreNothingToOldClasses(t *testing.T) {
	p, tb := mustNew(t, nil), zones()
	tier := func(n string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"tier": n}}
	}
	tb.AddPod(pod("a", "x", "n0", away(v1.LabelHostname, app("web"))), "n0")
	tb.AddPod(pod("b", "x", "n2", away(v1.LabelHostname, tier("9"))), "n2")
	one, two := pod("one", "web", "", nil), pod("two", "web", "", nil)
	one.Labels["tier"], two.Labels["tier"] = "1", "2"
	if string(p.Sign(nil, tb, one)) != string(p.Sign(nil, tb, two)) {
		t.Fatal("the terms are about both pods, and they are of two classes")
	}
	kept := p.PreFilter(tb, one).State
	tb.AddPod(pod("c", "x", "n1", away(v1.LabelHostname, tier("1"))), "n1")
	if got := plugintest.Ask(t, p, tb, one).Blocked; got["n0"] == "" || got["n1"] == "" || got["n2"] != "" {
		t.Errorf("blocked for the one pod: %v", got)
	}
	if got := blocked(&p, tb, kept); got[0] == framework.Fits || got[1] != framework.Fits {
		t.Errorf("blocked for the other: %v", got)
	}
}

// blocked is what the filter says of each row.
func blocked(p *framework.Plugin, tb *table.Table, state any) []framework.Verdict {
	in := &framework.Input{Table: tb, State: state}
	p.CellFilter.Sync(in)
	cells, out := make([]int64, tb.Rows()), make([]framework.Verdict, tb.Rows())
	p.CellFilter.Cells(in, tb.All(), cells)
	for r, cell := range cells {
		out[r] = p.CellFilter.Filter(in, cell)
	}
	return out
}

// What classes share is dropped when a node has a label that no node had. A class that uses it goes
// on with it.
func TestAClassKeepsWhatIsDropped(t *testing.T) {
	p, tb := mustNew(t, nil), zones()
	tb.AddPod(pod("a", "x", "n0", away("zone", app("web"))), "n0")
	kept := p.PreFilter(tb, pod("p", "web", "", nil)).State
	blocked(&p, tb, kept)
	racked := inZone(0, "a")
	racked.Labels["rack"] = "r"
	tb.SetNode(racked)
	p.PreFilter(tb, pod("q", "web", "", nil))
	tb.AddPod(pod("b", "x", "n2", away("zone", app("web"))), "n2")
	for r, v := range blocked(&p, tb, kept) {
		if (v == framework.Fits) != (r == 5) {
			t.Errorf("row %d: %d", r, v)
		}
	}
}

// A class has the room of one before it, and nothing of what that counted.
func TestRoomIsEmpty(t *testing.T) {
	p, tb := mustNew(t, nil), zones()
	tb.AddPod(pod("a", "web", "n0", nil), "n0")
	for i, want := range []framework.Verdict{antiAffinityNotMet, framework.Fits} {
		state := p.PreFilter(tb, pod("p", "x", "", away("zone", app([]string{"web", "db"}[i])))).State
		if got := blocked(&p, tb, state)[1]; got != want {
			t.Errorf("class %d: %d, want %d", i, got, want)
		}
		state.(framework.Releaser).Release()
	}
}

// The pod's own terms and those of others count on a node together.
func TestTermsOfBothSidesCount(t *testing.T) {
	p, tb := mustNew(t, nil), zones()
	tb.AddPod(pod("a", "db", "n0", prefers(v1.LabelHostname, 5, app("web"))), "n0")
	got := plugintest.Ask(t, p, tb, pod("p", "web", "", prefers(v1.LabelHostname, 3, app("db")))).Scores
	if got["n0"] != 8 || got["n1"] != 0 {
		t.Errorf("scores %v", got)
	}
}
