package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
)

// Exported is what a page of one file holds.
type Exported struct {
	Route string `json:"route"` // of the view that it opens with
	// Redacted: names are replaced by hashes.
	Redacted bool `json:"redacted,omitempty"`
	// Answers are those that the page would ask for, by their paths below api.Prefix.
	Answers map[string]json.RawMessage `json:"answers"`
	// About are those about one pod, node or group, by their paths and names.
	About map[string]map[string]json.RawMessage `json:"about"`
}

// Export writes a page that needs no server, and no network.
func Export(w io.Writer, e *Exported) error {
	data, err := json.Marshal(e) // which escapes <
	if err != nil {
		return err
	}
	var texts [3][]byte
	for i, name := range []string{"page.js", "page.css", "licenses.txt"} {
		if texts[i], err = assets.ReadFile("assets/" + name); err != nil {
			return err
		}
	}
	for _, end := range []string{"</script", "</style", "<!--"} {
		for i, text := range texts {
			if bytes.Contains(text, []byte(end)) {
				return fmt.Errorf("asset %d has %q, which ends where it stands in a page", i, end)
			}
		}
	}
	_, err = fmt.Fprintf(w, `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Berth</title>
<style>%s</style>
<div id="page"></div>
<noscript>This page needs JavaScript.</noscript>
<script type="application/json" id="exported">%s</script>
<script type="text/plain">%s</script>
<script type="module">%s</script>
</html>
`, hash(texts[0]), hash(texts[1]), texts[1], data, texts[2], texts[0])
	return err
}

// hash returns what a policy calls a text by.
func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
