package lease

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	configv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// shared is a lease in memory that several candidates reach.
type shared struct {
	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord // nil: there is no lease
	version int
	at      time.Time     // when the record was set
	delay   time.Duration // between a renewal that took effect and its reply
}

// candidate is one process's access to it.
type candidate struct {
	*shared
	identity string
	seen     int // the version that an update may replace
}

var leases = schema.GroupResource{Resource: "leases"}

func (c *candidate) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.record == nil {
		return nil, nil, apierrors.NewNotFound(leases, "kube-scheduler")
	}
	c.seen = c.version
	r := *c.record
	raw, err := json.Marshal(r)
	return &r, raw, err
}

func (c *candidate) Create(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.record != nil {
		return apierrors.NewAlreadyExists(leases, "kube-scheduler")
	}
	c.set(&r)
	c.seen = c.version
	return nil
}

func (c *candidate) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.record == nil || c.seen != c.version {
		return apierrors.NewConflict(leases, "kube-scheduler", nil)
	}
	c.set(&r)
	c.seen = c.version
	if delay := c.delay; delay > 0 {
		c.mu.Unlock()
		defer c.mu.Lock()
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *shared) set(r *resourcelock.LeaderElectionRecord) {
	s.version++
	s.record, s.at = r, time.Now()
}

func (s *shared) lastSet() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// restore replaces the lease by another, or by none.
func (s *shared) restore(r *resourcelock.LeaderElectionRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(r)
}

func (s *shared) slow(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

func (s *shared) versions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

func (s *shared) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record == nil {
		return "no lease"
	}
	return s.record.HolderIdentity
}

func (c *candidate) RecordEvent(string) {}
func (c *candidate) Identity() string   { return c.identity }
func (c *candidate) Describe() string   { return "kube-system/kube-scheduler" }

// applied is a lease of 15 s, renewed each 2 s, that a candidate has applied
// for. end asks it to stop, done is closed when it has.
func applied(t *testing.T, s *shared, identity string, over func() bool) (l *Lease, end func(), done chan struct{}) {
	l = &Lease{}
	if err := l.elect(&candidate{shared: s, identity: identity}, defaults()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done = make(chan struct{})
	go func() { defer close(done); l.Run(ctx, over) }()
	t.Cleanup(func() { cancel(); <-done })
	return l, cancel, done
}

func defaults() configv1alpha1.LeaderElectionConfiguration {
	duration := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	return configv1alpha1.LeaderElectionConfiguration{
		LeaseDuration: duration(15 * time.Second), RenewDeadline: duration(10 * time.Second), RetryPeriod: duration(2 * time.Second)}
}

func always() bool { return true }
func never() bool  { return false }

// Others count the lease's 15 s from when they see a renewal, which may be at
// once: so does the holder, however late the reply comes.
func TestHeldSinceTheRenewalWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{}
		l, _, _ := applied(t, s, "a", never)
		<-l.Won()
		synctest.Wait()
		s.slow(9 * time.Second)
		time.Sleep(5 * time.Second) // a renewal was sent, its reply is under way
		renewed := s.lastSet()
		s.slow(time.Hour) // no reply after that one
		if age := time.Since(renewed); age < 3*time.Second {
			t.Fatalf("renewed %s ago, want one that waits for its reply", age)
		}
		time.Sleep(time.Until(renewed.Add(13*time.Second - time.Millisecond)))
		if !l.Held() {
			t.Error("not held 13 s after the renewal was sent")
		}
		time.Sleep(2 * time.Millisecond)
		if l.Held() {
			t.Error("still held 13 s after the renewal was sent: the margin is gone")
		}
	})
}

// A machine that was suspended, or whose clock was set forward, does not go by
// the clock that stood still.
func TestNotHeldAfterSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, _ := applied(t, &shared{}, "a", never)
		<-l.Won()
		synctest.Wait()
		now := time.Now()
		for _, step := range []struct {
			renewal
			held bool
		}{
			{renewal{now, now.Round(0)}, true},
			{renewal{now, now.Round(0).Add(-time.Minute)}, false}, // the monotonic clock stood still
			{renewal{now.Add(-time.Minute), now.Round(0)}, false}, // the wall clock was set back
			{renewal{now, now.Round(0).Add(time.Hour)}, true},     // it was set back, and no time has passed
		} {
			l.renewed.Store(&step.renewal)
			if l.Held() != step.held {
				t.Errorf("renewed %+v: held is %t", step.renewal, l.Held())
			}
		}
	})
}

