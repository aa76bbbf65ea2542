package deploy

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
)

// rolesOf are the roles of a manifest, by kind and name.
func rolesOf(t *testing.T, file string) map[string]rbacv1.Role {
	t.Helper()
	roles := map[string]rbacv1.Role{}
	for document := range bytes.SplitSeq(read(t, file), []byte("\n---\n")) {
		var role rbacv1.Role
		if err := yaml.Unmarshal(document, &role); err != nil {
			t.Fatal(err)
		}
		if len(role.Rules) > 0 {
			roles[role.Kind+" "+role.Name] = role
		}
	}
	return roles
}

// The ClusterRole for the tool lets it list and watch every kind that it reads, list leases,
// and get what the daemon serves. It gives nothing else, and nothing but reading. The shadow's
// manifest has the same.
func TestRoleOfTheTool(t *testing.T) {
	want := map[string]bool{"coordination.k8s.io leases": true, " events": true, "authorization.k8s.io subjectaccessreviews": true}
	for _, k := range slices.Concat(decode.Kinds, manifest.OfNewPods, manifest.Controllers) {
		want[k.Group+" "+k.Resource] = true
	}
	got := map[string]bool{}
	role := rolesOf(t, "rbac.yaml")["ClusterRole berth-scheduler-tool"]
	for _, rule := range role.Rules {
		if len(rule.NonResourceURLs) > 0 {
			if !slices.Equal(rule.NonResourceURLs, []string{"/berth/v1/*", "/readyz/configuration"}) || !slices.Equal(rule.Verbs, []string{"get"}) {
				t.Errorf("%v", rule)
			}
			continue
		}
		verbs := []string{"get", "list", "watch"}
		switch rule.Resources[0] {
		case "leases":
			verbs = verbs[:2]
		case "subjectaccessreviews": // it stores nothing
			verbs = []string{"create"}
		}
		if !slices.Equal(rule.Verbs, verbs) || len(rule.APIGroups) != 1 {
			t.Errorf("other than reading: %v", rule)
		}
		for _, resource := range rule.Resources {
			got[rule.APIGroups[0]+" "+resource] = true
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("the role has %v, the tool reads %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	if shadow := rolesOf(t, "shadow.yaml")["ClusterRole berth-shadow-tool"]; !reflect.DeepEqual(shadow.Rules, role.Rules) {
		t.Errorf("the shadow's manifest has %v", shadow.Rules)
	}
}

// Port-forward, which reaches every pod of the namespace, is in a Role of its own: who
// reads what Berth knows by --daemon URL, or looks for the leader, does not get it.
func TestForwardIsARoleOfItsOwn(t *testing.T) {
	var forwards []string
	for name, role := range rolesOf(t, "rbac.yaml") {
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, "pods/portforward") {
				forwards = append(forwards, name)
				if len(role.Rules) != 1 || len(rule.Resources) != 1 {
					t.Errorf("%s gives more: %v", name, role.Rules)
				}
			}
		}
	}
	if !slices.Equal(forwards, []string{"Role berth-scheduler-forwarder"}) {
		t.Errorf("%q forward ports", forwards)
	}
}
