package lease

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// give has another choose who is to hold the lease.
func (s *shared) give(holder, preferred string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(&resourcelock.LeaderElectionRecord{HolderIdentity: holder, PreferredHolder: preferred,
		LeaseDurationSeconds: 5, RenewTime: metav1.Now(), AcquireTime: metav1.Now()})
}

// A lease that another gives is not taken, though it is free. Once it is given it is
// vacant, as nobody else relies on it, and is kept until another holder is preferred.
func TestLeaseIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{}
		l := &Lease{coordinated: true}
		if err := l.elect(&candidate{shared: s, identity: "b"}, defaults()); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { defer close(done); l.Run(ctx, always) }()
		time.Sleep(time.Minute)
		if ended(l.Won()) || s.holder() != "no lease" {
			t.Fatal("a lease that was not given is taken")
		}
		s.give("a", "")
		time.Sleep(20 * time.Second)
		if ended(l.Won()) || l.Held() {
			t.Fatal("the lease of another is taken when it has run out")
		}
		s.give("b", "")
		<-l.Won()
		if v := l.Vacant(t.Context()); !l.Held() || ended(v.Ended()) {
			t.Errorf("given: held %t, the vacancy ended %t", l.Held(), ended(v.Ended()))
		}
		time.Sleep(time.Minute)
		if !l.Held() {
			t.Error("not kept")
		}
		s.give("b", "c")
		<-done
		if l.Held() || s.holder() == "b" {
			t.Errorf("another is preferred: held %t, by %q", l.Held(), s.holder())
		}
	})
}

// The lease may be given before it was ever read.
func TestLeaseIsGivenFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{}
		s.give("b", "")
		l := &Lease{coordinated: true}
		if err := l.elect(&candidate{shared: s, identity: "b"}, defaults()); err != nil {
			t.Fatal(err)
		}
		if !l.Look(t.Context()) {
			t.Error("a lease that was given is not vacant")
		}
		if v := l.Vacant(t.Context()); ended(v.Ended()) {
			t.Error("the vacancy has ended")
		}
	})
}
