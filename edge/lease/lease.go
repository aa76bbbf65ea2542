package lease

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	configv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// grace is how long after its lease ran out a leader still counts as healthy,
// as in kube-scheduler.
const grace = 20 * time.Second

// glance is how often a candidate looks whether the lease is free, if that is
// less than the retry period. client-go waits up to 2.2 times as long between
// two looks, so that who gives the lease up is followed within 0.7 s.
const glance = 300 * time.Millisecond

// Identity names this process: the host, and something that no other process
// on it has.
func Identity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("host name: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// Lease is a lease to be won and kept, once: a process that has lost it does
// not lead again under the same identity.
type Lease struct {
	elector *leaderelection.LeaderElector
	events  record.EventBroadcaster // nil: none
	core    corev1.EventsGetter
	safe    time.Duration // how long after a renewal was sent the lease counts as held
	fresh   time.Duration // how long after a renewal was sent the next one need not be
	renewed atomic.Pointer[renewal]
	won     chan struct{}
	ended   atomic.Bool // Run has come to its end, or is about to
	// superseded: it was seen that this process does not hold the lease any more.
	superseded atomic.Bool
	over       func() bool // whether all has ended that the lease guarded

	// coordinated: another chooses among the candidates who is to hold the lease.
	coordinated bool
	candidate   *leaseCandidate // nil where it goes to whoever applies first
	lock        resourcelock.Interface
	vacancies   *vacancies
	handovers   handovers
	// certificates are those of this process's endpoint; nil: there is none.
	certificates func() [][]byte
}

// New returns a lease of that configuration, not yet applied for. source is the
// component that its events name. as is what the candidate says of itself, nil where the
// lease goes to whoever applies first.
func New(client *rest.Config, c configv1alpha1.LeaderElectionConfiguration, identity, source string, as *Candidacy) (*Lease, error) {
	config := rest.AddUserAgent(rest.CopyConfig(client), "leader-election")
	config.Timeout = max(c.RenewDeadline.Duration/2, time.Second) // one request that hangs does not lose the lease
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("lease %s/%s: %w", c.ResourceNamespace, c.ResourceName, err)
	}
	l := &Lease{core: clients.CoreV1(), events: record.NewBroadcaster()}
	if as != nil {
		l.coordinated = true
		if l.candidate, err = newCandidate(client, c, identity, as); err != nil {
			return nil, err
		}
	}
	lock, err := resourcelock.New(c.ResourceLock, c.ResourceNamespace, c.ResourceName, nil, clients.CoordinationV1(),
		resourcelock.ResourceLockConfig{
			Identity:      identity,
			EventRecorder: l.events.NewRecorder(scheme.Scheme, v1.EventSource{Component: source}),
		})
	if err != nil {
		return nil, fmt.Errorf("lease %s/%s: %w", c.ResourceNamespace, c.ResourceName, err)
	}
	if of, ok := lock.(*resourcelock.LeaseLock); ok { // there is no other
		of.Client = leaseGetter{of.Client, l}
	}
	return l, l.elect(lock, c)
}

// elect prepares the election by a lock.
func (l *Lease) elect(by resourcelock.Interface, c configv1alpha1.LeaderElectionConfiguration) error {
	// Others go by the seconds that the record says.
	duration := c.LeaseDuration.Truncate(time.Second)
	l.safe = duration - min(c.RetryPeriod.Duration, duration/2)
	l.lock, l.vacancies = lock{by, l}, newVacancies(c.RetryPeriod.Duration)
	l.vacancies.coordinated = l.coordinated
	retry := min(c.RetryPeriod.Duration, glance)
	l.fresh = c.RetryPeriod.Duration - retry
	l.won = make(chan struct{})
	var err error
	l.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l.lock, Name: "kube-scheduler", ReleaseOnCancel: true, Coordinated: l.coordinated,
		LeaseDuration: c.LeaseDuration.Duration, RenewDeadline: c.RenewDeadline.Duration, RetryPeriod: retry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(l.won) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	return nil
}

// Run applies for the lease and keeps it, until it is lost or the context
// ends. Then it gives the lease up, if over says that all has ended that the
// lease guarded; else the lease runs out by itself, and nobody has it before.
func (l *Lease) Run(ctx context.Context, over func() bool) {
	defer l.ended.Store(true)
	if l.events != nil {
		l.events.StartRecordingToSink(&corev1.EventSinkImpl{Interface: l.core.Events("")})
		defer l.events.Shutdown()
	}
	l.over = over
	if l.candidate != nil {
		standing := make(chan struct{})
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			defer close(standing)
			l.candidate.run(ctx)
		}()
		defer func() {
			cancel()
			<-standing
		}()
	}
	l.elector.Run(ctx)
}

// Checks are the health checks of the lease. Ready holds those, too, that say whether this
// process can apply.
func (l *Lease) Checks() (healthy, ready []healthz.HealthChecker) {
	healthy = []healthz.HealthChecker{l}
	if l.candidate == nil {
		return healthy, healthy
	}
	return healthy, []healthz.HealthChecker{l, l.candidate}
}

// Won is closed when the lease is held for the first time.
func (l *Lease) Won() <-chan struct{} { return l.won }

// Held says whether nobody else can hold the lease now, nor in the next moment:
// the last renewal was sent not long ago. When its reply came says nothing:
// others may have seen the renewal at once.
func (l *Lease) Held() bool {
	r := l.renewed.Load()
	return r != nil && !l.ended.Load() && l.elector.IsLeader() && r.age(time.Now()) < l.safe
}

// renewedLately says whether this process holds the lease by a renewal that was
// sent less than a retry period ago, by when its next look is due.
func (l *Lease) renewedLately(now time.Time) bool {
	r := l.renewed.Load()
	return r != nil && l.elector.IsLeader() && r.age(now) < l.fresh
}

// Name and Check make the lease a health check: it fails when this process
// believes to lead though its lease ran out a while ago.
func (l *Lease) Name() string { return "leaderElection" }

// Check is for Name.
func (l *Lease) Check(*http.Request) error { return l.elector.Check(grace) }
