package main

import (
	"os"
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
	if got := stamp("$(VERSION)"); got != flags {
		t.Errorf("got  %s\nwant %s", got, flags)
	}
	for _, set := range []string{"gitMajor=1", "gitMinor=36", "gitCommit=", "gitVersion="} {
		if !strings.Contains(flags, "-X k8s.io/component-base/version."+set) {
			t.Errorf("%s is not set", set)
		}
	}
}
