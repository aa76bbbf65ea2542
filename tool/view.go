package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-scheduler/berth/edge/page"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// viewing is what the flags of `berth view` say.
type viewing struct {
	source
	daemon   daemonFlags
	build    Build
	port     int
	open     bool
	simulate bool
}

const viewLong = `Show the cluster in a browser: how the nodes fill, which pods wait and for what, the story
of each pod, what the scheduler does now, and what a change would lead to.

The command prints an address and serves the page there until it is interrupted. The page
shows what the scheduler knows (--daemon, as for "events"; "auto" finds it), with the
credentials of the kubeconfig. Whoever may "get" /berth/v1/* sees everything but "what-if",
for which the cluster is read as "berth what-if" reads it. With -f it shows files, and asks
no cluster: the pods as they are or, with --simulate, where a simulation places them.

Only this machine can reach the page. The address holds for one browser and for a minute:
the browser has a cookie then, for as long as the command runs. The page loads nothing from
elsewhere. Nothing changes in the cluster.

Exit status: 0 when it is interrupted, 2 if the call is not valid, or no scheduler is found.`

const viewExamples = `  # The cluster that kubectl talks to, live
  %[1]s view

  # A scheduler outside the cluster, in the browser at once
  %[1]s view --daemon https://10.0.0.5:10259 --daemon-ca ca.crt --open

  # Files, without any cluster: as they are, and with the pods where they would go
  kubectl get nodes,pods -A -o json > cluster.json
  %[1]s view -f cluster.json
  %[1]s view -f cluster.json --simulate`

func newView(name string, b Build) *cobra.Command {
	v := viewing{source: newSource(b.Plugins), daemon: daemonFlags{url: auto, always: true}, build: b}
	cmd := &cobra.Command{
		Use:     "view [-f FILE ...]",
		Short:   "Show the cluster, and why pods wait, in a browser",
		Long:    viewLong,
		Example: fmt.Sprintf(viewExamples, name),
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := v.useless(cmd.Flags()); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the process at once
			return v.run(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	v.addFlags(f)
	v.daemon.addFlags(f)
	f.IntVar(&v.port, "port", 0, fmt.Sprintf("port of 127.0.0.1 for the page; default: %d, or a free one if another process has that", page.Port))
	f.BoolVar(&v.open, "open", false, "open the page in the browser")
	f.BoolVar(&v.simulate, "simulate", false, "with -f: simulate the scheduler, and show where the pods go")
	v.api.completeFlags(cmd)
	return cmd
}

// useless returns an error about a flag that has no effect beside the others.
func (v *viewing) useless(f *pflag.FlagSet) error {
	if v.port < 0 || v.port > 65535 {
		return fmt.Errorf("--port %d: must be from 1 to 65535", v.port)
	}
	if len(v.files) == 0 {
		v.daemon.api = v.api
		return cmp.Or(
			given(f, "is about files; give some with -f", "simulate", "strict", "expand"),
			v.daemon.checkFlags(f))
	}
	if slices.Contains(v.files, "-") {
		return errors.New("--filename -: the page reads the files again for each question; give a file")
	}
	return cmp.Or(
		given(f, "asks a scheduler about its own cluster; -f shows files", "daemon", "daemon-ca", "insecure-skip-tls-verify", "lease"),
		v.source.useless(f),
		v.check())
}

// run serves the page until the context ends.
func (v *viewing) run(ctx context.Context, stdout, stderr io.Writer) error {
	o := page.Options{Asks: v.asks()}
	if len(v.files) > 0 {
		c, err := v.load(ctx, stderr)
		if err != nil {
			return err
		}
		if o.Data, err = c.data(ctx); err != nil {
			return err
		}
	} else {
		way := newFinder(ctx, &v.daemon)
		defer way.close()
		if err := way.find(); err != nil {
			said, _ := v.daemon.explained(ctx, err)
			return said
		}
		o.Data = way.data
	}
	l, err := page.Listen(v.port)
	if err != nil {
		return fmt.Errorf("--port: %w", err)
	}
	s := page.NewServer(o, l.Addr().(*net.TCPAddr).Port)
	address := s.Address()
	terminal.Fprintf(stdout, "%s\n", address)
	if v.open {
		if err := browse(address); err != nil {
			notes(stderr, []string{"no browser could be opened: " + err.Error()})
		}
	}
	return s.Serve(ctx, l)
}

// browse opens the address in the user's browser.
func browse(address string) error {
	program := map[string]string{"darwin": "open", "windows": "explorer"}[runtime.GOOS]
	return exec.Command(cmp.Or(program, "xdg-open"), address).Start() // #nosec G204 -- the address is the page's own
}
