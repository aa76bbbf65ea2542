package tool

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/why"
	"github.com/berth-scheduler/berth/sim"
)

// Exit statuses of `berth why`, as its contract has them.
const (
	exitWaiting       = 1
	exitMisconfigured = 3
)

// whyOptions are what the flags of `berth why` say.
type whyOptions struct {
	source
	daemon   daemonFlags
	selector string
	all      bool
	output   string
	timeout  timeLimit
}

const whyLong = `Say why a pod waits, or why it is where it is, and what would change that.

The answer has the verdict, the nodes that come nearest with everything that
blocks the pod there, and the smallest changes that would have it placed. Each
fix was tried: it was applied to a copy of the cluster, and the scheduler's own
code decided again. Nothing changes in the cluster.

The cluster is the one that kubectl talks to, or comes from files (-f, as
"simulate" reads them). With --daemon the scheduler itself answers, from its
memory: also where in the queue the pod is, and what happened to it. The answer
about one pod holds for the moment; from files and the API server it says which pending
pods come first in the queue and take the room.

With --all it says what blocks all pending pods, by cause, and with KIND/NAME or
NAMESPACE/KIND/NAME those of a Deployment, ReplicaSet, StatefulSet, DaemonSet, Job,
CronJob, PodGroup or ElasticQuota (also deploy, rs, sts, ds, cj, eq, and where two APIs
have a group of one name podgroup.scheduling.x-k8s.io), with the replicas
that its controller could not make, and what the quota has lent and borrowed. Each pod takes its turn in the scheduler's order, so that no
two are promised the same room. A fix is tried on all pods of its cause together.

Whoever may not list nodes, or the pods of all namespaces, is told what the conditions of
the pod say (with --all, of the pods of the namespace of the context). With --daemon the
scheduler answers whoever may get the pod.

The search for fixes does a bounded amount of work, and the whole answer takes at
most --timeout once the cluster is read; the scheduler's own takes at most 55 s. An
answer that was cut says so. A fix has at most 128 parts.

Where the cluster itself said something last that the answer does not come to, such
as a binding that a policy denies, the answer leads with that.

Exit status: 0 if the pod is placed, or would be placed now, the cluster did not
say otherwise last, nobody comes first, its gang fits and somebody schedules; 1 if it waits; 3 if no change of load alone helps; 2 if the input
is not valid or there is no such pod.
With --all and KIND/NAME: 0 if no pod is pending or missing, else 1.`

const whyExamples = `  # Why does it wait?
  %[1]s why web-5d8f7c-x2v

  # The same, of another namespace, with every node
  %[1]s why -n shop cart-0 -o wide

  # Ask the scheduler, which also knows the pod's place in the queue
  %[1]s why -n shop cart-0 --daemon auto

  # From files
  kubectl get nodes,pods -A -o json > cluster.json
  %[1]s why -f cluster.json shop/cart-0

  # For a script
  %[1]s why shop/cart-0 -o json | jq -r '.fixes[0].changes[0].patch'

  # Why do the pods of a Deployment wait, or are not even made?
  %[1]s why shop/deploy/web

  # What does a quota lend and borrow, and who waits for it?
  %[1]s why -n research elasticquota/research

  # What blocks most? In the cluster of the kubeconfig, or as the scheduler sees it
  %[1]s why --all
  %[1]s why --all -n shop -l app=web
  %[1]s why --all --daemon auto`

