package selected

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// What a selection says of a node is what the selector says of it, however nodes come,
// change and go. It says nothing of nodes that changed since it was made.
func TestSelect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb, selector := table.New(), rapid.Custom(drawSelector)
		preferred := rapid.Custom(drawPreferred)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			changeNodes(t, tb)
			s, p := selector.Draw(t, "selector"), preferred.Draw(t, "preferred")
			selection, terms := Of(tb).Select(s), Of(tb).SelectPreferred(p)
			changed := map[table.Row]bool{}
			for _, r := range changeNodes(t, tb) {
				changed[r] = true
			}
			for _, r := range tb.All() {
				admits, known := selection.Admits(tb, r)
				if known == changed[r] {
					t.Fatalf("node %s: known is %v, changed %v", tb.Name(r), known, changed[r])
				}
				n := tb.Node(r)
				if n == nil || !known {
					continue
				}
				if want := s.Matches(n.Subject()); admits != want {
					t.Fatalf("%v: admitted is %v, want %v", n, admits, want)
				}
				sum := int64(0)
				for _, term := range terms {
					if counts, _ := term.Admits(tb, r); counts {
						sum += term.Weight
					}
				}
				if want := p.Score(n.Subject()); sum != want {
					t.Fatalf("%v: score %d, want %d", n, sum, want)
				}
			}
		}
	})
}

// Requirements that keep coming do not grow what is kept of them.
func TestRequirementsWithoutEnd(t *testing.T) {
	tb := table.New()
	tb.SetNode(&object.Node{Name: "a", Labels: map[string]string{"n": "7"}})
	for i := range 3 * mostRequirements {
		s := Of(tb).Select(match.NewNodeSelector(map[string]string{"n": fmt.Sprint(i)}, nil))
		if admits, known := s.Admits(tb, 0); !known || admits != (i == 7) {
			t.Fatalf("n=%d: admitted %v, known %v", i, admits, known)
		}
	}
	if n := len(Of(tb).requirements.byKey); n > mostRequirements {
		t.Errorf("%d requirements are kept, at most %d are to be", n, mostRequirements)
	}
}

// changeNodes changes some nodes of the table and returns their rows.
func changeNodes(t *rapid.T, tb *table.Table) (rows []table.Row) {
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		name := fmt.Sprint("n", rapid.IntRange(0, 70).Draw(t, "node"))
		if r, known := tb.Find(name); known && rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
			tb.RemoveNode(name)
			rows = append(rows, r)
			continue
		}
		was := tb.NodeRevision()
		if r := tb.SetNode(&object.Node{Name: name, Labels: drawNodeLabels(t)}); tb.NodeRevision() != was {
			rows = append(rows, r)
		}
	}
	return rows
}

func drawNodeLabels(t *rapid.T) map[string]string {
	return rapid.MapOfN(rapid.SampledFrom([]string{"zone", "size"}), rapid.SampledFrom([]string{"1", "2", "9", "x"}), 0, 2).Draw(t, "labels")
}

func drawTerm(t *rapid.T) v1.NodeSelectorTerm {
	var term v1.NodeSelectorTerm
	for range rapid.IntRange(0, 2).Draw(t, "requirements") {
		op := rapid.SampledFrom([]v1.NodeSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"}).Draw(t, "operator")
		r := v1.NodeSelectorRequirement{Key: rapid.SampledFrom([]string{"zone", "size"}).Draw(t, "key"), Operator: op}
		switch op {
		case "In", "NotIn":
			r.Values = rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", "x"}), 1, 2).Draw(t, "values")
		case "Gt", "Lt":
			r.Values = []string{rapid.SampledFrom([]string{"1", "5"}).Draw(t, "bound")}
		}
		term.MatchExpressions = append(term.MatchExpressions, r)
	}
	if rapid.IntRange(0, 3).Draw(t, "name") == 0 {
		op := rapid.SampledFrom([]v1.NodeSelectorOperator{"In", "NotIn"}).Draw(t, "operator of the name")
		term.MatchFields = []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: op, Values: []string{"n1"}}}
	}
	return term
}

func drawSelector(t *rapid.T) *match.NodeSelector {
	var required *v1.NodeSelector
	if rapid.Bool().Draw(t, "required") {
		required = &v1.NodeSelector{NodeSelectorTerms: rapid.SliceOfN(rapid.Custom(drawTerm), 0, 2).Draw(t, "terms")}
	}
	return match.NewNodeSelector(drawNodeLabels(t), required)
}

func drawPreferred(t *rapid.T) *match.PreferredNodes {
	var terms []v1.PreferredSchedulingTerm
	for range rapid.IntRange(0, 3).Draw(t, "terms") {
		terms = append(terms, v1.PreferredSchedulingTerm{Weight: rapid.Int32Range(1, 9).Draw(t, "weight"), Preference: drawTerm(t)})
	}
	return match.NewPreferredNodes(terms)
}

// Labels, and values of labels, that keep coming do not grow what is kept of them.
func TestValuesWithoutEnd(t *testing.T) {
	tb := table.New()
	expect := func(key, value string, want bool) {
		t.Helper()
		s := Of(tb).Select(match.NewNodeSelector(map[string]string{key: value}, nil))
		if admits, known := s.Admits(tb, 0); !known || admits != want {
			t.Errorf("%s=%s: admitted %v, known %v", key, value, admits, known)
		}
	}
	for i := range 200 {
		now := fmt.Sprint(i)
		tb.SetNode(&object.Node{Name: "a", Labels: map[string]string{"n": now, "key" + now: "x"}})
		expect("n", now, true)
		expect("n", fmt.Sprint(i+1), false)
		expect("key"+now, "x", true)
	}
	if n := len(Of(tb).columns.byKey); n > mostLabels {
		t.Errorf("values of %d labels are kept, at most %d are to be", n, mostLabels)
	}
	if n := len(Of(tb).valueColumn("n").values); n > 100 {
		t.Errorf("%d values are kept of one node", n)
	}
}

// Thousands of labels that no node has cost no look at the nodes, whatever is asked of them.
func TestLabelsThatNoNodeHas(t *testing.T) {
	tb := table.New()
	tb.SetNode(&object.Node{Name: "a", Labels: map[string]string{"n": "7"}})
	set, required := map[string]string{}, &v1.NodeSelector{}
	for i := range 1000 {
		key := fmt.Sprint("key", i)
		set[key] = "x"
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
			{Key: key, Operator: v1.NodeSelectorOpDoesNotExist}, {Key: "n", Operator: v1.NodeSelectorOpIn, Values: []string{"7"}}}})
	}
	for _, c := range []struct {
		selector *match.NodeSelector
		admits   bool
		labels   int // that were looked at
	}{{match.NewNodeSelector(set, nil), false, 0}, {match.NewNodeSelector(nil, required), true, 1}} {
		s := Of(tb).Select(c.selector)
		if admits, known := s.Admits(tb, 0); !known || admits != c.admits || len(Of(tb).columns.byKey) != c.labels {
			t.Errorf("admitted %v, known %v, want %v; %d labels were looked at, want %d", admits, known, c.admits, len(Of(tb).columns.byKey), c.labels)
		}
	}
	tb.SetNode(&object.Node{Name: "b", Labels: set})
	s := Of(tb).Select(match.NewNodeSelector(set, nil))
	if admits, known := s.Admits(tb, 1); !known || !admits {
		t.Errorf("a node that has all labels: admitted %v, known %v", admits, known)
	}
}
