package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// stable are the metrics of kube-scheduler that dashboards rely on.
var stable = []string{
	"scheduler_framework_extension_point_duration_seconds",
	"scheduler_pending_pods",
	"scheduler_pod_scheduling_attempts",
	"scheduler_preemption_attempts_total",
	"scheduler_preemption_victims",
	"scheduler_queue_incoming_pods_total",
	"scheduler_schedule_attempts_total",
	"scheduler_scheduling_attempt_duration_seconds",
}

// Health is for anybody, the rest for those whom the API server knows and lets:
// by certificate or by token.
func TestEndpoints(t *testing.T) {
	f := newField(t, "endpoints")
	f.sameNodes(3, "4", 110)
	f.priority("urgent", 1000)
	berth := f.berth(cluster.SchedulerOptions{})
	// One pod of each fate, for the metrics: placed, rejected, and preempting.
	f.create(f.podsOf("one", 12, "1")...)
	f.awaitBound(12)
	urgent := f.pod("urgent", "1")
	urgent.Spec.PriorityClassName = f.name + "-urgent"
	f.create(f.pod("giant", "64"), urgent)
	f.await("all fates", func() string {
		return missing(rejected(f.seen("pod=giant"))+bound(f.seen("pod=urgent")), 1+1)
	})

	anonymous, admin, token := client{}, client{config: f.cluster.AdminConfig()}, client{token: f.scraper()}
	tests := []struct {
		path   string
		client client
		status int
		want   string // in the body
	}{
		{"/healthz", anonymous, 200, "ok"},
		{"/livez", anonymous, 200, "ok"},
		{"/readyz", anonymous, 200, "ok"},
		{"/readyz?verbose", anonymous, 200, "[+]sched-handler-sync ok"},
		{"/metrics", anonymous, 403, "system:anonymous"},
		{"/configz", anonymous, 403, "system:anonymous"},
		{"/debug/pprof/", anonymous, 403, "system:anonymous"},
		{"/debug/pprof/", token, 403, "cannot get path"},
		{"/debug/pprof/", admin, 200, "goroutine"},
		{"/debug/pprof/goroutine?debug=1", admin, 200, "goroutine profile"},
		{"/metrics", client{token: "nonsense"}, 401, "Unauthorized"},
		{"/metrics", token, 200, "scheduler_pending_pods"},
		{"/configz", token, 403, "cannot get path"},
		{"/metrics", admin, 200, "scheduler_pending_pods"},
		{"/metrics/slis", admin, 200, "kubernetes_healthcheck"},
		{"/configz", admin, 200, `"kind":"KubeSchedulerConfiguration"`},
		{"/nothing", admin, 404, ""},
	}
	f.awaitAdmin(berth)
	for _, test := range tests {
		status, body := f.ask(berth, test.client, test.path)
		if status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s: status %d, want %d and %q in the body:\n%.300s", test.path, status, test.status, test.want, body)
		}
	}

	_, metrics := f.ask(berth, admin, "/metrics")
	for _, name := range stable {
		if !strings.Contains(metrics, "# HELP "+name+" [STABLE]") {
			t.Errorf("no metric %s that is STABLE", name)
		}
		if !strings.Contains(metrics, "\n"+name) {
			t.Errorf("metric %s has no value", name)
		}
	}
	_, config := f.ask(berth, admin, "/configz")
	if !json.Valid([]byte(config)) {
		t.Errorf("/configz is not JSON: %s", config)
	}
}

// client is who asks: nobody, the owner of a configuration's certificate, or
// the bearer of a token.
type client struct {
	config *rest.Config
	token  string
}

// ask gets a path of the scheduler's endpoint.
func (f *field) ask(s *cluster.Scheduler, c client, path string) (status int, body string) {
	f.Helper()
	config := &tls.Config{}
	if c.config != nil {
		own, err := rest.TLSConfigFor(c.config)
		if err != nil {
			f.Fatal(err)
		}
		config = own
	}
	config.InsecureSkipVerify = true // its certificate is its own
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(f.Context(), http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", s.Port, path), nil)
	if err != nil {
		f.Fatal(err)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	reply, err := transport.RoundTrip(request)
	if err != nil {
		f.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		f.Fatal(err)
	}
	return reply.StatusCode, string(text)
}

// scraper is a token of the field's service account, which may read metrics.
func (f *field) scraper() string {
	f.Helper()
	name := f.name + "-scraper"
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
	if _, err := f.client.RbacV1().ClusterRoles().Create(f.Context(), role, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.name, Name: "default"}}}
	if _, err := f.client.RbacV1().ClusterRoleBindings().Create(f.Context(), binding, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		_ = f.client.RbacV1().ClusterRoleBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
		_ = f.client.RbacV1().ClusterRoles().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	f.await("the right to read metrics", func() string {
		review, err := f.client.AuthorizationV1().SubjectAccessReviews().Create(f.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: "system:serviceaccount:" + f.name + ":default",
				NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}}}, metav1.CreateOptions{})
		if err != nil {
			return err.Error()
		}
		if !review.Status.Allowed {
			return "it is not there"
		}
		return ""
	})
	return f.token(f.name, "default")
}

// awaitAdmin waits until the scheduler knows who the administrator is, and returns
// its metrics. A scheduler that is ready may not have read the authority yet that
// signs the certificates of clients.
func (f *field) awaitAdmin(s *cluster.Scheduler) (metrics string) {
	f.Helper()
	f.await("the scheduler to know the administrator", func() (lacking string) {
		status := 0
		if status, metrics = f.ask(s, client{config: f.cluster.AdminConfig()}, "/metrics"); status != http.StatusOK {
			lacking = fmt.Sprintf("status %d", status)
		}
		return lacking
	})
	return metrics
}

// metric is the sum of a metric's values over the series with all the labels,
// each as label="value".
func (f *field) metric(s *cluster.Scheduler, name string, labels ...string) int {
	f.Helper()
	body := f.awaitAdmin(s)
	sum := 0.0
	lines := bufio.NewScanner(strings.NewReader(body))
	for lines.Scan() {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if metric, _, _ := strings.Cut(series, "{"); metric != name || !containsAll(series, labels) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			f.Fatalf("%s: %v", lines.Text(), err)
		}
		sum += n
	}
	return int(sum)
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
