package tool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/report"
	"github.com/berth-scheduler/berth/sim/whatif"
)

// supposition is what the flags of `berth what-if` say.
type supposition struct {
	source
	output, html  string
	ignoreBudgets bool
	nodes         bool // write JSON with the nodes before and after
	timeout       timeLimit
}

const whatIfLong = `Try changes on a copy of a cluster. The command says which pods move where, which
are left without a node and why, which are preempted, which budgets hold or
break, and what is left of each resource. It runs the daemon's scheduling code
with a virtual clock, and nothing changes in the cluster.

The cluster comes from files, from a live API server, or from both, as for
"simulate". Changes are words: a verb, and what it is about. Several may follow
each other; commas between them are allowed. All changes are made at once.
Then drained and evicted pods go as their budgets allow, and more of them go
when the first run again.

  drain NODE...             cordon the nodes, evict their pods; pods of DaemonSets stay
  cordon NODE...            let no new pod onto the nodes; uncordon is the opposite
  remove NODE...            the nodes fail; nobody asks the budgets
  lose-zone ZONE...         all nodes of the zones fail
  add-nodes NUMBER SHAPE    add empty nodes: like a node (node-1), or by attributes
                            (cpu=8,memory=32Gi,pods=110,zone=b,label:KEY=VALUE,
                            taint=KEY=VALUE:EFFECT,example.com/gpu=4), or both
                            (like=node-1,zone=c); without like, pods are 110, and
                            other resources that are left out are 0
  scale WORKLOAD=NUMBER...  such as deployment/web=5 or shop/statefulset/db=3
  apply FILE...             create or replace what the files (-: standard input) hold
  priority POD=VALUE...     a number or a PriorityClass; WORKLOAD=VALUE for all its pods
  evict POD...              evict pods, or all pods of a WORKLOAD
  quota QUOTA AMOUNT...     set amounts of an ElasticQuota, such as max:cpu=8 or
                            min:example.com/gpu=4; --config names a file that enables
                            CapacityScheduling

A NODE may be a label, such as pool=old. A POD or QUOTA is NAME or NAMESPACE/NAME; -n
gives the namespace of names without one.
A pod that loses its node is made again under its name. Where a pod has no
controller, a note says that nobody would.

Where pods preempt each other without end, a pod that was evicted ten times for the
same pod is not tried again, and a note names them. A run that does not come to rest
in 10,000 steps and 1,000 for each pod, or within --timeout, is cut and says so.

Exit status: 0 if the change leaves no pod without a node and every eviction was
made, 1 if not or if the run was cut, 2 if the input or a change is not valid. Pods
that had no node before are listed and do not count.`

const whatIfExamples = `  # Can node-3 be drained?
  %[1]s what-if -f cluster.json drain node-3

  # The cluster that kubectl talks to, after the loss of a zone, with two more nodes
  %[1]s what-if lose-zone b , add-nodes 2 node-1

  # Which pods of an old node pool have no other place?
  %[1]s what-if -f cluster.json drain pool=old -o json | jq '.moved[] | select(.to == null)'

  # As a page for others, which needs no other file
  %[1]s what-if drain node-3 --html drain.html

  # Is there room for a rollout?
  %[1]s what-if -f cluster.json apply web.yaml scale deployment/web=12

  # What would run if research were guaranteed more GPUs?
  %[1]s what-if --config scheduler.yaml quota research/gpus min:example.com/gpu=6 max:example.com/gpu=8`

func newWhatIf(name string, own *sim.Plugins) *cobra.Command {
	s := supposition{source: newSource(own)}
	cmd := &cobra.Command{
		Use:               "what-if [-f FILE ...] CHANGE [, CHANGE ...]",
		Short:             "Show what a change of the cluster would lead to",
		Long:              whatIfLong,
		Example:           fmt.Sprintf(whatIfExamples, name),
		ValidArgsFunction: s.api.changes(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.useless(cmd.Flags()); err != nil {
				return err
			}
			return s.run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	s.addFlags(f)
	s.api.addNamespace(cmd, namesUsage)
	f.BoolVar(&s.ignoreBudgets, "ignore-budgets", false, "evict pods whatever their disruption budgets say")
	f.StringVar(&s.html, "html", "", htmlUsage)
	s.timeout.addFlag(f, usualTime)
	addOutput(cmd, &s.output, "", "table", "wide", "yaml", "json")
	s.api.completeFlags(cmd)
	return cmd
}

func (s *supposition) run(ctx context.Context, words []string, stdin io.Reader, stdout, stderr io.Writer) error {
	changes, err := whatif.Parse(words)
	if err != nil {
		return err
	}
	if err := errors.Join(s.check(), s.timeout.check()); err != nil {
		return err
	}
	s.fillBudgets = true
	set, in, err := s.load(ctx, stdin, stderr)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(stdout, 1<<16)
	withNodes := func(out io.Writer) writer {
		j := report.NewJSON(out, s.seed, set.Ignored, s.workers)
		j.Nodes = true
		return j
	}
	var w writers
	if s.nodes {
		w = append(w, withNodes(out))
	} else {
		w = append(w, newWriter(out, s.output, s.seed, set.Ignored, s.workers))
	}
	var answer bytes.Buffer
	if s.html != "" {
		w = append(w, withNodes(&answer))
	}
	progress := newProgress(stderr, len(in.Pods))
	in.Decided = func(d *decision.Decision) {
		w.AttemptDone(d)
		progress.decided()
	}
	ctx, cancel := s.timeout.start(ctx)
	defer cancel()
	in.Stop = func() bool { return ctx.Err() != nil }
	anew := func() (machine.Options, error) {
		_, _, o, err := s.scheduler()
		return o, err
	}
	result, err := whatif.Run(set, in, changes, whatif.Options{IgnoreBudgets: s.ignoreBudgets, Stdin: stdin, Names: s.names(), Anew: anew})
	progress.done()
	if err != nil {
		return err
	}
	notes(stderr, append(set.Notices, result.Notices...))
	if err := errors.Join(w.FinishWhatIf(result), out.Flush()); err != nil {
		return err
	}
	if s.html != "" {
		if err := writeHTML(s.html, "what-if", answer.Bytes()); err != nil {
			return err
		}
	}
	if result.Stuck()+len(result.Kept) > 0 || result.Cut != "" {
		return exitStatus(exitUnplaced)
	}
	return nil
}

// newWriter returns the writer of a form.
func newWriter(out io.Writer, form string, seed uint64, ignored map[string]int, workers int) writer {
	switch form {
	case "json":
		return report.NewJSON(out, seed, ignored, workers)
	case "yaml":
		return report.NewYAML(out, seed, ignored, workers)
	}
	return report.NewTable(out, seed, ignored, form == "wide")
}

// writers write the same in several forms.
type writers []writer

// AttemptDone passes the decision to each writer.
func (all writers) AttemptDone(d *decision.Decision) {
	for _, w := range all {
		w.AttemptDone(d)
	}
}

// FinishWhatIf writes the rest.
func (all writers) FinishWhatIf(r *whatif.Result) (err error) {
	for _, w := range all {
		err = errors.Join(err, w.FinishWhatIf(r))
	}
	return err
}

func notes(stderr io.Writer, list []string) {
	for _, n := range list {
		terminal.Fprintf(stderr, "berth: note: %s\n", n)
	}
}
