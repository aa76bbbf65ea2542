package dropin

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/edge/logs"
)

// visit calls see with each call in the source of kube-scheduler.
func visit(t *testing.T, see func(path string, call *ast.CallExpr, function *ast.SelectorExpr)) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := strings.TrimSpace(string(out))
	for _, dir := range []string{"cmd/kube-scheduler", "pkg/scheduler"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/test") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			short := strings.TrimPrefix(path, root+"/")
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if f, ok := call.Fun.(*ast.SelectorExpr); ok {
						see(short, call, f)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func text(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		s, _ := strconv.Unquote(l.Value)
		return s
	}
	return ""
}

// readGates are the gates that kube-scheduler's own code names.
func readGates(t *testing.T) map[string]bool {
	read := map[string]bool{}
	visit(t, func(_ string, call *ast.CallExpr, f *ast.SelectorExpr) {
		if f.Sel.Name != "Enabled" {
			return
		}
		for _, arg := range call.Args {
			if s, ok := arg.(*ast.SelectorExpr); ok {
				read[s.Sel.Name] = true
			}
		}
	})
	return read
}

// events are the reasons of the events that kube-scheduler publishes.
func events(t *testing.T) []row {
	found, rows := map[string]bool{"LeaderElection": true}, listed(t, "events.txt", "event")
	visit(t, func(_ string, call *ast.CallExpr, f *ast.SelectorExpr) {
		if f.Sel.Name == "Eventf" && len(call.Args) > 3 && text(call.Args[3]) != "" {
			found[text(call.Args[3])] = true
		}
	})
	for _, r := range rows {
		delete(found, strings.Trim(r.name, "`"))
	}
	for _, reason := range slices.Sorted(maps.Keys(found)) {
		t.Errorf("events.txt does not have %s", reason)
	}
	return rows
}

// line is a log line in kube-scheduler's source.
type line struct{ level, message, keys, path string }

// sourceLines are all of them, each once.
func sourceLines(t *testing.T) []line {
	all := map[line]bool{}
	visit(t, func(path string, call *ast.CallExpr, f *ast.SelectorExpr) {
		args, level := call.Args, ""
		switch f.Sel.Name {
		case "Info":
			level = verbosity(f.X)
		case "Error":
			if len(args) > 0 {
				args, level = args[1:], "E"
			}
		case "HandleErrorWithContext", "HandleErrorWithLogger":
			args, level = args[2:], "E"
		}
		if level == "" || len(args) == 0 || text(args[0]) == "" {
			return
		}
		var keys []string
		for i := 1; i < len(args); i += 2 {
			if k := text(args[i]); k != "" {
				keys = append(keys, k)
			}
		}
		all[line{level, text(args[0]), strings.Join(keys, ", "), path}] = true
	})
	return slices.SortedFunc(maps.Keys(all), func(a, b line) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// verbosity is that of a logger: what V was called with; "V?" where it is in a
// variable.
func verbosity(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "V" {
			if l, ok := e.Args[0].(*ast.BasicLit); ok {
				return "V" + l.Value
			}
		}
		return "V0"
	case *ast.Ident:
		switch e.Name {
		case "logger", "lg":
			return "V0"
		case "loggerV", "loggerVTen":
			return "V?"
		}
	case *ast.SelectorExpr:
		if e.Sel.Name == "logger" {
			return "V0"
		}
	}
	return ""
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
	{`framework/plugins/`, ``, "not written. V5 \"Event is not making pod schedulable\" and \"Pod moved to an internal scheduling queue\" say what came of an event, V10 what each filter and score said of each node, E \"Error scheduling pod; retrying\" why an attempt failed"},
	{`backend/cache|assumecache|snapshot`, ``, "not written: Berth has no cache beside its table, and no snapshot"},
	{`api_dispatcher|api_calls|api_cache`, ``, "not written: SchedulerAsyncAPICalls changes nothing"},
	{`eventhandlers|backend/queue|framework/types\.go|nominator`, ``, "not written: the case cannot arise, or V5 \"Pod moved to an internal scheduling queue\" says the same"},
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

func ruled(l line) string {
	for _, r := range rules {
		if regexp.MustCompile(r.path).MatchString(l.path) && regexp.MustCompile(r.message).MatchString(l.message) {
			return r.ours
		}
	}
	return ""
}

// lines compares what Berth says that it writes with kube-scheduler's source.
func lines(t *testing.T) (rows []row) {
	theirs, written := sourceLines(t), map[string][]string{}
	for l := range strings.Lines(logs.Lines) {
		if f := strings.Split(strings.TrimSpace(l), " | "); !strings.HasPrefix(l, "#") {
			written[f[1]] = append(written[f[1]], strings.TrimSpace(l))
			if !slices.ContainsFunc(theirs, func(t line) bool {
				return t.message == f[1] && (t.level == f[0] || t.level == "V?" || f[0] == "E") && has(t.keys, f[2])
			}) {
				t.Errorf("kube-scheduler does not write: %s", l)
			}
		}
	}
	seen := map[string]bool{}
	for _, l := range theirs {
		name := l.level + " " + code(l.message)
		if seen[name+l.keys] {
			continue
		}
		seen[name+l.keys] = true
		r := row{"log line", name, cmpOr(l.keys, "no keys"), ruled(l), here}
		for _, w := range written[l.message] {
			if f := strings.Split(w, " | "); f[0] == l.level || l.level == "V?" {
				r.ours, r.test = "same", "`"+strings.Replace(f[3], ", ", "`, ", 1)
			}
		}
		if r.ours == "" {
			t.Errorf("no rule for %s %q in %s", l.level, l.message, l.path)
		}
		rows = append(rows, r)
	}
	return rows
}

// has tells whether the keys are among those of the source, as far as these are
// constants.
func has(keys, some string) bool {
	if some == "none" || keys == "" {
		return true
	}
	all := strings.Split(keys, ", ")
	return !slices.ContainsFunc(strings.Split(some, ", "), func(k string) bool { return !slices.Contains(all, k) })
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
