package daemon

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/compat"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/extender"
	"github.com/berth-scheduler/berth/edge/kube"
	"github.com/berth-scheduler/berth/edge/lease"
	"github.com/berth-scheduler/berth/edge/logs"
	"github.com/berth-scheduler/berth/edge/loop"
	"github.com/berth-scheduler/berth/edge/metrics"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/shadow"
	"github.com/berth-scheduler/berth/edge/trace"
)

// errLeaseLost is why a scheduler ends that was not asked to.
var errLeaseLost = errors.New("leader election lost")

// How long the parts of a stop may take; together they stay below the 30 s
// that a pod has. Where nothing is under way they take no time.
const (
	drainTime    = 20 * time.Second       // bindings that were sent
	flushTime    = 500 * time.Millisecond // events and status patches
	handOverTime = 300 * time.Millisecond // until the watches show what was written
	releaseTime  = time.Second            // the lease; requests to the endpoint
)

// stuckLimit is how long a step of the loop may take.
const stuckLimit = 30 * time.Second

// stuckLogTime is how long the line may take that says so.
const stuckLogTime = time.Second

// GCPercent is how much the heap may grow between collections, where GOGC does
// not say. Most of the heap is the picture of the cluster, which stays; what is
// decoded on the way to it soon goes.
const GCPercent = 200

// mostGrowth is the growth of the heap, in bytes, that no percentage above 100 exceeds.
const mostGrowth = 256 << 20

// GCPercentOf returns GCPercent, or less for a heap of which many bytes are live: large
// objects that come all at once make garbage of their own size.
func GCPercentOf(live uint64) int {
	return int(max(100, min(GCPercent, mostGrowth*100/max(live, 1))))
}

// StartGCPercent is GCPercent until the machine knows the cluster: the most memory that
// a start takes is while the picture of the cluster grows.
const StartGCPercent = 100

// Daemon is a scheduler with all its parts.
type Daemon struct {
	logger   klog.Logger
	config   atomic.Pointer[config.Config] // in effect
	profiles []*profile.Profile            // in effect; Reload's own
	shadow   bool
	shadowed *shadow.Shadow // nil: it is none
	identity string
	started  time.Time
	recorded bool
	reloaded atomic.Pointer[reload]    // nil: never
	applied  atomic.Pointer[time.Time] // when a reload succeeded last; nil: never
	machine  *machine.Machine
	watched  []object.Kind // beside those that are always
	loop     *loop.Loop
	executor *kube.Executor
	watcher  *kube.Watcher
	hosts    *compat.Hosts // nil: there are no hosted plugins
	metrics  *metrics.Metrics
	logs     *logs.Logger
	lease    *lease.Lease // nil without leader election
	// over: all that the lease guards has ended, and what came of it is known.
	over          atomic.Bool
	watchdog      *loop.Watchdog
	observer      func(loop.Step)     // nil: none
	whenSynced    func()              // nil: none
	recorder      *recording.Recorder // nil: nothing is recorded
	recordMetrics *recordMetrics      // nil: nothing is recorded
	records       *records.Recorder
	history       *records.History
	api           http.Handler // nothing but reads

	refreshing sync.Mutex // the metrics

	marked  chan struct{} // closed when it is first known what the machine has to know to lead
	synced  chan struct{} // closed when the machine knows the cluster
	leads   chan struct{} // closed when the machine may decide
	settled atomic.Bool   // the machine may decide, or the lease is left before it may
	stopped chan struct{} // closed when the stop begins
}

