package tool

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/spelling"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/whatif"
)

// simulation is what the flags of `berth simulate` say.
type simulation struct {
	source
	explain  bool
	pods     []string // to explain: NAME, NAMESPACE/NAME
	selector string   // of pods to explain
	selected labels.Selector
	views    bool
	output   string
	timeout  timeLimit
}

const simulateLong = `Schedule the pending pods of a cluster offline. The command runs the daemon's
scheduling code with a virtual clock. The same input gives the same result.
Nothing changes in the cluster.

The cluster comes from files (-f: YAML or JSON, as kubectl prints them), from a
live API server (--kubeconfig, --context), or from both. With both, the pods of the files are
tried on the live cluster. With neither, the cluster is the one that kubectl talks
to. This command prints everything that a file should hold:

  kubectl get -A -o json nodes,pods,ns,pdb,svc,rc,rs,sts,pvc,pv,sc,csinodes,\
csidrivers,csistoragecapacities,volumeattachments,priorityclasses,\
resourceclaims,resourceslices,deviceclasses,limits,quota,runtimeclasses

Nodes and pods are enough if the pods use nothing else.

Admission sees each new pod: one without node, UID and time of creation, and those
that are made. LimitRanges, RuntimeClasses and default storage classes change it,
and what they or a ResourceQuota refuse is listed with the reason and not placed.
The claims of a new pod are made from its templates.

The pods of a Deployment, StatefulSet, DaemonSet, Job, CronJob, ReplicaSet or
ReplicationController in a file are made if the input has no pod of it, and with
them their claims: of claim templates, ephemeral volumes and device claim
templates. Names that are random in a cluster are plain: web-1-0 is the first pod
of Deployment web. --expand makes what is missing of every workload and pod of
the files, --expand=false makes nothing.

The input must hold the status of disruption budgets. HTTP extenders of the
configuration are called with --ask-extenders alone; else a note says that they
are not. Preemption is simulated. The result lists the pods that it evicts. They
do not change the exit status.

Exit status: 0 if every pod was placed, 1 if some pod was not, 2 if the input or
the configuration is not valid. All pending pods of the input count, including
those of other schedulers.`

const simulateExamples = `  # Would these pods fit?
  kubectl get nodes,pods -A -o json > cluster.json
  %[1]s simulate -f cluster.json -f new-pods.yaml

  # The same on the live cluster, with the answer of every node
  %[1]s simulate --kubeconfig ~/.kube/config -f new-pods.yaml --explain

  # The answer of every node for one pod
  %[1]s simulate -f cluster.json --pod shop/cart-0 -o json

  # For a script
  kubectl get nodes,pods -A -o yaml | %[1]s simulate -f - -o json | jq .unplaced

  # With another configuration, and another draw among equal nodes
  %[1]s simulate -f cluster/ --config scheduler.yaml --seed 7 -o wide`

