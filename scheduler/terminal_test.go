package scheduler

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"k8s.io/component-base/cli"
)

const evil = "x\x1b[31m\r\u009b31m\u202e\nforged"

// An error in the command line has no character that a terminal obeys, and no line of
// its own, whatever flag or value it names.
func TestFlagErrorsDoNotActOnTheTerminal(t *testing.T) {
	for _, args := range [][]string{{"--" + evil}, {"-" + evil}, {"--config-sync=" + evil}, {"--secure-port", evil}, {"--leader-elect=" + evil}, {evil},
		{"--feature-gates", evil + "=true"}, {"--logging-format", evil}, {"--v", evil}} {
		command := newCommand(newOptions())
		command.SetArgs(args)
		command.SetOut(io.Discard)
		command.SetErr(io.Discard)
		err := command.Execute()
		if err == nil {
			t.Errorf("%q: no error", args)
			continue
		}
		if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsGraphic(r) }) {
			t.Errorf("%q: %q", args, err)
		}
	}
}

// asDaemon is the environment variable that lets this program be berth-scheduler with the
// logging format that it names.
const asDaemon = "BERTH_TEST_LOGGING_FORMAT"

// The log of a daemon has no character that a terminal obeys, in both formats, and no
// line that a value begins.
func TestLogDoesNotActOnTheTerminal(t *testing.T) {
	if format := os.Getenv(asDaemon); format != "" {
		command := NewCommand()
		command.SetArgs([]string{"--config", evil, "--logging-format", format})
		os.Exit(cli.Run(command))
	}
	for _, format := range []string{"text", "json"} {
		daemon := exec.Command(os.Args[0], "-test.run=^TestLogDoesNotActOnTheTerminal$")
		daemon.Env = append(os.Environ(), asDaemon+"="+format)
		out, err := daemon.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "command failed") {
			t.Errorf("%s: %v: %q", format, err, out)
		}
		if bad := strings.IndexFunc(string(out), func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsGraphic(r) }); bad >= 0 || strings.Contains(string(out), "\nforged") {
			t.Errorf("%s: %q", format, out)
		}
	}
}
