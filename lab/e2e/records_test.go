package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/pin"
	"github.com/berth-scheduler/berth/edge/why"
	"github.com/berth-scheduler/berth/lab/cluster"
)

// What the scheduler knows of a pod that waits is shown to whom the API server lets
// read it, by berth why, events and top, and to nobody else.
func TestRecords(t *testing.T) {
	f := newField(t, "records")
	f.sameNodes(3, "4", 110)
	berth := f.berth(cluster.SchedulerOptions{LeaderElect: true})
	f.create(f.podsOf("one", 3, "1")...)
	f.create(f.pod("giant", "64"))
	f.await("the pods to be placed or rejected", func() string { return missing(bound(f.seen(""))+rejected(f.seen("")), 4) })
	f.awaitAdmin(berth)

	admin := f.cluster.Kubeconfig(cluster.Admin)
	tell := func(status int, args ...string) string {
		t.Helper()
		out, code := f.tool(admin, berth, args...)
		if code != status {
			t.Errorf("berth %s: exit status %d, want %d\n%s", strings.Join(args, " "), code, status, out)
		}
		return out
	}
	giant := f.name + "/giant"
	text := tell(3, "why", giant)
	for _, want := range []string{giant + " fits on none of 3 nodes", "lower the CPU request", "IN THE QUEUE", "unschedulable since", "1 attempt", "attempt 1, queued for"} {
		if !strings.Contains(text, want) {
			t.Errorf("why: no %q in\n%s", want, text)
		}
	}
	var a why.Answer
	if err := json.Unmarshal([]byte(tell(3, "why", giant, "-o", "json")), &a); err != nil || a.Verdict != why.Misconfigured || len(a.Fixes) == 0 ||
		a.Queue == nil || a.Queue.Place != "unschedulable" || len(a.Queue.History) != 2 {
		t.Errorf("why: %v, %+v", err, a)
	}
	if text := tell(1, "why", "--all"); !strings.Contains(text, "pending, by cause") || !strings.Contains(text, giant) || !strings.Contains(text, "lower the CPU request") || !strings.Contains(text, "; places 1 of 1\n") {
		t.Errorf("why --all:\n%s", text)
	}
	if text := tell(0, "why", f.name+"/one-0"); !strings.Contains(text, " runs on ") {
		t.Errorf("why of a pod that runs:\n%s", text)
	}
	if text := tell(0, "events", giant); !strings.Contains(text, "0/3 nodes are available: 3 Insufficient cpu.") || !strings.Contains(text, "unschedulable by ScheduleAttemptFailure") {
		t.Errorf("events:\n%s", text)
	}
	if text := tell(0, "events", f.name+"/one-0"); !strings.Contains(text, "best of 3 feasible of 3 nodes") || !strings.Contains(text, "bound") {
		t.Errorf("events of a pod that runs:\n%s", text)
	}
	if text := tell(0, "top", "--once"); !strings.Contains(text, "unschedulable 1,") || !strings.Contains(text, "1  NodeResourcesFit  Insufficient cpu") || !strings.Contains(text, "3 bound") {
		t.Errorf("top:\n%s", text)
	}
	for _, args := range [][]string{{"why", f.name + "/nobody"}, {"events", f.name + "/nobody"}} {
		if text := tell(2, args...); !strings.Contains(text, "nobody: there is no") {
			t.Errorf("%s: %s", args, text)
		}
	}
	// The lease's holder is found, and is no pod here.
	if out, code := f.run("top", "--once", "--kubeconfig", admin); code != 2 || !strings.Contains(out, "which is no pod; if the scheduler runs outside the cluster, give --daemon URL") {
		t.Errorf("top --daemon auto: %d %s", code, out)
	}

	f.checkCertificate(berth)
	f.checkStream(berth)
	f.checkReaders(berth)
	f.checkTool(berth)
	f.checkDeveloper(berth)
	f.checkFollower(berth)
}

