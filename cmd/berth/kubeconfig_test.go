package main

import (
	"path/filepath"
	"strings"
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
	for _, command := range []string{"why web", "why web --daemon auto", "top", "events web", "record --to " + filepath.Join(dir, "record")} {
		files := ""
		if command == "why web" {
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
