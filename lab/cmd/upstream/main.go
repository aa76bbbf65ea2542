// Command upstream prints what Berth states after kube-scheduler, read in the source of
// a version of Kubernetes.
//
//	go run ./cmd/upstream -version v1.37.2                    all lists
//	go run ./cmd/upstream -version v1.37.2 -against v1.36.5   what changed: the work of a move
//	go run ./cmd/upstream -version v1.37.2 -write ..          the files of the repository
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/lab/upstream"
)

func main() {
	version := flag.String("version", "", "the version of Kubernetes, as v1.37.2; default: the one that go.mod names")
	against := flag.String("against", "", "print only what differs from this version")
	write := flag.String("write", "", "write the lists into the repository in this folder")
	only := flag.String("only", "", "print only these lists, as metrics,gates")
	flag.Parse()
	if err := run(os.Stdout, *version, *against, *write, *only); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, version, against, write, only string) error {
	if version == "" {
		linked, err := upstream.Linked()
		if err != nil {
			return err
		}
		version = linked
	}
	s, err := upstream.Load(version)
	if err != nil {
		return err
	}
	if write != "" {
		return upstream.Write(write, s)
	}
	var before *upstream.Sources
	if against != "" {
		if before, err = upstream.Load(against); err != nil {
			return err
		}
		s, before = s.Without(before.Missing), before.Without(s.Missing)
	}
	printSources(w, s)
	if before != nil {
		fmt.Fprintln(w, "# against")
		printSources(w, before)
	}
	printLists(w, s, before, only)
	return nil
}

// printSources names the modules that were read, and those that were not.
func printSources(w io.Writer, s *upstream.Sources) {
	for _, module := range upstream.Modules() {
		if s.Versions[module] != "" {
			fmt.Fprintf(w, "# %s %s\n", module, s.Versions[module])
			continue
		}
		fmt.Fprintf(w, "# %s: not read: %s\n", module, s.Missing[module])
	}
}

// printLists prints the lists, or what changed in them since a version.
func printLists(w io.Writer, s, before *upstream.Sources, only string) {
	for i, l := range s.Lists() {
		if only != "" && !slices.Contains(strings.Split(only, ","), l.Name) {
			continue
		}
		lines := l.Lines
		if before != nil {
			lines = upstream.Compare(before.Lists()[i], l)
		}
		fmt.Fprintf(w, "\n== %s: %d\n", l.Name, len(lines))
		for _, line := range lines {
			fmt.Fprintln(w, line)
		}
	}
}