// Options are what a Daemon is made of.
type Options struct {
	Logger   klog.Logger
	Config   *config.Config
	API      *rest.Config
	Profiles []*profile.Profile
	// Hosts run the hosted plugins of the profiles; nil: there are none.
	Hosts *compat.Hosts
	// Identity is the name under which the lease is held.
	Identity string
	// Seed decides among nodes with the same score.
	Seed uint64
	// Candidacy is what this process says of itself where the API server chooses the leader,
	// nil where the lease goes to whoever applies first.
	Candidacy *lease.Candidacy
	// These are machine.Options'.
	PodGroups, GroupPlacements, HideExpectedNode, WaitForEvictions, WaitOutBackoff bool
	// PodFields returns a pod without the fields that are not to be read; nil: all are.
	PodFields func(*v1.Pod) *v1.Pod
	// MaxUnschedulable is the longest time that a pod stays unschedulable.
	MaxUnschedulable time.Duration
	// Register registers the daemon's metrics.
	Register func(...basemetrics.Registerable)
	// Wrap, when set, puts something between the loop and the machine.
	Wrap func(loop.Machine) loop.Machine
	// ExtendersVia, when set, is the way to the extenders.
	ExtendersVia http.RoundTripper
	// Observe, when set, sees each step after it, on the loop's goroutine.
	Observe func(loop.Step)
	// Synced, when set, is called when the machine knows the cluster.
	Synced func()
	// Build is what the process says of itself to those who ask for its capabilities.
	Build api.Build
	// RecordsBytes is how much memory the records of pods may take.
	RecordsBytes int
	// CopyProfiles makes the profiles of the configuration in effect anew, for a copy
	// of the machine.
	CopyProfiles func(*config.Config) ([]*profile.Profile, error)
	// Shadow has the daemon compare and schedule nothing; ShadowTo, when set, gets
	// the differences.
	Shadow   bool
	ShadowTo *shadow.File
	// Traces has attempts traced; nil: they are not.
	Traces oteltrace.TracerProvider
	// Record has the inputs of the machine recorded; nil: they are not. Start fills in
	// the header, except for the version and the feature gates.
	Record *recording.Options
}

// New returns a daemon that does not run yet.
func New(o Options) (*Daemon, error) {
	c := o.Config
	d := &Daemon{logger: o.Logger, profiles: o.Profiles, shadow: o.Shadow, identity: o.Identity, started: time.Now(), recorded: o.Record != nil, hosts: o.Hosts, logs: logs.New(o.Logger), observer: o.Observe, whenSynced: o.Synced,
		marked: make(chan struct{}), synced: make(chan struct{}), leads: make(chan struct{}), stopped: make(chan struct{})}
	d.config.Store(c)
	var err error
	if *c.LeaderElection.LeaderElect {
		if d.lease, err = lease.New(o.API, c.LeaderElection, o.Identity, o.Profiles[0].Name, o.Candidacy); err != nil {
			return nil, err
		}
	}
	clients, err := kube.NewClients(o.API, func() bool { return d.lease == nil || d.lease.Held() })
	if err != nil {
		return nil, err
	}
	extenders, err := extender.New(c.Extenders)
	if err != nil {
		return nil, err
	}
	if o.ExtendersVia != nil {
		extenders.Via(o.ExtendersVia)
	}
	options := machine.Options{
		Check:    config.CheckInvariants(),
		Profiles: o.Profiles, Extenders: extenders.Machine(), Seed: o.Seed, Workers: workers(c),
		InitialBackoff:   time.Duration(*c.PodInitialBackoffSeconds) * time.Second,
		MaxBackoff:       time.Duration(*c.PodMaxBackoffSeconds) * time.Second,
		MaxUnschedulable: o.MaxUnschedulable,
		PodGroups:        o.PodGroups, GroupPlacements: o.GroupPlacements,
		HideExpectedNode: o.HideExpectedNode, WaitForEvictions: o.WaitForEvictions, WaitOutBackoff: o.WaitOutBackoff,
		Explain:  d.logs.Explain,
		StepDone: d.logs.StepDone,
		Panicked: d.logs.Panicked,
	}
	d.machine, d.watched = machine.New(options), options.Reads()
	d.logs.Watch(d.machine)
	d.records = records.New(o.RecordsBytes)
	d.records.Watch(d.machine)
	d.history = records.NewHistory(d.records)
	d.api = d.newAPI(&o, options, clients.Read)
	logs.Started(o.Logger, o.Profiles, extenders.Machine())
	names := make([]string, len(o.Profiles))
	for i, p := range o.Profiles {
		names[i] = p.Name
	}
	d.metrics = metrics.New(o.Register, names)
	d.metrics.Time(o.Profiles)
	if d.machine.PlacesGroups() {
		d.metrics.Groups(o.Register)
	}
	d.executor = kube.NewExecutor(clients, func(e machine.Event) { d.loop.Report(e) }, o.Logger.WithName("kube"))
	owned := loop.Machine(d.machine)
	if o.Traces != nil {
		owned = trace.New(d.machine, o.Traces, d.metrics)
	}
	if o.Shadow {
		o.Logger.Info("Running as a shadow: nothing is scheduled, and nothing is written")
		d.shadowed = shadow.New(d.machine, shadow.Options{Logger: o.Logger, Config: c, Register: o.Register, Synced: d.isSynced, File: o.ShadowTo})
		owned = d.shadowed
	}
	if o.Wrap != nil {
		owned = o.Wrap(owned)
	}
	d.loop = loop.New(owned, d.executor, loop.Options{Logger: o.Logger, Observe: d.observe, Rest: d.records.Flush, Panicked: d.metrics.Panicked})
	d.watchdog = loop.NewWatchdog(d.loop, stuckLimit)
	d.watcher = kube.NewWatcher(clients, d.watched, d.loop.Post, o.Logger)
	d.executor.PodFields(o.PodFields)
	d.watcher.PodFields(o.PodFields)
	if !o.Shadow { // whose machine knows other things than it is told
		d.watcher.AuditCore(names, d.known)
	}
	if len(extenders) > 0 {
		d.executor.Extend(extenders, extenders.Machine())
		d.watcher.Extend(extenders)
		d.warnUnverified()
	}
	if h := o.Hosts; h != nil {
		h.Connect(d.machine, d.loop)
		d.executor.Host(h)
		d.watcher.Host(h)
		d.watchdog = loop.NewWatchdog(d.loop, stuckLimit+2*h.Timeout())
	}
	return d, d.startRecord(&o)
}

