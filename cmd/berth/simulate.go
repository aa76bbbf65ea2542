package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/par"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/report"
)

// simulation is what the flags of `berth simulate` say.
type simulation struct {
	files               []string
	kubeconfig, context string
	config              string
	explain             bool
	views               bool
	strict              bool
	seed                uint64
	output              string
	workers             int
}

const simulateLong = `Schedules the pending pods of a cluster, offline and deterministically: the
same scheduler as the daemon, with a virtual clock. Nothing is changed
anywhere.

The cluster comes from files (YAML or JSON, as kubectl prints them), from a
live API server, or from both: pods from a file are then tried on the live
cluster. For a file, this prints all that can matter:

  kubectl get -A -o json nodes,pods,ns,pdb,svc,rc,rs,sts,pvc,pv,sc,csinodes,\
csidrivers,csistoragecapacities,volumeattachments,priorityclasses,\
resourceclaims,resourceslices,deviceclasses

Nodes and pods alone are enough where pods use nothing of the rest.

Pods are what is placed: a Deployment in the input is named and ignored. No
controller runs: claims that are made from a template (ephemeral volumes, device
claims) have to be in the input, and budgets with their status. HTTP extenders of the configuration are not asked; a notice says so. Preemption is
simulated; pods that it evicts are listed, and do not change the exit status.

Exit status: 0 when every pod was placed, 1 when some pod was not, 2 when the
input or the configuration is not valid. All pending pods of the input count,
those of other schedulers, too.`

const simulateExamples = `  # Would these pods fit?
  kubectl get nodes,pods -A -o json > cluster.json
  %[1]s simulate -f cluster.json -f new-pods.yaml

  # The same on the live cluster, with the answer of every node
  %[1]s simulate --kubeconfig ~/.kube/config -f new-pods.yaml --explain

  # For a script
  kubectl get nodes,pods -A -o yaml | %[1]s simulate -f - -o json | jq .unplaced

  # With another configuration of the scheduler, and other luck among equals
  %[1]s simulate -f cluster/ --config scheduler.yaml --seed 7 -o wide`

func newSimulate(name string) *cobra.Command {
	s := simulation{workers: runtime.GOMAXPROCS(0), views: true}
	cmd := &cobra.Command{
		Use:     "simulate -f FILE [-f FILE ...]",
		Short:   "Where the pods of a cluster would go, and why",
		Long:    simulateLong,
		Example: fmt.Sprintf(simulateExamples, name),
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&s.files, "filename", "f", nil, "file, folder or - (standard input) with the cluster's objects; may be repeated")
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "take the cluster from the live API server of this kubeconfig (read only)")
	f.StringVar(&s.context, "context", "", "the context of the kubeconfig; default: its current one")
	f.StringVar(&s.config, "config", "", "KubeSchedulerConfiguration file; default: kube-scheduler's defaults")
	f.BoolVar(&s.explain, "explain", false, "add every node's answer to every decision; of many the table shows some, -o wide and JSON all")
	f.BoolVar(&s.views, "views", true, "keep answers from one decision to the next; without, every plugin is asked about every node each time: slow, and the same result")
	f.BoolVar(&s.strict, "strict", false, "take a field that is not known for an error; without, it is left out and named on standard error")
	f.Uint64Var(&s.seed, "seed", 1, "decides among nodes that score the same")
	f.StringVarP(&s.output, "output", "o", "table", "table, wide, yaml or json")
	return cmd
}

// noArguments says where files go, which are easily given as arguments.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q; give files with -f", args[0])
	}
	return nil
}

// writer writes a result in one of the forms.
type writer interface {
	Decided(*decision.Decision)
	Finish(*sim.Result) error
}

func (s *simulation) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	if err := s.check(); err != nil {
		return err
	}
	c, options, err := s.scheduler()
	if err != nil {
		return err
	}
	options.Seed, options.Workers, options.Explain, options.ViewsOff = s.seed, s.workers, s.explain, !s.views
	set, err := s.read(ctx, stdin)
	if err != nil {
		return err
	}
	if n := len(c.Extenders); n > 0 {
		set.Notices = append(set.Notices, fmt.Sprintf("%s: extenders: a simulation asks none of the %d", s.config, n))
	}
	for _, n := range set.Notices {
		fmt.Fprintf(stderr, "berth: note: %s\n", n)
	}
	in := input(set, s.workers)
	in.Machine = options
	out := bufio.NewWriterSize(stdout, 1<<16)
	w := s.writer(out, set.Ignored)
	progress := newProgress(stderr, len(in.Pods))
	in.Decided = func(d *decision.Decision) {
		w.Decided(d)
		progress.decided()
	}
	result, err := sim.Run(in)
	progress.done()
	if err != nil {
		return err
	}
	if err := errors.Join(w.Finish(result), out.Flush()); err != nil {
		return err
	}
	if len(result.Unplaced) > 0 {
		return errUnplaced
	}
	return nil
}

func (s *simulation) check() error {
	if len(s.files) == 0 && s.kubeconfig == "" {
		return errors.New("nothing to simulate: give -f FILE or --kubeconfig FILE")
	}
	switch s.output {
	case "table", "wide", "yaml", "json":
		return nil
	}
	return fmt.Errorf("-o %s: no such form (there are table, wide, yaml and json)", s.output)
}

func (s *simulation) writer(out io.Writer, ignored map[string]int) writer {
	switch s.output {
	case "json":
		return report.NewJSON(out, s.seed, ignored)
	case "yaml":
		return report.NewYAML(out, s.seed, ignored)
	}
	return report.NewTable(out, s.seed, ignored, s.output == "wide")
}

func (s *simulation) read(ctx context.Context, stdin io.Reader) (*manifest.Set, error) {
	set := manifest.NewSet()
	set.Strict = s.strict
	if s.kubeconfig != "" {
		if err := live(ctx, set, s.kubeconfig, s.context); err != nil {
			return nil, fmt.Errorf("--kubeconfig %s: %w", s.kubeconfig, err)
		}
	}
	if err := set.Files(s.files, stdin, s.workers); err != nil {
		return nil, err
	}
	return set, set.Resolve()
}

// input decodes the objects of the set.
func input(set *manifest.Set, workers int) sim.Input {
	in := sim.Input{
		Nodes: make([]*object.Node, len(set.Nodes)),
		Pods:  make([]*object.Pod, len(set.Pods)),
		Start: set.Newest.UTC(),

		Namespaces:     set.Namespaces,
		SelectorOwners: set.SelectorOwners,
		Objects:        set.Objects,
	}
	for i, n := range set.Nodes {
		in.Nodes[i] = decode.Node(n)
	}
	for _, b := range set.Budgets {
		in.Budgets = append(in.Budgets, decode.Budget(b))
	}
	par.Rows(len(set.Pods), workers, 64, func(rows par.Range) {
		for i := rows.From; i < rows.To; i++ {
			in.Pods[i] = decode.Pod(set.Pods[i])
		}
	})
	return in
}

// scheduler reads the configuration; without a path it is the default.
func (s *simulation) scheduler() (*config.Config, machine.Options, error) {
	c := config.Default()
	if s.config != "" {
		var err error
		if c, err = config.Load(s.config); err != nil {
			return nil, machine.Options{}, err
		}
	}
	o, err := sim.Options(c)
	if err != nil {
		err = fmt.Errorf("%s: %w", s.config, err)
	}
	return c, o, err
}
