package object

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/berth-scheduler/berth/core/match"
)

// personal are the fields that say nothing of where a pending pod may run: who it is, how it
// is getting on, and which node is the best for it.
var personal = []string{
	"UID", "Name", "Version", "NodeName", "NominatedNode", "Terminating", "Terminal", "Disrupted", "Created", "Started", "Generation", "Gates",
	"FromDevices", "Claiming", "Limits", "PreferredNodes", "Images", "Scheduled", "API", "Recorded", "Running", "Failed",
}

// Every field of a pod is in its template, or is known not to be.
func TestTemplateKnowsEveryField(t *testing.T) {
	isPersonal := map[string]bool{}
	for _, name := range personal {
		isPersonal[name] = true
	}
	plain := (&Pod{}).AppendTemplate(nil)
	fields := reflect.TypeFor[Pod]()
	for i := range fields.NumField() {
		name, q := fields.Field(i).Name, &Pod{}
		if !change(reflect.ValueOf(q).Elem().Field(i)) {
			t.Fatalf("Pod.%s: no other value is known", name)
		}
		if g := q.SchedulingGroup; g != nil {
			g.PodGroupName = "a"
		}
		if same := bytes.Equal(q.AppendTemplate(nil), plain); same != isPersonal[name] {
			t.Errorf("Pod.%s: the same template is %v where it differs: say in AppendTemplate, or here, whether it counts", name, same)
		}
	}
}

// What is in a template does not run into what comes next, and what is deeper than a field
// counts, too.
func TestTemplatesDiffer(t *testing.T) {
	pods := []*Pod{
		{},
		{Labels: map[string]string{"a": "b"}}, {Labels: map[string]string{"a": "c"}}, {Labels: map[string]string{"ab": ""}},
		{SchedulerName: "a"}, {Namespace: "a"},
		{Tolerations: match.Tolerations{Key: "a"}}, {RequiredNodes: &match.NodeSelector{Key: "a"}}, {RequiredNodes: &match.NodeSelector{Key: "b"}},
		{Spread: &match.Spread{Key: "a"}}, {Spread: &match.Spread{Key: "b"}}, {Affinity: &match.PodAffinity{Key: "a"}}, {Affinity: &match.PodAffinity{Key: "b"}},
		{HostPorts: []HostPort{{Port: 1}}}, {HostPorts: []HostPort{{Port: 2}}}, {HostPorts: []HostPort{{Port: 1, IP: "10.0.0.1"}}},
		{Volumes: []Volume{{Claimed: true, Claim: "a"}}}, {Volumes: []Volume{{Claimed: true, Claim: "b"}}},
		{Claims: []PodClaim{{Claim: "a"}}}, {Claims: []PodClaim{{Claim: "a", Owned: true}}},
		{Extended: []ExtendedRequest{{Resource: "a/b"}}}, {Extended: []ExtendedRequest{{Resource: "a/b", Count: 1}}},
		{Features: []string{"a"}}, {Features: []string{"b"}},
	}
	for i, p := range pods {
		for _, q := range pods[:i] {
			if bytes.Equal(p.AppendTemplate(nil), q.AppendTemplate(nil)) {
				t.Errorf("%+v has the template of %+v", p, q)
			}
		}
	}
	a := &Pod{Labels: map[string]string{"a": "1", "b": "2", "c": "3"}}
	if b := (&Pod{UID: "b", Name: "b", Labels: map[string]string{"c": "3", "b": "2", "a": "1"}}); !bytes.Equal(a.AppendTemplate(nil), b.AppendTemplate(nil)) {
		t.Error("two replicas have templates that differ")
	}
}
