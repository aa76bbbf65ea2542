package decode

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Label keys are merged into a term's selector once, and a later change of the
// pod's labels does not count.
func TestLabelKeysAreMergedOnce(t *testing.T) {
	var p v1.Pod
	if err := yaml.UnmarshalStrict([]byte(`
metadata: {name: p, labels: {hash: a, tenant: t}}
spec:
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: zone, labelSelector: {}, matchLabelKeys: [hash, none], mismatchLabelKeys: [tenant]}
      - {topologyKey: zone, matchLabelKeys: [hash]}
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 1, podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {app: x}}, matchLabelKeys: [hash]}}
`), &p); err != nil {
		t.Fatal(err)
	}
	DefaultPod(&p)
	p.Labels["hash"] = "b" // later changes leave what was merged alone
	DefaultPod(&p)
	a := Pod(&p).Affinity
	for i, want := range []string{"hash in (a),tenant notin (t)", "", "app=x,hash in (a)"} {
		if got := a.Terms[i].Selector.String(); got != want {
			t.Errorf("term %d: %q, want %q", i, got, want)
		}
	}
}
