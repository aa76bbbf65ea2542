package match

import (
	"slices"
	"strconv"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"pgregory.net/rapid"
)

// Generators with few, colliding and partly malformed words.

var (
	someKey   = rapid.SampledFrom([]string{"zone", "disk", "size", "size", "size", nameField, nameField, "bad key"})
	someValue = rapid.SampledFrom([]string{"a", "1", "5", "5", "+5", "05", "-3", "", "n1", "n2", "9223372036854775808", "x y"})
	someName  = rapid.SampledFrom([]string{"n1", "n2", "a", ""})
	someOp    = rapid.SampledFrom([]v1.NodeSelectorOperator{
		v1.NodeSelectorOpIn, v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn, v1.NodeSelectorOpExists,
		v1.NodeSelectorOpDoesNotExist, v1.NodeSelectorOpGt, v1.NodeSelectorOpLt, "Near",
	})
	someSet = rapid.MapOfN(rapid.SampledFrom([]string{"zone", "disk", "size"}), someValue, 0, 3)

	someRequirement = rapid.Custom(func(t *rapid.T) v1.NodeSelectorRequirement {
		r := v1.NodeSelectorRequirement{Key: someKey.Draw(t, "key"), Operator: someOp.Draw(t, "op")}
		n := 1
		if r.Operator == v1.NodeSelectorOpExists || r.Operator == v1.NodeSelectorOpDoesNotExist {
			n = 0
		}
		if rapid.IntRange(0, 7).Draw(t, "odd") == 0 {
			n = 2
		}
		r.Values = rapid.SliceOfN(someValue, n, n).Draw(t, "values")
		return r
	})
	someTerm = rapid.Custom(func(t *rapid.T) v1.NodeSelectorTerm {
		return v1.NodeSelectorTerm{
			MatchExpressions: rapid.SliceOfN(someRequirement, 0, 2).Draw(t, "expressions"),
			MatchFields:      rapid.SliceOfN(someRequirement, 0, 1).Draw(t, "fields"),
		}
	})
	somePreferred = rapid.Custom(func(t *rapid.T) []v1.PreferredSchedulingTerm {
		terms := rapid.SliceOfN(someTerm, 0, 3).Draw(t, "preferred")
		var list []v1.PreferredSchedulingTerm
		for _, p := range terms {
			list = append(list, v1.PreferredSchedulingTerm{Weight: rapid.Int32Range(0, 3).Draw(t, "weight"), Preference: p})
		}
		return list
	})
)

func drawRequired(t *rapid.T) *v1.NodeSelector {
	if rapid.Bool().Draw(t, "none") {
		return nil
	}
	return &v1.NodeSelector{NodeSelectorTerms: rapid.SliceOfN(someTerm, 0, 3).Draw(t, "terms")}
}

func drawNode(t *rapid.T) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: someName.Draw(t, "name"), Labels: someSet.Draw(t, "labels")}}
}

func subject(n *v1.Node) Subject { return Subject{n.Name, n.Labels} }

// A node selector matches the nodes that component-helpers matches.
func TestMatchesAsComponentHelpers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := &v1.Pod{Spec: v1.PodSpec{NodeSelector: someSet.Draw(t, "set")}}
		required := drawRequired(t)
		pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
		s := NewNodeSelector(pod.Spec.NodeSelector, required)
		oracle := nodeaffinity.GetRequiredNodeAffinity(pod)
		for range 20 {
			node := drawNode(t)
			want, _ := oracle.Match(node)
			if got := s.Matches(subject(node)); got != want {
				t.Fatalf("node %q %v: got %v, want %v", node.Name, node.Labels, got, want)
			}
		}
	})
}

