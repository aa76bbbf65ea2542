package scheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/metrics/legacyregistry"
	zpages "k8s.io/component-base/zpages/features"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/profile"
	berthapi "github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/daemon"
	"github.com/berth-scheduler/berth/edge/extender"
	"github.com/berth-scheduler/berth/edge/kube"
	"github.com/berth-scheduler/berth/edge/lease"
	"github.com/berth-scheduler/berth/edge/server"
	"github.com/berth-scheduler/berth/edge/shadow"
	"github.com/berth-scheduler/berth/edge/trace"
)

// closeTime is how long the endpoint waits for requests when it is closed.
const closeTime = 500 * time.Millisecond

// start makes a daemon of the options and runs it to its end.
func start(o *options) error {
	if err := o.validate(); err != nil {
		return err
	}
	c, err := o.config()
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(daemon.StartGCPercent)
	}
	logger := klog.Background()
	if v := logger.V(2); v.Enabled() {
		if shown, err := config.YAML(c); err == nil {
			v.Info("Using component config", "config", string(shown))
		}
	}
	if o.writeConfigTo != "" {
		return o.showConfig(c, logger)
	}
	if ignored := o.ignoredFlags(); len(ignored) > 0 {
		logger.Info("Ignoring flags, because --config is given", "flags", ignored)
	}
	if err := kube.DetectSilentConnections(); err != nil {
		return err
	}
	api, err := o.restConfig(c.ClientConnection)
	if err != nil {
		return err
	}
	if len(o.given("metrics")) > 0 { // with none it would complain about an empty file
		o.metrics.Apply()
	}
	o.gates.AddMetrics()
	o.registry.AddMetrics()
	traces, endTraces, err := o.traces(logger)
	if err != nil {
		return err
	}
	defer endTraces()
	d, err := newDaemon(logger, c, api, o, traces)
	if err != nil {
		return err
	}
	secure, err := o.secure()
	if err != nil {
		return err
	}
	return run(d, secure, o)
}

// showConfig writes the configuration in effect to the file of --write-config-to,
// unless newDaemon would refuse it.
func (o *options) showConfig(c *config.Config, logger klog.Logger) error {
	if len(o.hosted.plugins) == 0 { // their factories may ask the API server
		if _, err := o.profiles(c, nil); err != nil {
			return err
		}
	}
	if _, err := extender.New(c.Extenders); err != nil {
		return err
	}
	if err := writeConfig(o.writeConfigTo, c); err != nil {
		return err
	}
	logger.Info("Wrote configuration", "file", o.writeConfigTo)
	return nil
}

func newDaemon(logger klog.Logger, c *config.Config, api *rest.Config, o *options, traces oteltrace.TracerProvider) (*daemon.Daemon, error) {
	hosts, err := o.newHosts(c, api)
	if err != nil {
		return nil, err
	}
	profiles, err := o.profiles(c, hosts)
	if err != nil {
		return nil, err
	}
	if err := kube.CheckServed(context.Background(), api, profile.Reads(profiles)); err != nil {
		return nil, err
	}
	identity, err := lease.Identity()
	if err != nil {
		return nil, err
	}
	var shadowTo *shadow.File
	if o.shadowTo != "" {
		if shadowTo, err = shadow.OpenFile(o.shadowTo, logger); err != nil {
			return nil, fmt.Errorf("--shadow-to: %w", err)
		}
	}
	recorded, err := o.record.options(c, o)
	if err != nil {
		return nil, err
	}
	seed := rand.Uint64() // #nosec G404 -- ties among nodes are no secret
	logger.V(2).Info("Drawing among nodes with the same score", "seed", seed)
	return daemon.New(daemon.Options{
		Logger: logger, Config: c, API: api, Profiles: profiles, Hosts: hosts, Identity: identity, Seed: seed,
		MaxUnschedulable: o.deprecated.maxUnschedulable, Register: legacyregistry.MustRegister,
		Shadow: o.shadow, ShadowTo: shadowTo, Traces: traces, Record: recorded, RecordsBytes: int(o.recordsMemory.Value()),
		Build:            berthapi.Build{Version: revision(), Kubernetes: kubernetesVersion(), Gates: features.Changed(o.gates)},
		CopyProfiles:     o.copyProfiles,
		Candidacy:        o.candidacy(),
		Synced:           collectLess,
		PodGroups:        o.gates.Enabled(features.GenericWorkload),
		GroupPlacements:  o.gates.Enabled(features.TopologyAwareWorkloadScheduling),
		HideExpectedNode: !o.gates.Enabled(features.NominatedNodeNameForExpectation),
		WaitForEvictions: !o.gates.Enabled(features.SchedulerAsyncPreemption),
		WaitOutBackoff:   !o.gates.Enabled(features.SchedulerPopFromBackoffQ),
		PodFields:        features.PodFields(o.gates),
	})
}

