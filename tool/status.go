package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/untrusted"
)

// ofBerth is the label of the pods of Berth's manifests and chart.
const ofBerth = "app.kubernetes.io/part-of=berth"

// mostReplicas bounds the pods that are looked at.
const mostReplicas = 100

// partTime bounds each of the four parts of the overview: the lease, the replicas, the pods that
// wait, and what the scheduler says of itself: all end within a minute.
const partTime = 14 * time.Second

// exitAttention is the exit status of `berth status` where something needs attention.
const exitAttention = 1

// statusCall is what the flags of `berth status` say.
type statusCall struct {
	daemonFlags
	shadow string // its namespace
	output string
	most   time.Duration // for a part
}

const statusLong = `Show how it stands with Berth: who leads by which lease, the replicas, the configuration
in force and one that was refused since, how long bindings take now, the watches, the
queue, hosted plugins, and of a shadow how its choices compare.

The API server tells of the lease and the replicas, the scheduler that leads of the rest.
Where one of them cannot be asked, the other's part is shown, and what was not seen is
named with the reason. Replicas are pods with the label of the manifests and the chart that
share the leader's namespace and service account. Each part may take 14 seconds, or
--request-timeout, and a connection to the scheduler 3.

What needs attention: nobody renews the lease, or late; the leader changed within a minute,
again or beside restarts; a replica is not ready, or ended within ten minutes; a watch or a
configuration failed; bindings, or answers of the API server, take more than a second; ten
pods were evicted within a minute, or victims do not go when their grace period has ended; pods
ask for a scheduler that no profile is, and nobody has looked at them.

A shadow holds no lease, so that nothing names its certificate. --shadow finds its pod in a
namespace, by the label of the manifests and the chart. --insecure-skip-tls-verify then says
that whoever may make pods there may read your credentials.

Exit status: 0 if the scheduler leads and nothing needs attention, 1 if something does
(it is listed), 2 if nothing could be seen or the call is not valid.`

const statusExamples = `  # Does Berth schedule, and with what configuration?
  %[1]s status

  # For a script
  %[1]s status -o json | jq -r '.attention[]'

  # What did the shadow find?
  %[1]s status --shadow berth-system --insecure-skip-tls-verify`

func newStatus(name string) *cobra.Command {
	s := statusCall{daemonFlags: daemonFlags{url: auto, always: true}}
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show who leads, what is in force, and what needs attention",
		Long:    statusLong,
		Example: fmt.Sprintf(statusExamples, name),
		Args:    nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(cmd); err != nil {
				return err
			}
			return s.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	s.addFlags(f)
	s.addKubeconfig(f)
	f.StringVar(&s.shadow, "shadow", "", "namespace of a shadow, which is asked instead of the scheduler that leads")
	addOutput(cmd, &s.output, "", "text", "json", "yaml")
	return cmd
}

// check tells of flags that are not valid together.
func (s *statusCall) check(cmd *cobra.Command) error {
	if !slices.Contains([]string{"text", "json", "yaml"}, s.output) {
		return fmt.Errorf("-o %s: must be text, json or yaml", s.output)
	}
	switch {
	case s.shadow == "":
		return s.checkFlags(cmd.Flags())
	case !s.insecure:
		return errors.New("--shadow: a shadow holds no lease, so that nothing names its certificate: give --insecure-skip-tls-verify to send your credentials to the pod of that namespace that has its label, or --daemon URL with --daemon-ca in place of --shadow")
	}
	return cmp.Or(s.api.checkTimeout(), given(cmd.Flags(), "--shadow finds the way by itself; leave it out", "lease", "daemon-ca", "daemon"))
}

// Overview is what `berth status` shows. Its JSON is for scripts.
type Overview struct {
	api.Head
	Lease    *LeaseStatus `json:"lease,omitempty"`
	Replicas []Replica    `json:"replicas,omitempty"`
	// Scheduler is what the scheduler that was asked says of itself.
	Scheduler *api.Status `json:"scheduler,omitempty"`
	// Unserved are schedulers that pods ask for and that are not this one, StuckVictims pods that
	// do not go from the nodes that others are nominated to.
	Unserved     []Unserved    `json:"unserved,omitempty"`
	StuckVictims []StuckVictim `json:"stuckVictims,omitempty"`
	// APISeconds is the longest that the API server took for an answer.
	APISeconds float64 `json:"apiSeconds,omitempty"`
	// Attention lists what is wrong, NotSeen what could not be seen and why.
	Attention []string `json:"attention"`
	NotSeen   []string `json:"notSeen"`

	clock apiClock
}