// checkCertificate compares the certificate that the lease names with that of the port.
func (f *field) checkCertificate(berth *cluster.Scheduler) {
	f.Helper()
	l, err := f.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(f.Context(), "kube-scheduler", metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	named, err := pin.Read(l)
	if err != nil {
		f.Fatal(err)
	}
	c, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", berth.Port), &tls.Config{InsecureSkipVerify: true, VerifyConnection: named.Verify}) // #nosec G402 -- the pin verifies
	if err != nil {
		f.Fatal(err)
	}
	_ = c.Close()
}

// checkStream follows what happens, through the whole chain of the secure port.
func (f *field) checkStream(berth *cluster.Scheduler) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(programs(f.T), "berth"), "events", "--reason", "insufficient", "--follow",
		"--kubeconfig", f.cluster.Kubeconfig(cluster.Admin), "--daemon", fmt.Sprintf("https://127.0.0.1:%d", berth.Port), "--insecure-skip-tls-verify")
	out, err := command.StdoutPipe()
	if err != nil {
		f.Fatal(err)
	}
	if err := command.Start(); err != nil {
		f.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, pod := range []string{"giant", "giant-too"} {
		if pod != "giant" {
			f.create(f.pod(pod, "64"))
		}
		if !lines.Scan() || !strings.Contains(lines.Text(), " "+f.name+"/"+pod+" attempt ") {
			f.Errorf("the stream says %q, want an attempt of %s", lines.Text(), pod)
		}
	}
	cancel()
	_ = command.Wait() // it was killed
	if err := f.client.CoreV1().Pods(f.name).Delete(f.Context(), "giant-too", metav1.DeleteOptions{}); err != nil {
		f.Fatal(err)
	}
}

// checkReaders has a service account ask that may not read, and then may by the role
// that is shipped. A second replica says who leads.
func (f *field) checkReaders(berth *cluster.Scheduler) {
	f.Helper()
	reader := client{token: f.token(f.name, "default")}
	for c, want := range map[client]int{{}: 403, {token: "nonsense"}: 401, reader: 403} {
		for _, path := range []string{"summary", "records", "pending", "why?pod=a", "why/all", "watch"} {
			if status, body := f.ask(berth, c, api.Prefix+path); status != want {
				f.Errorf("%s without the right: status %d, want %d: %.200s", path, status, want, body)
			}
		}
	}
	name := f.name + "-reader"
	_, err := f.client.RbacV1().ClusterRoleBindings().Create(f.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "berth-scheduler-reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.name, Name: "default"}}}, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		_ = f.client.RbacV1().ClusterRoleBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	f.await("the right to read", func() string { // a refusal is remembered for some seconds
		if status, body := f.ask(berth, reader, api.Prefix+"pending"); status != 200 || !strings.Contains(body, f.name+"/giant") {
			return fmt.Sprintf("status %d: %.200s", status, body)
		}
		return ""
	})
	if status, _ := f.ask(berth, reader, "/metrics"); status != 403 {
		f.Errorf("/metrics for a reader of records: status %d, want 403", status)
	}
}

// account makes a service account with a binding, and returns a kubeconfig of it.
func (f *field) account(name string, bind func(subject rbacv1.Subject) error) (kubeconfig string) {
	f.Helper()
	if _, err := f.client.CoreV1().ServiceAccounts(f.name).Create(f.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	if err := bind(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: f.name, Name: name}); err != nil {
		f.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(f.cluster.Kubeconfig(cluster.Admin))
	if err != nil {
		f.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		*user = clientcmdapi.AuthInfo{Token: f.token(f.name, name)}
	}
	kubeconfig = filepath.Join(f.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		f.Fatal(err)
	}
	return kubeconfig
}

// checkTool runs every command with the rights of the ClusterRole for the tool alone.
func (f *field) checkTool(berth *cluster.Scheduler) {
	f.Helper()
	name := f.name + "-tool"
	kubeconfig := f.account("tool", func(s rbacv1.Subject) error {
		f.Cleanup(func() {
			_ = f.client.RbacV1().ClusterRoleBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
		})
		_, err := f.client.RbacV1().ClusterRoleBindings().Create(f.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "berth-scheduler-tool"}, Subjects: []rbacv1.Subject{s}}, metav1.CreateOptions{})
		return err
	})
	f.await("the rights of the tool", func() string {
		if out, code := f.tool(kubeconfig, berth, "status"); code != 0 || !strings.Contains(out, "LEASE") || strings.Contains(out, "NOT SEEN") {
			return fmt.Sprintf("status: exit status %d: %s", code, out)
		}
		return ""
	})
	pod := filepath.Join(f.TempDir(), "pod.yaml")
	if err := os.WriteFile(pod, []byte("{apiVersion: v1, kind: Pod, metadata: {name: new}, spec: {containers: [{name: c, image: i}]}}"), 0o600); err != nil {
		f.Fatal(err)
	}
	giant := f.name + "/giant"
	for _, call := range []string{"why " + giant, "why --all", "simulate -f " + pod, "what-if drain " + f.name + "-0", "fit --pod default/new -f " + pod, "record --for 1s --to " + filepath.Join(f.TempDir(), "record")} {
		if out, code := f.run(append(strings.Fields(call), "--kubeconfig", kubeconfig)...); code == 2 || strings.Contains(out, "cannot list") {
			f.Errorf("%s: exit status %d\n%s", call, code, out)
		}
	}
	for _, call := range []string{"why " + giant, "why --all", "events " + giant, "top --once"} {
		if out, code := f.tool(kubeconfig, berth, strings.Fields(call)...); code == 2 {
			f.Errorf("%s --daemon: exit status %d\n%s", call, code, out)
		}
	}
}

