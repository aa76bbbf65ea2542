package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// At the highest verbosity no secret leaves the process but to whom it is for:
// the token, what a credential plugin is given and says, a password, the key for
// an extender and the password in its address. Neither the log has it, nor any
// path of the endpoint, nor the output of a command.
func TestSecretsStayInside(t *testing.T) {
	f := newField(t, "secrets")
	f.regrets = regexp.MustCompile(alarms) // this log holds all replies, a namespace's that goes among them
	f.sameNodes(2, "8", 110)
	token := f.token(metav1.NamespaceSystem, "berth-scheduler")
	config, key := f.configWithSecrets(token)
	berth := f.berth(cluster.SchedulerOptions{Flags: []string{"--config=" + config, "-v=10"}})
	f.create(f.podsOf("some", 10, "1")...)
	f.awaitBound(10)
	f.awaitAdmin(berth)

	said := map[string]string{"the log": ""}
	for _, path := range []string{"/configz", "/flagz", "/statusz", "/metrics", "/metrics/resources", "/readyz?verbose", "/debug/pprof/",
		"/debug/pprof/goroutine?debug=2", "/debug/pprof/heap", "/debug/pprof/allocs?debug=1"} {
		status, body := f.ask(berth, client{config: f.cluster.AdminConfig()}, path)
		if status != 200 {
			t.Errorf("%s: status %d", path, status)
		}
		said[path] = body
	}
	simulate := exec.CommandContext(t.Context(), filepath.Join(programs(t), "berth"), "simulate", "-v",
		"--kubeconfig", filepath.Join(filepath.Dir(config), "kubeconfig"), "--config", config, "-o", "json")
	out, _ := simulate.CombinedOutput() // whatever it comes to
	said["berth simulate"] = string(out)
	f.terminate(berth)
	said["the log"] = f.log(berth)

	if !strings.Contains(said["the log"], `"Request" curlCommand=`) || !strings.Contains(said["/configz"], "extenders") {
		t.Error("the log does not tell of requests, or the configuration is not shown: nothing is tested")
	}
	secrets := map[string]string{"the token": token, "the plugin's environment": "s3cret-environment", "a password": "s3cret-password",
		"a static token": "s3cret-token", "the password of an extender": "s3cret-extender", "the key for an extender": key}
	for where, text := range said {
		for what, secret := range secrets {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s has %s: ...%s", where, what, text[max(0, at-200):at])
			}
		}
	}
}

// token is a new one of a service account.
func (f *field) token(namespace, account string) string {
	f.Helper()
	token, err := f.client.CoreV1().ServiceAccounts(namespace).CreateToken(f.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return token.Status.Token
}

// configWithSecrets is the file of a configuration with every kind of secret. A
// credential plugin gives the token that it finds in its environment. The key
// is what a look for the extender's finds, in the form that files have.
func (f *field) configWithSecrets(token string) (file, key string) {
	f.Helper()
	own, err := clientcmd.LoadFromFile(f.cluster.Kubeconfig(cluster.Admin))
	if err != nil {
		f.Fatal(err)
	}
	var certificate []byte
	for _, user := range own.AuthInfos {
		certificate, key = user.ClientCertificateData, base64.StdEncoding.EncodeToString(user.ClientKeyData)
	}
	own.AuthInfos = map[string]*clientcmdapi.AuthInfo{
		"other": {Username: "somebody", Password: "s3cret-password"},
		"third": {Token: "s3cret-token"},
		"berth": {Exec: &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "sh",
			Args: []string{"-c", `echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"'$TOKEN'"}}'`},
			Env:  []clientcmdapi.ExecEnvVar{{Name: "TOKEN", Value: token}, {Name: "OTHER", Value: "s3cret-environment"}}, InteractiveMode: clientcmdapi.NeverExecInteractiveMode}},
	}
	own.Contexts[own.CurrentContext].AuthInfo = "berth"
	dir := f.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*own, kubeconfig); err != nil {
		f.Fatal(err)
	}
	file = filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: 1000, burst: 1000}
leaderElection: {leaderElect: false}
extenders:
- urlPrefix: https://somebody:s3cret-extender@127.0.0.1:1/
  filterVerb: filter
  ignorable: true
  enableHTTPS: true
  tlsConfig: {certData: %s, keyData: %s, insecure: true}
`, kubeconfig, base64.StdEncoding.EncodeToString(certificate), key)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	return file, key
}
