package kube

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// Who needs ElasticQuotas, or the PodGroups of the same group, is told at the start that the
// API server has none, and how to get them.
func TestCheckServed(t *testing.T) {
	for kind, other := range map[object.Kind]object.Kind{object.ElasticQuotas: object.CoschedulingGroups, object.CoschedulingGroups: object.ElasticQuotas} {
		t.Run(kind.String(), func(t *testing.T) { testServed(t, kind, other) })
	}
	if err := CheckServed(t.Context(), newWire(t, func(http.ResponseWriter, *http.Request, string) { t.Error("asked") }).config(), []object.Kind{object.PodGroups}); err != nil {
		t.Error(err)
	}
}

func testServed(t *testing.T, kind, other object.Kind) {
	served := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, APIResources: []metav1.APIResource{{Name: kind.Resource()}}}
	others := served
	others.APIResources = []metav1.APIResource{{Name: other.Resource()}}
	refused := "the API server does not serve " + kind.Resource() + " of scheduling.x-k8s.io/v1alpha1, which plugins of the configuration read; install them first: kubectl apply -f deploy/" + kind.Resource() + ".yaml"
	for name, c := range map[string]struct {
		code int
		body any
		want string
	}{
		"served": {200, served, ""}, "no such version": {404, nil, refused}, "other kinds of it": {200, others, refused},
		"forbidden": {403, nil, ""}, "out of order": {500, nil, ""}, "nonsense": {200, "no", ""},
	} {
		s := newWire(t, func(w http.ResponseWriter, r *http.Request, _ string) {
			if r.URL.Path != "/apis/scheduling.x-k8s.io/v1alpha1" || !strings.Contains(r.Header.Get("Accept"), "json") {
				t.Errorf("asked for %s as %s", r.URL.Path, r.Header.Get("Accept"))
			}
			answer(w, c.code, c.body)
		})
		got := ""
		if err := CheckServed(t.Context(), s.config(), []object.Kind{object.PodGroups, kind}); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// All kinds that the API server lacks are named at once, with the command that installs them.
func TestCheckServedSeveral(t *testing.T) {
	s := newWire(t, func(w http.ResponseWriter, _ *http.Request, _ string) { answer(w, 404, nil) })
	err := CheckServed(t.Context(), s.config(), []object.Kind{object.ElasticQuotas, object.PodGroups, object.CoschedulingGroups})
	want := "the API server does not serve elasticquotas of scheduling.x-k8s.io/v1alpha1 and podgroups of scheduling.x-k8s.io/v1alpha1, which plugins of the configuration read; install them first: kubectl apply -f deploy/elasticquotas.yaml -f deploy/podgroups.yaml"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The status that is written has what is used, and lacks what does not belong there.
func TestQuotaStatus(t *testing.T) {
	q := &object.ElasticQuota{Meta: object.Meta{Kind: object.ElasticQuotas, Namespace: "n", Name: "q", UID: "u"},
		Used: object.Amounts{{Name: "cpu", Value: 1}, {Name: "example.com/gpu", Value: 3}}}
	got := string(quotaStatusOf(machine.PatchQuotaStatus{Quota: q, Used: object.Amounts{{Name: "cpu", Value: 2500}, {Name: "memory", Value: 1 << 30}}}))
	if want := `{"metadata":{"uid":"u"},"status":{"used":{"cpu":"2500m","example.com/gpu":null,"memory":"1Gi"}}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The status of a PodGroup that is written has its phase and all its numbers. Only a change of
// the phase is sent at once.
func TestGroupPhase(t *testing.T) {
	g := &object.PodGroup{Meta: object.Meta{Kind: object.CoschedulingGroups, Namespace: "n", Name: "g", UID: "u"}}
	running := machine.PatchGroupPhase{Group: g, Status: object.GroupStatus{Phase: object.GroupRunning, OccupiedBy: "n/j", Running: 3}}
	got := string(phaseOf(running))
	if want := `{"metadata":{"uid":"u"},"status":{"failed":0,"occupiedBy":"n/j","phase":"Running","running":3,"succeeded":0}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	fewer, failed := running, running
	fewer.Status.Running, failed.Status.Phase = 2, object.GroupFailed
	if !rewordsPhase(running, fewer) || rewordsPhase(running, failed) {
		t.Error("numbers do not wait, or phases do")
	}
}

// What is wrong with an ElasticQuota is logged.
func TestFaultsAreLogged(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	x := &Executor{logger: logger}
	x.Do(machine.ReportQuotaFaults{Quota: &object.ElasticQuota{Meta: object.Meta{Namespace: "n", Name: "q"}}, Faults: "spec.max of cpu, -1, is negative and counts as 0"})
	if len(lines) != 1 || !strings.Contains(lines[0], "spec.max of cpu, -1, is negative and counts as 0") || !strings.Contains(lines[0], `"name"="q"`) {
		t.Errorf("%q", lines)
	}
}

// An ElasticQuota of which something cannot be read counts as an object that cannot be.
func TestUnreadableQuotasAreCounted(t *testing.T) {
	w := &Watcher{}
	for _, most := range []decode.QuantityText{"1", "x", "-1"} {
		w.objectSet(&decode.ElasticQuota{Spec: decode.ElasticQuotaSpec{Max: decode.Quantities{"cpu": most}}})
	}
	if n := w.BadObjects(); n != 1 {
		t.Errorf("%d", n)
	}
}
