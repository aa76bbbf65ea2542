package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/report"
	"github.com/berth-scheduler/berth/sim/whatif"
)

// fit is what the flags of `berth fit` say.
type fit struct {
	source
	pod       string
	scale     string
	nodesLike []string
	shapes    []whatif.PricedShape // of nodesLike
	after     string
	output    string
	html      string
	timeout   timeLimit
}

const fitLong = `Say how much more a cluster can take. Nothing changes in the cluster. It comes
from files, from a live API server, or from both, as for "simulate".

How many more of one pod fit, where, and what stops the next: the pod is the only
pending one, or that which --pod names, a pod, or a workload such as deployment/web.
Other pending pods are placed first. Nobody is evicted for the copies. Of a pod of a gang
(also --pod podgroup/train) it is how many more whole gangs fit, each with a group of its
own of the same minimum.

With --scale: up to how many replicas of a workload fit, those that it has included.
Each pod of a StatefulSet has claims of its own. Replicas of a gang stay in it. Or how
often all pods of a file have a place, together: those of its workloads, as often, and
its bare pods, which share the claims that they name. Its DaemonSets run once. Its gangs
are as many of their own.

With --nodes-like: how few more nodes of a shape place all pending pods, and which
pods such nodes do not help. Pods that preempt each other without end are not tried
for ever, as "what-if --help" says. The shape is a node, or attributes as for the change
add-nodes of "what-if". New nodes run the pods of DaemonSets, too: those that have no
place there are listed apart. With several shapes, each with a price, it is the cheapest
set of nodes: at most 300 sets are tried, and the answer says whether a cheaper one is
ruled out.

--after makes the changes of "what-if" first: how much fits once a zone is lost, or how
many nodes a larger Deployment lacks. Pods that lose their node come before the copies.

Exit status: 0 if at least one pod fits, if the replicas that a workload wants now fit,
or if all pending pods are placed with the nodes; 1 if not; 2 if the input is not valid.`

const fitExamples = `  # How many more of this pod fit?
  %[1]s fit -f cluster.json -f pod.yaml

  # How far can the Deployment be scaled in the cluster that kubectl talks to? Without a zone?
  %[1]s fit --scale shop/deployment/web
  %[1]s fit --scale shop/deployment/web --after 'lose-zone a'

  # How often does all of this file fit?
  %[1]s fit -f cluster.json --scale app.yaml

  # How few more nodes like node-1 place everything?
  %[1]s fit -f cluster.json -f new-pods.yaml --nodes-like node-1

  # What does a larger Deployment lack?
  %[1]s fit --nodes-like node-1 --after 'scale shop/deployment/web=40'

  # Which nodes are the cheapest that do?
  %[1]s fit -f cluster.json --nodes-like node-1,price=0.4 --nodes-like cpu=16,memory=64Gi,price=0.75

  # Nodes that are not there yet
  %[1]s fit -f cluster.json --nodes-like cpu=64,memory=256Gi,example.com/gpu=8 -o json`

