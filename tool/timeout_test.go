package tool

import (
	"bytes"
	"strings"
	"testing"
)

// answered is a command with its exit status and both of its outputs.
func answered(args ...string) (status int, out, notes string) {
	var stdout, stderr bytes.Buffer
	status = run(append([]string{"berth"}, args...), strings.NewReader(""), &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

// A command whose time is up says so, with the status of an answer that is not whole.
func TestTimeout(t *testing.T) {
	const file = "testdata/stuck.yaml"
	for _, test := range []struct {
		args []string
		says string // in the output or beside it
	}{
		{[]string{"why", "-f", file, "gpus", "--timeout", "1ns"}, "the time was up"},
		{[]string{"why", "-f", file, "--all", "--timeout", "1ns"}, "0 of 20 pending pods"},
		{[]string{"why", "-f", file, "gpus", "-o", "json", "--timeout", "1ns"}, `"cut": "the time was up`},
	} {
		if status, out, notes := answered(test.args...); status != exitWaiting || !strings.Contains(out+notes, test.says) {
			t.Errorf("%v: status %d, want %q: %s%s", test.args, status, test.says, out, notes)
		}
	}
	for _, command := range []string{"why", "simulate", "what-if", "fit"} {
		args := []string{command, "-f", file, "--timeout", "0s"}
		switch command {
		case "why":
			args = append(args, "gpus")
		case "what-if":
			args = append(args, "cordon", "n1")
		}
		if status, _, notes := answered(args...); status != exitInvalid || !strings.Contains(notes, "--timeout: 0s is not positive") {
			t.Errorf("%v: status %d: %s", args, status, notes)
		}
	}
}

// Pods that preempt each other without end do not keep a command from ending, and it
// names them.
func TestPreemptionWithoutEnd(t *testing.T) {
	const file, names = "testdata/cases/preempted-without-end.yaml", "default/p preempts without end pods that their controllers make again: default/web-h-1"
	for _, change := range []string{"priority p=2000", "cordon n3", "priority p=2000, cordon n3"} {
		status, out, notes := answered(append([]string{"what-if", "-f", file}, strings.Fields(change)...)...)
		if status != 0 || !strings.Contains(notes, names) || !strings.Contains(out, "EVICTED IN ANY CASE") || !strings.Contains(out, "it goes round without end with default/p: it was placed and evicted for that pod 10 times") {
			t.Errorf("%s: status %d: %s%s", change, status, out, notes)
		}
		if !strings.Contains(out, "n1     default/p\n") && !strings.Contains(out, "n2     default/p\n") {
			t.Errorf("%s: p has no node in the end: %s", change, out)
		}
	}
}
