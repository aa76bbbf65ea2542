package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// released matches versions that krew takes: they are semantic, and begin with v.
var released = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

const krewManifest = `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: berth
spec:
  version: %s
  homepage: https://%s
  shortDescription: Say why pods wait, and what would help
  description: |
    Says why a pod waits, and the smallest changes that would place it, each
    tried with a scheduler's own code on a copy of the cluster. Shows what a
    drain, the loss of a zone or new nodes would lead to, how much more fits,
    and where new pods would go. It works with any scheduler, and changes
    nothing in the cluster.
  platforms:
`

const krewPlatform = `  - selector:
      matchLabels:
        os: linux
        arch: %[1]s
    uri: https://%[2]s/releases/download/%[3]s/%[4]s.tar.gz
    sha256: %[5]x
    files:
    - from: %[4]s/berth
      to: .
    - from: %[4]s/LICENSE
      to: .
    bin: berth
`

// krew writes the manifest by which krew installs the tool as kubectl's plugin. The version
// of a commit that is not released has none.
func (r *release) krew() error {
	if !released.MatchString(r.version) {
		return nil
	}
	var manifest strings.Builder
	fmt.Fprintf(&manifest, krewManifest, r.version, module)
	for _, arch := range r.arches {
		base := r.archive(arch)
		archive, err := os.ReadFile(r.name("%s.tar.gz", base))
		if err != nil {
			return err
		}
		fmt.Fprintf(&manifest, krewPlatform, arch, module, r.version, base, sha256.Sum256(archive))
	}
	return os.WriteFile(r.name("berth.yaml"), []byte(manifest.String()), 0o644)
}
