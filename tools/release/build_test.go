package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// make build and make release have the programs name themselves alike: in --version and, as
// kube-scheduler does, in kubernetes_build_info.
func TestStampIsTheMakefiles(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, flags, _ := strings.Cut(string(makefile), "\nLDFLAGS := ")
	flags, _, _ = strings.Cut(flags, "\n")
	if got := stamp("$(VERSION)", "$(KUBERNETES)", "$(MINOR)"); got != flags {
		t.Errorf("got  %s\nwant %s", got, flags)
	}
	for _, set := range []string{"gitMajor=1", "gitMinor=", "gitCommit=", "gitVersion="} {
		if !strings.Contains(flags, "-X k8s.io/component-base/version."+set) {
			t.Errorf("%s is not set", set)
		}
	}
}

// A long build says how many modules of how many are fetched, and how many packages of how
// many are built, in lines without flags. Errors stay, and so does the exit status.
func TestBuildSaysHowFarItIs(t *testing.T) {
	script, err := filepath.Abs("../build.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.sum": strings.Repeat("a v1 h1:x=\na v1/go.mod h1:x=\n", 20),
		"go": `#!/bin/sh
if [ "$1" = list ]; then
	for i in $(seq 12); do echo "go: downloading example.com/m$i v1.0.0" >&2; done
	seq 150
else
	for i in $(seq 120); do echo "example.com/p$i" >&2; done
	echo "x.go:1:2: undefined: y" >&2
	exit 3
fi
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command(script, "-ldflags", "-X long", "./cmd/...")
	build.Dir, build.Env = dir, append(os.Environ(), "GO="+filepath.Join(dir, "go"))
	out, err := build.CombinedOutput()
	want := `fetching modules: 1 of at most 20, example.com/m1 v1.0.0
fetching modules: 11 of at most 20, example.com/m11 v1.0.0
building: package 1 of at most 150
building: package 101 of at most 150
x.go:1:2: undefined: y
`
	if string(out) != want || build.ProcessState.ExitCode() != 3 {
		t.Errorf("%v:\n%s\nwant\n%s", err, out, want)
	}
}
