package engine_test

import (
	"os"
	"strings"
	"testing"
)

// The drawing in doc.go shows the figures that the Example prints.
func TestDrawing(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	drawing := words(strings.ReplaceAll(string(doc), "//", ""))
	var printed strings.Builder
	deploy(&printed)
	for line := range strings.Lines(printed.String()) {
		if strings.Contains(line, "asks:") || strings.Contains(line, "Row: n2") {
			continue // the drawing does not show the questions, nor the first outcome
		}
		if !strings.Contains(drawing, words(line)) {
			t.Errorf("doc.go does not have %q", words(line))
		}
	}
}
