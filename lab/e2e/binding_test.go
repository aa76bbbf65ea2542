package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/proxy"
)

// A webhook on bindings takes 12 s for most pods, 20 s for some, or longer: until all
// others are through. It refuses others three times. Each slow pod takes one request,
// and all are asked for at once; each refused pod takes four. Pods that the webhook lets
// through are bound and their events published meanwhile.
func TestSlowBindings(t *testing.T) {
	const twelve, twenty, refused, quick = 100, 20, 5, 20
	f := newField(t, "slow")
	f.sameNodes(5, "40", 110)
	hook := f.hookBindings(func(pod string, call int) (time.Duration, bool) {
		switch kind, _, _ := strings.Cut(pod, "-"); kind {
		case "twelve":
			return 12 * time.Second, true
		case "twenty":
			return 20 * time.Second, true
		case "refused":
			return 0, call > 3
		}
		return 0, true
	})
	f.berth(cluster.SchedulerOptions{})
	f.create(f.podsOf("twenty", twenty, "1")...)
	f.create(f.podsOf("twelve", twelve, "1")...)
	f.await("the first slow pods to be asked for", func() string { return missing(min(hook.busy(), 1), 1) })
	f.create(f.podsOf("refused", refused, "1")...)
	f.create(f.podsOf("quick", quick, "1")...)
	f.await("the quick pods to be bound and their events published", func() string {
		said := 0
		for name := range f.eventsOn("Scheduled") {
			if strings.HasPrefix(name, "quick-") {
				said++
			}
		}
		return missing(said, quick)
	})
	f.await("all slow pods to be asked for at a time", func() string { return missing(hook.busy(), twelve+twenty) })
	close(hook.release)
	f.awaitBound(twelve + twenty + refused + quick)
	f.awaitScheduledOnce()
	f.checkRoom()
	for _, pod := range f.seen("") {
		want := 1
		if strings.HasPrefix(pod.Name, "refused-") {
			want = 4
		}
		if n := hook.called(pod.Name); n != want {
			t.Errorf("pod %s took %d requests, want %d", pod.Name, n, want)
		}
	}
}

// bindingHook is a validating webhook on the bindings of a field.
type bindingHook struct {
	decide  func(pod string, call int) (takes time.Duration, allowed bool)
	release chan struct{} // closed when a binding that takes any time may end

	mu    sync.Mutex
	calls map[string]int // by pod
	now   int            // bindings that it holds
}

func (h *bindingHook) busy() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *bindingHook) called(pod string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[pod]
}

func (h *bindingHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	h.calls[review.Request.Name]++
	takes, allowed := h.decide(review.Request.Name, h.calls[review.Request.Name])
	h.now++
	h.mu.Unlock()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-r.Context().Done():
		}
		select {
		case <-h.release:
		case <-r.Context().Done():
		}
	}
	h.mu.Lock()
	h.now--
	h.mu.Unlock()
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: allowed, Result: &metav1.Status{Message: "not yet"}}
	_ = json.NewEncoder(w).Encode(review)
}

// hookBindings lets decide have a say about the field's bindings. It returns
// when the API server asks.
func (f *field) hookBindings(decide func(pod string, call int) (time.Duration, bool)) *bindingHook {
	f.Helper()
	h := &bindingHook{decide: decide, release: make(chan struct{}), calls: map[string]int{}}
	server := httptest.NewTLSServer(h)
	f.Cleanup(server.Close)
	url, limit := server.URL, int32(30)
	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: f.name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "bindings.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/binding"}},
			}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: f.name}},
			FailurePolicy:     &fail, SideEffects: &none, TimeoutSeconds: &limit, AdmissionReviewVersions: []string{"v1"},
		}},
	}
	hooks := f.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := hooks.Create(f.Context(), config, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := hooks.Delete(context.Background(), f.name, metav1.DeleteOptions{}); err != nil {
			f.Error(err)
		}
	})
	f.await("the webhook to be asked", func() string {
		// Of a pod that does not exist: the webhook comes first.
		_ = f.client.CoreV1().Pods(f.name).Bind(f.Context(), &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: "nobody"}, Target: corev1.ObjectReference{Kind: "Node", Name: "none"},
		}, metav1.CreateOptions{})
		return missing(min(h.called("nobody"), 1), 1)
	})
	return h
}

// A credential plugin gives a token that expires without a word, then another:
// after the first 401 it is asked again, and bindings go on.
func TestExpiringToken(t *testing.T) {
	const pods = 50
	f := newField(t, "token")
	f.sameNodes(3, "80", 110)
	var valid atomic.Value
	credential := filepath.Join(t.TempDir(), "credential")
	renew := func(token string) {
		text := fmt.Sprintf(`{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":%q}}`, token)
		if err := os.WriteFile(credential+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(credential+".new", credential); err != nil {
			t.Fatal(err)
		}
		valid.Store("Bearer " + token)
	}
	renew("first")
	p := f.proxy()
	p.Inject(proxy.Fault{Status: http.StatusUnauthorized, On: func(r *http.Request) bool {
		return r.Header.Get("Authorization") != valid.Load()
	}})
	f.berth(cluster.SchedulerOptions{Flags: []string{"--config=" + f.configWithPlugin(p.URL, "cat", credential)}})
	f.create(f.podsOf("first", pods, "1")...)
	f.awaitBound(pods)
	f.awaitScheduledOnce()
	if n := refused(p, http.MethodPost, http.StatusUnauthorized); n != 0 {
		t.Errorf("%d requests refused with the first token", n)
	}
	renew("second")
	f.create(f.podsOf("second", pods, "1")...)
	f.awaitBound(2 * pods)
	f.awaitScheduledOnce()
	if p.Count(func(e proxy.Exchange) bool { return e.Status == http.StatusUnauthorized }) == 0 {
		t.Error("the first token has not expired")
	}
}

// configWithPlugin writes a scheduler configuration that connects to the server with
// the credentials of a credential plugin, and returns the file's name.
func (f *field) configWithPlugin(server, command string, arguments ...string) string {
	f.Helper()
	kubeconfig, err := clientcmd.LoadFromFile(f.cluster.Kubeconfig(cluster.Berth))
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range kubeconfig.Clusters {
		c.Server = server
	}
	for name := range kubeconfig.AuthInfos {
		kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: command, Args: arguments, InteractiveMode: clientcmdapi.NeverExecInteractiveMode}}
	}
	dir := f.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, file); err != nil {
		f.Fatal(err)
	}
	config := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+
		"clientConnection: {kubeconfig: %q, qps: 1000, burst: 1000}\nleaderElection: {leaderElect: false}\n", file)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	return config
}