func newWhy(name string, own *sim.Plugins) *cobra.Command {
	q := whyOptions{source: newSource(own)}
	q.keepWritten, q.orElse = true, ", or --daemon auto"
	cmd := &cobra.Command{
		Use:     "why {[NAMESPACE/]POD | [NAMESPACE/]KIND/NAME | --all}",
		Short:   "Say why a pod waits or is where it is, and what would change that",
		Long:    whyLong,
		Example: fmt.Sprintf(whyExamples, name),
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.uselessFlags(cmd.Flags()); err != nil {
				return err
			}
			args, err := q.ofNamespace(plainPods(args))
			if err != nil {
				return err
			}
			return q.run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.ValidArgsFunction = onlyFirst(q.api.pods())
	f := cmd.Flags()
	q.addFlags(f)
	q.api.addNamespace(cmd, "namespace of the pod or workload; with --all: only its pods; default: that of the context, or \"default\" with -f, or the only one that has such a name")
	q.daemon.addFlags(f)
	f.BoolVar(&q.all, "all", false, "say what blocks all pending pods; -n and -l say of which")
	f.StringVarP(&q.selector, "selector", "l", "", "with --all: labels of the pods, as kubectl has them")
	q.timeout.addFlag(f, time.Minute)
	addOutput(cmd, &q.output, "", "text", "wide", "yaml", "json")
	q.api.completeFlags(cmd)
	return cmd
}

func (q *whyOptions) run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if err := q.check(args); err != nil {
		return err
	}
	if q.daemon.url != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, usualPatience, errSilent)
		defer cancel()
		said, down := q.daemon.explained(ctx, q.ask(ctx, args, stdout, stderr))
		if !down {
			return said
		}
		terminal.Fprintf(stderr, "berth: note: %s; the answer is from the API server\n", sentence(said))
	}
	c, err := q.cluster(ctx, stdin, stderr)
	ctx, cancel := q.timeout.start(ctx)
	defer cancel()
	var few *fewRights
	if errors.As(err, &few) {
		return q.own(ctx, few, args, stdout, stderr)
	}
	if err != nil {
		return err
	}
	out := bufio.NewWriter(stdout)
	if q.all || isWorkload(args[0]) {
		return q.list(ctx, c, args, out, stderr)
	}
	pod, err := c.Find(args[0], q.api.given())
	if err != nil && q.isLive() {
		pod, err = q.ended(ctx, args[0], cmp.Or(c.Namespace, metav1.NamespaceDefault), err)
		if err != nil && q.addControllers(ctx, c.Set, io.Discard) == nil {
			_, err = c.Find(args[0], q.api.given())
		}
	}
	if err != nil {
		return err
	}
	if err := cmp.Or(q.addEvents(ctx, c.Set, pod, stderr), q.addDeployment(ctx, c.Set, pod, stderr)); err != nil {
		return err
	}
	a := c.Why(ctx, pod)
	if a.Verdict == why.WouldBePlaced {
		a.Stalled = q.stalled(ctx, pod.Spec.SchedulerName, stderr)
	}
	a.Explain()
	if err := errors.Join(q.write(out, a), out.Flush()); err != nil {
		return err
	}
	return statusOf(a.Verdict, a.Disagrees() || a.Stalled != "" || len(a.First) > 0 || a.WaitsForGroup())
}

// ended reads a pod that has ended, which the lists leave out. If there is none, the
// error stays.
func (q *whyOptions) ended(ctx context.Context, pod, space string, notFound error) (*v1.Pod, error) {
	name := pod
	if in, rest, qualified := strings.Cut(pod, "/"); qualified {
		space, name = in, rest
	} else if q.api.given() != "" {
		space = q.api.given()
	}
	config, err := q.connect()
	if err != nil {
		return nil, err
	}
	core, err := corev1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	p, err := core.Pods(space).Get(ctx, name, metav1.GetOptions{})
	if err != nil || !decode.Ended(p) {
		return nil, notFound
	}
	return p, nil
}

// ofNamespace returns the arguments with KIND/NAME for NAMESPACE/KIND/NAME, whose namespace becomes
// that of -n.
func (q *whyOptions) ofNamespace(args []string) ([]string, error) {
	if len(args) != 1 {
		return args, nil
	}
	space, of, _ := strings.Cut(args[0], "/")
	switch {
	case space == "" || isWorkload(args[0]) || !isWorkload(of):
		return args, nil
	case q.api.given() != "":
		return nil, fmt.Errorf("--namespace: %s", twoNamespaces(args[0]))
	}
	*q.api.flags.Namespace = space
	return []string{of}, nil
}

// uselessFlags returns an error about a flag that has no effect beside the others.
func (q *whyOptions) uselessFlags(f *pflag.FlagSet) error {
	if !q.all {
		if err := given(f, "goes with --all", "selector"); err != nil {
			return err
		}
	}
	if !f.Changed("daemon") && given(f, "", "filename", "expand", "strict", "config", "feature-gates", "seed") != nil {
		q.daemon.url = "" // the call has a source of its own, so BERTH_DAEMON does not count
	}
	if err := q.daemon.checkFlags(f); err != nil {
		return err
	}
	if q.daemon.url == "" {
		return q.useless(f)
	}
	return cmp.Or(
		given(f, "the scheduler that --daemon asks answers about its own cluster; leave it out", "filename", "expand", "strict"),
		given(f, "the scheduler that --daemon asks has its own; leave it out", "config", "feature-gates", "seed"),
		q.daemon.oneNamespace(f, !q.all),
		given(f, "the scheduler that --daemon asks bounds its own time; leave it out", "timeout"))
}

