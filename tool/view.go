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
	record   string // directory
	export   string // file
	redact   bool
}

const viewLong = `Show the cluster in a browser: how the nodes fill, which pods wait and for what, the story
of each pod, what the scheduler does now, and what a change would lead to.

The command prints an address and serves the page there until it is interrupted. The page
shows what the scheduler knows (--daemon, as for "events"; "auto" finds it), with the
credentials of the kubeconfig. Whoever may "get" /berth/v1/* sees everything but "what-if",
for which the cluster is read as "berth what-if" reads it. With -f it shows files, and asks
no cluster: the pods as they are or, with --simulate, where a simulation places them. With
--record it shows a record, at any time of it.

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
  %[1]s view -f cluster.json --simulate

  # A recorded day, hour by hour, and beside another configuration
  %[1]s view --record day1/
  %[1]s view --record day1/ --config new.yaml

  # As a file for others, without the names
  %[1]s view --export cluster.html --redact`

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
	f.StringVar(&v.record, "record", "", "show a record instead, made by \"berth-scheduler --record-to\" or \"berth record\", at any time of it; with --config as that configuration would have it")
	f.StringVar(&v.export, "export", "", "write what the page shows to this file, which opens without a server, and end")
	f.BoolVar(&v.redact, "redact", false, "with --export: replace names and the values of labels by hashes, one name by one hash; the cluster is read from the API server then, not from the scheduler")
	v.api.completeFlags(cmd)
	return cmd
}

// useless returns an error about a flag that has no effect beside the others.
func (v *viewing) useless(f *pflag.FlagSet) error {
	if err := v.checkExport(); err != nil {
		return err
	}
	if v.port < 0 || v.port > 65535 {
		return fmt.Errorf("--port %d: must be from 1 to 65535", v.port)
	}
	if v.record != "" {
		return cmp.Or(
			given(f, "has no effect with --record, which shows what a record holds", "simulate", "strict", "expand", "filename", "daemon", "daemon-ca", "insecure-skip-tls-verify", "lease", "seed", "feature-gates"),
			given(f, "has no effect with --record, which asks no cluster", connectionFlags()...))
	}
	if len(v.files) == 0 {
		v.daemon.api = v.api
		return cmp.Or(
			given(f, "is about files; give some with -f", "simulate", "strict", "expand"),
			v.unasked(f),
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
	o, redacted := page.Options{Asks: v.asks()}, v.redact
	if v.record != "" {
		t, err := v.openTape(ctx, stderr)
		if err != nil {
			return err
		}
		o.Data, o.Asks, o.Replays, redacted = t.ask, nil, true, t.day.Redacted
	} else if len(v.files) > 0 || v.redact {
		c, err := v.load(ctx, stderr)
		if err != nil {
			return err
		}
		if o.Data, err = c.data(ctx); err != nil {
			return err
		}
		if of, are := c.written.(fromFiles); are {
			o.Data = withRollouts(o.Data, of.makers)
		}
	} else {
		way := newFinder(ctx, &v.daemon)
		defer way.close()
		if err := way.find(); err != nil {
			said, _ := v.daemon.explained(ctx, err)
			return said
		}
		o.Data = withRollouts(way.data, v.readMakers)
	}
	if v.export != "" {
		return v.writeExport(ctx, o.Data, redacted)
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
