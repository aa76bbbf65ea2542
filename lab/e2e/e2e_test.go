package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-scheduler/berth/lab/child"
	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/up"
)

func TestMain(m *testing.M) {
	runKubectlIfAsked()
	child.RunIfAsked()
	code := m.Run()
	if err := endShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// start is a cluster of n nodes that ends with the test.
func start(t *testing.T, options cluster.Options, nodes int) *cluster.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	options.ControlPlane = cmp.Or(options.ControlPlane, *skew)
	c, err := cluster.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := c.CreateNodes(t.Context(), cluster.Nodes(nodes)); err != nil {
		t.Fatal(err)
	}
	return c
}

// clientOf is a client of the cluster under a component's identity.
func clientOf(t *testing.T, c *cluster.Cluster, identity string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig(identity))
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(config)
}

// gone reports whether no process has the id.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// berth-lab up --once places the whole sample with either scheduler.
func TestUpOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	for scheduler, program := range map[string]string{"berth": filepath.Join(programs(t), cluster.Berth), "kube-scheduler": ""} {
		t.Run(scheduler, func(t *testing.T) {
			var out bytes.Buffer
			err := up.Run(t.Context(), &out, up.Options{
				Nodes: 20, Scheduler: scheduler, Berth: program, Once: true, Timeout: 3 * time.Minute})
			if err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			for _, want := range []string{"bound   190  pending    10  of   200", "All that can be placed is placed", "Insufficient cpu"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in what it said:\n%s", want, &out)
				}
			}
		})
	}
}

// Two labs on one machine do not see each other.
func TestLabsSideBySide(t *testing.T) {
	dir := t.TempDir()
	one := start(t, cluster.Options{Dir: dir}, 3)
	two := start(t, cluster.Options{}, 5)
	for c, want := range map[*cluster.Cluster]int{one: 3, two: 5} {
		nodes, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(nodes.Items) != want {
			t.Errorf("%d nodes, want %d: %v", len(nodes.Items), want, err)
		}
	}

	// The first ends, every process of it, and starts again as it was.
	processes := one.Processes()
	if len(processes) != 4 {
		t.Errorf("%d processes, want 4", len(processes))
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		if !gone(p.PID()) {
			t.Errorf("%s is still there", p.Name)
		}
	}
	again := start(t, cluster.Options{Dir: dir}, 3)
	if _, err := again.Client().CoreV1().Nodes().Get(t.Context(), "node-0002", metav1.GetOptions{}); err != nil {
		t.Errorf("the cluster has lost a node: %v", err)
	}
}

