package decode

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/berth-scheduler/berth/core/object"
)

// What an ElasticQuota says counts, and what is wrong with it is put right and said.
func TestElasticQuota(t *testing.T) {
	for body, want := range map[string]struct{ quota, faults string }{
		`{"spec":{"min":{"cpu":"500m","memory":"1Gi"},"max":{"cpu":2,"example.com/gpu":"8"}},"status":{"used":{"cpu":"1"}}}`: {
			"min [cpu 500m, memory 1Gi] max [cpu 2, example.com/gpu 8] used [cpu 1]", "[]"},
		`{"spec":{"max":{}}}`: {"min none max [] used none", `["it names no resource in spec.min and spec.max, so it bounds nothing and guarantees nothing"]`},
		`{"spec":{"min":{"cpu":3},"max":{"cpu":"2500m"}}}`: {"min [cpu 2500m] max [cpu 2500m] used none",
			`["spec.min of cpu, 3, is more than spec.max, 2500m, which counts as min"]`},
		`{"spec":{"min":{"cpu":"-1"},"max":{"pods":3,"cpu":1}}}`: {"min [cpu 0] max [cpu 1] used none",
			`["spec.min of cpu, -1, is negative and counts as 0" "spec.max of pods is ignored: no scheduler counts such a resource"]`},
		`{"spec":{"max":{"cpu":"1e-999999999","memory":"x"}}}`: {"min none max [] used none",
			`["spec.max of cpu is ignored: it is not a quantity, such as 500m, 2 or 1Gi" "spec.max of memory is ignored: it is not a quantity, such as 500m, 2 or 1Gi" "it names no resource in spec.min and spec.max, so it bounds nothing and guarantees nothing"]`},
		`{"metadata":{"annotations":{"berth.dev/parent-quota":"org"}},"spec":{"max":{"cpu":1}}}`: {"min none max [cpu 1] used none",
			`["its annotation berth.dev/parent-quota is \"org\", and should be NAMESPACE/NAME; it has no parent"]`},
		`{"metadata":{"annotations":{"berth.dev/parent-quota":"org/q"}},"spec":{"max":{"cpu":1}}}`: {"min none max [cpu 1] used none parent org/q", "[]"},
	} {
		q := &ElasticQuota{}
		if err := json.Unmarshal([]byte(body), q); err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		got := Object(q).(*object.ElasticQuota)
		shown := fmt.Sprintf("min %s max %s used %s", list(got.Min), list(got.Max), list(got.Used))
		if got.Parent != "" {
			shown += " parent " + got.Parent
		}
		if faults := fmt.Sprintf("%q", got.Faults); shown != want.quota || faults != want.faults {
			t.Errorf("%s: got %s, faults %s; want %s, %s", body, shown, faults, want.quota, want.faults)
		}
	}
}

func list(l object.Amounts) string {
	if l == nil {
		return "none"
	}
	return "[" + l.String() + "]"
}

// A record holds an ElasticQuota as it is, and a copy shares nothing with it.
func TestElasticQuotaIsKept(t *testing.T) {
	q := &ElasticQuota{Spec: ElasticQuotaSpec{Max: Quantities{"cpu": "2"}}}
	q.Namespace, q.Name, q.Labels = "n", "q", map[string]string{"a": "b"}
	data, err := q.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	read := &ElasticQuota{}
	if err := read.Unmarshal(data); err != nil {
		t.Fatal(err)
	}
	l := (&ElasticQuotaList{Items: []ElasticQuota{*read}}).DeepCopyObject().(*ElasticQuotaList)
	l.Items[0].Spec.Max["cpu"], l.Items[0].Labels["a"] = "3", "c"
	if read.Spec.Max["cpu"] != "2" || read.Labels["a"] != "b" || !slices.Equal(Object(read).(*object.ElasticQuota).Max, Object(q).(*object.ElasticQuota).Max) {
		t.Errorf("read %+v", read)
	}
}
