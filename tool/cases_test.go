package tool

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestCases runs the commands in the first comments of each file of testdata/cases on that
// file. A file reads:
//
//	# Why the case is here.
//	#
//	# $ berth why -f THIS web-1
//	# exit 1
//	# has kubectl uncordon w3
//	# not tolerate
//
// THIS is the file. The texts after "has" stand in the output in this order, those after
// "not" stand nowhere in it. The output is what the command prints, notes on stderr first.
func TestCases(t *testing.T) {
	paths, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			commands := commandsOfCase(t, path)
			if len(commands) == 0 {
				t.Fatalf("%s: its first comments have no command", path)
			}
			for _, c := range commands {
				c.run(t)
			}
		})
	}
}

// caseCommand is one command of a case and what it is to do.
type caseCommand struct {
	args     []string // as main has them
	exit     int
	has, not []string
}

func commandsOfCase(t *testing.T, path string) []*caseCommand {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var commands []*caseCommand
	for line := range strings.Lines(string(data)) {
		comment, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "# ")
		if !ok && line != "#\n" {
			break
		}
		verb, text, _ := strings.Cut(comment, " ")
		if verb == "$" {
			commands = append(commands, &caseCommand{args: strings.Fields(strings.ReplaceAll(text, "THIS", path))})
			continue
		}
		if len(commands) == 0 {
			continue
		}
		c := commands[len(commands)-1]
		switch verb {
		case "exit":
			if c.exit, err = strconv.Atoi(text); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		case "has":
			c.has = append(c.has, text)
		case "not":
			c.not = append(c.not, text)
		default:
			t.Fatalf("%s: after a command come exit, has and not: %q", path, comment)
		}
	}
	return commands
}

func (c *caseCommand) run(t *testing.T) {
	var out, notes bytes.Buffer
	status := run(c.args, strings.NewReader(""), &out, &notes)
	text := notes.String() + out.String()
	if status != c.exit {
		t.Errorf("%v: exit %d, not %d:\n%s", c.args, status, c.exit, text)
	}
	rest := text
	for _, s := range c.has {
		_, after, found := strings.Cut(rest, s)
		if !found {
			t.Errorf("%v: no %q in its place:\n%s", c.args, s, text)
			continue
		}
		rest = after
	}
	for _, s := range c.not {
		if strings.Contains(text, s) {
			t.Errorf("%v: has %q:\n%s", c.args, s, text)
		}
	}
}