// A child that dies ends the lab with an error that names the child.
func TestDeadChildIsNamed(t *testing.T) {
	c := start(t, cluster.Options{}, 0)
	for _, p := range c.Processes() {
		if p.Name == cluster.KWOK {
			if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case err := <-c.Failed():
		if !strings.Contains(err.Error(), "kwok died: signal: killed") {
			t.Errorf("error is %v", err)
		}
	case <-ctx.Done():
		t.Error("nobody noticed")
	}
}

// Berth's identity can do a scheduler's work and nothing beyond it. The gates that widen
// what kube-scheduler does are on.
func TestBerthsRights(t *testing.T) {
	c := start(t, cluster.Options{WithoutKWOK: true, WithoutControllers: true, APIServerFlags: []string{
		"--feature-gates=GenericWorkload=true,CoordinatedLeaderElection=true",
		"--runtime-config=scheduling.k8s.io/v1beta1=true,coordination.k8s.io/v1beta1=true"}}, 1)
	berth := clientOf(t, c, cluster.Berth)
	if _, err := berth.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("listing nodes: %v", err)
	}
	if _, err := berth.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{}); err != nil {
		t.Errorf("reading how clients are authenticated: %v", err)
	}
	if err := berth.CoreV1().Nodes().Delete(t.Context(), "node-0000", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("deleting a node: %v, want forbidden", err)
	}
	if _, err := berth.CoreV1().Secrets(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing secrets: %v, want forbidden", err)
	}
	for _, right := range []struct {
		verb, resource string // group/resource/subresource
		want           bool
	}{
		{"create", "/pods/binding", true}, {"patch", "/pods/status", true}, {"delete", "/pods", true},
		{"get", "/persistentvolumes", true}, {"patch", "/persistentvolumes", true},
		{"get", "/persistentvolumeclaims", true}, {"patch", "/persistentvolumeclaims", true},
		{"get", "resource.k8s.io/resourceclaims", true}, {"patch", "resource.k8s.io/resourceclaims", true},
		{"patch", "resource.k8s.io/resourceclaims/status", true},
		// Without it the API server lets nobody say what a claim gets and who may use it.
		{"patch", "resource.k8s.io/resourceclaims/binding", true},
		{"list", "resource.k8s.io/resourceslices", true}, {"list", "resource.k8s.io/deviceclasses", true},
		{"list", "resource.k8s.io/devicetaintrules", true},
		{"list", "scheduling.k8s.io/podgroups", true}, {"patch", "scheduling.k8s.io/podgroups/status", true},
		{"create", "coordination.k8s.io/leasecandidates", true}, {"get", "coordination.k8s.io/leasecandidates", true},
		{"update", "coordination.k8s.io/leasecandidates", true}, {"watch", "coordination.k8s.io/leasecandidates", true},
		{"create", "scheduling.k8s.io/podgroups", false}, {"patch", "scheduling.k8s.io/podgroups", false},
		{"patch", "/pods", false}, {"create", "/pods", false}, {"patch", "/nodes", false},
		{"delete", "/persistentvolumes", false}, {"create", "/persistentvolumeclaims", false},
		{"patch", "resource.k8s.io/resourceslices", false}, {"patch", "resource.k8s.io/deviceclasses", false},
		{"arbitrary-node:patch", "resource.k8s.io/resourceclaims/driver", false},
	} {
		if got := mayDo(t, berth, right.verb, right.resource); got != right.want {
			t.Errorf("the right to %s %s: %t, want %t", right.verb, right.resource, got, right.want)
		}
	}
	checkPeople(t, clientOf(t, c, cluster.Admin))
}

// checkPeople binds the roles for people, each to a user of its own, and asks who may
// forward ports.
func checkPeople(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	for _, role := range []rbacv1.RoleRef{{Kind: "ClusterRole", Name: "berth-scheduler-reader"}, {Kind: "ClusterRole", Name: "berth-scheduler-tool"}, {Kind: "Role", Name: "berth-scheduler-reader"}, {Kind: "Role", Name: "berth-scheduler-forwarder"}} {
		user := strings.ToLower(role.Kind) + "-" + role.Name
		meta, subjects := metav1.ObjectMeta{Name: user}, []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}}
		var err error
		if role.Kind == "Role" {
			_, err = admin.RbacV1().RoleBindings(metav1.NamespaceSystem).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: subjects}, metav1.CreateOptions{})
		} else {
			_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: subjects}, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		may := func(a authorizationv1.SubjectAccessReviewSpec) bool {
			a.User = user
			review, err := admin.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: a}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return review.Status.Allowed
		}
		inSystem := func(verb, resource, subresource string) bool {
			return may(authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: metav1.NamespaceSystem, Verb: verb, Resource: resource, Subresource: subresource}})
		}
		reads := authorizationv1.SubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/berth/v1/summary"}}
		if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return inSystem("get", "pods", "") || inSystem("create", "pods", "portforward") || may(reads), nil // the authorizer sees a binding a moment later
		}); err != nil {
			t.Fatalf("%s may do nothing: %v", user, err)
		}
		if got, want := inSystem("create", "pods", "portforward"), role.Name == "berth-scheduler-forwarder"; got != want {
			t.Errorf("%s may forward ports: %t", user, got)
		}
		if got, want := inSystem("list", "pods", ""), user == "role-berth-scheduler-reader" || user == "clusterrole-berth-scheduler-tool"; got != want {
			t.Errorf("%s may list pods: %t", user, got)
		}
		if inSystem("get", "secrets", "") {
			t.Errorf("%s may read secrets", user)
		}
	}
}

// mayDo asks the API server for a right of the client.
func mayDo(t *testing.T, client kubernetes.Interface, verb, resource string) bool {
	t.Helper()
	parts := append(strings.Split(resource, "/"), "")
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: parts[0], Resource: parts[1], Subresource: parts[2]}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}
