package decode

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"

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
		`{"spec":{"min":{"example.com/gpu":"1500m","memory":"1500m"}}}`: {"min [example.com/gpu 2, memory 2] max none used none",
			`["spec.min of example.com/gpu, 1500m, is not a whole number and counts as 2"]`},
		`{"spec":{"max":{"memory":"2Pi"}},"status":{"used":{"memory":"7Ei"}}}`: {"min none max [memory 2Pi] used [memory 7Ei]", "[]"},
		`{"spec":{"max":{"cpu":"1e-999999999","memory":"x"}}}`:                 {"min none max [] used none", mended(`spec.max of cpu, "1e-999999999", is not a quantity, such as 500m, 2 or 1Gi; spec.max of memory, "x", is not a quantity, such as 500m, 2 or 1Gi`)},
		`{"spec":{"min":{"cpu":true,"memory":{"a":1}},"max":{"cpu":3}}}`: {"min [] max [cpu 3] used none",
			mended(`spec.min of cpu, "true", is not a quantity, such as 500m, 2 or 1Gi; spec.min of memory, "{\"a\":1}", is not a quantity, such as 500m, 2 or 1Gi`)},
		`{"spec":{"min":{"cpu":1},"max":[3]}}`:                    {"min [cpu 1] max [] used none", mended(`spec.max is not a list of amounts: "[3]"`)},
		`{"spec":"all","status":7}`:                               {"min none max [] used none", mended(`spec.max is not a list of amounts: "\"all\""`)},
		`{"status":{"used":{"cpu":[]}}}`:                          {"min none max none used []", `["it names no resource in spec.min and spec.max, so it bounds nothing and guarantees nothing"]`},
		`{"spec":{"min":{"cpu":1},"max":` + resources(101) + `}}`: {"min [cpu 1] max [] used none", mended("spec.max names 101 resources, more than 100")},
		`{"spec":{"max":{"example.com/kubernetes.io/` + strings.Repeat("x", 300) + `":1,"cpu":2}}}`: {"min none max [cpu 2] used none",
			`["spec.max of \"example.com/kubernetes.io/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\" is ignored: no resource has a name of 326 characters"]`},
		`{"metadata":{"labels":7},"spec":{"max":{}}}`: {"min none max [] used none",
			mended(`metadata cannot be read: "json: cannot unmarshal number into Go struct field ObjectMet..."`)},
		`{"metadata":{"annotations":{"berth.dev/parent-quota":"org"}},"spec":{"max":{"cpu":1}}}`: {"min none max [cpu 1] used none",
			`["its annotation berth.dev/parent-quota is \"org\", and should be NAMESPACE/NAME; it has no parent"]`},
		`{"metadata":{"annotations":{"berth.dev/parent-quota":"org/q"}},"spec":{"max":{"cpu":1}}}`: {"min none max [cpu 1] used none parent org/q", "[]"},
		`{"metadata":{"annotations":{"berth.dev/part-quotas":"a, b,"}},"spec":{"max":{"cpu":1}}}`:  {"min none max [cpu 1] used none parts [a b]", "[]"},
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
		if len(got.Parts) > 0 {
			shown += fmt.Sprint(" parts ", got.Parts)
		}
		if faults := fmt.Sprintf("%q", got.Faults); shown != want.quota || faults != want.faults {
			t.Errorf("%s: got %s, faults %s; want %s, %s", body, shown, faults, want.quota, want.faults)
		}
	}
}

// resources is a list of that many resources.
func resources(n int) string {
	list := map[string]int{}
	for i := range n {
		list[fmt.Sprintf("example.com/%d", i)] = 1
	}
	data, err := json.Marshal(list)
	if err != nil {
		panic(err) // texts and numbers only
	}
	return string(data)
}

// mended is the fault of an ElasticQuota that cannot be read.
func mended(what string) string {
	return fmt.Sprintf("[%q]", what+"; until that is mended no pod of its namespace is placed, and none is preempted for another quota")
}

// An object of another shape does not end the list of the others, and is what it is in a
// record, too.
func TestElasticQuotasOfAnotherShape(t *testing.T) {
	body := `{"kind":"ElasticQuotaList","apiVersion":"scheduling.x-k8s.io/v1alpha1","metadata":{"resourceVersion":"9"},"items":[
		{"metadata":{"namespace":"a","name":"q","resourceVersion":"1"},"spec":{"min":{"cpu":"1"},"max":{}}},
		{"metadata":{"namespace":"b","name":"q","uid":"u","resourceVersion":"2","creationTimestamp":"never"},"spec":{"max":{"cpu":1}}},
		{"metadata":{"namespace":"c","name":"q","resourceVersion":"3"},"spec":{"max":{"cpu":[1]}}},
		{"metadata":{"namespace":"many","name":"q","resourceVersion":"5"},"spec":{"min":` + resources(5000) + `}},
		{"metadata":{"namespace":"d","name":"q","resourceVersion":"4"},"spec":{"max":{"cpu":1}}}]}`
	k := Named("ElasticQuota")
	read, _, err := k.Codecs().UniversalDeserializer().Decode([]byte(body), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range read.(*ElasticQuotaList).Items {
		q := &read.(*ElasticQuotaList).Items[i]
		data, err := q.Marshal()
		again := &ElasticQuota{}
		if err != nil || again.Unmarshal(data) != nil || !Object(again).(*object.ElasticQuota).Alike(Object(q).(*object.ElasticQuota)) {
			t.Errorf("%s: in a record %s", q.Namespace, data)
		}
		got = append(got, fmt.Sprintf("%s/%s %s %s %t", q.Namespace, q.Name, q.UID, q.ResourceVersion, Object(q).(*object.ElasticQuota).Unreadable == ""))
	}
	if want := []string{"a/q  1 true", "b/q u 2 false", "c/q  3 false", "many/q  5 false", "d/q  4 true"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// client-go's scheme takes types of the same names from whoever links Berth.
func TestElasticQuotasAreNotGlobal(t *testing.T) {
	if version := Named("ElasticQuota").GroupVersion; scheme.Scheme.IsVersionRegistered(version) {
		t.Errorf("client-go's scheme knows %s", version)
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
