package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func shell(t *testing.T, script string) *Process {
	t.Helper()
	dir := t.TempDir()
	p, err := startProcess("sh", dir, filepath.Join(dir, "sh.log"), nil, "/bin/sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// A process that dies is reported with its status and its last lines.
func TestDeathIsTold(t *testing.T) {
	tests := []struct {
		script string
		want   []string
	}{
		{"echo the last words; exit 3", []string{"sh died: exit status 3", "the last words"}},
		{"exit 0", []string{"sh ended with exit status 0"}},
		{"kill -9 $$", []string{"sh died: signal: killed"}},
	}
	for _, test := range tests {
		p := shell(t, test.script)
		<-p.Done()
		err := p.Death()
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: death is %v, want %q in it", test.script, err, want)
			}
		}
	}
}

// A process that was stopped does not count as dead.
func TestStopIsNoDeath(t *testing.T) {
	p := shell(t, "exec sleep 1000")
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := p.Death(); err != nil {
		t.Errorf("a stopped process is called dead: %v", err)
	}
}

// Waiting ends when the process dies or the context ends.
func TestWaitUntil(t *testing.T) {
	ctx := context.Background()
	never := func(context.Context) error { return errors.New("still starting") }

	died := shell(t, "exit 1").waitUntil(ctx, time.Millisecond, never)
	if died == nil || !strings.Contains(died.Error(), "sh died") {
		t.Errorf("waiting for a dead process: %v", died)
	}

	over, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("enough"))
	err := shell(t, "exec sleep 1000").waitUntil(over, time.Hour, never)
	if err == nil || !strings.Contains(err.Error(), "enough") || !strings.Contains(err.Error(), "still starting") {
		t.Errorf("waiting past the end of the context: %v", err)
	}

	interrupted, cancelled := context.WithCancel(ctx)
	cancelled()
	p := shell(t, "exec sleep 1000")
	if err := p.waitUntil(interrupted, time.Hour, never); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "end of") || p.quoted.Load() {
		t.Errorf("interrupted: %v; its log is kept: %t", err, p.quoted.Load())
	}

	attempts := 0
	err = shell(t, "exec sleep 1000").waitUntil(ctx, time.Millisecond, func(context.Context) error {
		if attempts++; attempts < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || attempts != 3 {
		t.Errorf("ready after %d attempts: %v", attempts, err)
	}
}

// The tail of a log is its last lines, however long the log is.
func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	long := strings.Repeat("old\n", 10_000) + "one\ntwo\nthree\n"
	for content, want := range map[string]string{
		"":                  "",
		"one\n":             "one",
		"one\ntwo\nthree\n": "two\nthree",
		long:                "two\nthree",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := tail(path, 2); got != want {
			t.Errorf("tail is %q, want %q", got, want)
		}
	}
}

// CPU time and memory are read from /proc.
func TestParseUsage(t *testing.T) {
	cpu, err := parseCPU("12 (a (bad) name) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0")
	if err != nil || cpu != 3*time.Second {
		t.Errorf("CPU is %v, %v", cpu, err)
	}
	if _, err := parseCPU("12 (sh) S 1"); err == nil {
		t.Error("a short line was accepted")
	}
	status := "VmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n"
	if rss, err := parseKiB(status, "VmRSS:"); err != nil || rss != 1<<20 {
		t.Errorf("RSS is %d, %v", rss, err)
	}
	if _, err := parseKiB(status, "VmSwap:"); err == nil {
		t.Error("a missing line was accepted")
	}
}
