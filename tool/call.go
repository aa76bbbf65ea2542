package tool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/spelling"
	"github.com/berth-scheduler/berth/edge/untrusted"
)

// given is an error about the first of the flags that the call has.
func given(f *pflag.FlagSet, why string, names ...string) error {
	for _, name := range names {
		if f.Changed(name) {
			return fmt.Errorf("--%s: %s", name, why)
		}
	}
	return nil
}

// flagError says in plain words what a flag's value should be.
func flagError(cmd *cobra.Command, err error) error {
	if s := err.Error(); strings.HasPrefix(s, "unknown shorthand flag: 'A'") || s == "unknown flag: --all-namespaces" {
		return fmt.Errorf("%w; all namespaces are read already", err)
	}
	if name, unknown := strings.CutPrefix(err.Error(), "unknown flag: "); unknown {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		return fmt.Errorf("%w%s", err, spelling.DidYouMean(name, names))
	}
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return err
	}
	want := map[string]string{"uint64": "a whole number from 0 to 18446744073709551615", "int": "a whole number", "bool": "true or false",
		"duration": "a time, such as 90s or 10m"}[wrong.GetFlag().Value.Type()]
	if want == "" {
		return err
	}
	return fmt.Errorf("--%s %s: must be %s", wrong.GetFlag().Name, wrong.GetValue(), want)
}

// plainPods are the names without pod/, which kubectl has before a pod's name. It may stand behind a
// namespace.
func plainPods(names []string) []string {
	plain := slices.Clone(names)
	for i, name := range plain {
		parts := strings.Split(name, "/")
		at := slices.IndexFunc(parts, func(p string) bool { return p == "pod" || p == "pods" || p == "po" })
		if (at == 0 || at == 1 && len(parts) == 3) && len(parts) > at+1 && parts[at+1] != "" {
			plain[i] = strings.Join(slices.Delete(parts, at, at+1), "/")
		}
	}
	return plain
}

// twoNamespaces is about a pod's name that has a namespace where the flag gives one.
func twoNamespaces(pod string) string {
	space, _, _ := strings.Cut(pod, "/")
	return fmt.Sprintf("%s has a namespace, %s; leave one of them out", pod, space)
}

// checkPod wants the name of a pod, alone or with its namespace.
func checkPod(name string) error {
	space, of, both := strings.Cut(name, "/")
	if name == "" || both && (space == "" || of == "" || strings.Contains(of, "/")) {
		return fmt.Errorf("%q is not the name of a pod: give NAME or NAMESPACE/NAME", name)
	}
	return nil
}

// nothing says that a command takes no arguments.
func nothing(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

// noArguments says where files go, which are easily given as arguments.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q; give files with -f", args[0])
	}
	return nil
}

// oneConfig wants the file that the command is about.
func oneConfig(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("which configuration? give its file, or - for standard input")
	case len(args) > 1:
		return fmt.Errorf("unexpected argument %q; give one file", args[1])
	}
	return nil
}

// loadConfig reads the configuration that a flag names. Errors say which flag.
func loadConfig(r config.Reader, flag, file string) (*config.Config, error) {
	text, err := configText(flag, file)
	if err != nil {
		return nil, err
	}
	return r.Decode(text, file)
}

// configText reads a file with a configuration; nil if none is named.
func configText(flag, file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	return readFile(flag, file, untrusted.Config)
}

// readFile reads a file that a flag (or nothing: an argument) names.
func readFile(flag, file string, most int64) ([]byte, error) {
	if flag != "" {
		flag += " "
	}
	f, err := untrusted.OpenAny(file)
	if err != nil {
		return nil, fmt.Errorf("%s%s: %w", flag, file, reasonOf(err))
	}
	defer f.Close()
	return readAll(flag+file, f, most)
}

// readAll reads to the end, if that is near enough.
func readAll(name string, from io.Reader, most int64) ([]byte, error) {
	text, err := untrusted.All(from, most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, reasonOf(err))
	}
	return text, nil
}

// reasonOf is the error without the operation and the path.
func reasonOf(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// nameOf is what errors call a configuration.
func nameOf(file string) string { return cmp.Or(file, "kube-scheduler's defaults") }
