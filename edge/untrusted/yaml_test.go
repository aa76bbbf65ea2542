package untrusted

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// laughs is a list of lists of lists, each ten times the one before.
func laughs(levels int) string {
	text := "l0: &l0 ha\n"
	for i := 1; i < levels; i++ {
		text += fmt.Sprintf("l%d: &l%[1]d [%s]\n", i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d, ", i-1), 10), ", "))
	}
	return text
}

// Aliases may stand for a little, and not for gigabytes: as lists of lists, as a long text
// many times, in a later document. An anchor may not contain itself.
func TestAliases(t *testing.T) {
	const tooMuch = "the aliases of the YAML document stand for more than 16 MiB"
	for name, c := range map[string]struct{ text, want string }{
		"none":              {"a: b & c * d", ""},
		"few":               {"a: &a {b: c}\nd: *a\ne: {<<: *a}", ""},
		"lists of lists":    {laughs(5), ""},
		"a billion":         {laughs(10), tooMuch},
		"beyond int64":      {laughs(25), tooMuch},
		"a long text":       {"a: &a " + strings.Repeat("x", 1<<16) + "\nb: [" + strings.Repeat("*a,", 1000) + "]", tooMuch},
		"a later document":  {"a: b\n---\n" + laughs(10), tooMuch},
		"itself":            {"a: &a [*a]", errItself.Error()},
		"no YAML":           {"a: &a [*a", ""},
		"asterisks in text": {"a: ls *.go && rm *.o &", ""},
	} {
		if err := Aliases([]byte(c.text)); c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	path := filepath.Join(t.TempDir(), "bomb")
	if err := os.WriteFile(path, []byte(laughs(10)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := YAML(path); err == nil || !strings.HasSuffix(err.Error(), path+": "+tooMuch) {
		t.Error(err)
	}
}
