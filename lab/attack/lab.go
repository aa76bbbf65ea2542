package attack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// Namespaces of the lab: that of the pods of attacks, of the small pods whose bindings
// are timed, and of the people.
const (
	target = "target"
	probes = "probes"
	people = "people"
)

// lab is a control plane on which attacks are played, one after another.
type lab struct {
	*cluster.Cluster
	client       kubernetes.Interface
	daemon, tool string
	viewer       string // token of somebody who may look at one namespace
	reader       string // token of somebody with the roles for readers of deploy/rbac.yaml
	pods         int    // probes so far
}

func newLab(ctx context.Context, o Options) (*lab, error) {
	tool, err := program("berth", o.Tool)
	if err != nil {
		return nil, err
	}
	c, err := cluster.Start(ctx, cluster.Options{Dir: o.Dir, WithoutKWOK: true, WithoutControllers: true})
	if err != nil {
		return nil, err
	}
	l := &lab{Cluster: c, daemon: o.Daemon, tool: tool}
	config := c.AdminConfig()
	config.WarningHandler = rest.NoWarnings{} // odd objects are what the attacks are for
	if l.client, err = kubernetes.NewForConfig(config); err == nil {
		err = l.furnish(ctx, o.Nodes)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return l, nil
}

// program returns the path of a program: the one that is named, or the one beside the
// running executable.
func program(name, path string) (string, error) {
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		path = filepath.Join(filepath.Dir(self), name)
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	return path, err
}

// furnish creates the nodes, the namespaces and the people.
func (l *lab) furnish(ctx context.Context, nodes int) error {
	if err := l.CreateNodes(ctx, cluster.Nodes(nodes)); err != nil {
		return err
	}
	for _, name := range []string{target, probes, people, vault} {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if name == vault {
			n.Labels = map[string]string{vaultLabel: "true"}
		}
		if _, err := l.client.CoreV1().Namespaces().Create(ctx, n, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	rbac := l.client.RbacV1()
	subject := func(name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: people, Name: name}}
	}
	role := func(kind, name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	const reads = "berth-scheduler-reader"
	_, err := rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef: role("ClusterRole", reads), Subjects: subject("reader")}, metav1.CreateOptions{})
	for name, namespace := range map[string]string{"reader": metav1.NamespaceSystem, "viewer": target} { // any order: each by itself
		of := role("Role", reads)
		if name == "viewer" { // the rules of ClusterRole view are filled in by a controller, which does not run here
			of = role("Role", "viewer")
			_, made := rbac.Roles(target).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "viewer"},
				Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods", "events"}, Verbs: []string{"get", "list", "watch"}}}}, metav1.CreateOptions{})
			err = errors.Join(err, made)
		}
		_, bound := rbac.RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef: of, Subjects: subject(name)}, metav1.CreateOptions{})
		err = errors.Join(err, bound)
	}
	for name, token := range map[string]*string{"reader": &l.reader, "viewer": &l.viewer} { // any order: each by itself
		var made error
		*token, made = l.token(ctx, name)
		err = errors.Join(err, made)
	}
	return err
}

// token returns one of a new service account.
func (l *lab) token(ctx context.Context, name string) (string, error) {
	accounts := l.client.CoreV1().ServiceAccounts(people)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	token, err := accounts.CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("a token of %s: %w", name, err)
	}
	return token.Status.Token, nil
}
