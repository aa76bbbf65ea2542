package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// krew's own linter accepts the manifest of a release; it has each archive's checksum. A
// version that is none of a release has no manifest.
func TestKrewManifest(t *testing.T) {
	for version, want := range map[string]bool{"v1.2.3": true, "v1.2.3-rc.1": true, "d20f590b-dirty": false, "unknown": false} {
		r := release{out: t.TempDir(), version: version, arches: []string{"amd64", "arm64"}}
		for _, arch := range r.arches {
			if err := os.WriteFile(r.name("%s.tar.gz", r.archive(arch)), []byte(arch), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.krew(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(r.out, "berth.yaml")
		text, err := os.ReadFile(path)
		if (err == nil) != want {
			t.Errorf("%s: a manifest: %t, want %t", version, err == nil, want)
		}
		if !want {
			continue
		}
		for _, sum := range []string{"5861314d7fccb39c2192173240eab44fa35ca66426201ca2acd0630a6258dd51", "f69162950f235e3cdbbad33f1f912d1a504be90d8a37d002c735d6f3e3882265"} {
			if !strings.Contains(string(text), "sha256: "+sum+"\n") {
				t.Errorf("%s: no checksum %s in\n%s", version, sum, text)
			}
		}
		if out, err := exec.Command("go", "tool", "validate-krew-manifest", "-skip-install", "-manifest", path).CombinedOutput(); err != nil {
			t.Errorf("%s: krew's linter: %v\n%s", version, err, out)
		}
	}
}
