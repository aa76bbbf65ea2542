package deploy

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
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

// The roles that every cluster has for kube-scheduler, to which the manifests bind Berth,
// let it read every kind that it reads, and write what it writes.
func TestRolesOfKubeScheduler(t *testing.T) {
	rights := map[string]string{} // verbs, by group/resource
	for line := range strings.Lines(string(read(t, "../testdata/upstream/rights.txt"))) {
		role, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "with gates, "), ": ")
		what, verbs, _ := strings.Cut(rest, ": ")
		if role == "system:kube-scheduler" || role == "system:volume-scheduler" {
			rights[what] += verbs + ", "
		}
	}
	need := map[string]string{
		"/bindings": "create", "/pods/binding": "create", "/pods/status": "patch", "/pods": "delete", "events.k8s.io/events": "create",
		"/persistentvolumeclaims": "update", "/persistentvolumes": "update", "coordination.k8s.io/leases kube-scheduler": "get, update", "coordination.k8s.io/leases": "create",
		"resource.k8s.io/resourceclaims": "create, delete", "resource.k8s.io/resourceclaims/status": "update, patch", "resource.k8s.io/resourceclaims/binding": "update, patch",
		"scheduling.k8s.io/podgroups/status": "patch",
		"authentication.k8s.io/tokenreviews": "create", "authorization.k8s.io/subjectaccessreviews": "create",
	}
	for _, k := range decode.Kinds {
		if k.Resource == "priorityclasses" || k.Custom() { // the tool's alone; in a role of its own
			continue
		}
		need[k.Group+"/"+k.Resource] = strings.TrimPrefix(need[k.Group+"/"+k.Resource]+", list, watch", ", ")
	}
	for what, verbs := range need {
		for verb := range strings.SplitSeq(verbs, ", ") {
			if !strings.Contains(rights[what], verb+", ") {
				t.Errorf("kube-scheduler may not %s %s: it may %q", verb, what, rights[what])
			}
		}
	}
}

// Who applies elasticquotas.yaml or podgroups.yaml, or sets elasticQuotas or podGroups of the
// chart, gets the CustomResourceDefinition, in which the kind is what Berth reads, and the
// rights to read it and to write the status that Berth writes.
func TestCustomResources(t *testing.T) {
	t.Run("elasticquotas", func(t *testing.T) {
		testCustomResource(t, "elasticquotas.yaml", decode.Named("ElasticQuota"), "ClusterRole berth-scheduler-quotas")
	})
	t.Run("podgroups", func(t *testing.T) {
		testCustomResource(t, "podgroups.yaml", decode.Named("PodGroup.scheduling.x-k8s.io"), "ClusterRole berth-scheduler-podgroups")
	})
}

func testCustomResource(t *testing.T, file string, k *decode.Kind, of string) {
	documents := bytes.Split(read(t, file), []byte("\n---\n"))
	var crd struct {
		Metadata struct{ Name string }
		Spec     json.RawMessage
	}
	var spec struct {
		Group, Scope string
		Names        struct{ Kind, Plural string }
		Versions     []struct {
			Name            string
			Served, Storage bool
			Subresources    struct{ Status *struct{} }
		}
	}
	if err := yaml.Unmarshal(documents[0], &crd); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(crd.Spec, &spec); err != nil {
		t.Fatal(err)
	}
	if v := spec.Versions; crd.Metadata.Name != k.Resource+"."+k.Group || spec.Group != k.Group || spec.Scope != "Namespaced" || spec.Names.Kind != k.Name ||
		spec.Names.Plural != k.Resource || len(v) != 1 || v[0].Name != k.Version || !v[0].Served || !v[0].Storage || v[0].Subresources.Status == nil {
		t.Errorf("%s: %+v", crd.Metadata.Name, spec)
	}
	want := []rbacv1.PolicyRule{{APIGroups: []string{k.Group}, Resources: []string{k.Resource}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{k.Group}, Resources: []string{k.Resource + "/status"}, Verbs: []string{"patch"}}}
	if role := rolesOf(t, file)[of]; !reflect.DeepEqual(role.Rules, want) {
		t.Errorf("the role has %v", role.Rules)
	}
	_, definition, _ := bytes.Cut(documents[0], []byte("\nspec:"))
	_, rules, _ := bytes.Cut(documents[1], []byte("\nrules:"))
	for _, part := range [][]byte{definition, rules} {
		if !bytes.Contains(read(t, "chart/templates/"+file), part) {
			t.Errorf("the chart lacks %s", part)
		}
	}
}
