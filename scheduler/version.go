package scheduler

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	baseversion "k8s.io/component-base/version"
)

// version is set when a release is built (-ldflags "-X github.com/berth-scheduler/berth/scheduler.version=v1.2.3").
var version string

// revision is the version of this build: the release, or the commit.
func revision() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// kubernetesVersion is the version of kube-scheduler that this build behaves as: that of the
// libraries that it is built with.
func kubernetesVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if minor, found := strings.CutPrefix(m.Version, "v0."); found && m.Path == "k8s.io/component-base" {
				return "v1." + minor
			}
		}
	}
	return "v" + baseversion.DefaultKubeBinaryVersion
}

// userAgent names to the API server what runs.
func userAgent() string {
	return fmt.Sprintf("berth-scheduler/%s (%s/%s) kubernetes/%s", strings.Trim(revision(), "()"), runtime.GOOS, runtime.GOARCH, kubernetesVersion())
}

// printVersion prints the version in the form that --version asked for, if it asked for one.
// vX.Y.Z is what to report as the version. The first words that are printed are
// kube-scheduler's, for who reads them by a program.
func printVersion(w io.Writer, form string) (printed bool, err error) {
	switch {
	case form == "raw":
		info := baseversion.Get()
		info.Major, info.Minor, _ = strings.Cut(baseversion.DefaultKubeBinaryVersion, ".")
		info.GitVersion, info.GitCommit, info.GitTreeState = kubernetesVersion(), "berth-"+revision(), ""
		fmt.Fprintf(w, "%#v\n", info)
		return true, nil
	case strings.HasPrefix(form, "v"):
		err = baseversion.SetDynamicVersion(form)
	case form != "":
		printed, err = strconv.ParseBool(form)
	}
	if err != nil {
		return false, fmt.Errorf("--version=%s: must be true, false, raw or a version such as %s-suffix: %w", form, kubernetesVersion(), err)
	}
	if printed {
		fmt.Fprintf(w, "Kubernetes %s (Berth %s)\n", kubernetesVersion(), revision())
	}
	return printed, nil
}
