package match

import (
	"encoding/json"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Whatever a pod asks of its node, Berth admits the nodes that Kubernetes' own
// library admits, and a list of names is complete.
func FuzzNodeSelector(f *testing.F) {
	for _, spec := range []string{
		`{}`, `{"nodeSelector":{"zone":"a"}}`, `{"nodeSelector":{"":""}}`,
		`{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[]}}}}`,
		`{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{},{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]},{"key":"n","operator":"Gt","values":["5"]}]}]}}}}`,
		`{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"n","operator":"Lt","values":["x"]}]},{"matchFields":[{"key":"metadata.name","operator":"In","values":["node"]}]}]}}}}`,
		`{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["node"]},{"key":"metadata.uid","operator":"In","values":["u"]}]}]}}}}`,
		`{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"Exists","values":["a"]},{"key":"a/b/c","operator":"DoesNotExist"},{"key":"zone","operator":"Near"}]}]}}}}`,
	} {
		f.Add([]byte(spec), "node", "zone", "a", "n", "6")
	}
	f.Fuzz(func(t *testing.T, text []byte, name, key1, value1, key2, value2 string) {
		var spec v1.PodSpec
		if json.Unmarshal(text, &spec) != nil {
			return
		}
		set := map[string]string{key1: value1, key2: value2}
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set}}
		want, _ := nodeaffinity.GetRequiredNodeAffinity(&v1.Pod{Spec: spec}).Match(node)
		var required *v1.NodeSelector
		if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
			required = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		}
		s := NewNodeSelector(spec.NodeSelector, required)
		if got := s.Matches(Subject{Name: name, Labels: set}); got != want {
			t.Errorf("admits the node: %t, want %t", got, want)
		}
		if names, ok := s.Names(); ok && want && !slices.Contains(names, name) {
			t.Errorf("admits %q, which is not among %q", name, names)
		}
	})
}

// Selectors with the same key match the same labels: the key of one is that of
// the other only if no set of labels tells them apart.
func FuzzLabelSelector(f *testing.F) {
	f.Add([]byte(`{"matchLabels":{"a":"b"}}`), []byte(`{"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}`), "a", "b")
	f.Add([]byte(`{"matchExpressions":[{"key":"a","operator":"NotIn","values":["b","c"]}]}`), []byte(`{"matchExpressions":[{"key":"a","operator":"NotIn","values":["c","b","b"]}]}`), "a", "c")
	f.Add([]byte(`{"matchExpressions":[{"key":"a","operator":"Exists"}]}`), []byte(`{}`), "", "")
	f.Add([]byte(`{"matchExpressions":[{"key":"a","operator":"DoesNotExist","values":["x"]}]}`), []byte(`null`), "a", "1:")
	f.Fuzz(func(t *testing.T, one, two []byte, key, value string) {
		a, okA := labelSelector(one)
		b, okB := labelSelector(two)
		if !okA || !okB || a.Key != b.Key {
			return
		}
		for _, set := range []labels.Set{{}, {key: value}} {
			if a.Matches(set) != b.Matches(set) {
				t.Errorf("key %q, and labels %v tell %s from %s", a.Key, set, a, b)
			}
		}
	})
}

func labelSelector(text []byte) (Selector, bool) {
	var api *metav1.LabelSelector
	if json.Unmarshal(text, &api) != nil {
		return Selector{}, false
	}
	s, err := metav1.LabelSelectorAsSelector(api)
	if err != nil {
		return Selector{}, false
	}
	return NewSelector(s), true
}
