package scenario

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// long numbers ask for worlds that take long to play.
var long = regexp.MustCompile(`[0-9]{3}|[0-9][hd]`)

// Whatever a story says, reading it ends, and playing it ends as it should or
// with an error that names a line of the file. No invariant breaks on the way.
func FuzzStory(f *testing.F) {
	files, err := filepath.Glob("../../scenarios/*/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if len(text) < 2000 {
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		story, err := Parse("fuzz.txt", text)
		if err == nil {
			if len(story.Steps) > 60 || long.MatchString(text) {
				return
			}
			err = story.Play(Engine{Seed: 1, Workers: 1})
		}
		if err != nil && !strings.HasPrefix(err.Error(), "fuzz.txt:") {
			t.Errorf("error %v names no line", err)
		}
	})
}
