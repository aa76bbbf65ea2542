package page

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// A page of one file runs its own script alone, and has its own style alone: the policy names both by
// their hashes, and no answer ends where it stands.
func TestExportRunsItsOwnScriptAlone(t *testing.T) {
	var b bytes.Buffer
	hostile := `{"text":"</script><script>alert(1)</script><!--<style>"}`
	if err := Export(&b, &Exported{Route: "#/", Answers: map[string]json.RawMessage{"summary": json.RawMessage(hostile)}}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for part, want := range map[string]int{"</script": 3, "</style": 1, "<!--": 0, "alert(1)": 1} {
		if n := strings.Count(text, part); n != want {
			t.Errorf("%q is there %d times, want %d", part, n, want)
		}
	}
	_, policy, _ := strings.Cut(text, `http-equiv="Content-Security-Policy" content="`)
	policy, _, _ = strings.Cut(policy, `"`)
	directives := strings.Split(policy, "; ")
	for _, of := range []struct{ directive, begin, end string }{{"script-src", `<script type="module">`, "</script>"}, {"style-src", "<style>", "</style>"}} {
		_, body, _ := strings.Cut(text, of.begin)
		body, _, _ = strings.Cut(body, of.end)
		if want := of.directive + " '" + hash([]byte(body)) + "'"; len(body) < 1000 || !strings.Contains("; "+policy+";", "; "+want+";") {
			t.Errorf("the policy has no %s: %s", want, policy)
		}
	}
	if directives[0] != "default-src 'none'" || !strings.Contains(policy, "base-uri 'none'") || strings.Contains(policy, "connect-src") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %s", policy)
	}
}