// candidacy is what a candidate says of itself, nil where candidates are not compared.
func (o *options) candidacy() *lease.Candidacy {
	if !o.gates.Enabled(features.CoordinatedLeaderElection) {
		return nil
	}
	of := o.registry.EffectiveVersionFor(compatibility.DefaultKubeComponent)
	full := func(v *utilversion.Version) string { return fmt.Sprintf("%d.%d.%d", v.Major(), v.Minor(), v.Patch()) }
	return &lease.Candidacy{BinaryVersion: full(of.BinaryVersion()), EmulatedVersion: full(of.EmulationVersion())}
}

// traces is what makes spans, nil without tracing, and what sends the last of them.
func (o *options) traces(logger klog.Logger) (p oteltrace.TracerProvider, end func(), err error) {
	if o.tracing == "" {
		return nil, func() {}, nil
	}
	instance, err := lease.Identity()
	if err != nil {
		return nil, nil, err
	}
	provider, err := trace.Load(o.tracing, instance, o.gates, logger)
	if err != nil {
		return nil, nil, fmt.Errorf("--tracing-config-file: %w", err)
	}
	return provider, func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			logger.Error(err, "Failed to send the last traces")
		}
	}, nil
}

// logStart logs what starts.
func logStart(l klog.Logger) {
	l.Info("Starting Kubernetes Scheduler", "version", revision(), "scheduler", "Berth")
	l.Info("Golang settings", "GOGC", os.Getenv("GOGC"), "GOMAXPROCS", runtime.GOMAXPROCS(0), "GOTRACEBACK", os.Getenv("GOTRACEBACK"))
}

// run serves the daemon's endpoint and runs it until a signal comes or the lease
// is lost.
func run(d *daemon.Daemon, secure server.Secure, o *options) error {
	logStart(klog.Background())
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	context.AfterFunc(ctx, cancel) // a second signal ends the process at once

	stopEndpoint, err := serve(d, secure, o)
	if err != nil {
		return err
	}
	go dumpOnSignal(ctx, d)
	go o.reloadOnChange(ctx, d)
	return d.Run(ctx, stopEndpoint)
}

// serve opens the endpoint, unless there is none, and returns what closes it.
func serve(d *daemon.Daemon, secure server.Secure, o *options) (stop func(), err error) {
	if secure.Serving == nil {
		return nil, nil
	}
	shown := d.Endpoint()
	if o.gates.Enabled(zpages.ComponentFlagz) {
		shown.Flags = &o.flags
	}
	if o.gates.Enabled(zpages.ComponentStatusz) {
		shown.Status = o.registry.EffectiveVersionFor(compatibility.DefaultKubeComponent)
	}
	d.Serve(func() [][]byte { return certificates(secure.Serving) })
	endpoint, err := server.Start(secure, shown, closeTime)
	if err != nil {
		return nil, err
	}
	return endpoint.Stop, nil
}

// dumpOnSignal logs what the daemon knows at each SIGUSR2.
func dumpOnSignal(ctx context.Context, d *daemon.Daemon) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	defer signal.Stop(signals)
	for {
		select {
		case <-signals:
			d.Dump(ctx)
		case <-ctx.Done():
			return
		}
	}
}
