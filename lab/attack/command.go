package attack

import (
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

const long = `Start a small control plane, and play attacks on a daemon and on the tool: readers that
do not read, floods of streams, objects at the API's limits, extenders, API servers and
daemons that lie, odd files and configurations, a full disk, a process that stands
still, abuse of HTTP/2, lists and compressed answers without end.

Each attack on the daemon has a daemon of its own. What must hold in and after each:

  the daemon takes at most 512 MiB more than before; a call of the tool takes as much
  no step of the scheduling loop takes longer than 100 ms
  /livez answers, and a small pod is bound
  nobody is answered more than his rights allow
  the tool ends within 60 s, and writes no control character but tab and newline

An attack in which only a step of the loop took too long is played a second time:
other work on the machine may have held the loop up. A daemon that takes 3 GiB is
killed, and a call of the tool that takes 1 GiB.

A line for each attack goes to standard output. The exit status is 1 if a bound broke.
docs/security.md says what is not bounded, by design.`

// NewCommand returns `berth-lab attack`.
func NewCommand() *cobra.Command {
	o := Options{}
	var list bool
	var output string
	command := &cobra.Command{
		Use:   "attack",
		Short: "Attack a daemon and the tool on a live control plane, and check that their bounds hold",
		Long:  long,
		Example: `  berth-lab attack
  berth-lab attack --short
  berth-lab attack --list
  berth-lab attack --only '^endpoint/' -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("--output %q: must be text or json", output)
			}
			if list {
				return o.list(command.OutOrStdout())
			}
			if err := o.validate(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			var broken []string
			err := Run(ctx, o, func(r Result) {
				if len(r.Broken) > 0 {
					broken = append(broken, r.Name)
				}
				if output == "json" {
					_ = json.NewEncoder(command.OutOrStdout()).Encode(r)
					return
				}
				r.write(command.OutOrStdout())
			})
			if err == nil && len(broken) > 0 {
				err = fmt.Errorf("%d attacks broke a bound: %s", len(broken), strings.Join(broken, ", "))
			}
			return err
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.Only, "only", "", "play the attacks whose names match this regular expression (default: all)")
	flags.BoolVar(&list, "list", false, "list the attacks and play none")
	flags.BoolVar(&o.Short, "short", false, "play the short form, which takes two minutes")
	flags.IntVar(&o.Nodes, "nodes", 50, "number of nodes")
	flags.StringVar(&o.Dir, "dir", "", "directory of the control plane, which keeps all logs (default: a temporary one)")
	flags.StringVar(&o.Daemon, "berth-scheduler", "", "path of the daemon to attack (default: the program beside berth-lab)")
	flags.StringVar(&o.Tool, "berth", "", "path of the tool to attack (default: the program beside berth-lab)")
	flags.StringVarP(&output, "output", "o", "text", "output format: text, or json (a result a line)")
	return command
}

// list prints the chosen attacks.
func (o Options) list(w io.Writer) error {
	chosen, err := o.chosen()
	for _, a := range chosen {
		mark := ""
		if a.Short {
			mark = " (short)"
		}
		fmt.Fprintf(w, "%-26s %s%s\n", a.Name, a.Title, mark)
	}
	return err
}
