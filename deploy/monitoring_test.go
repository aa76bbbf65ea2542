package deploy

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/component-base/metrics"
	"sigs.k8s.io/yaml"

	berthmetrics "github.com/berth-scheduler/berth/edge/metrics"
)

// served are the metrics that the daemon serves: its own, and those of the
// libraries that the alerts and the dashboard use (the test of the chart looks
// for these in a daemon's answer).
func served() map[string]bool {
	names := map[string]bool{"leader_election_master_status": true, "rest_client_requests_total": true,
		"process_resident_memory_bytes": true, "process_cpu_seconds_total": true}
	register := func(all ...metrics.Registerable) {
		for _, m := range all {
			names[m.FQName()] = true
		}
	}
	berthmetrics.New(register, nil).Groups(register)
	return names
}

// metric finds the names of metrics in a query: words with a prefix of theirs.
var metric = regexp.MustCompile(`\b(scheduler|berth|leader_election|rest_client|process|go|workqueue|apiserver|kube)_[a-z0-9_]+`)

// queried checks that a query is about metrics that are served.
func queried(t *testing.T, where, query string) {
	t.Helper()
	names := metric.FindAllString(query, -1)
	if len(names) == 0 {
		t.Errorf("%s: %s asks for no metric of a scheduler", where, query)
	}
	all := served()
	for _, name := range names {
		base := name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			base = strings.TrimSuffix(base, suffix)
		}
		if !all[name] && !all[base] {
			t.Errorf("%s: no metric %s", where, name)
		}
	}
}

// Every alert asks for metrics that the daemon serves, and docs/operate.md says
// what to do about it.
func TestAlerts(t *testing.T) {
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.UnmarshalStrict(read(t, "chart/monitoring/rules.yaml"), &rules); err != nil {
		t.Fatal(err)
	}
	guide := string(read(t, "../docs/operate.md"))
	alerts := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			alerts++
			queried(t, rule.Alert, rule.Expr)
			if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" {
				t.Errorf("%s: has no severity or no summary", rule.Alert)
			}
			if !strings.Contains(guide, "`"+rule.Alert+"`") {
				t.Errorf("%s: docs/operate.md does not explain it", rule.Alert)
			}
		}
	}
	if alerts == 0 {
		t.Error("no alerts")
	}
}

// Every panel asks for metrics that the daemon serves.
func TestDashboard(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, "chart/monitoring/dashboard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queried(t, panel.Title, target.Expr)
		}
	}
	if len(dashboard.Panels) == 0 {
		t.Error("no panels")
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
