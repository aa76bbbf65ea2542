package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/sample"
)

// settleAfter is how long a placement that makes no progress is watched before
// `up` says what is pending and stays up all the same.
const settleAfter = 30 * time.Second

// run is one call of the command.
type run struct {
	options   Options
	scheduler cluster.SchedulerOptions
	out       io.Writer
	cluster   *cluster.Cluster
	viewer    []string // the command that serves Berth's page; nil: there is none
}

// Run starts the lab and returns when the context ends (nil), when a child dies
// (its name and the end of its log), or, with Once, when the sample is settled.
// All children are gone then.
func Run(ctx context.Context, out io.Writer, options Options) (err error) {
	if err := options.validate(); err != nil {
		return err
	}
	scheduler, err := options.schedulerOptions()
	if err != nil {
		return err
	}
	r := &run{options: options, scheduler: scheduler, out: out}
	interrupted := ctx
	defer func() {
		if r.cluster != nil {
			err = errors.Join(err, r.cluster.Close())
		}
		if interrupted.Err() != nil && !options.Once && errors.Is(err, context.Canceled) {
			err = nil // an interrupt is how it is meant to end
		}
	}()
	if err := r.startCluster(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case death := <-r.cluster.Failed():
			cancel(death)
		case <-ctx.Done():
		}
	}()
	if err := r.startScheduler(ctx); err != nil {
		return err
	}
	if !options.Once {
		r.say("\n  export KUBECONFIG=%s\n\n", r.cluster.Kubeconfig(cluster.Admin))
	}
	if options.Sample || options.Once {
		if err := r.placeSample(ctx); err != nil || options.Once {
			return err
		}
	}
	r.say("The cluster is up. Ctrl-C ends it.\n")
	r.startPage(ctx)
	<-ctx.Done()
	return context.Cause(ctx)
}

// schedulerOptions reads what --scheduler, --berth and --config name, so that a
// mistake there is known before anything is started.
func (o Options) schedulerOptions() (cluster.SchedulerOptions, error) {
	options := cluster.SchedulerOptions{Kind: cluster.Berth, Binary: o.Berth, Port: o.HealthPort, Flags: o.gates()}
	if o.Scheduler == schedulerKube {
		options.Kind = cluster.KubeScheduler
	}
	if o.Config != "" {
		config, err := os.ReadFile(o.Config)
		if err != nil {
			return options, fmt.Errorf("--config: %w", err)
		}
		options.Config = config
	}
	if o.Scheduler == schedulerNone {
		return options, nil
	}
	return options, options.Check()
}

// gates is the flag with the feature gates, if there are any.
func (o Options) gates() []string {
	if o.Gates == "" {
		return nil
	}
	return []string{"--feature-gates=" + o.Gates}
}

// apiServerFlags turn on the gates and, because an API that a gate adds is seldom
// served by default, all alpha and beta APIs.
func (o Options) apiServerFlags() []string {
	if o.Gates == "" {
		return nil
	}
	return append(o.gates(), "--runtime-config=api/alpha=true,api/beta=true")
}

func (r *run) startCluster(ctx context.Context) error {
	r.say("Starting Kubernetes %s: etcd, kube-apiserver, kube-controller-manager, kwok.\n", cluster.KubernetesVersion)
	began := time.Now()
	c, err := cluster.Start(ctx, cluster.Options{Dir: r.options.Dir, Port: r.options.Port, APIServerFlags: r.options.apiServerFlags()})
	if err != nil {
		return err
	}
	r.cluster = c
	r.say("  control plane ready after %s; logs in %s/logs\n", since(began), c.Dir())
	if r.options.Nodes > 0 {
		began = time.Now()
		if err := c.CreateNodes(ctx, cluster.Nodes(r.options.Nodes)); err != nil {
			return err
		}
		r.say("  %d nodes ready after %s\n", r.options.Nodes, since(began))
	}
	return nil
}

