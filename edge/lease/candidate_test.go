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

// A lease that is given up by another and given to this process at once is vacant when
// that is read.
func TestLeaseIsGivenAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{}
		l := &Lease{coordinated: true}
		if err := l.elect(&candidate{shared: s, identity: "b"}, defaults()); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { defer close(done); l.Run(ctx, always) }()
		s.give("a", "")
		time.Sleep(2 * time.Second)
		s.give("b", "")
		<-l.Won()
		if v := l.vacancies.current(); !ended(v.begun) || ended(v.Ended()) {
			t.Errorf("the vacancy has begun: %t, ended: %t", ended(v.begun), ended(v.Ended()))
		}
		cancel()
		<-done
	})
}

// What was read in a vacancy counts for nothing once the lease is given: its former
// holder may have renewed it, and written, while it could not be read.
func TestGivenLeaseEndsAVacancy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVacancies(2 * time.Second)
		v.coordinated = true
		read := func(holder, raw string) {
			v.read(&resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: 15}, []byte(raw), nil, "b", nil)
		}
		read("a", "1")
		before := v.current()
		time.Sleep(14 * time.Second)
		read("b", "5")
		read("b", "6")
		now := v.current()
		if !ended(before.begun) || !ended(before.ended) || !ended(now.begun) || ended(now.ended) {
			t.Errorf("before: begun %t, ended %t; now: begun %t, ended %t", ended(before.begun), ended(before.ended), ended(now.begun), ended(now.ended))
		}
		read("c", "7")
		if !ended(now.ended) || ended(v.current().begun) {
			t.Error("the lease is another's, and vacant")
		}
		read("b", "8")
		if !ended(v.current().begun) {
			t.Error("given again, and not vacant")
		}
	})
}
