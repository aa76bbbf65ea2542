package incidents

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// Each script is valid bash, and says what the page says and what its fault is.
func TestScriptsParse(t *testing.T) {
	scripts, err := filepath.Glob("*.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		if out, err := exec.Command("bash", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		if !number.MatchString(script) {
			continue
		}
		for _, part := range []string{`(?m)^complaint=".+"$`, `(?m)^fault\(\) \{$`} {
			if !regexp.MustCompile(part).Match(text) {
				t.Errorf("%s: nothing matches %s", script, part)
			}
		}
	}
}

var number = regexp.MustCompile(`^(\d\d)\.sh$`)

// The table of answers has a row for each script, and a script for each row.
func TestTableIsComplete(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\d\d) \|`).FindAllSubmatch(readme, -1) {
		rows = append(rows, string(row[1])+".sh")
	}
	scripts, err := filepath.Glob("[0-9][0-9].sh")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rows, scripts) || len(scripts) != 15 {
		t.Errorf("the table has %v, the scripts are %v", rows, scripts)
	}
}
