package tool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	baseversion "k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/berth-scheduler/berth/edge/kube"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/sim"
)

// Exit statuses, as the contract of `berth simulate` has them.
const (
	exitPlaced   = 0 // every pod was placed
	exitUnplaced = 1 // some pod was not
	exitInvalid  = 2 // input, configuration or call is not valid
)

// exitStatus is an error that only sets the exit status of the process. The command has printed its
// result; nothing more is printed.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Build is what one build of the tool has of its own.
type Build struct {
	Version string       // records name it
	Plugins *sim.Plugins // besides those that come with Berth
}

// NewCommand returns the root of the commands. Run runs it.
func NewCommand(b Build) *cobra.Command { return newCommand(filepath.Base(os.Args[0]), b) }

// Run runs the tool with the arguments and streams of this process and returns its exit
// status.
func Run(cmd *cobra.Command) int {
	logTo(os.Stderr)
	return execute(cmd, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// logTo lets the libraries log there, with nothing in it that acts on a terminal.
func logTo(out io.Writer) {
	klog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(terminal.Log(out)))))
}

// execute runs the command and returns the exit status. All that it writes is safe on a
// terminal.
func execute(cmd *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stdout, stderr = terminal.NewWriter(stdout), terminal.NewWriter(stderr)
	cmd.SetArgs(args)
	cmd.SetIn(stdin)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	var status exitStatus
	switch err := cmd.Execute(); {
	case err == nil:
		return exitPlaced
	case errors.As(err, &status):
		return int(status)
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
func newCommand(argv0 string, b Build) *cobra.Command {
	if b.Plugins == nil {
		b.Plugins = &sim.Plugins{}
	}
	cmd := &cobra.Command{
		Use:           "berth",
		Short:         "Show what a scheduler would do with a cluster, and why",
		Version:       described(b.Version),
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
	cmd.AddCommand(newSimulate(name, b.Plugins), newWhy(name, b.Plugins), newWhatIf(name, b.Plugins), newFit(name, b.Plugins), newEvents(name), newTop(name), newStatus(name), newConfig(name, b.Plugins),
		newRecord(name, b), newReplay(name, b.Plugins), newCompare(name, b.Plugins), newView(name, b), newVersion(name, described(b.Version)))
	return cmd
}

// described returns the build's version with the versions of Kubernetes that it is for.
func described(build string) string {
	return fmt.Sprintf("%s (Kubernetes %s; API servers of %s)", build, baseversion.DefaultKubeBinaryVersion, kube.SupportedServers())
}

// newVersion prints what --version does.
func newVersion(name, version string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  nothing,
		Run: func(c *cobra.Command, _ []string) {
			terminal.Fprintf(c.OutOrStdout(), "%s version %s\n", name, version)
		},
	}
}
