package upstream

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// roles are those that kube-scheduler is bound to at the start of a cluster.
var roles = []string{"system:kube-scheduler", "system:volume-scheduler", "system::leader-locking-kube-scheduler", "extension-apiserver-authentication-reader"}

// rights are lines "ROLE: group/resource [name]: verb, verb"; those that a cluster has
// with all gates on have "with gates" in front.
func (s *Sources) rights() []string {
	folder := filepath.Join(s.dirs[kubernetes], "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata")
	usual := slices.Concat(rules(filepath.Join(folder, "cluster-roles.yaml")), rules(filepath.Join(folder, "namespace-roles.yaml")))
	lines := slices.Clone(usual)
	for _, line := range rules(filepath.Join(folder, "cluster-roles-featuregates.yaml")) {
		if !slices.Contains(usual, line) {
			lines = append(lines, "with gates, "+line)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// rules are the lines of the roles in a file; none if it cannot be read.
func rules(name string) (lines []string) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	var list struct{ Items []rbacv1.ClusterRole }
	if err := yaml.Unmarshal(content, &list); err != nil {
		return nil
	}
	for _, role := range list.Items {
		if !slices.Contains(roles, role.Name) {
			continue
		}
		for _, r := range role.Rules {
			verbs := strings.Join(slices.Sorted(slices.Values(r.Verbs)), ", ")
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					what := group + "/" + resource
					if len(r.ResourceNames) > 0 {
						what += " " + strings.Join(r.ResourceNames, " ")
					}
					lines = append(lines, role.Name+": "+what+": "+verbs)
				}
			}
		}
	}
	return lines
}