// Replica is a pod of Berth's.
type Replica struct {
	Pod      string `json:"pod"` // NAMESPACE/NAME
	Node     string `json:"node"`
	Phase    string `json:"phase"`
	Ready    bool   `json:"ready"`
	Restarts int32  `json:"restarts"`
	// Waits says why a container does not run, such as CrashLoopBackOff.
	Waits string `json:"waits,omitempty"`
	// Ended says how the container that ended last did so.
	Ended   string     `json:"ended,omitempty"`
	EndedAt *time.Time `json:"endedAt,omitempty"`
	Leads   bool       `json:"leads"`
	Shadow  bool       `json:"shadow,omitempty"`
}

func (s *statusCall) run(ctx context.Context, stdout io.Writer) error {
	o := &Overview{Head: api.Head{APIVersion: api.Version, Kind: "Overview"}, Attention: []string{}, NotSeen: []string{}}
	config, noConfig := s.api.config()
	s.most = partTime
	if noConfig == nil {
		s.most = cmp.Or(config.Timeout, partTime)
	}
	if s.url != auto && s.shadow == "" { // whose lease is that of the scheduler that is asked
		s.scheduler(ctx, o, config, nil)
	}
	if noConfig != nil {
		o.miss("the lease and the replicas", noConfig)
	} else if err := s.cluster(ctx, o, config); err != nil {
		return err
	}
	if o.empty() {
		return fmt.Errorf("nothing could be seen: %s", strings.Join(append(o.NotSeen, o.Attention...), "; "))
	}
	o.judge()
	if err := s.write(stdout, o); err != nil {
		return err
	}
	if len(o.Attention) > 0 {
		return exitStatus(exitAttention)
	}
	return nil
}

// empty reports whether nothing was seen.
func (o *Overview) empty() bool { return o.Lease == nil && o.Scheduler == nil && len(o.Replicas) == 0 }

// miss records what could not be seen.
func (o *Overview) miss(what string, why error) {
	o.NotSeen = append(o.NotSeen, what+": "+sentence(why))
}

// part returns the context of a part of the overview.
func (s *statusCall) part(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.most, errSilent)
}

// cluster reads what the API server knows of Berth, and asks the scheduler that is found by it.
func (s *statusCall) cluster(ctx context.Context, o *Overview, config *rest.Config) error {
	to := rest.CopyConfig(config)
	to.Wrap(untrusted.Answers(mostAnswer))
	to.Wrap(o.clock.watch)
	leases, err := coordinationv1.NewForConfig(to)
	if err != nil {
		return err
	}
	core, err := corev1.NewForConfig(to)
	if err != nil {
		return err
	}
	if s.shadow != "" {
		s.scheduler(ctx, o, config, s.replicas(ctx, o, core, nil))
		return nil
	}
	s.readLease(ctx, o, to)
	if o.Lease != nil {
		var leader *v1.Pod
		if s.url == auto {
			leader = s.scheduler(ctx, o, config, nil)
		}
		s.replicas(ctx, o, core, leader)
	}
	s.pending(ctx, o, core, leases)
	return nil
}

// replicas lists the pods of Berth's in the leader's namespace that have its service account, or
// those of the shadow's namespace. It returns the shadow's pod. The leader is the pod that is
// known by its certificate. If there is none, it is the pod of the lease's namespace that the
// lease names: elsewhere anybody may name a pod so.
func (s *statusCall) replicas(ctx context.Context, o *Overview, core corev1.PodsGetter, leader *v1.Pod) (shadow *v1.Pod) {
	ctx, cancel := s.part(ctx)
	defer cancel()
	namespace := s.shadow
	if o.Lease != nil {
		namespace, _, _ = strings.Cut(o.Lease.Name, "/")
		if named, err := podOf(ctx, core, namespace, o.Lease.Holder); leader == nil && err == nil && named.Namespace == namespace {
			leader = named
		}
	}
	if leader != nil {
		namespace = leader.Namespace
	}
	list, err := core.Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: ofBerth, Limit: mostReplicas})
	if err != nil {
		o.miss("the replicas", cmp.Or(silence(ctx), err))
		return nil
	}
	if list.Continue != "" || len(list.Items) > mostReplicas {
		o.miss("some replicas", fmt.Errorf("more than %d pods of namespace %s have the label %s", mostReplicas, namespace, ofBerth))
	}
	for i := range list.Items[:min(len(list.Items), mostReplicas)] {
		p := &list.Items[i]
		r := replicaOf(p)
		if r.Shadow && (shadow == nil || r.Ready) {
			shadow = p
		}
		if r.Shadow != (s.shadow != "") || leader != nil && p.Spec.ServiceAccountName != leader.Spec.ServiceAccountName {
			continue
		}
		r.Leads = leader != nil && p.UID == leader.UID
		o.Replicas = append(o.Replicas, r)
	}
	return shadow
}

