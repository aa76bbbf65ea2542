package records

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each pod counts for one cause: the reason that most nodes have among those which a pod
// that leaves could take away, or else among those that it is meant for. Pods whose reasons differ in a name alone have one cause.
func TestRank(t *testing.T) {
	const far, near = "UnschedulableAndUnresolvable", "Unschedulable"
	tainted := Blocker{"TaintToleration", far, []string{"node(s) had untolerated taint {a: b}"}, 90}
	cpu := func(nodes int, reasons ...string) Blocker { return Blocker{"NodeResourcesFit", near, reasons, nodes} }
	last := []Record{
		{Pod: "shop/web-1", Blockers: []Blocker{tainted, cpu(3, "Insufficient cpu")}},
		{Pod: "shop/web-2", Blockers: []Blocker{tainted, cpu(2, "Insufficient cpu", "Insufficient memory"), cpu(1, "Insufficient cpu")}},
		{Pod: "shop/api-1", Blockers: []Blocker{cpu(1, "Insufficient memory"), cpu(4, "Insufficient cpu")}},
		{Pod: "infra/gpu-1", Blockers: []Blocker{tainted}},
		{Pod: "shop/zonal-0", Blockers: []Blocker{tainted, {"NodeAffinity", far, []string{"node(s) didn't match"}, 9}, {"VolumeBinding", far, []string{"volume node affinity conflict"}, 3}}},
		{Pod: "shop/db-0", RejectedBy: []string{"VolumeBinding"}, Message: `0/3 nodes are available: persistentvolumeclaim "data-0" not found`},
		{Pod: "shop/db-1", RejectedBy: []string{"VolumeBinding"}, Message: `0/4 nodes of rack a/r1 are available: persistentvolumeclaim "data-1" not found`},
	}
	got := Rank(slices.Values(last), func(r *Record) string { return r.Pod[:strings.LastIndex(r.Pod, "-")] })
	want := []Blocking{
		{"NodeResourcesFit", "Insufficient cpu", 3, []Workload{{"shop/web", 2}, {"shop/api", 1}}},
		{"VolumeBinding", `persistentvolumeclaim "..." not found`, 2, []Workload{{"shop/db", 2}}},
		{"TaintToleration", "node(s) had untolerated taint {a: b}", 1, []Workload{{"infra/gpu", 1}}},
		{"VolumeBinding", "volume node affinity conflict", 1, []Workload{{"shop/zonal", 1}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Each cause finds the pods that it counts.
func TestCausesFindTheirPods(t *testing.T) {
	records := []Record{
		{Message: `pods "a" is forbidden`},
		{Message: `pods "b" is forbidden`},
		{Blockers: []Blocker{{Plugin: "VolumeBinding", Nodes: 1, Reasons: []string{`claim "c" not found`}}}},
		{Blockers: []Blocker{{Plugin: "VolumeBinding", Nodes: 1, Reasons: []string{`claim "d" not found`}}}},
		{Message: "0/3 nodes are available: 3 Insufficient cpu"},
	}
	for _, cause := range Rank(slices.Values(records), func(*Record) string { return "" }) {
		found := 0
		for i := range records {
			if records[i].Has(cause.Reason) {
				found++
			}
		}
		if found != cause.Pods {
			t.Errorf("%q finds %d pods and counts %d", cause.Reason, found, cause.Pods)
		}
	}
}

// Quantiles are times that were seen, of few pods too.
func TestQuantile(t *testing.T) {
	hundred := make([]int64, 100)
	for i := range hundred {
		hundred[i] = int64(i+1) * int64(time.Second)
	}
	for _, c := range []struct {
		of       []int64
		p50, p99 float64
	}{{nil, 0, 0}, {hundred[:1], 1, 1}, {hundred[:2], 1, 2}, {hundred, 50, 99}} {
		if p50, p99 := quantile(c.of, 50), quantile(c.of, 99); p50 != c.p50 || p99 != c.p99 {
			t.Errorf("%d times: %v and %v, want %v and %v", len(c.of), p50, p99, c.p50, c.p99)
		}
	}
}
