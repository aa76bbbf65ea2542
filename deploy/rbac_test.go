package deploy

import (
	"bytes"
	"os"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Port-forward, which reaches every pod of the namespace, is in a Role of its own: who
// reads what Berth knows by --daemon URL, or looks for the leader, does not get it.
func TestForwardIsARoleOfItsOwn(t *testing.T) {
	text, err := os.ReadFile("rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var forwards []string
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var role rbacv1.Role
		if err := yaml.Unmarshal(document, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, "pods/portforward") {
				forwards = append(forwards, role.Kind+" "+role.Name)
				if len(role.Rules) != 1 || len(rule.Resources) != 1 {
					t.Errorf("%s gives more: %v", role.Name, role.Rules)
				}
			}
		}
	}
	if !slices.Equal(forwards, []string{"Role berth-scheduler-forwarder"}) {
		t.Errorf("%q forward ports", forwards)
	}
}