// readLease reads the lease of the scheduler that was asked, or the one that a Berth holds.
func (s *statusCall) readLease(ctx context.Context, o *Overview, config *rest.Config) {
	of := daemonFlags{lease: s.lease}
	if o.Scheduler != nil {
		if of.lease = o.Scheduler.Lease; of.lease == "" {
			return // it needs none
		}
	}
	ctx, cancel := s.part(ctx)
	defer cancel()
	l, _, err := of.leader(ctx, config)
	if err != nil {
		o.miss("the lease", cmp.Or(silence(ctx), err))
		return
	}
	o.Lease = leaseStatus(l, o.clock.now())
}

// replicaOf says how it stands with a pod, but not whether it leads.
func replicaOf(p *v1.Pod) Replica {
	r := Replica{Pod: p.Namespace + "/" + p.Name, Node: p.Spec.NodeName, Phase: string(p.Status.Phase)}
	for _, c := range p.Status.Conditions {
		r.Ready = r.Ready || c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	}
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		r.Restarts += c.RestartCount
		if c.State.Waiting != nil {
			r.Waits = c.State.Waiting.Reason
		}
		for _, t := range []*v1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if t != nil && (r.EndedAt == nil || t.FinishedAt.After(*r.EndedAt)) {
				r.Ended, r.EndedAt = fmt.Sprintf("%s, exit status %d", cmp.Or(t.Reason, "ended"), t.ExitCode), &t.FinishedAt.Time
			}
		}
	}
	for i := range p.Spec.Containers {
		r.Shadow = r.Shadow || slices.Contains(p.Spec.Containers[i].Args, "--shadow") || slices.Contains(p.Spec.Containers[i].Command, "--shadow")
	}
	return r
}

// scheduler asks the scheduler that leads, or the shadow. It returns the pod of a scheduler that
// was found by its lease and known by its certificate.
func (s *statusCall) scheduler(ctx context.Context, o *Overview, config *rest.Config, shadow *v1.Pod) *v1.Pod {
	ctx, cancel := s.part(ctx)
	defer cancel()
	status, pod, err := s.ask(ctx, config, shadow)
	if err != nil {
		o.miss("what the scheduler says of itself", cmp.Or(silence(ctx), err))
		return nil
	}
	o.Scheduler = status
	return pod
}

func (s *statusCall) ask(ctx context.Context, config *rest.Config, shadow *v1.Pod) (*api.Status, *v1.Pod, error) {
	d, err := s.way(ctx, config, shadow)
	if err != nil {
		return nil, nil, err
	}
	defer d.close()
	status := &api.Status{}
	return status, d.leader, d.get(ctx, "status", nil, "Status", status)
}

// way finds the way to the scheduler that leads, or to the shadow.
func (s *statusCall) way(ctx context.Context, config *rest.Config, shadow *v1.Pod) (*daemon, error) {
	switch {
	case s.shadow == "":
		return s.dial(ctx)
	case shadow == nil:
		return nil, fmt.Errorf("no pod of namespace %s with the label %s runs with --shadow", s.shadow, ofBerth)
	}
	core, err := corev1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	local, end, err := forward(ctx, config, core, shadow)
	if err != nil {
		return nil, fmt.Errorf("forwarding a port to pod %s/%s: %w", shadow.Namespace, shadow.Name, err)
	}
	way, err := dialAt(config, local, true, end)
	if err != nil {
		end()
	}
	return way, err
}

// write writes the overview in the form that was asked for.
func (s *statusCall) write(out io.Writer, o *Overview) error {
	if s.output == "text" {
		_, err := io.WriteString(out, o.text())
		return err
	}
	return writeData(out, s.output, o)
}
