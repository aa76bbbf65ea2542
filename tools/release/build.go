package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	libraries = "k8s.io/component-base"
	module    = "github.com/berth-scheduler/berth"
	tool      = "berth"
	scheduler = "berth-scheduler"
)

// programs are the built programs, one folder an architecture.
type programs struct{ dir string }

func (p programs) path(arch, program string) string { return filepath.Join(p.dir, arch, program) }

// build builds both programs for each architecture: static, without paths of
// this machine, without an id or a state of the checkout that differ from one
// build to the next.
func (r *release) build() (programs, error) {
	dir, err := os.MkdirTemp("", "berth-release-")
	if err != nil {
		return programs{}, err
	}
	p := programs{dir}
	for _, arch := range r.arches {
		if err := r.compile(filepath.Join(dir, arch), arch); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (r *release) compile(dir, arch string) error {
	kubernetes, minor, err := librariesVersion(r.source)
	if err != nil {
		return err
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= "+stamp(r.version, kubernetes, minor),
		"-o", dir+string(filepath.Separator), "./cmd/"+tool, "./cmd/"+scheduler)
	build.Dir = r.source
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building for %s: %w", arch, err)
	}
	return nil
}

// stamp has the programs and their metrics name the version, as LDFLAGS of the Makefile does.
func stamp(version, kubernetes, minor string) string {
	const base = libraries + "/version"
	return fmt.Sprintf("-X %s.gitVersion=%s-berth+%s -X %s.gitMajor=1 -X %s.gitMinor=%s -X %s.gitCommit=berth-%s -X %s/scheduler.version=%s",
		base, kubernetes, version, base, base, minor, base, version, module, version)
}

// librariesVersion returns the version of Kubernetes whose libraries the checkout is built
// with, such as v1.37.2, and its minor.
func librariesVersion(checkout string) (version, minor string, err error) {
	file, err := os.ReadFile(filepath.Join(checkout, "go.mod"))
	if err != nil {
		return "", "", err
	}
	_, rest, found := strings.Cut(string(file), libraries+" v0.")
	version, _, _ = strings.Cut(rest, "\n")
	if minor, _, _ = strings.Cut(version, "."); !found || minor == "" {
		return "", "", fmt.Errorf("go.mod of %s names no version of %s", checkout, libraries)
	}
	return "v1." + version, minor, nil
}

// own is the architecture that runs here, if it is among those that are built.
func (r *release) own() (string, error) {
	for _, arch := range r.arches {
		if arch == runtime.GOARCH {
			return arch, nil
		}
	}
	return "", fmt.Errorf("man pages and completions come from the programs, of which none is for %s", runtime.GOARCH)
}