// A leader that stops does not give up the lease unless it knows that all work under
// the lease has ended. The lease runs out 15 s after the last renewal.
func TestLeaseRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{}
		a, end, done := applied(t, s, "a", never)
		<-a.Won()
		b, _, _ := applied(t, s, "b", always)
		end()
		<-done
		if a.Held() || s.holder() != "a" {
			t.Errorf("held %t, holder %q, want it left to run out", a.Held(), s.holder())
		}
		start := time.Now()
		<-b.Won()
		if waited := time.Since(start); waited < 13*time.Second {
			t.Errorf("the next leader waited %s only", waited)
		}
	})
}

// A lease that is given up is taken within a second, and who holds it still
// renews it no more often than the retry period says.
func TestLeaseIsHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{}
		a, end, done := applied(t, s, "a", always)
		<-a.Won()
		b, _, _ := applied(t, s, "b", always)
		before := s.versions()
		time.Sleep(time.Minute)
		if renewals := s.versions() - before; renewals < 30 || renewals > 35 {
			t.Errorf("%d renewals in a minute, want one each 2 s", renewals)
		}
		end()
		<-done
		start := time.Now()
		<-b.Won()
		if waited := time.Since(start); waited > time.Second {
			t.Errorf("the next leader waited %s", waited)
		}
	})
}

// A process that ends gives up its lease.
func TestLeaseIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{}
		a, end, done := applied(t, s, "a", always)
		<-a.Won()
		end()
		<-done
		if a.Held() || s.holder() != "" {
			t.Errorf("held %t, holder %q", a.Held(), s.holder())
		}
	})
}

// A process that stood still may be asked to stop at the moment when it goes on, when
// another has its lease: it gives up nothing then.
func TestLeaseOfAnotherIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{}
		a, end, done := applied(t, s, "a", always)
		<-a.Won()
		time.Sleep(time.Minute + time.Millisecond)
		synctest.Wait()
		now := metav1.Now()
		s.restore(&resourcelock.LeaderElectionRecord{HolderIdentity: "b", LeaseDurationSeconds: 15, LeaderTransitions: 3, AcquireTime: now, RenewTime: now})
		end()
		<-done
		if s.holder() != "b" {
			t.Errorf("holder %q: a gave up b's lease", s.holder())
		}
	})
}

// A lease that somebody deletes, or that a restored etcd does not have, is made
// again by who holds it, before anybody could miss a renewal.
func TestLeaseIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{}
		l, _, done := applied(t, s, "a", never)
		<-l.Won()
		time.Sleep(time.Minute)
		s.restore(nil)
		for range 60 {
			time.Sleep(time.Second)
			if !l.Held() {
				t.Fatal("not held")
			}
		}
		select {
		case <-done:
			t.Fatal("given up")
		default:
		}
		if s.holder() != "a" {
			t.Errorf("holder %q", s.holder())
		}
	})
}

// A restored etcd says that somebody else holds the lease, who is long gone.
// The leader cannot tell: it steps down at once, and does not take what it does
// not hold for its own to give up. The next applicant, under another name, gets
// the lease when the restored one has run out.
func TestRestoredLeaseOfSomebodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{}
		a, _, done := applied(t, s, "a", always)
		<-a.Won()
		time.Sleep(time.Minute)
		old := metav1.NewTime(time.Now().Add(-time.Hour))
		s.restore(&resourcelock.LeaderElectionRecord{HolderIdentity: "before", LeaseDurationSeconds: 15, AcquireTime: old, RenewTime: old})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if a.Held() {
			t.Error("held, though the lease names another")
		}
		start := time.Now()
		<-done
		if waited := time.Since(start); waited > 10*time.Second {
			t.Errorf("gave up after %s", waited)
		}
		if s.holder() != "before" {
			t.Errorf("holder %q", s.holder())
		}
		b, _, _ := applied(t, s, "b", always)
		<-b.Won()
		if waited := time.Since(start); waited > 30*time.Second || !b.Held() {
			t.Errorf("the next leader waited %s, held %t", waited, b.Held())
		}
	})
}

// A leader that cannot reach its lease at all does not think for longer than
// the lease lasts that it leads, and ends.
func TestUnreachableLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{}
		l, _, done := applied(t, s, "a", always)
		<-l.Won()
		s.slow(time.Hour)
		<-done
		if l.Held() || l.Check(&http.Request{}) != nil {
			t.Errorf("held %t, check %v", l.Held(), l.Check(nil))
		}
	})
}