func newSimulate(name string, own *sim.Plugins) *cobra.Command {
	s := simulation{source: newSource(own)}
	cmd := &cobra.Command{
		Use:     "simulate [-f FILE ...]",
		Short:   "Show where the pods of a cluster would go, and why",
		Long:    simulateLong,
		Example: fmt.Sprintf(simulateExamples, name),
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(s.useless(cmd.Flags()), s.uselessExplain(cmd.Flags())); err != nil {
				return err
			}
			s.pods = plainPods(s.pods)
			return s.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	s.addFlags(f)
	f.BoolVar(&s.explain, "explain", false, "add the answer of every node to every decision. The table shortens long lists. -o wide, yaml and json do not")
	f.BoolVar(&s.askExtenders, "ask-extenders", false, "ask the HTTP extenders of the configuration to filter, score and preempt; none is asked to bind")
	f.StringArrayVar(&s.pods, "pod", nil, "explain this pod alone ([NAMESPACE/]NAME); may be repeated")
	s.api.addNamespace(cmd, "explain the pods of this namespace alone, or those that --pod names in it; default for names: the namespace of the context, or \"default\" with -f")
	f.StringVarP(&s.selector, "selector", "l", "", "explain the pods with these labels alone, such as app=web,tier!=cache")
	f.BoolVar(&s.views, "views", true, "keep answers from one decision to the next. --views=false asks every plugin about every node each time. It is slow and gives the same result")
	s.timeout.addFlag(f, usualTime)
	addOutput(cmd, &s.output, "", "table", "wide", "yaml", "json")
	s.api.completeFlags(cmd)
	return cmd
}

// uselessExplain tells of flags that the others leave nothing to say.
func (s *simulation) uselessExplain(f *pflag.FlagSet) error {
	if s.config == "" && s.askExtenders {
		return errors.New("--ask-extenders: only --config FILE names extenders")
	}
	if len(s.pods) > 0 {
		return given(f, "--pod names the pods that are explained; leave one of them out", "selector")
	}
	return nil
}

// writer writes a result in one of the forms.
type writer interface {
	AttemptDone(*decision.Decision)
	Finish(*sim.Result) error
	FinishWhatIf(*whatif.Result) error
}

func (s *simulation) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	if err := errors.Join(s.check(), s.timeout.check()); err != nil {
		return err
	}
	var err error
	if s.selected, err = labels.Parse(s.selector); err != nil {
		return fmt.Errorf("--selector %s: %w", s.selector, err)
	}
	set, in, err := s.load(ctx, stdin, stderr)
	if err != nil {
		return err
	}
	s.pods = s.fullNames()
	if err := s.checkNamed(in.Pods); err != nil {
		return err
	}
	notes(stderr, set.Notices)
	in.Machine.Explain, in.Machine.ViewsOff = s.explained(), !s.views
	out := bufio.NewWriterSize(stdout, 1<<16)
	w := newWriter(out, s.output, s.seed, set.Ignored, s.workers)
	progress := newProgress(stderr, len(in.Pods))
	in.Decided = func(d *decision.Decision) {
		w.AttemptDone(d)
		progress.decided()
	}
	ctx, cancel := s.timeout.start(ctx)
	defer cancel()
	in.Stop = func() bool { return ctx.Err() != nil }
	result, err := sim.Run(in)
	progress.done()
	if err != nil {
		return err
	}
	if result.Cut != "" {
		notes(stderr, []string{"cut: " + result.Cut})
	}
	if err := errors.Join(w.Finish(result), out.Flush()); err != nil {
		return err
	}
	if len(result.Unplaced) > 0 || result.Cut != "" {
		return exitStatus(exitUnplaced)
	}
	return nil
}

// fullNames returns the pods that --pod names, with their namespaces.
func (s *simulation) fullNames() []string {
	space := s.names().Namespace
	var full []string
	for _, name := range s.pods {
		full = append(full, qualified(name, space))
	}
	return full
}

// checkNamed returns an error about a pod that is to be explained and is not there, or
// about a namespace or labels that no pod has.
func (s *simulation) checkNamed(pods []*object.Pod) error {
	var names, spaces []string
	for _, p := range pods {
		names, spaces = append(names, p.Key()), append(spaces, p.Namespace)
	}
	for _, name := range s.pods {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--pod: there is no pod %s%s", name, spelling.DidYouMean(name, names))
		}
	}
	slices.Sort(spaces)
	spaces = slices.Compact(spaces)
	if space := s.api.given(); space != "" && !slices.Contains(spaces, space) {
		return fmt.Errorf("--namespace %s: it has no pod%s", space, spelling.DidYouMean(space, spaces))
	}
	if s.selector != "" && !slices.ContainsFunc(pods, s.explained()) {
		return fmt.Errorf("--selector %s: no pod has such labels", s.selector)
	}
	return nil
}

// explained picks the pods whose decisions are explained; nil is none.
func (s *simulation) explained() func(*object.Pod) bool {
	space := s.api.given()
	switch {
	case len(s.pods) > 0:
		return func(p *object.Pod) bool { return slices.Contains(s.pods, p.Key()) }
	case space != "" || s.selector != "":
		return func(p *object.Pod) bool {
			return (space == "" || p.Namespace == space) && s.selected.Matches(labels.Set(p.Labels))
		}
	case s.explain:
		return func(*object.Pod) bool { return true }
	}
	return nil
}
