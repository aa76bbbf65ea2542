package faults

import (
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// --only takes faults by name, in the order of the list.
func TestChosen(t *testing.T) {
	for only, want := range map[string]string{"": "R1 R2 R3 R4 R5", "R4": "R4", "R5,R1": "R1 R5"} {
		var o Options
		if only != "" {
			o.Only = strings.Split(only, ",")
		}
		all, err := o.chosen()
		var got []string
		for _, f := range all {
			got = append(got, f.Name)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("--only %q: got %v, %v", only, got, err)
		}
	}
	if _, err := (Options{Only: []string{"R1", "R6"}}).chosen(); err == nil || err.Error() != "--only R6: there are R1 to R5" {
		t.Errorf("got %v", err)
	}
}

// The table has a row for each fault, with what both schedulers did.
func TestTable(t *testing.T) {
	var out strings.Builder
	r := Result{Fault: All[3], Kube: Outcome{Shown: true, What: "over-committed"}, Berth: Outcome{What: "kept"}}
	if err := write(&out, []Result{r}); err != nil || !r.Met() {
		t.Fatal(err, r.Met())
	}
	for _, want := range []string{"KUBE-SCHEDULER " + cluster.KubernetesVersion, "R4 ", "over-committed", "kept"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if r.Berth.Shown = true; r.Met() {
		t.Error("a fault that Berth has counts as absent")
	}
}