// statusOf is the exit status of an answer. disagrees says that the cluster said something last
// that the answer does not come to, or that nobody schedules.
func statusOf(v why.PodState, disagrees bool) error {
	switch v {
	case why.Placed, why.WouldBePlaced:
		if disagrees {
			return exitStatus(exitWaiting)
		}
		return nil
	case why.Misconfigured:
		return exitStatus(exitMisconfigured)
	}
	return exitStatus(exitWaiting)
}

// list lists what blocks the pods that the flags and arguments are about.
func (q *whyOptions) list(ctx context.Context, c *why.Cluster, args []string, out *bufio.Writer, stderr io.Writer) error {
	if err := q.addControllers(ctx, c.Set, stderr); err != nil {
		return err
	}
	scope := why.Scope{Namespace: q.api.given()}
	var err error
	if scope.Selector, err = labels.Parse(q.selector); err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	if len(args) > 0 {
		kind, name, _ := why.ParseWorkload(args[0])
		w, err := c.FindWorkload(kind, name, q.api.given())
		if err != nil {
			return err
		}
		scope.Workload = &w
	}
	if err := q.addCreations(ctx, c, scope.Workload, stderr); err != nil {
		return err
	}
	l, err := c.All(ctx, scope)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(l.Causes, func(c why.Cause) bool { return c.Verdict == why.WouldBePlaced }) {
		l.Stalled = q.stalled(ctx, "", stderr)
	}
	if err := errors.Join(q.write(out, l), out.Flush()); err != nil {
		return err
	}
	return statusOfAll(l.Pods + len(l.Missing))
}

func isWorkload(arg string) bool {
	_, _, ok := why.ParseWorkload(arg)
	return ok
}

// statusOfAll is the exit status where that many pods and workloads wait.
func statusOfAll(waiting int) error {
	if waiting > 0 {
		return exitStatus(exitWaiting)
	}
	return nil
}

func (q *whyOptions) check(args []string) error {
	switch {
	case q.all && len(args) > 0:
		return fmt.Errorf("--all: takes no pod; leave out %q", args[0])
	case !q.all && len(args) == 0:
		return errors.New("which pod? give its name, KIND/NAME of a workload, or --all")
	case len(args) == 1 && !isWorkload(args[0]) && q.api.given() != "" && strings.Contains(args[0], "/"):
		return fmt.Errorf("--namespace: %s", twoNamespaces(args[0]))
	case len(args) > 1:
		return fmt.Errorf("unexpected argument %q; give one pod, and files with -f", args[1])
	}
	if _, err := labels.Parse(q.selector); err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	if !q.all && !isWorkload(args[0]) {
		if err := checkPod(args[0]); err != nil {
			return fmt.Errorf("%w, or [NAMESPACE/]KIND/NAME of a workload", err)
		}
	}
	return cmp.Or(q.source.check(), q.timeout.check())
}

// cluster reads the cluster and returns it with a machine that knows its objects.
func (q *whyOptions) cluster(ctx context.Context, stdin io.Reader, stderr io.Writer) (*why.Cluster, error) {
	set, in, err := q.load(ctx, stdin, stderr)
	if err != nil {
		return nil, err
	}
	for _, n := range set.Notices {
		terminal.Fprintf(stderr, "berth: note: %s\n", n)
	}
	if refused := slices.Sorted(maps.Keys(set.Refused)); q.all && len(refused) > 0 {
		terminal.Fprintf(stderr, "berth: note: %s not made, such as %s: %s\n", terminal.Count(len(refused), "pod"), refused[0], set.Refused[refused[0]].Error())
	}
	w, err := sim.Load(in)
	if err != nil {
		return nil, err
	}
	c := &why.Cluster{Machine: w.Machine, Set: set, NoProfile: q.noProfile}
	if q.isLive() {
		c.Namespace, c.Now = q.api.namespace(), time.Now()
	}
	return c, nil
}

// answer is a result that is printed as text or encoded as JSON. Text writes it with more columns
// if wide is set.
type answer interface {
	Text(out io.Writer, wide bool) error
}

func (q *whyOptions) write(out io.Writer, a answer) error {
	if q.output == "json" || q.output == "yaml" {
		return writeData(out, q.output, a)
	}
	return a.Text(out, q.output == "wide")
}
