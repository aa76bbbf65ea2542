package lease

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func ended(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A lease is vacant when its holder no longer relies on it, and before others
// may take it. A standby can read what was written between then and winning the lease.
func TestVacancyBeginsBeforeTheLeaseRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{}
		a, end, done := applied(t, s, "a", never)
		<-a.Won()
		b, _, _ := applied(t, s, "b", always)
		time.Sleep(time.Minute)
		first := b.vacancies.current()
		if ended(first.begun) {
			t.Error("vacant while it is held")
		}
		end() // it runs out
		<-done
		v := b.Vacant(t.Context())
		if a.Held() || ended(b.Won()) {
			t.Errorf("held by the former leader: %t; won: %t", a.Held(), ended(b.Won()))
		}
		start := time.Now()
		<-b.Won()
		if early := time.Since(start); early < time.Second || ended(v.Ended()) || b.Vacant(t.Context()) != v {
			t.Errorf("vacant %s before it was won; ended: %t", early, ended(v.Ended()))
		}
	})
}

// A lease that is not there, or was given up, is vacant at once, and no more when
// somebody has taken it.
func TestVacancyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{}
		l := &Lease{}
		if err := l.elect(&candidate{shared: s, identity: "b"}, defaults()); err != nil {
			t.Fatal(err)
		}
		if !l.Look(t.Context()) {
			t.Error("not vacant, though there is none")
		}
		v := l.Vacant(t.Context())
		a, end, done := applied(t, s, "a", always)
		<-a.Won()
		if l.Look(t.Context()) || !ended(v.Ended()) {
			t.Errorf("vacant though it is held; ended: %t", ended(v.Ended()))
		}
		end()
		<-done
		if !l.Look(t.Context()) {
			t.Error("not vacant, though it was given up")
		}
	})
}

// Somebody else has led while the leader could not see it, and has given the
// lease up. The former leader knows nothing of what was bound then, and does not
// lead again. A lease that was deleted in between, and made by the other one, says
// that it never changed hands.
func TestSupersededLeaderEnds(t *testing.T) {
	for _, transitions := range []int{7, 0} {
		synctest.Test(t, func(t *testing.T) {
			s := &shared{}
			a, _, done := applied(t, s, "a", always)
			<-a.Won()
			time.Sleep(time.Minute)
			now := metav1.Now()
			s.restore(&resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1, LeaderTransitions: transitions, AcquireTime: now, RenewTime: now})
			time.Sleep(30 * time.Second)
			if a.Held() || s.holder() != "" || !ended(done) {
				t.Errorf("%d transitions: held %t, holder %q; ended: %t", transitions, a.Held(), s.holder(), ended(done))
			}
		})
	}
}
