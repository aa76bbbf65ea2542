package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/berth-scheduler/berth/edge/terminal"
)

// Exit statuses, as the contract of `berth simulate` has them.
const (
	exitPlaced   = 0 // every pod was placed
	exitUnplaced = 1 // some pod was not
	exitInvalid  = 2 // input, configuration or call is not valid
)

// errUnplaced ends a run that was valid and left pods unplaced; the result
// has told of them.
var errUnplaced = errors.New("some pods were not placed")

// exitStatus ends a run that was valid, and said what there is to say, with a
// status of its own.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// version is set when Berth is built by make (-ldflags "-X main.version=...").
var version = "(unknown: built without make)"

func main() {
	logTo(os.Stderr)
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// logTo lets the libraries log there, with nothing in it that acts on a terminal.
func logTo(out io.Writer) {
	klog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(terminal.Log(out)))))
}

// run is main with its surroundings as arguments. All that it writes is safe on a
// terminal.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stdout, stderr = terminal.NewWriter(stdout), terminal.NewWriter(stderr)
	cmd := newCommand(filepath.Base(args[0]))
	cmd.SetArgs(args[1:])
	cmd.SetIn(stdin)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	var status exitStatus
	switch err := cmd.Execute(); {
	case err == nil:
		return exitPlaced
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, errUnplaced):
		return exitUnplaced
	default:
		terminal.Fprintf(stderr, "berth: %s\n", sentence(err))
		return exitInvalid
	}
}

// sentence is the error in one line. Cobra's suggestions come as a list.
func sentence(err error) string {
	text, suggested, found := strings.Cut(err.Error(), "Did you mean this?")
	text = strings.Join(strings.Fields(text), " ")
	if found {
		text += "; did you mean " + strings.Join(strings.Fields(suggested), " or ") + "?"
	}
	return text
}

const rootExamples = `  # Why does a pod wait, and what would help?
  %[1]s why web-5d8f7c-x2v

  # Would these pods fit?
  %[1]s simulate --kubeconfig ~/.kube/config -f new-pods.yaml

  # Can a node be drained?
  %[1]s what-if drain node-3`

// newCommand is the root of the commands, named as it was called.
func newCommand(argv0 string) *cobra.Command {
	cmd := &cobra.Command{
		Use:           "berth",
		Short:         "Show what a scheduler would do with a cluster, and why",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	if strings.HasPrefix(argv0, "kubectl-berth") {
		// kubectl runs its plugin kubectl-berth for "kubectl berth".
		cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl berth"}
	}
	name := cmd.DisplayName()
	cmd.Example = fmt.Sprintf(rootExamples, name)
	cmd.SetFlagErrorFunc(flagError)
	cmd.AddCommand(newSimulate(name), newWhy(name), newWhatIf(name), newFit(name), newEvents(name), newTop(name), newStatus(name), newConfig(name),
		newRecord(name), newReplay(name), newCompare(name), newVersion(name))
	return cmd
}

// newVersion prints what --version does.
func newVersion(name string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  nothing,
		Run: func(c *cobra.Command, _ []string) {
			terminal.Fprintf(c.OutOrStdout(), "%s version %s\n", name, version)
		},
	}
}
