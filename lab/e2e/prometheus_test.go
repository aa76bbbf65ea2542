package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// reading is what a query of kubernetes-mixin reads, and how.
type reading struct {
	metric   string
	labels   string // that it asks for, beside the job
	rate     bool   // over time
	sum      string // how series are added up, such as "by (instance)"; "": they are not
	quantile string // of a histogram
	alert    string // what the metric has to be like for an alert to fire
	lacks    string // why neither scheduler need have data
}

// query is the reading in PromQL.
func (r reading) query() string {
	q := fmt.Sprintf(`%s{job="kube-scheduler",%s}`, r.metric, r.labels)
	if r.rate {
		q = "rate(" + q + "[5m])"
	}
	if r.sum != "" {
		q = fmt.Sprintf("sum %s (%s)", r.sum, q)
	}
	if r.quantile != "" {
		q = fmt.Sprintf("histogram_quantile(%s, %s)", r.quantile, q)
	}
	return q
}

// mixin is what the scheduler's dashboard, rules and alerts of kubernetes-mixin read,
// as of August 2026 (commit aa38e2b). Its dashboard selects cluster and instance.
func mixin() []reading {
	const (
		each      = `cluster="",instance=~".+"`
		attempts  = "scheduler_scheduling_attempt_duration_seconds"
		arrivals  = "scheduler_pod_scheduling_sli_duration_seconds"
		decisions = "scheduler_scheduling_algorithm_duration_seconds"
		volumes   = "scheduler_volume_scheduling_duration_seconds"
		requests  = "rest_client_requests_total"
		replies   = "rest_client_request_duration_seconds_bucket"
		luck      = "a healthy API server gives no such reply"
	)
	all := []reading{
		{metric: "up", labels: `cluster=""`, sum: "by ()"},
		{metric: requests, labels: each + `,code=~"2.."`, rate: true, sum: "by ()"},
		{metric: requests, labels: each + `,code=~"3.."`, rate: true, sum: "by ()", lacks: luck},
		{metric: requests, labels: each + `,code=~"4.."`, rate: true, sum: "by ()"},
		{metric: requests, labels: each + `,code=~"5.."`, rate: true, sum: "by ()", lacks: luck},
		{metric: replies, labels: each + `,verb="POST"`, rate: true, sum: "by (verb, le)", quantile: "0.99"},
		{metric: replies, labels: each + `,verb="GET"`, rate: true, sum: "by (verb, le)", quantile: "0.99"},
		{metric: "process_resident_memory_bytes", labels: each},
		{metric: "process_cpu_seconds_total", labels: each, rate: true},
		{metric: "go_goroutines", labels: each},
		{metric: "up", alert: "absent(%s)"},
		{metric: "up", alert: "%s == 0"},
	}
	for _, metric := range []string{attempts, arrivals, decisions, volumes} {
		lacks := ""
		if metric == volumes {
			lacks = "kube-scheduler has no such metric"
		}
		all = append(all,
			reading{metric: metric + "_count", labels: each, rate: true, sum: "by (cluster, instance)", lacks: lacks},
			reading{metric: metric + "_bucket", labels: each, rate: true, sum: "by (cluster, instance, le)", quantile: "0.99", lacks: lacks})
	}
	for _, metric := range []string{attempts, decisions, arrivals} {
		for _, quantile := range []string{"0.99", "0.9", "0.5"} {
			all = append(all, reading{metric: metric + "_bucket", rate: true, sum: "without (instance, pod)", quantile: quantile})
		}
	}
	return all
}

// A Prometheus scrapes Berth as the chart's PodMonitor says, and another scrapes
// kube-scheduler. Each query of kubernetes-mixin has data on both. So have the queries
// of the chart's dashboard and alerts on Berth's, and no alert fires until Berth ends.
func TestPrometheus(t *testing.T) {
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("Prometheus is not installed. On Debian: apt-get install --no-install-recommends prometheus")
	}
	f := newField(t, "prometheus")
	f.sameNodes(2, "8", 110) // one for each scheduler
	f.priority("urgent", 1000)
	f.dropLease("kube-scheduler")
	f.dropLease("berth-scheduler")
	berth := f.berth(cluster.SchedulerOptions{LeaderElect: true,
		Config: append(besideConfig, []byte("leaderElection: {resourceName: berth-scheduler}\n")...)})
	other := f.kubeScheduler("--leader-elect=true")

	monitoring := f.monitoring()
	ours, theirs := f.prometheus(binary, berth, monitoring), f.prometheus(binary, other, monitoring)
	both := []*prometheus{ours, theirs}
	f.create(f.forEach("first", 6, "1")...)
	f.create(f.forEach("giant", 1, "64")...)
	f.await("the first pods", func() string { return missing(bound(f.seen(""))+rejected(f.seen("")), 2*6+2) })
	for _, p := range both {
		p.awaitData(`scheduler_schedule_attempts_total{result="scheduled"}`, `scheduler_schedule_attempts_total{result="unschedulable"}`,
			`leader_election_master_status == 1`)
	}
	// What happens from here on has a rate. Leaders whose leases somebody else has
	// written are refused (409) and read them again.
	f.touchLease("kube-scheduler")
	f.touchLease("berth-scheduler")
	f.create(append(f.forEach("urgent", 1, "4"), f.forEach("more", 1, "0")...)...)
	f.await("the other pods", func() string {
		return missing(bound(f.seen("pod in (urgent-0-0,urgent-1-0,more-0-0,more-1-0)")), 4)
	})

	for _, r := range mixin() {
		for _, p := range both {
			if r.lacks == "" {
				p.awaitData(r.query())
			} else {
				p.ask(r.query()) // it parses
			}
			if r.alert != "" && p.ask(fmt.Sprintf(r.alert, r.query())) {
				t.Errorf("%s: an alert fires: "+r.alert, p.of.Kind, r.query())
			}
		}
	}
	for _, q := range f.dashboard(monitoring) {
		if !later.MatchString(q) {
			ours.awaitData(q)
		}
	}
	ours.awaitAlerts(monitoring, "")

	f.terminate(berth)
	ours.awaitData(fmt.Sprintf("%s == 0", reading{metric: "up"}.query()))
	ours.awaitAlerts(monitoring, "BerthDown")
}

