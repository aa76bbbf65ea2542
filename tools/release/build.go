package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

const (
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
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= "+stamp(r.version),
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
func stamp(version string) string {
	const base = "k8s.io/component-base/version"
	return fmt.Sprintf("-X %s.gitVersion=v1.36.3-berth+%s -X %s.gitMajor=1 -X %s.gitMinor=36 -X %s.gitCommit=berth-%s -X %s/scheduler.version=%s",
		base, version, base, base, base, version, module, version)
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
