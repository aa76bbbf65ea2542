package manifest

import (
	"strings"
	"testing"
)

const sample = `apiVersion: v1
kind: Node
metadata: {name: a, labels: {zone: z1}}
spec: {taints: [{key: k, effect: NoSchedule}]}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  priority: 5
  containers: [{name: c, image: x, ports: [{hostPort: 80}], resources: {requests: {cpu: 100m}, limits: {cpu: 1e3}}}]
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}]}}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: b}
spec: {maxUnavailable: 10%, selector: {matchLabels: {a: b}}}
`

// Whatever the bytes are, reading them ends, without a panic, and an error is
// one line that says something.
func FuzzFiles(f *testing.F) {
	for _, text := range []string{
		sample, "", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n---\n{\"a\":", "---", "{", "[]", "null", "\x00", "\xff\xfe", "a: &a [*a, *a]", "apiVersion: v1\nkind: List\nitems: [null, {}, []]",
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}{"apiVersion":"v1"}`,
		`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}]}`,
		strings.Replace(sample, "100m", "1e999999999", 1), strings.Replace(sample, "100m", "1e-999999999", 1),
		strings.Replace(sample, "maxSkew: 1", "maxSkew: 2147483648", 1), strings.Replace(sample, "hostPort: 80", "hostPort: 70000", 1),
		strings.Replace(sample, "10%", "lots", 1), strings.Replace(sample, "priority: 5", "priority: -2147483649", 1),
		strings.Replace(sample, "name: a,", "name: "+strings.Repeat("x", 1<<16)+",", 1), strings.Repeat("[", 1<<14), strings.Repeat("{a: ", 1<<12),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := NewSet()
		err := s.Files([]string{"-"}, strings.NewReader(string(text)), 1)
		if err == nil {
			err = s.Resolve()
		}
		if err != nil && (err.Error() == "" || strings.Contains(err.Error(), "\n")) {
			t.Errorf("the error is %q", err)
		}
	})
}