func newFit(name string, own *sim.Plugins) *cobra.Command {
	s := fit{source: newSource(own)}
	cmd := &cobra.Command{
		Use:     "fit [-f FILE ...]",
		Short:   "Show how many more pods fit, or how many nodes are missing",
		Long:    fitLong,
		Example: fmt.Sprintf(fitExamples, name),
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.useless(cmd.Flags()); err != nil {
				return err
			}
			return s.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	s.addFlags(f)
	s.api.addNamespace(cmd, namesUsage)
	f.StringVar(&s.pod, "pod", "", "the pod that is to fit: [NAMESPACE/]NAME, or [NAMESPACE/]KIND/NAME of a workload or podgroup; default: the only pending one")
	f.StringVar(&s.scale, "scale", "", "up to how many replicas of this workload fit, [NAMESPACE/]KIND/NAME, or how often all pods of this file do")
	f.StringArrayVar(&s.nodesLike, "nodes-like", nil, "count the missing nodes of this shape: a node, or attributes such as cpu=8,memory=32Gi,zone=b; may be repeated with a price in each, such as node-1,price=0.25")
	f.StringVar(&s.after, "after", "", "make these changes first, as the words of \"what-if\": \"lose-zone a\", \"drain node-1, scale deployment/web=12\"")
	f.StringVar(&s.html, "html", "", htmlUsage)
	s.timeout.addFlag(f, usualTime)
	addOutput(cmd, &s.output, "", "table", "yaml", "json")
	s.api.completeFlags(cmd)
	return cmd
}

func (s *fit) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	if err := oneOf("--pod", s.pod, "--scale", s.scale, "--nodes-like", strings.Join(s.nodesLike, "")); err != nil {
		return err
	}
	if err := errors.Join(s.check(), s.timeout.check()); err != nil {
		return err
	}
	after, err := whatif.Parse(strings.Fields(s.after))
	if err != nil {
		return fmt.Errorf("--after: %w", err)
	}
	if s.shapes, err = whatif.ParseShapes(s.nodesLike); err != nil {
		return err
	}
	s.fillBudgets = true
	set, in, err := s.load(ctx, stdin, stderr)
	if err != nil {
		return err
	}
	notes(stderr, set.Notices)
	ctx, cancel := s.timeout.start(ctx)
	defer cancel()
	in.Stop = func() bool { return ctx.Err() != nil }
	result, ok, err := s.answer(set, in, after, stdin, stderr)
	if err != nil {
		return err
	}
	if err := s.write(stdout, result); err != nil {
		return err
	}
	if s.html != "" {
		var text strings.Builder
		if err := result.Text(&text); err != nil {
			return err
		}
		answer, err := json.Marshal(map[string]string{"text": text.String()})
		if err == nil {
			err = writeHTML(s.html, "fit", answer)
		}
		if err != nil {
			return err
		}
	}
	if !ok {
		return exitStatus(exitUnplaced)
	}
	return nil
}

// oneOf returns an error if more than one of the flags is given. Names and values alternate.
func oneOf(flags ...string) error {
	var given []string
	for i := 0; i < len(flags); i += 2 {
		if flags[i+1] != "" {
			given = append(given, flags[i])
		}
	}
	if len(given) > 1 {
		return errors.New(strings.Join(given, " and ") + ": give one of them")
	}
	return nil
}

// answer returns the answer to the question that the flags ask, and whether what it is about
// fits.
func (s *fit) answer(set *manifest.Set, in sim.Input, after []whatif.Change, stdin io.Reader, stderr io.Writer) (report.Fitting, bool, error) {
	switch {
	case len(s.nodesLike) > 0:
		options := func() (machine.Options, error) {
			_, _, o, err := s.scheduler()
			return o, err
		}
		nodes, err := whatif.FitNodes(set, in, options, after, s.shapes)
		if err != nil {
			return nil, false, err
		}
		notes(stderr, nodes.Notices)
		return report.NodesFit(nodes, after), len(nodes.Unplaced) == 0, nil
	case s.scale != "":
		r, err := whatif.Scale(set, in, after, s.scale, whatif.Options{Stdin: stdin, Names: s.names()})
		if err != nil {
			return nil, false, err
		}
		notes(stderr, r.Notices)
		return report.Scaled(r, after), r.Fits >= max(r.Now, 1), nil
	}
	room, err := whatif.Fit(set, in, after, s.pod, s.names())
	if err != nil {
		return nil, false, err
	}
	notes(stderr, room.Notices)
	return report.PodsFit(room, after), room.Fits > 0, nil
}

func (s *fit) write(stdout io.Writer, result report.Fitting) error {
	if s.output == "table" {
		return result.Text(stdout)
	}
	data, err := json.MarshalIndent(result, "", "  ")
	if err == nil && s.output == "yaml" {
		data, err = terminal.YAML(data)
	} else {
		data = append(data, '\n')
	}
	if err != nil {
		return err
	}
	_, err = stdout.Write(data)
	return err
}