// checkDeveloper asks as somebody with view in the namespace alone: about a pod of his he is
// answered, by the scheduler and by what the API server lets him read; about others not.
func (f *field) checkDeveloper(berth *cluster.Scheduler) {
	f.Helper()
	kubeconfig := f.account("developer", func(s rbacv1.Subject) error {
		_, err := f.client.RbacV1().RoleBindings(f.name).Create(f.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "developer"},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}, Subjects: []rbacv1.Subject{s}}, metav1.CreateOptions{})
		return err
	})
	giant := f.name + "/giant"
	f.await("the rights of the developer", func() string {
		if out, code := f.tool(kubeconfig, berth, "why", giant); code != 3 || !strings.Contains(out, "IN THE QUEUE") {
			return fmt.Sprintf("exit status %d: %s", code, out)
		}
		return ""
	})
	if out, code := f.tool(kubeconfig, berth, "events", giant); code != 0 || !strings.Contains(out, "Insufficient cpu") {
		f.Errorf("events: exit status %d: %s", code, out)
	}
	for _, call := range []string{"why default/giant", "why --all", "top --once", "events --node " + f.name + "-0"} {
		if out, code := f.tool(kubeconfig, berth, strings.Fields(call)...); code != 2 || !strings.Contains(out, "forbidden (403)") {
			f.Errorf("%s: exit status %d: %s", call, code, out)
		}
	}
	out, code := f.run("why", giant, "--kubeconfig", kubeconfig)
	if code != 1 || !strings.Contains(out, "0/3 nodes are available: 3 Insufficient cpu.") || !strings.Contains(out, "cannot list nodes and pods of all namespaces") {
		f.Errorf("why from the API server: exit status %d: %s", code, out)
	}
}

// checkFollower asks a second replica, which says who leads.
func (f *field) checkFollower(leader *cluster.Scheduler) {
	f.Helper()
	second := f.berth(cluster.SchedulerOptions{LeaderElect: true})
	f.await("the second replica to say who leads", func() string {
		out, code := f.tool(f.cluster.Kubeconfig(cluster.Admin), second, "top", "--once")
		if code != 2 || !strings.Contains(out, "this daemon does not lead: ") || !strings.Contains(out, "ask that one, or --daemon auto") {
			return fmt.Sprintf("exit status %d: %s", code, out)
		}
		return ""
	})
}

// tool runs berth against the scheduler's own port.
func (f *field) tool(kubeconfig string, s *cluster.Scheduler, args ...string) (out string, status int) {
	f.Helper()
	return f.run(append(args, "--kubeconfig", kubeconfig, "--daemon", fmt.Sprintf("https://127.0.0.1:%d", s.Port), "--insecure-skip-tls-verify")...)
}

// run runs berth and returns all that it says.
func (f *field) run(args ...string) (out string, status int) {
	f.Helper()
	var said bytes.Buffer
	command := exec.CommandContext(f.Context(), filepath.Join(programs(f.T), "berth"), args...)
	command.Stdout, command.Stderr = &said, &said
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		f.Fatalf("berth %s: %v", strings.Join(args, " "), err)
	}
	return said.String(), command.ProcessState.ExitCode()
}
