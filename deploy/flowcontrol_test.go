package deploy

import (
	"reflect"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Each identity that has Berth's rights has its priority.
func TestFlowSchemasAreForTheIdentities(t *testing.T) {
	identities := func(manifest []byte, of func(document string) []string) [][]string {
		var all [][]string
		for document := range strings.SplitSeq(string(manifest), "\n---\n") {
			if names := of(document); names != nil {
				all = append(all, names)
			}
		}
		return all
	}
	bound := identities(RBAC, func(document string) []string {
		var binding rbacv1.ClusterRoleBinding
		if err := yaml.Unmarshal([]byte(document), &binding); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range binding.Subjects {
			names = append(names, s.Kind+" "+s.Namespace+"/"+s.Name)
		}
		return names
	})
	queued := identities(FlowControl, func(document string) []string {
		var schema flowcontrolv1.FlowSchema
		if err := yaml.UnmarshalStrict([]byte(document), &schema); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range schema.Spec.Rules[0].Subjects {
			switch {
			case s.User != nil:
				names = append(names, string(s.Kind)+" /"+s.User.Name)
			case s.ServiceAccount != nil:
				names = append(names, string(s.Kind)+" "+s.ServiceAccount.Namespace+"/"+s.ServiceAccount.Name)
			}
		}
		return names
	})
	if len(bound) == 0 || len(queued) != 2 {
		t.Fatalf("bindings %v, flow schemas %v", bound, queued)
	}
	for _, names := range append(bound[1:], queued...) {
		if !reflect.DeepEqual(names, bound[0]) {
			t.Errorf("identities %v, elsewhere %v", names, bound[0])
		}
	}
}