func (r *run) startScheduler(ctx context.Context) error {
	if r.options.Scheduler == schedulerNone {
		r.say("  no scheduler: pods stay pending until you start one\n")
		return nil
	}
	began := time.Now()
	s, err := r.cluster.StartScheduler(ctx, r.scheduler)
	if err != nil {
		return err
	}
	r.say("  %s ready after %s; health and metrics on https://127.0.0.1:%d\n", s.Kind, since(began), s.Port)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	tool := filepath.Join(filepath.Dir(self), "berth")
	kubeconfig := r.cluster.Kubeconfig(cluster.Admin)
	if r.options.Scheduler == schedulerBerth {
		r.viewer = []string{tool, "view", "--daemon", fmt.Sprintf("https://127.0.0.1:%d", s.Port), "--insecure-skip-tls-verify", "--kubeconfig", kubeconfig}
	}
	_, err = io.WriteString(r.out, r.options.watching(tool, kubeconfig, s.Port))
	return err
}

// watching says how to see, with the tool, what the scheduler does. Its process is no pod,
// so it is not found by its lease, and nobody has signed its certificate. It alone knows
// its configuration and plugins that Berth does not come with. A program of one's own may
// have hosted plugins, and no copy of it can be asked then.
func (o Options) watching(tool, kubeconfig string, port int) string {
	if o.Scheduler != schedulerBerth {
		return ""
	}
	flags := fmt.Sprintf("--daemon https://127.0.0.1:%d --insecure-skip-tls-verify --kubeconfig %s", port, kubeconfig)
	why := "  why pods wait: " + tool + " why --all "
	if o.Berth != "" {
		why = "  what happened to a pod: " + tool + " events NAMESPACE/POD "
	}
	return "  how it stands: " + tool + " status " + flags + "\n  watch it: " + tool + " top " + flags + "\n  in a browser: " + tool + " view " + flags + "\n" + why + flags + "\n"
}

// placeSample deploys the sample and shows its placement until it is settled.
// With Once it is an error if that does not happen in time.
func (r *run) placeSample(ctx context.Context) error {
	s, err := sample.For(r.options.Nodes)
	if err != nil {
		return err
	}
	if s.Scheduler = r.scheduler.ServedName(); s.Scheduler != "" {
		r.say("The pods of the sample name the scheduler %s, the first profile of --config.\n", s.Scheduler)
	}
	r.say("Deploying the sample workload, %d pods in namespace %s: %d fit, %d cannot.\n",
		s.Fitting()+s.Unfitting(), sample.Namespace, s.Fitting(), s.Unfitting())
	for _, line := range append(s.Describe(), "") {
		r.say("%s\n", line)
	}
	if err := s.Deploy(ctx, r.cluster.Client()); err != nil {
		return err
	}
	if r.options.Scheduler == schedulerNone {
		return nil
	}
	final, settled, err := r.watch(ctx, s)
	if err != nil {
		return err
	}
	r.reportPending(final)
	over, err := r.cluster.Overcommitted(ctx)
	if err != nil {
		return err
	}
	return r.resultOf(s, final, settled, over)
}

// resultOf turns the outcome into a result: an error with Once, a remark without.
func (r *run) resultOf(s sample.Sample, p sample.Progress, settled bool, overcommitted []string) error {
	var faults []string
	if !settled {
		faults = append(faults, fmt.Sprintf("%d of %d pods that fit were placed, %d of %d that cannot fit were rejected",
			p.Fitting, s.Fitting(), p.Rejected, s.Unfitting()))
	}
	if p.Misfits > 0 {
		faults = append(faults, fmt.Sprintf("%d pods were placed on nodes that they cannot run on", p.Misfits))
	}
	if len(overcommitted) > 0 {
		faults = append(faults, fmt.Sprintf("%d nodes are over-committed, such as %s", len(overcommitted), overcommitted[0]))
	}
	if len(faults) == 0 {
		r.say("All that can be placed is placed, and no node is over-committed.\n")
		return nil
	}
	verdict := strings.Join(faults, "; ")
	if r.options.Once {
		return errors.New(verdict)
	}
	r.say("Not as it should be: %s.\n", verdict)
	return nil
}

// say writes to the user. No argument acts on the terminal.
func (r *run) say(format string, arguments ...any) {
	terminal.Fprintf(r.out, format, arguments...)
}

// since is the time that has passed, as a person reads it.
func since(t time.Time) string {
	return fmt.Sprintf("%.1f s", time.Since(t).Seconds())
}
