package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// What Berth recorded of a real cluster is replayed to the same decisions, and what
// berth record watched beside it to the same pods.
func TestRecordReplay(t *testing.T) {
	f := newField(t, "record")
	f.sameNodes(3, "4", 110)
	recorded, watched := filepath.Join(t.TempDir(), "scheduler"), filepath.Join(t.TempDir(), "watch")

	watch := exec.CommandContext(t.Context(), filepath.Join(programs(t), "berth"), "record",
		"--kubeconfig", f.cluster.Kubeconfig(cluster.Admin), "--to", watched)
	stderr, err := watch.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "all objects are listed") {
	}
	s := f.berth(cluster.SchedulerOptions{Flags: []string{"--record-to=" + recorded}})
	f.create(append(f.podsOf("one", 12, "1"), f.pod("giant", "64"))...)
	f.await("the pods to be placed or rejected", func() string {
		return missing(bound(f.seen(""))+rejected(f.seen("")), 13)
	})
	f.create(f.pod("late", "100m"))
	f.await("the late pod to be rejected", func() string { return missing(rejected(f.seen("")), 2) })
	all := []string{`"kind":"ReplayResult"`, `"placed":12`, `"pending":2`}
	f.await("berth record to have seen as much", func() string {
		out, _ := f.run("replay", watched, "-o", "json") // while it is being written
		if !containsAll(out, all) {
			return fmt.Sprintf("%.600s", out)
		}
		return ""
	})
	f.terminate(s)
	if err := watch.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	for lines.Scan() {
		t.Log(lines.Text())
	}
	if err := watch.Wait(); err != nil {
		t.Errorf("berth record: %v", err)
	}

	out := f.replay(0, recorded)
	if !strings.Contains(out, "are the same as recorded") || !strings.Contains(out, "Scheduled") {
		t.Errorf("berth replay says\n%s", out)
	}
	if out = f.replay(0, watched, "-o", "json"); !containsAll(out, all) {
		t.Errorf("berth replay of what was watched does not say %q:\n%.600s", all, out)
	}
}

// replay runs berth replay, which has to end with a status.
func (f *field) replay(status int, arguments ...string) string {
	f.Helper()
	var out, errs bytes.Buffer
	command := exec.CommandContext(f.Context(), filepath.Join(programs(f.T), "berth"), append([]string{"replay"}, arguments...)...)
	command.Stdout, command.Stderr, command.WaitDelay = &out, &errs, time.Minute
	_ = command.Run()
	if code := command.ProcessState.ExitCode(); code != status {
		f.Errorf("berth replay: exit status %d, want %d\n%s%s", code, status, &out, &errs)
	}
	return out.String()
}