// Every operator with every kind of value, one requirement at a time.
func TestRequirementsAsComponentHelpers(t *testing.T) {
	values := []string{"a", "1", "5", "6", "+5", "05", "-3", "-", "", "n1", "9223372036854775808", "x y"}
	lists := [][]string{nil, {"a", "5"}, {"5", "6"}}
	nodes := []*v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, {}}
	for _, v := range values {
		lists = append(lists, []string{v})
		nodes = append(nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"size": v}}})
	}
	for _, op := range []v1.NodeSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near", ""} {
		for _, key := range []string{"size", "bad key", nameField} {
			for _, list := range lists {
				r := []v1.NodeSelectorRequirement{{Key: key, Operator: op, Values: list}}
				for _, term := range []v1.NodeSelectorTerm{{MatchExpressions: r}, {MatchFields: r}} {
					required := &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}
					s, oracle := NewNodeSelector(nil, required), nodeaffinity.NewLazyErrorNodeSelector(required)
					for _, node := range nodes {
						if want, _ := oracle.Match(node); s.Matches(subject(node)) != want {
							t.Errorf("%+v on %q %v: want %v", term, node.Name, node.Labels, want)
						}
					}
				}
			}
		}
	}
}

// Preferred terms score a node as component-helpers does.
func TestScoreAsComponentHelpers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := somePreferred.Draw(t, "terms")
		p := NewPreferredNodes(terms)
		oracle, err := nodeaffinity.NewPreferredSchedulingTerms(terms)
		if err != nil {
			if p == nil || p.Invalid == nil || p.Invalid.Error() != err.Error() {
				t.Fatalf("want error %v, got %+v", err, p)
			}
			return
		}
		if p != nil && p.Invalid != nil {
			t.Fatalf("no error wanted, got %v", p.Invalid)
		}
		for range 20 {
			node := drawNode(t)
			if got, want := p.Score(subject(node)), oracle.Score(node); got != want {
				t.Fatalf("node %q %v: got %d, want %d", node.Name, node.Labels, got, want)
			}
		}
	})
}

// A pinned selector matches none but the nodes that it names.
func TestNamesHoldAllThatMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewNodeSelector(nil, drawRequired(t))
		names, ok := s.Names()
		node := drawNode(t)
		if ok && node.Name != "" && s.Matches(subject(node)) && !slices.Contains(names, node.Name) {
			t.Fatalf("%q matches and is not among %v", node.Name, names)
		}
	})
}

// A selector by metadata.name narrows the search to the named nodes, as in
// kube-scheduler.
func TestNames(t *testing.T) {
	in := func(names ...string) v1.NodeSelectorRequirement {
		return v1.NodeSelectorRequirement{Key: nameField, Operator: v1.NodeSelectorOpIn, Values: names}
	}
	notIn := in("x")
	notIn.Operator = v1.NodeSelectorOpNotIn
	other := in("x")
	other.Key = "metadata.uid"
	term := func(fields ...v1.NodeSelectorRequirement) v1.NodeSelectorTerm {
		return v1.NodeSelectorTerm{MatchFields: fields}
	}
	for _, c := range []struct {
		name  string
		terms []v1.NodeSelectorTerm
		want  []string
		ok    bool
	}{
		{"no terms", nil, nil, false},
		{"one name", []v1.NodeSelectorTerm{term(in("a"))}, []string{"a"}, true},
		{"terms are ored", []v1.NodeSelectorTerm{term(in("b")), term(in("a")), term(in("b"))}, []string{"a", "b"}, true},
		{"requirements are anded", []v1.NodeSelectorTerm{term(in("a", "b"), in("b", "c"))}, []string{"b"}, true},
		{"conflict", []v1.NodeSelectorTerm{term(in("a"), in("b"))}, nil, true},
		{"conflict in one term only", []v1.NodeSelectorTerm{term(in("a"), in("b")), term(in("c"))}, []string{"c"}, true},
		{"a term without a name", []v1.NodeSelectorTerm{term(in("a")), term(notIn)}, nil, false},
		{"an empty term", []v1.NodeSelectorTerm{term(in("a")), {}}, nil, false},
		{"another field", []v1.NodeSelectorTerm{term(other)}, nil, false},
		{"other requirements beside", []v1.NodeSelectorTerm{term(notIn, in("a"))}, []string{"a"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := NewNodeSelector(nil, &v1.NodeSelector{NodeSelectorTerms: c.terms}).Names()
			if ok != c.ok || !slices.Equal(got, c.want) {
				t.Errorf("got %q %v, want %q %v", got, ok, c.want, c.ok)
			}
		})
	}
}

