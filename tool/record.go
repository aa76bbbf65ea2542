package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/kube"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// recordOptions is what the flags of `berth record` say.
type recordOptions struct {
	to, config, limit string
	api               connection
	last              time.Duration
	build             Build
	own               []string
}

const recordLong = `Record what happens in a cluster, whatever its scheduler: which nodes, pods and
other objects come, change and go. The command lists and watches, and writes
nothing to the cluster. "replay" and "compare" then show what Berth would have
done under any configuration.

It ends at an interrupt (Ctrl-C), or after the time that --for says.`

const recordExamples = `  # An hour of the cluster that kubectl talks to
  %[1]s record --to day1/ --for 1h

  # What would two configurations have made of it?
  %[1]s compare old.yaml new.yaml --record day1/ --html day1.html`

func newRecord(name string, b Build) *cobra.Command {
	r := recordOptions{api: newConnection(), build: b}
	cmd := &cobra.Command{
		Use:     "record --to DIR",
		Short:   "Record what happens in a cluster, for replay and compare",
		Long:    recordLong,
		Example: fmt.Sprintf(recordExamples, name),
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the process at once
			return r.run(ctx, cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.to, "to", "", "directory for the record")
	r.api.addFlags(f, "kubeconfig of the cluster; default: the one that kubectl uses")
	f.StringVar(&r.config, "config", "", "KubeSchedulerConfiguration file to keep with the record, for replay; default: kube-scheduler's defaults")
	f.StringSliceVar(&r.own, "plugins", nil, pluginsUsage)
	f.StringVar(&r.limit, "limit", "1Gi", "number of bytes that the record may have on disk; its oldest segments are deleted first")
	f.DurationVar(&r.last, "for", 0, "end after this time; default: at an interrupt")
	r.api.completeFlags(cmd)
	return cmd
}

func (r *recordOptions) run(ctx context.Context, stderr io.Writer) error {
	if r.to == "" {
		return errors.New("give a directory with --to")
	}
	limit, err := resource.ParseQuantity(r.limit)
	switch {
	case err != nil || limit.Sign() <= 0:
		return fmt.Errorf("--limit %s: must be a number of bytes, such as 512Mi", r.limit)
	case r.last < 0:
		return fmt.Errorf("--for %s: must be positive", r.last)
	}
	c := config.Default()
	if r.config != "" {
		if c, err = loadConfig(config.With(features.New()), "--config", r.config); err != nil {
			return err
		}
	}
	_, o, err := schedulerOf(c, features.New(), r.build.Plugins, r.own)
	if err != nil {
		return err
	}
	clients, err := r.clients()
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	recorder, err := recording.Start(recording.Options{Dir: r.to, Limit: limit.Value(), Wait: true, Logger: klog.Background(),
		Header: recording.Header{Source: recording.Watch, Berth: r.build.Version, Seed: 1, Config: string(text)}})
	if err != nil {
		return fmt.Errorf("--to %s: %w", r.to, reasonOf(err))
	}
	if r.last > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx) // without a deadline: client-go would not even try shortly before one
		defer cancel()
		defer time.AfterFunc(r.last, cancel).Stop()
	}
	unread := watch(ctx, clients, o.Profiles, recorder, stderr)
	end, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	recorder.Close(end)
	n := recorder.Counters()
	if unread != nil && n.Entries == 0 {
		return fmt.Errorf("nothing was recorded: %w", unread)
	}
	terminal.Fprintf(stderr, "%s recorded in %s\n", terminal.Count(n.Entries, "event"), r.to)
	switch {
	case unread != nil:
		return fmt.Errorf("the record is not complete: %w", unread)
	case n.Lost > 0:
		return fmt.Errorf("%s lost: the record has a gap", terminal.Count(n.Lost, "event"))
	}
	return nil
}

func (r *recordOptions) clients() (*kube.Clients, error) {
	api, err := r.api.config()
	if err != nil {
		return nil, err
	}
	api.ContentType = "application/vnd.kubernetes.protobuf"
	return kube.NewClients(api, func() bool { return false })
}

// watch records what the watches show until the context ends. It returns why not all
// that decisions need was listed.
func watch(ctx context.Context, clients *kube.Clients, profiles []*profile.Profile, recorder *recording.Recorder, stderr io.Writer) error {
	var mu sync.Mutex
	post := func(e machine.Event) {
		mu.Lock()
		defer mu.Unlock()
		recorder.Observe(recording.Step{Now: time.Now(), Event: e})
	}
	w := kube.NewWatcher(clients, profile.Reads(profiles), post, klog.Background())
	w.Record(recording.NewObjects(nil).Attach)
	probed := make(chan error, 1)
	go func() { probed <- w.Probe(ctx) }()
	go func() {
		if w.WaitForSync(ctx) {
			terminal.Fprintf(stderr, "all objects are listed; what changes is being recorded\n")
		}
	}()
	w.Run(ctx)
	if err := <-probed; err != nil {
		return fmt.Errorf("the API server could not be read: %w", err)
	}
	for _, m := range w.Missing() {
		switch {
		case m.Required && m.Err != nil:
			return fmt.Errorf("the API server could not be read: %s: %w", m.Resource, m.Err)
		case m.Required:
			return fmt.Errorf("the API server could not be read: %s", m)
		}
	}
	return nil
}
