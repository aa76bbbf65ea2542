package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/untrusted"
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
	daemon  daemonFlags
	all     bool
	output  string
	timeout timeLimit
}

const whyLong = `Say why a pod waits, or why it is where it is, and what would change that.

The answer has the verdict, the nodes that come nearest with everything that
blocks the pod there, and the smallest changes that would have it placed. Each
fix was tried: it was applied to a copy of the cluster, and the scheduler's own
code decided again. Nothing changes in the cluster.

The cluster is the one that kubectl talks to, or comes from files (-f, as
"simulate" reads them). With --daemon the scheduler itself answers, from its
memory: also where in the queue the pod is, and what happened to it. The answer
holds for the moment: other pending pods count only where they are nominated to a
node.

With --all it ranks what blocks all pending pods, grouped by cause, and says how
many nodes of which shape would place how many of them.

Whoever may not list nodes, or the pods of all namespaces, is told what the conditions of
the pod say (with --all, of the pods of the namespace of the context). With --daemon the
scheduler answers whoever may get the pod.

The search for fixes does a bounded amount of work, and the whole answer takes at
most --timeout once the cluster is read; the scheduler's own takes at most 55 s. An
answer that was cut says so. A fix has at most 128 parts.

Exit status: 0 if the pod is placed or would be placed now, 1 if it waits, 3 if no
change of load alone helps, 2 if the input is not valid or there is no such pod.
With --all: 0 if no pod is pending, else 1.`

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

  # What blocks most? In the cluster of the kubeconfig, or as the scheduler sees it
  %[1]s why --all
  %[1]s why --all --daemon auto`

func newWhy(name string) *cobra.Command {
	q := whyOptions{source: newSource()}
	q.keepWritten, q.orElse = true, ", or --daemon auto"
	cmd := &cobra.Command{
		Use:     "why {[NAMESPACE/]POD | --all}",
		Short:   "Say why a pod waits or is where it is, and what would change that",
		Long:    whyLong,
		Example: fmt.Sprintf(whyExamples, name),
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.uselessFlags(cmd.Flags()); err != nil {
				return err
			}
			return q.run(cmd.Context(), plainPods(args), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.ValidArgsFunction = onlyFirst(q.api.pods())
	f := cmd.Flags()
	q.addFlags(f)
	q.api.addNamespace(cmd, "namespace of the pod; default: that of the context, or \"default\" with -f, or the only one that has a pod of this name")
	q.daemon.addFlags(f)
	f.BoolVar(&q.all, "all", false, "rank what blocks all pending pods")
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
		return q.ask(ctx, args, stdout)
	}
	c, err := q.cluster(ctx, stdin, stderr)
	var few *fewRights
	if errors.As(err, &few) {
		return q.own(ctx, few, args, stdout, stderr)
	}
	if err != nil {
		return err
	}
	ctx, cancel := q.timeout.start(ctx)
	defer cancel()
	out := bufio.NewWriter(stdout)
	if q.all {
		r, err := c.All(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(q.write(out, r), out.Flush()); err != nil {
			return err
		}
		return statusOfAll(r.Pending)
	}
	pod, err := c.Find(args[0], q.api.given())
	if err != nil && q.isLive() {
		pod, err = q.ended(ctx, args[0], cmp.Or(c.Namespace, metav1.NamespaceDefault), err)
	}
	if err != nil {
		return err
	}
	a := c.Why(ctx, pod)
	if err := errors.Join(q.write(out, a), out.Flush()); err != nil {
		return err
	}
	return statusOf(a.Verdict)
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
	config, err := q.api.config()
	if err != nil {
		return nil, err
	}
	config.Timeout = answerTimeout
	config.Wrap(untrusted.Answers(mostAnswer))
	core, err := corev1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	p, err := core.Pods(space).Get(ctx, name, metav1.GetOptions{})
	if err != nil || p.Status.Phase != v1.PodSucceeded && p.Status.Phase != v1.PodFailed {
		return nil, notFound
	}
	return p, nil
}

// uselessFlags tells of flags that the others leave nothing to say.
func (q *whyOptions) uselessFlags(f *pflag.FlagSet) error {
	if q.all {
		if err := given(f, "--all is about all pods; leave it out", "namespace"); err != nil {
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

// statusOf is the exit status of an answer.
func statusOf(v why.PodState) error {
	switch v {
	case why.Placed, why.WouldBePlaced:
		return nil
	case why.Misconfigured:
		return exitStatus(exitMisconfigured)
	}
	return exitStatus(exitWaiting)
}

// statusOfAll is the exit status where that many pods are pending.
func statusOfAll(pending int) error {
	if pending > 0 {
		return exitStatus(exitWaiting)
	}
	return nil
}

func (q *whyOptions) check(args []string) error {
	switch {
	case q.all && len(args) > 0:
		return fmt.Errorf("--all: takes no pod; leave out %q", args[0])
	case !q.all && len(args) == 0:
		return errors.New("which pod? give its name, or --all")
	case len(args) == 1 && q.api.given() != "" && strings.Contains(args[0], "/"):
		return fmt.Errorf("--namespace: %s", twoNamespaces(args[0]))
	case len(args) > 1:
		return fmt.Errorf("unexpected argument %q; give one pod, and files with -f", args[1])
	}
	if !q.all {
		if err := checkPod(args[0]); err != nil {
			return err
		}
	}
	return cmp.Or(q.source.check(), q.timeout.check())
}

// cluster reads the cluster and has a machine hear of it.
func (q *whyOptions) cluster(ctx context.Context, stdin io.Reader, stderr io.Writer) (*why.Cluster, error) {
	set, in, err := q.load(ctx, stdin, stderr)
	if err != nil {
		return nil, err
	}
	for _, n := range set.Notices {
		terminal.Fprintf(stderr, "berth: note: %s\n", n)
	}
	if refused := slices.Sorted(maps.Keys(set.Refused)); q.all && len(refused) > 0 {
		terminal.Fprintf(stderr, "berth: note: %s not made, such as %s: %s\n", plural(len(refused), "pod"), refused[0], set.Refused[refused[0]].Error())
	}
	w, err := sim.Load(in)
	if err != nil {
		return nil, err
	}
	c := &why.Cluster{Machine: w.Machine, Set: set, NoProfile: q.noProfile}
	if q.isLive() {
		c.Namespace = q.api.namespace()
	}
	return c, nil
}

// answer is data that knows its text.
type answer interface {
	Text(out io.Writer, wide bool) error
}

func (q *whyOptions) write(out io.Writer, a answer) error {
	switch q.output {
	case "json", "yaml":
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(a); err != nil {
			return err
		}
		data := b.Bytes()
		if q.output == "yaml" {
			var err error
			if data, err = terminal.YAML(data); err != nil {
				return err
			}
		}
		_, err := out.Write(data)
		return err
	}
	return a.Text(out, q.output == "wide")
}