// Keys differ wherever the API objects differ, whatever strings are in them.
func TestKeysTellSelectorsApart(t *testing.T) {
	type set = map[string]string
	one := func(key, op string, values ...string) v1.NodeSelectorTerm {
		return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOperator(op), Values: values}}}
	}
	terms := func(list ...v1.NodeSelectorTerm) *v1.NodeSelector { return &v1.NodeSelector{NodeSelectorTerms: list} }
	both := v1.NodeSelectorTerm{MatchExpressions: slices.Concat(one("a", "Exists").MatchExpressions, one("b", "Exists").MatchExpressions)}
	seen := map[string]int{}
	for i, s := range []*NodeSelector{
		NewNodeSelector(set{"a": "b"}, nil),
		NewNodeSelector(set{"a": "b"}, terms()),
		NewNodeSelector(set{"a": "b"}, terms(v1.NodeSelectorTerm{})),
		NewNodeSelector(set{"a": "b", "c": "d"}, nil),
		NewNodeSelector(set{"a": "b1:c1:d"}, nil),
		NewNodeSelector(nil, terms()),
		NewNodeSelector(nil, terms(one("a", "Exists"))),
		NewNodeSelector(nil, terms(one("a", "DoesNotExist"))),
		NewNodeSelector(nil, terms(one("a", "In", "b"))),
		NewNodeSelector(nil, terms(one("a", "NotIn", "b"))),
		NewNodeSelector(nil, terms(one("a", "In", "b", "c"))),
		NewNodeSelector(nil, terms(one("a", "In", "b1:c"))),
		NewNodeSelector(nil, terms(one("a", "In", "b;"))),
		NewNodeSelector(nil, terms(v1.NodeSelectorTerm{MatchFields: one("a", "In", "b").MatchExpressions})),
		NewNodeSelector(nil, terms(both)),
		NewNodeSelector(nil, terms(one("a", "Exists"), one("b", "Exists"))),
	} {
		if j, ok := seen[s.Key]; ok {
			t.Errorf("selectors %d and %d have the key %q", j, i, s.Key)
		}
		seen[s.Key] = i
	}
	if a, b := NewNodeSelector(set{"a": "b", "c": "d"}, terms(both)), NewNodeSelector(set{"c": "d", "a": "b"}, terms(both)); a.Key != b.Key {
		t.Errorf("equal selectors have the keys %q and %q", a.Key, b.Key)
	}
}

// Terms with the same key score every node alike.
func TestKeysOfPreferredNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := NewPreferredNodes(somePreferred.Draw(t, "a")), NewPreferredNodes(somePreferred.Draw(t, "b"))
		if a == nil || b == nil || a.Key != b.Key {
			return
		}
		if node := drawNode(t); a.Score(subject(node)) != b.Score(subject(node)) {
			t.Fatalf("key %q, other scores", a.Key)
		}
	})
}