// later matches queries of what has a series only once it has happened, or where there are
// pod groups or quotas.
var later = regexp.MustCompile(`berth_panics_total|result="error"|berth_pod_group|berth_elastic_quota|berth_reclaimed_pods_total`)

// monitoring is what the chart installs for Prometheus and Grafana. The API server
// has what needs no operator.
func (f *field) monitoring() []*unstructured.Unstructured {
	f.Helper()
	var all, rest []*unstructured.Unstructured
	for _, o := range chart(f.T, f.name, map[string]any{"name": f.name, "podMonitor": true, "prometheusRule": true, "dashboard": true}) {
		if name := o.GetName(); name == f.name+"-metrics" || name == f.name+"-dashboard" {
			rest = append(rest, o)
		} else if o.GroupVersionKind().Group != "monitoring.coreos.com" {
			continue
		}
		all = append(all, o)
	}
	f.apply(rest)
	return all
}

// only is the one object of a kind.
func only(t *testing.T, all []*unstructured.Unstructured, kind string) map[string]any {
	t.Helper()
	var found []map[string]any
	for _, o := range all {
		if o.GetKind() == kind {
			found = append(found, o.Object)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects %s, want one", len(found), kind)
	}
	return found[0]
}

// forEach makes pods for each of the two schedulers, on the scheduler's own node.
func (f *field) forEach(prefix string, n int, cpu string) (all []*corev1.Pod) {
	for i, scheduler := range []string{"berth", corev1.DefaultSchedulerName} {
		for _, pod := range f.podsOf(fmt.Sprintf("%s-%d", prefix, i), n, cpu) {
			pod.Spec.SchedulerName = scheduler
			pod.Spec.NodeSelector[corev1.LabelHostname] = f.nodeName(i)
			if prefix == "urgent" {
				pod.Spec.PriorityClassName = f.name + "-urgent"
			}
			all = append(all, pod)
		}
	}
	return all
}

// touchLease writes a lease that somebody else holds.
func (f *field) touchLease(name string) {
	f.Helper()
	if _, err := f.client.CoordinationV1().Leases(metav1.NamespaceSystem).Patch(f.Context(), name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"touched":"yes"}}}`), metav1.PatchOptions{}); err != nil {
		f.Fatal(err)
	}
}

// prometheus is a Prometheus that scrapes one scheduler.
type prometheus struct {
	*field
	of  *cluster.Scheduler
	url string
}

var listening = regexp.MustCompile(`msg="Listening on".* address=(\S+)`)

// prometheus starts one with the chart's rules, which has scraped the scheduler with
// the path and the rights that the chart gives when this returns.
func (f *field) prometheus(binary string, of *cluster.Scheduler, monitoring []*unstructured.Unstructured) *prometheus {
	f.Helper()
	dir := f.TempDir()
	write := func(name string, content any) string {
		text, err := yaml.Marshal(content)
		if err != nil {
			f.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			f.Fatal(err)
		}
		return path
	}
	endpoints, _, err := unstructured.NestedSlice(only(f.T, monitoring, "PodMonitor"), "spec", "podMetricsEndpoints")
	if err != nil || len(endpoints) != 1 {
		f.Fatalf("%d endpoints, want one: %v", len(endpoints), err)
	}
	endpoint := endpoints[0].(map[string]any)
	insecure, _, err := unstructured.NestedBool(endpoint, "tlsConfig", "insecureSkipVerify")
	if err != nil {
		f.Fatal(err)
	}
	config := write("prometheus.yaml", map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{write("rules.yaml", only(f.T, monitoring, "PrometheusRule")["spec"])},
		"scrape_configs": []any{map[string]any{
			"job_name": "kube-scheduler", "scheme": endpoint["scheme"], "metrics_path": endpoint["path"],
			"tls_config":     map[string]any{"insecure_skip_verify": insecure},
			"authorization":  map[string]any{"credentials": f.metricsToken()},
			"static_configs": []any{map[string]any{"targets": []string{fmt.Sprintf("127.0.0.1:%d", of.Port)}}},
		}},
	})
	process, err := f.cluster.Launch("prometheus", binary, "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := process.Stop(); err != nil {
			f.Error(err)
		}
	})
	p := &prometheus{field: f, of: of}
	f.await("Prometheus to listen", func() string {
		log, err := os.ReadFile(process.LogPath)
		if err != nil {
			f.Fatal(err)
		}
		found := listening.FindSubmatch(log)
		if found == nil {
			return "no address in " + process.LogPath
		}
		p.url = "http://" + string(found[1])
		return ""
	})
	f.await("Prometheus to be ready", func() string {
		request, err := http.NewRequestWithContext(f.Context(), http.MethodGet, p.url+"/-/ready", nil)
		if err != nil {
			f.Fatal(err)
		}
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			return err.Error()
		}
		if _ = reply.Body.Close(); reply.StatusCode == http.StatusOK { // the status says it all
			return ""
		}
		return reply.Status
	})
	p.awaitData("up == 1")
	return p
}

// metricsToken is the token that the chart has the API server make for a scraper.
func (f *field) metricsToken() (token string) {
	f.Helper()
	f.await("the scraper's token", func() string {
		secret, err := f.client.CoreV1().Secrets(f.name).Get(f.Context(), f.name+"-metrics", metav1.GetOptions{})
		if err != nil {
			f.Fatal(err)
		}
		token = string(secret.Data[corev1.ServiceAccountTokenKey])
		return missing(min(len(token), 1), 1)
	})
	return token
}

// get decodes what Prometheus says at a path of its API.
func (p *prometheus) get(path string, data any) {
	p.Helper()
	request, err := http.NewRequestWithContext(p.Context(), http.MethodGet, p.url+"/api/v1/"+path, nil)
	if err != nil {
		p.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		p.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		p.Fatal(err)
	}
	said := struct {
		Error string
		Data  any
	}{Data: data}
	if err := json.Unmarshal(body, &said); err != nil || said.Error != "" || reply.StatusCode != http.StatusOK {
		p.Fatalf("%s: %s: %v: %s", path, reply.Status, err, body)
	}
}

// ask tells whether a query has data now: a number at least.
func (p *prometheus) ask(query string) bool {
	p.Helper()
	var data struct {
		Result []struct{ Value [2]any } // time and number
	}
	p.get("query?query="+url.QueryEscape(query), &data)
	for _, series := range data.Result {
		if series.Value[1] != "NaN" {
			return true
		}
	}
	return false
}

// awaitData waits until each query has data.
func (p *prometheus) awaitData(queries ...string) {
	p.Helper()
	for _, query := range queries {
		p.await("data of "+p.of.Kind, func() string {
			if p.ask(query) {
				return ""
			}
			return "none of " + query
		})
	}
}

// compared splits an alert's expression: what it asks for, and what it compares that to.
var compared = regexp.MustCompile(`^(.+) (>|==) [0-9.]+$|^absent\((.+)\)$`)

// awaitAlerts waits until each of the chart's alerts is evaluated without error, and
// none but the one that is named is on its way. While none is, what an alert looks at
// has data.
func (p *prometheus) awaitAlerts(monitoring []*unstructured.Unstructured, firing string) {
	p.Helper()
	groups, _, err := unstructured.NestedSlice(only(p.T, monitoring, "PrometheusRule"), "spec", "groups")
	if err != nil || len(groups) != 1 {
		p.Fatalf("%d groups of rules, want one: %v", len(groups), err)
	}
	rules := groups[0].(map[string]any)["rules"].([]any)
	p.await("the alerts", func() string {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError, State string }
			}
		}
		p.get("rules", &data)
		known := 0
		for _, group := range data.Groups {
			for _, r := range group.Rules {
				known++
				if r.Health != "ok" || (r.State != "inactive") != (r.Name == firing) {
					return fmt.Sprintf("%s is %s and %s %s", r.Name, r.State, r.Health, r.LastError)
				}
			}
		}
		return missing(known, len(rules))
	})
	if firing != "" {
		return
	}
	for _, rule := range rules {
		expr := rule.(map[string]any)["expr"].(string)
		parts := compared.FindStringSubmatch(expr)
		if parts == nil {
			p.Errorf("%s: what does it look at?", expr)
		} else if !later.MatchString(expr) {
			p.awaitData(parts[1] + parts[3])
		}
	}
}

// dashboard is the queries of the chart's dashboard.
func (f *field) dashboard(monitoring []*unstructured.Unstructured) (queries []string) {
	f.Helper()
	var board struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	for _, o := range monitoring {
		if o.GetName() != f.name+"-dashboard" {
			continue
		}
		text, _, err := unstructured.NestedString(o.Object, "data", "berth.json")
		if err != nil {
			f.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), &board); err != nil {
			f.Fatal(err)
		}
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
		}
	}
	if len(queries) == 0 {
		f.Error("no queries")
	}
	return queries
}
