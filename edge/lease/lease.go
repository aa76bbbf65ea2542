package lease

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	configv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// grace is how long after its lease ran out a leader still counts as healthy,
// as in v1.36.
const grace = 20 * time.Second

// Identity names this process: the host, and something that no other process
// on it has.
func Identity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("host name: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// Lease is a lease to be won and kept.
type Lease struct {
	elector *leaderelection.LeaderElector
	retry   time.Duration
	won     chan struct{}
	ended   atomic.Bool // Run has come to its end, or is about to
}

// New returns a lease of that configuration, not yet applied for.
func New(client *rest.Config, c configv1alpha1.LeaderElectionConfiguration, identity string) (*Lease, error) {
	lock, err := resourcelock.NewFromKubeconfig(c.ResourceLock, c.ResourceNamespace, c.ResourceName,
		resourcelock.ResourceLockConfig{Identity: identity}, client, c.RenewDeadline.Duration)
	if err != nil {
		return nil, fmt.Errorf("lease %s/%s: %w", c.ResourceNamespace, c.ResourceName, err)
	}
	l := &Lease{retry: c.RetryPeriod.Duration, won: make(chan struct{})}
	l.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: "kube-scheduler", ReleaseOnCancel: true,
		LeaseDuration: c.LeaseDuration.Duration, RenewDeadline: c.RenewDeadline.Duration, RetryPeriod: c.RetryPeriod.Duration,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(l.won) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	return l, nil
}

// Run applies for the lease and keeps it, until it is lost or the context
// ends; then it gives the lease up. Whatever the lease guards must have ended
// before the context does.
func (l *Lease) Run(ctx context.Context) {
	defer l.ended.Store(true)
	l.elector.Run(ctx)
}

// Won is closed when the lease is held for the first time.
func (l *Lease) Won() <-chan struct{} { return l.won }

// Held says whether nobody else can hold the lease now, nor in the next moment:
// the last renewal is young enough, also after this process has been stopped
// for a while.
func (l *Lease) Held() bool {
	return !l.ended.Load() && l.elector.IsLeader() && l.elector.Check(-l.retry) == nil
}

// Name and Check make the lease a health check: it fails when this process
// believes to lead though its lease ran out a while ago.
func (l *Lease) Name() string { return "leaderElection" }

// Check is for Name.
func (l *Lease) Check(*http.Request) error { return l.elector.Check(grace) }
