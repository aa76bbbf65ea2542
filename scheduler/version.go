package scheduler

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

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

// printVersion prints the version in the form that --version asked for.
func printVersion(w io.Writer, form string) error {
	switch form {
	case "true":
		fmt.Fprintf(w, "Berth %s (Kubernetes %s)\n", revision(), baseversion.DefaultKubeBinaryVersion)
	case "raw":
		fmt.Fprintf(w, "version.Info{Version:%q, Kubernetes:%q, GoVersion:%q, Platform:%q}\n",
			revision(), baseversion.DefaultKubeBinaryVersion, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH)
	case "false":
	default:
		return fmt.Errorf("--version=%s: must be true, false or raw", form)
	}
	return nil
}