// Matching and scoring a node allocates no memory.
func TestAskingAllocatesNothing(t *testing.T) {
	expressions := []v1.NodeSelectorRequirement{
		{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{"a", "b"}},
		{Key: "size", Operator: v1.NodeSelectorOpGt, Values: []string{"4"}},
	}
	field := []v1.NodeSelectorRequirement{{Key: nameField, Operator: v1.NodeSelectorOpIn, Values: []string{"n1"}}}
	term := v1.NodeSelectorTerm{MatchExpressions: expressions, MatchFields: field}
	s := NewNodeSelector(map[string]string{"disk": "ssd"}, &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}})
	p := NewPreferredNodes([]v1.PreferredSchedulingTerm{{Weight: 1, Preference: term}})
	node := Subject{"n1", map[string]string{"zone": "b", "size": "5", "disk": "ssd"}}
	odd := Subject{"n2", map[string]string{"zone": "b", "size": "five", "disk": "ssd"}}
	if !s.Matches(node) || p.Score(node) != 1 || s.Matches(odd) {
		t.Fatal("wrong answers")
	}
	if n := testing.AllocsPerRun(100, func() { s.Matches(node); s.Matches(odd); p.Score(node); p.Score(odd) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkMatches measures a node selector with a label and an expression against one
// node.
func BenchmarkMatches(b *testing.B) {
	expressions := []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{"a", "b"}}}
	term := v1.NodeSelectorTerm{MatchExpressions: expressions}
	s := NewNodeSelector(map[string]string{"disk": "ssd"}, &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}})
	node := Subject{"n1", map[string]string{"zone": "b", "size": "5", "disk": "ssd"}}
	for b.Loop() {
		s.Matches(node)
	}
}

// One label with one of some values is all that is asked only where nothing else is.
func TestOneOf(t *testing.T) {
	in := v1.NodeSelectorRequirement{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{"a", "b"}}
	name := v1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{"n"}}
	other := v1.NodeSelectorRequirement{Key: "zone", Operator: v1.NodeSelectorOpExists}
	bad := v1.NodeSelectorRequirement{Key: "no key", Operator: v1.NodeSelectorOpIn, Values: []string{"a"}}
	term := func(labels, fields []v1.NodeSelectorRequirement) v1.NodeSelectorTerm {
		return v1.NodeSelectorTerm{MatchExpressions: labels, MatchFields: fields}
	}
	just := term([]v1.NodeSelectorRequirement{in}, nil)
	for name, c := range map[string]struct {
		set   map[string]string
		terms []v1.NodeSelectorTerm
		want  bool
	}{
		"just that":          {nil, []v1.NodeSelectorTerm{just}, true},
		"an empty term, too": {nil, []v1.NodeSelectorTerm{{}, just}, true},
		"a label besides":    {map[string]string{"k": "v"}, []v1.NodeSelectorTerm{just}, false},
		"another term":       {nil, []v1.NodeSelectorTerm{just, just}, false},
		"two labels":         {nil, []v1.NodeSelectorTerm{term([]v1.NodeSelectorRequirement{in, other}, nil)}, false},
		"a field":            {nil, []v1.NodeSelectorTerm{term([]v1.NodeSelectorRequirement{in}, []v1.NodeSelectorRequirement{name})}, false},
		"another operator":   {nil, []v1.NodeSelectorTerm{term([]v1.NodeSelectorRequirement{other}, nil)}, false},
		"no valid label":     {nil, []v1.NodeSelectorTerm{term([]v1.NodeSelectorRequirement{bad}, nil)}, false},
	} {
		key, values, ok := NewNodeSelector(c.set, &v1.NodeSelector{NodeSelectorTerms: c.terms}).OneOf()
		if ok != c.want || ok && (key != "zone" || !slices.Equal(values, in.Values)) {
			t.Errorf("%s: %s %v %v", name, key, values, ok)
		}
	}
	if _, _, ok := (*NodeSelector)(nil).OneOf(); ok {
		t.Error("who asks for nothing asks for one of some values")
	}
}

// A requirement with thousands of values, in any order, holds for each of them alone.
func TestManyValues(t *testing.T) {
	var values []string
	for i := range 1000 {
		values = append(values, strconv.Itoa(i*7919%1000))
	}
	for op, want := range map[v1.NodeSelectorOperator]bool{v1.NodeSelectorOpIn: true, v1.NodeSelectorOpNotIn: false} {
		s := NewNodeSelector(nil, &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: "n", Operator: op, Values: values}}}}})
		for value, among := range map[string]bool{"0": true, "999": true, "500": true, "1000": false, "": false, "05": false} {
			if got := s.Matches(Subject{Labels: map[string]string{"n": value}}); got != (among == want) {
				t.Errorf("%s: %q: %v", op, value, got)
			}
		}
	}
}
