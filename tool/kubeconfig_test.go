package tool

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// Without a kubeconfig the error says how to give one, and where files can be read
// instead. A kubeconfig that is missing or empty is named.
func TestNoKubeconfig(t *testing.T) {
	dir := t.TempDir()
	home := clientcmd.RecommendedHomeFile
	clientcmd.RecommendedHomeFile = filepath.Join(dir, "home")
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = home })
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	missing, empty, contextless := filepath.Join(dir, "missing"), filepath.Join(dir, "empty"), filepath.Join(dir, "contextless")
	write(t, empty, "")
	write(t, contextless, "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: 'https://nowhere:1'}}]}")
	const none = "no kubeconfig: set KUBECONFIG, or give --kubeconfig FILE"
	const noCluster = ": names no cluster: it is empty, or has no current-context"
	for _, command := range []string{"why web", "simulate", "what-if drain node-1", "fit", "why web --daemon auto", "top", "events web", "record --to " + filepath.Join(dir, "record")} {
		files := ""
		if slices.Contains([]string{"why web", "simulate", "what-if drain node-1", "fit"}, command) {
			files = " (or -f FILE to read files)"
		}
		for _, tt := range []struct{ env, flag, want string }{
			{"", "", none + files},
			{missing, "", "KUBECONFIG " + missing + ": there is no such file"},
			{empty, "", "KUBECONFIG " + empty + noCluster},
			{missing, empty, "--kubeconfig " + empty + noCluster},
			{empty, missing, "--kubeconfig " + missing + ": there is no such file"},
			{"", contextless, "--kubeconfig " + contextless + noCluster},
		} {
			t.Setenv("KUBECONFIG", tt.env)
			args := strings.Fields(command)
			if tt.flag != "" {
				args = append(args, "--kubeconfig", tt.flag)
			}
			if status, _, err := berth("", args...); status != exitInvalid || err != "berth: "+tt.want+"\n" {
				t.Errorf("KUBECONFIG=%s berth %s: %d %q, want %q", tt.env, args, status, err, tt.want)
			}
		}
	}
}

// A pod that is named without a namespace is looked for in that of the context, by the
// API server and by the scheduler. -n and NAMESPACE/POD come first.
func TestNamespaceOfTheContext(t *testing.T) {
	apiServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		list := "{}"
		if r.URL.Path == "/api/v1/pods" {
			list = `{"items": [{"metadata": {"name": "cart", "namespace": "default"}, "spec": {"containers": [{"name": "c"}]}},
				{"metadata": {"name": "cart", "namespace": "shop"}, "spec": {"containers": [{"name": "c"}]}}]}`
		}
		fmt.Fprint(w, list)
	}))
	t.Cleanup(apiServer.Close)
	asked := ""
	daemon := scheduler(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query().Get("pod")
		fmt.Fprint(w, "{}")
	})
	in := func(namespace, server string) (flag string) {
		path := kubeconfigFor(t, server)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, strings.Replace(string(text), "context: {", fmt.Sprintf("context: {namespace: %q, ", namespace), 1))
		return "--kubeconfig=" + path
	}
	for _, tt := range []struct{ in, args, want string }{
		{"", "cart", "default/cart"},
		{"shop", "cart", "shop/cart"},
		{"shop", "cart -n default", "default/cart"},
		{"shop", "default/cart", "default/cart"},
	} {
		args := strings.Fields(tt.args)
		if _, out, err := berth("", append([]string{"why", "-o", "json", in(tt.in, apiServer.URL)}, args...)...); !strings.Contains(out, fmt.Sprintf(`"pod": %q`, tt.want)) {
			t.Errorf("context in %q, why %s: want %s, got %s%s", tt.in, tt.args, tt.want, out, err)
		}
		for _, command := range []string{"why", "events"} {
			asked = ""
			if _, _, err := berth("", slices.Concat([]string{command}, daemon, []string{in(tt.in, "https://nowhere:1")}, args)...); asked != tt.want {
				t.Errorf("context in %q, %s --daemon %s: asked %q, want %s; %s", tt.in, command, tt.args, asked, tt.want, err)
			}
		}
	}
}

// A kubeconfig, or a file that it names, that is a pipe or has no end is refused, and not
// waited for. A configuration that is named as a pipe is read.
func TestKubeconfigThatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	pipe, names := filepath.Join(dir, "pipe"), filepath.Join(dir, "names")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, field := range map[string]string{"certificate-authority": "clusters: [{name: c, cluster: {server: 'https://x', certificate-authority: pipe}}]", "tokenFile": "users: [{name: u, user: {tokenFile: pipe}}]",
		"client-key": "users: [{name: u, user: {client-certificate: none, client-key: pipe}}]"} {
		write(t, names, "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],\n"+field+"}")
		for _, command := range []string{"why web", "why web --daemon https://x:1", "top", "events web", "record --to " + filepath.Join(dir, "record")} {
			if status, _, err := berth("", append(strings.Fields(command), "--kubeconfig", names)...); status != exitInvalid || !strings.Contains(err, pipe+": is a named pipe, not a regular file") {
				t.Errorf("%s in a kubeconfig: %s: %d %q", name, command, status, err)
			}
		}
	}
	for file, want := range map[string]string{pipe: "is a named pipe, not a regular file", "/dev/zero": "is a device, not a regular file"} {
		if status, _, err := berth("", "top", "--kubeconfig", file); status != exitInvalid || !strings.Contains(err, file+": "+want) {
			t.Errorf("%s: %d %q", file, status, err)
		}
	}
	if status, _, err := berth("", "config", "check", "/dev/zero"); status != exitInvalid || err != "berth: /dev/zero: is longer than 10 MiB\n" {
		t.Errorf("an endless configuration: %d %q", status, err)
	}
	go func() {
		_ = os.WriteFile(pipe, []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"), 0o600)
	}()
	if status, out, err := berth("", "config", "check", pipe); status != 0 || !strings.Contains(out, "nothing is wrong") {
		t.Errorf("a configuration through a pipe: %d %q %q", status, out, err)
	}
}
