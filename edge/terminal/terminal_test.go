package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"

	"k8s.io/klog/v2/textlogger"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// evil has a character of each kind that is not safe.
const evil = "\x1b[31m\a\b\r\x7f\v\f\n\t\u0085\u009b\u202e\u2066\u200f\u2028\u2029\u200b\u00ad\ufeff\u034f\ufe0f\ue000\U000e0041"

// What is not safe has an escape, what is safe stays.
func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "",
		`web-1 "a" \n`:     `web-1 "a" \n`,
		"Größe × 日本 é 🚀":   "Größe × 日本 é 🚀",
		"a\nb\tc\rd\be\ff": `a\nb\tc\rd\be\ff`,
		"\x00\x1b\a\x7f":   `\u0000\u001b\u0007\u007f`,
		"\u0085\u009b31m":  `\u0085\u009b31m`,
		"\x9b31m\xff":      "\ufffd31m\ufffd",
		"\u202e\u2066":     `\u202e\u2066`,
		"\u2028\u2029":     `\u2028\u2029`,
		"\u200b\ufeff\u3164\ufe0f\U000e0041\ue000": `\u200b\ufeff\u3164\ufe0f\udb40\udc41\ue000`,
	} {
		if got := Escape(text); got != want {
			t.Errorf("Escape(%q) = %q, want %q", text, got, want)
		}
	}
}

// Only the format breaks lines, whatever the type of an argument, and padding, numbers
// and quotes come out as fmt has them.
func TestFprintf(t *testing.T) {
	var b strings.Builder
	_, err := Fprintf(&b, "%s|%v|%q|%v|%4d|%-3s|%.1f|%x%%\n\t%s\n", "a\nb", errors.New("c\x1b"), "d\n", []string{"e\r"}, 7, "f", 1.25, "g", strings.Repeat("h", 2))
	if want := "a\\nb|c\\u001b|\"d\\n\"|[e\\r]|   7|f  |1.2|67%\n\thh\n"; err != nil || b.String() != want {
		t.Errorf("%q, %v, want %q", b.String(), err, want)
	}
}

// written is what a Writer makes of the text if it gets it byte by byte.
func written(t interface{ Fatal(...any) }, text string) string {
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, c := range []byte(text) {
		if n, err := w.Write([]byte{c}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	return b.String()
}

// A Writer lets line feeds and tabs through, and of other controls only the program's
// own. It returns the error of what it writes to.
func TestWriter(t *testing.T) {
	if got, want := written(t, "a\x1b[m\n\tÄ\u009b\x9b\xe2\x80z\u202e🚀"), "a\\u001b[m\n\tÄ\\u009b\ufffd\ufffd\ufffdz\\u202e🚀"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var b bytes.Buffer
	w := NewWriter(&b)
	if err := w.Control("\r\x1b[K"); err != nil || b.String() != "\r\x1b[K" || w.IsTerminal() {
		t.Errorf("%q %v", b.String(), err)
	}
	if _, err := NewWriter(failing{}).Write([]byte("a")); err == nil {
		t.Error("no error")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, iotest.ErrTimeout }

// JSON and YAML that pass a Writer hold what they held, and nothing that is not safe.
func TestDataStaysEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{evil, "a\nb: c\n", "yes", "1e3", "- x", "null", "# a", "\u202e: x"})).Draw(t, "text")
		value := map[string]any{text: []any{text, 1., true, nil, map[string]any{}}, "n": 12345678901., "s": "1"}
		data, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		text = written(t, string(data))
		document, err := YAML(data)
		if err != nil {
			t.Fatal(err)
		}
		shown := written(t, string(document))
		back, err := yaml.YAMLToJSON([]byte(shown))
		if err != nil {
			t.Fatalf("%v: %s", err, shown)
		}
		for _, form := range []string{text, string(back)} {
			var got map[string]any
			if err := json.Unmarshal([]byte(form), &got); err != nil {
				t.Fatal(err)
			}
			if a, _ := json.Marshal(got); string(a) != compact(t, data) {
				t.Fatalf("%s, want %s", a, compact(t, data))
			}
		}
		for _, r := range text + shown {
			if r != '\n' && !unicode.IsGraphic(r) {
				t.Fatalf("%U in %s%s", r, text, shown)
			}
		}
	})
}

func compact(t *rapid.T, data []byte) string {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(v)
	return string(text)
}

// YAML of ordinary values is the one that kubectl writes, except that no line is folded.
func TestYAMLIsKubectls(t *testing.T) {
	data := []byte(`{"b": [{"x": 1, "y": ["p", "q"]}, {"z": {}}], "a10": "yes", "a9": "", "e": [], "f": 1.5, "g": 1234567890123, "h": null, "i": true,
		"j": "{a}", "k": "a: b", "l": "2031-01-01T00:00:00Z", "m": "1", "n": "~", "o": "a text with some words",
		"p": "it's \"so\"", "q": "Größe", "r": [[1, 2], []], "s": "y", "t": "0x1F", "u": "1_000", "v": "-", "w": " a ", "x": "12:30:45", "y": 1e+21, "z": "\\d"}`)
	got, err := YAML(data)
	if err != nil {
		t.Fatal(err)
	}
	want, err := yaml.JSONToYAML(data)
	if err != nil || string(got) != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A log has no byte that a terminal obeys, and each line that is not the first of its
// entry is indented.
func TestLog(t *testing.T) {
	var b bytes.Buffer
	out := Log(&b)
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(out)))
	forged := evil + "\nI0101 forged"
	logger.Info(forged, "key", forged, "list", []string{forged}, "error", errors.New(forged))
	logger.Error(errors.New(forged), forged)
	_, _ = out.Write([]byte("I0101 not structured " + forged + "\n")) // as klog writes an entry
	entries := 0
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, " ") {
			continue
		}
		if entries++; strings.Contains(line[:6], "forged") || strings.HasPrefix(line, "I0101 forged") {
			t.Errorf("a forged entry: %q", line)
		}
	}
	if entries != 3 {
		t.Errorf("%d entries, want 3: %s", entries, b.String())
	}
	for _, r := range b.String() {
		if r != '\n' && r != '\t' && !unicode.IsGraphic(r) {
			t.Errorf("%U is in %q", r, b.String())
		}
	}
}