// warnUnverified names the extenders that anybody on the way may pose as.
func (d *Daemon) warnUnverified() {
	extenders := d.config.Load().Extenders
	for i := range extenders {
		if extender.Unverified(&extenders[i]) {
			d.logger.Info("Not verifying the certificate of an extender: enableHTTPS is set and tlsConfig names no CA", "extender", i)
		}
	}
}

// Run works until the context ends or the lease is lost, which is an error. It
// then stops what it has begun, so far as that is possible; stopEndpoint, when
// set, is called on the way.
func (d *Daemon) Run(ctx context.Context, stopEndpoint func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer d.endRecord()
	defer d.executor.Abandon()
	loopCtx, endLoop := context.WithCancel(context.Background())
	defer endLoop()
	go d.loop.Run(loopCtx)
	go d.sample(ctx)
	if !delayed(d.config.Load()) {
		go d.begin(ctx)
	}

	leaseCtx, leave := context.WithCancelCause(context.Background())
	defer leave(nil)
	go d.watchdog.Run(ctx, func(s *loop.Stuck) { d.stuck(s, leave) })
	left := d.elect(ctx, leaseCtx, leave)
	select {
	case <-left:
		d.loop.Lead(false)
		err := cmp.Or(context.Cause(leaseCtx), errLeaseLost)
		d.logger.Error(err, "Leaderelection lost")
		return err
	case <-ctx.Done():
	}
	d.logger.Info("Requested to terminate, exiting")
	close(d.stopped)
	d.drain()
	endLoop()
	leave(nil)
	d.close(left, stopEndpoint)
	d.logger.Info("Stopped")
	return nil
}

// stuck says where the loop is stuck, with the stacks of all goroutines, and
// leaves the lease to another: it runs out, as nobody can tell what became of
// the bindings that were sent. It does so also where the loop is stuck because nobody
// reads the log.
func (d *Daemon) stuck(s *loop.Stuck, leave context.CancelCauseFunc) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		d.logger.Error(s, "Scheduling loop is stuck", "step", s.Step, "for", s.For, "stacks", string(stacks))
	}()
	select {
	case <-logged:
	case <-time.After(stuckLogTime):
	}
	leave(s)
}

// delayed says whether only the leader watches the cluster.
func delayed(c *config.Config) bool {
	return c.DelayCacheUntilActive && *c.LeaderElection.LeaderElect
}

// watch tells the machine about the cluster until the context ends.
func (d *Daemon) watch(ctx context.Context) {
	d.logger.Info("Starting informers and waiting for sync...")
	go func() { _ = d.watcher.Probe(ctx) }() // it logs what it sees
	go d.watcher.Audit(ctx)
	go func() {
		if d.hosts != nil && (!d.startHosts(ctx) || !d.hosts.WaitForSync(ctx)) {
			return
		}
		if d.watcher.WaitForSync(ctx) && d.loop.Inspect(ctx, func() {}) == nil {
			close(d.synced)
			if d.whenSynced != nil {
				d.whenSynced()
			}
			d.logger.V(3).Info("Handlers synced")
			d.logger.Info("Sync completed")
		}
	}()
	d.watcher.Run(ctx)
}

