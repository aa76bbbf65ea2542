package e2e

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// Berth's identities, those of the chart too, may do what the API server's own policy
// lets kube-scheduler do, and nothing more except for a lease of Berth's own name. All
// tests of this package run Berth under these rights.
func TestRightsAreKubeSchedulers(t *testing.T) {
	f := newField(t, "rights")
	c := f.cluster
	subjects := []rbacv1.Subject{user("system:berth-scheduler"), account("kube-system", "berth-scheduler")}
	leases := []string{"berth-scheduler"}
	for _, mode := range []string{"beside", "replace"} {
		name := "rights-" + mode
		f.apply(slices.DeleteFunc(chart(t, metav1.NamespaceSystem, map[string]any{"mode": mode, "name": name}), func(o *unstructured.Unstructured) bool {
			return o.GroupVersionKind().Group != rbacv1.GroupName && o.GetKind() != "ServiceAccount"
		}))
		subjects, leases = append(subjects, account(metav1.NamespaceSystem, name)), append(leases, name)
	}
	kube := rightsOf(t, c, user("system:kube-scheduler"))
	// What kube-scheduler may do to its lease, Berth may do to its own.
	for i := range kube[metav1.NamespaceSystem] {
		if rule := &kube[metav1.NamespaceSystem][i]; slices.Contains(rule.Resources, "leases") && len(rule.ResourceNames) > 0 {
			rule.ResourceNames = append(rule.ResourceNames, leases...)
		}
	}
	for _, berth := range subjects {
		rights := rightsOf(t, c, berth)
		if ok, without := validation.Covers(rights[""], kube[""]); !ok {
			t.Errorf("%s %s lacks rights that kube-scheduler has: %v", berth.Kind, berth.Name, without)
		}
		for namespace, rules := range rights {
			allowed := kube[""]
			if namespace != "" {
				allowed = kube[namespace]
			}
			if ok, beyond := validation.Covers(allowed, rules); !ok {
				t.Errorf("%s %s has rights in namespace %q that kube-scheduler lacks: %v", berth.Kind, berth.Name, namespace, beyond)
			}
		}
	}
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}

func account(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// rightsOf collects the rules that are bound to a subject by name, as the API
// server has them: by namespace, with those of the whole cluster under "" and
// in each namespace.
func rightsOf(t *testing.T, c *cluster.Cluster, subject rbacv1.Subject) map[string][]rbacv1.PolicyRule {
	t.Helper()
	rbac := c.Client().RbacV1()
	rights := map[string][]rbacv1.PolicyRule{}
	ofCluster := func(name string) []rbacv1.PolicyRule {
		role, err := rbac.ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return role.Rules
	}
	clusterBindings, err := rbac.ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range clusterBindings.Items {
		if slices.Contains(b.Subjects, subject) {
			rights[""] = append(rights[""], ofCluster(b.RoleRef.Name)...)
		}
	}
	bindings, err := rbac.RoleBindings("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bindings.Items {
		if !slices.Contains(b.Subjects, subject) {
			continue
		}
		if rights[b.Namespace] == nil {
			rights[b.Namespace] = slices.Clone(rights[""])
		}
		if b.RoleRef.Kind == "ClusterRole" {
			rights[b.Namespace] = append(rights[b.Namespace], ofCluster(b.RoleRef.Name)...)
			continue
		}
		role, err := rbac.Roles(b.Namespace).Get(t.Context(), b.RoleRef.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rights[b.Namespace] = append(rights[b.Namespace], role.Rules...)
	}
	return rights
}
