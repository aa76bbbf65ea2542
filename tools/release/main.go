// Command release makes what a release of Berth consists of: the programs for
// each architecture with their man pages and completions, a list of all modules
// in each program (CycloneDX), the chart, a manifest for krew, an image for all architectures as an
// OCI layout, and the checksums of all that. The same source, version and Go
// give the same bytes, in whatever folder and whenever.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// release is what to make, and of what.
type release struct {
	source  string // the folder of the repository
	out     string // where all goes
	version string
	made    time.Time // what every file says of its age
	arches  []string
}

func main() {
	r := release{arches: []string{"amd64", "arm64"}}
	flag.StringVar(&r.source, "source", "..", "the folder of the repository")
	flag.StringVar(&r.out, "out", "../dist", "the folder for the results; what is in it is removed")
	flag.StringVar(&r.version, "version", "", "the version, such as v1.2.3")
	epoch := flag.Int64("epoch", 0, "the time that files and image bear, in seconds since 1970")
	only := flag.String("only", "", "\"image\": make the image and nothing else")
	flag.Parse()
	r.made = time.Unix(*epoch, 0).UTC()
	if err := r.run(*only); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) run(only string) error {
	switch {
	case r.version == "":
		return fmt.Errorf("-version is missing")
	case only != "" && only != "image":
		return fmt.Errorf("-only=%s: must be image", only)
	}
	for _, dir := range []*string{&r.source, &r.out} {
		absolute, err := filepath.Abs(*dir)
		if err != nil {
			return err
		}
		*dir = absolute
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	programs, err := r.build()
	if err != nil {
		return err
	}
	defer os.RemoveAll(programs.dir)
	if err := r.image(programs); err != nil || only == "image" {
		return err
	}
	if err := r.archives(programs); err != nil {
		return err
	}
	if err := r.bills(programs); err != nil {
		return err
	}
	if err := r.chart(); err != nil {
		return err
	}
	if err := r.krew(); err != nil {
		return err
	}
	return r.checksums()
}

// name is the name of a file of the release.
func (r *release) name(format string, a ...any) string {
	return filepath.Join(r.out, fmt.Sprintf(format, a...))
}
