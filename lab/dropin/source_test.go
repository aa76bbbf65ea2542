package dropin

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/edge/logs/logstest"
	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/upstream"
)

// sources returns the sources of the kube-scheduler that the lab links.
func sources(t *testing.T) *upstream.Sources {
	t.Helper()
	s, err := upstream.Load(cluster.KubernetesVersion)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// events are the reasons of the events that kube-scheduler publishes.
func events(t *testing.T) []row {
	found, rows := sources(t).Events(), listed(t, "events.txt", "event")
	for _, r := range rows {
		delete(found, strings.Trim(r.name, "`"))
	}
	for _, reason := range slices.Sorted(maps.Keys(found)) {
		t.Errorf("events.txt does not have %s", reason)
	}
	return rows
}

// rule says what Berth does with lines that it does not write: those of the files,
// or with the messages, that match.
type rule struct{ path, message, ours string }

var rules = []rule{
	{`podgroup|gangscheduling|placement`, ``, "not written: V2 says how the cycle of a pod group ended"},
	{``, `(?i)placement|Workload Aware`, "not written: V2 says how the cycle of a pod group ended, and the condition of the group why it preempts nobody"},
	{``, `(?i)pod ?group|pod group`, "not written: V2 says how the cycle of a pod group ended"},
	{`batch\.go`, ``, "not written: Berth has no batch"},
	{``, `^(SignPod|Disabling signatures|No signer)`, "E \"SignPod failed for plugin\" is written for hosted plugins; Berth's own need no signature, and one that does not sign is asked anew"},
	{`framework/plugins/`, ``, "not written. V5 \"Event is not making entity schedulable\" and \"Entity moved to an internal scheduling queue\" say what came of an event, V10 what each filter and score said of each node, E \"Error scheduling pod; retrying\" why an attempt failed"},
	{`backend/cache|assumecache|snapshot`, ``, "not written: Berth has no cache beside its table, and no snapshot"},
	{`api_dispatcher|api_calls|api_cache`, ``, "not written: SchedulerAsyncAPICalls changes nothing"},
	{`eventhandlers|backend/queue|framework/types\.go|nominator`, ``, "not written: the case cannot arise, or V5 \"Entity moved to an internal scheduling queue\" says the same"},
	{`framework/preemption`, ``, "not written: \"Tried to preempted pod\", \"No preemption candidate is found\" and the pod's message say it"},
	{`apis/config|framework/runtime/framework\.go`, `re-configured|MultiPoint|disabled plugin`, "not written: `berth config show --effective` shows the configuration in force"},
	{`framework/runtime`, `rejected by (Pre)?Bind`, "not written: \"Error scheduling pod; retrying\" has the reason"},
	{`framework/runtime`, `rejected`, "not written: \"Unable to schedule pod; no fit; waiting\" names what rejected the pod"},
	{`framework/runtime`, ``, "\"Plugin failed\" or \"Error scheduling pod; retrying\" has the error and the plugin"},
	{`cmd/kube-scheduler`, ``, "not written: the daemon ends with the error"},
	{`schedule_one\.go`, `^Status after running PostFilter`, "written at V5, also where the plugin failed"},
	{`schedule_one\.go|scheduler\.go|util/utils\.go`, ``, "not written: the case cannot arise, or \"Error scheduling pod; retrying\" has the error"},
	{`extender\.go`, ``, "\"Failed to call extender\" has the error"},
	{`metrics/`, ``, "not written"},
}

func ruled(l upstream.Line) string {
	for _, r := range rules {
		if regexp.MustCompile(r.path).MatchString(l.Path) && regexp.MustCompile(r.message).MatchString(l.Message) {
			return r.ours
		}
	}
	return ""
}

// lines says of each line of kube-scheduler's source whether Berth writes it.
func lines(t *testing.T) (rows []row) {
	theirs, written := sources(t).Lines(), map[string][]string{}
	for l := range strings.Lines(logstest.Lines) {
		if f := strings.Split(strings.TrimSpace(l), " | "); !strings.HasPrefix(l, "#") {
			written[f[1]] = append(written[f[1]], strings.TrimSpace(l))
		}
	}
	seen := map[string]bool{}
	for _, l := range theirs {
		name := l.Level + " " + code(l.Message)
		if seen[name+l.Keys] {
			continue
		}
		seen[name+l.Keys] = true
		r := row{"log line", name, cmpOr(l.Keys, "no keys"), ruled(l), here}
		for _, w := range written[l.Message] {
			if f := strings.Split(w, " | "); f[0] == l.Level || l.Level == "V?" {
				r.ours, r.test = "same", "`"+strings.Replace(f[3], ", ", "`, ", 1)
			}
		}
		if r.ours == "" {
			t.Errorf("no rule for %s %q in %s", l.Level, l.Message, l.Path)
		}
		rows = append(rows, r)
	}
	return rows
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
