package tool

import (
	"fmt"
	"time"

	leasev1 "k8s.io/api/coordination/v1"
)

// farAhead is how far a holder's clock may be ahead.
const farAhead = 10 * time.Second

// young is for how long a leader counts as new.
const young = time.Minute

// LeaseStatus is the lease by which a scheduler leads.
type LeaseStatus struct {
	Name           string     `json:"name"` // NAMESPACE/NAME
	Holder         string     `json:"holder"`
	RenewedSeconds float64    `json:"renewedSeconds"` // since the last renewal
	ValidSeconds   int32      `json:"validSeconds"`   // after a renewal
	HeldSeconds    float64    `json:"heldSeconds"`    // by this holder
	Acquired       *time.Time `json:"acquired,omitempty"`
	Holders        int32      `json:"holders"` // changes so far

	ends time.Time     // when it lapses unless it is renewed
	age  time.Duration // since it was made; 0 if that is not known
}

// leaseStatus says how it stands with a lease.
func leaseStatus(l *leasev1.Lease, now time.Time) *LeaseStatus {
	s := &LeaseStatus{Name: l.Namespace + "/" + l.Name, RenewedSeconds: now.Sub(renewed(l)).Seconds()}
	if h := l.Spec.HolderIdentity; h != nil {
		s.Holder = *h
	}
	if d := l.Spec.LeaseDurationSeconds; d != nil {
		s.ValidSeconds = *d
	}
	s.ends = renewed(l).Add(time.Duration(s.ValidSeconds) * time.Second)
	if made := l.CreationTimestamp; !made.IsZero() {
		s.age = now.Sub(made.Time)
	}
	if at := l.Spec.AcquireTime; at != nil {
		s.Acquired, s.HeldSeconds = &at.Time, now.Sub(at.Time).Seconds()
	}
	if n := l.Spec.LeaseTransitions; n != nil {
		s.Holders = *n
	}
	return s
}

// lapse says that nobody leads by the lease, "" if somebody does.
func (l *LeaseStatus) lapse() string {
	switch {
	case l.Holder == "":
		return fmt.Sprintf("nobody holds the lease %s", l.Name)
	case l.RenewedSeconds > float64(l.ValidSeconds):
		return fmt.Sprintf("the lease %s was not renewed for %s", l.Name, secondsText(l.RenewedSeconds))
	}
	return ""
}

// leader says who leads, or who did last.
func (l *LeaseStatus) leader() string {
	switch {
	case l.Holder == "":
		return "nobody"
	case l.lapse() != "":
		return fmt.Sprintf("nobody: %s held the lease until %s", l.Holder, l.ends.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s, for %s", l.Holder, ageText(l.HeldSeconds))
}

// unsteady reports whether the lease changed hands several times, and every few minutes since it was
// made.
func (l *LeaseStatus) unsteady() bool {
	return l.Holders >= manyHolders && l.age > 0 && l.age < time.Duration(l.Holders)*recentEnd
}

// delay says that the holder is late to renew the lease, "" if it is not. One that is well renews
// several times in half of the lease's duration.
func (l *LeaseStatus) delay() string {
	switch {
	case l.RenewedSeconds < -farAhead.Seconds():
		return fmt.Sprintf("the lease %s was renewed %s ahead of the API server's clock: %s has another, and whether it lives is not known", l.Name, secondsText(-l.RenewedSeconds), l.Holder)
	case l.RenewedSeconds <= float64(l.ValidSeconds)/2:
		return ""
	}
	return fmt.Sprintf("the lease %s was not renewed for %s of the %ds that it is valid: %s is gone, hangs, or hardly reaches the API server", l.Name, secondsText(l.RenewedSeconds), l.ValidSeconds, l.Holder)
}

// changes says that the holder is a new one after so many changes, "" if it is not.
func (l *LeaseStatus) changes(many int32) string {
	if l.Acquired == nil || l.HeldSeconds > young.Seconds() || l.Holders < many {
		return ""
	}
	return fmt.Sprintf("the lease %s changed hands %s; the last at %s, %s ago", l.Name, times(int(l.Holders)), l.Acquired.UTC().Format(time.RFC3339), ageText(l.HeldSeconds))
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