// startHosts starts what hosted plugins watch; false where it cannot be.
func (d *Daemon) startHosts(ctx context.Context) bool {
	if err := d.hosts.Start(ctx); err != nil {
		d.logger.Error(err, "Failed to start the informers of hosted plugins; no pod is scheduled")
		return false
	}
	return true
}

// elect applies for the lease once the cluster is known, and lets the machine decide when
// the lease is won and what the former leader wrote is known. With delayCacheUntilActive it
// is the other way round, as in kube-scheduler: the cluster is watched once the lease is
// won. A holder of the lease that cannot read what it has to know first leaves the lease to
// another process. The channel is closed when the lease is lost or has been left, as keep
// ended; never without leader election.
func (d *Daemon) elect(ctx, keep context.Context, leave context.CancelCauseFunc) <-chan struct{} {
	left := make(chan struct{})
	go func() {
		if d.catchUp(ctx) {
			d.lead(ctx)
		}
	}()
	if d.lease == nil {
		return left
	}
	go func() {
		defer close(left)
		if !delayed(d.config.Load()) {
			ready(keep, d.synced)
		}
		d.lease.Run(keep, d.over.Load) // with keep ended it only ends what New began
	}()
	go func() {
		if !ready(ctx, d.lease.Won()) {
			return
		}
		if delayed(d.config.Load()) {
			go d.begin(ctx)
		}
		look := time.NewTicker(time.Second)
		defer look.Stop()
		d.leaveUnread(ctx, look.C, leave)
	}()
	return left
}

// isSynced tells whether the machine knows the cluster.
func (d *Daemon) isSynced() bool {
	select {
	case <-d.synced:
		return true
	default:
		return false
	}
}

// ready waits for the channel to be closed. It reports false when the context
// ended first.
func ready(ctx context.Context, c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}

// lead lets the machine decide until the context ends. While the lease is not
// sure the executor takes nothing; the loop looks again when it is reminded.
func (d *Daemon) lead(ctx context.Context) {
	reminder := time.NewTicker(time.Second)
	defer reminder.Stop()
	for ctx.Err() == nil {
		d.loop.Lead(true)
		select {
		case <-reminder.C:
		case <-ctx.Done():
		}
	}
	d.loop.Lead(false)
}

// drain ends the work: no new decision, bindings under way come to their end,
// their events are published.
func (d *Daemon) drain() {
	d.loop.Lead(false)
	within(drainTime, func(ctx context.Context) {
		d.executor.Stop(ctx, func() bool { return d.allKnown(ctx) })
		d.over.Store(d.allKnown(ctx))
	})
	within(flushTime, func(ctx context.Context) {
		_ = d.loop.Inspect(ctx, func() {}) // the outcomes have been taken in
		d.executor.Close(ctx)
	})
	if d.lease != nil {
		within(handOverTime, d.handOver)
	}
}

// allKnown tells whether it is known of all that was sent what came of it.
func (d *Daemon) allKnown(ctx context.Context) bool {
	if d.executor.Counters().Unanswered > 0 {
		return false
	}
	unknown := 0
	err := d.loop.Inspect(ctx, func() { unknown = d.machine.UnknownBindings() })
	return err == nil && unknown == 0
}

// close waits for the lease to be released and the endpoint to close.
func (d *Daemon) close(released <-chan struct{}, stopEndpoint func()) {
	within(releaseTime, func(ctx context.Context) {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			if stopEndpoint != nil {
				stopEndpoint()
			}
		}()
		if d.lease != nil && (!ready(ctx, released) || !d.over.Load()) {
			d.logger.Info("Lease is not released and will expire", "outcomesKnown", d.over.Load())
		}
		select {
		case <-closed:
		case <-ctx.Done():
		}
	})
}

func within(d time.Duration, f func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	f(ctx)
}

// inCharge tells whether this process schedules.
func (d *Daemon) inCharge() bool { return d.lease == nil || d.lease.Held() }
