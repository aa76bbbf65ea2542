package lease

import (
	"bytes"
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Vacancy is a time in which nobody else relies on the lease: it is free, or its
// holder has not renewed it for so long that it sends nothing any more. What was
// read of the cluster in a vacancy shows all that former holders wrote, as long
// as the vacancy lasts.
type Vacancy struct {
	begun chan struct{}
	ended chan struct{}
	// Shown is what the leader said that gave the lease up: who knows the cluster
	// up to these resource versions, by resource, knows what it knew and wrote. Nil:
	// nothing was said.
	Shown map[string]string
}

// Ended is closed when somebody else has got the lease, or has renewed it.
func (v *Vacancy) Ended() <-chan struct{} { return v.ended }

// vacancies follows who holds the lease, as this process reads it.
type vacancies struct {
	margin time.Duration // how long before its lease runs out a holder stops to rely on it
	mu     sync.Mutex
	record []byte // the last that was read; nil: none was
	now    *Vacancy
	// coordinated: another one chooses who holds the lease. own: it is this process, as
	// far as was read.
	coordinated, own bool
}

func newVacancies(margin time.Duration) *vacancies {
	return &vacancies{margin: margin, now: newVacancy(nil)}
}

func newVacancy(shown map[string]string) *Vacancy {
	return &Vacancy{begun: make(chan struct{}), ended: make(chan struct{}), Shown: shown}
}

// read takes in what was read of the lease, and what the last leader said.
func (v *vacancies) read(r *resourcelock.LeaderElectionRecord, raw []byte, err error, self string, shown map[string]string) {
	left := time.Duration(0)
	switch {
	case apierrors.IsNotFound(err):
		raw = []byte{}
	case err != nil:
		return
	case r.HolderIdentity == self:
		v.given()
		return
	case r.HolderIdentity != "":
		duration := time.Duration(r.LeaseDurationSeconds) * time.Second
		left = duration - min(v.margin, duration/2)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.record != nil && bytes.Equal(v.record, raw) {
		return
	}
	v.record, v.own = raw, false
	close(v.now.ended)
	next := newVacancy(nil)
	v.now = next
	if left == 0 {
		if err == nil {
			next.Shown = shown
		}
		close(next.begun)
		return
	}
	time.AfterFunc(left, func() { close(next.begun) })
}

// given takes in that this process holds the lease. Where another one chose it, a vacancy
// begins: nobody else holds the lease. It is a new one, as a former holder may have
// renewed the lease, and written, since the record that was read last.
func (v *vacancies) given() {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.own || !v.coordinated:
		return
	case v.record != nil:
		close(v.now.ended)
		v.now = newVacancy(nil)
	}
	v.record, v.own = []byte{}, true
	close(v.now.begun)
}

func (v *vacancies) current() *Vacancy {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// Vacant waits for a vacancy. It is nil when the context ended first.
func (l *Lease) Vacant(ctx context.Context) *Vacancy {
	for {
		v := l.vacancies.current()
		select {
		case <-v.begun:
			return v
		case <-v.ended:
		case <-ctx.Done():
			return nil
		}
	}
}

// Look reads the lease before it is applied for, and tells whether it is vacant.
func (l *Lease) Look(ctx context.Context) bool {
	_, _, _ = l.lock.Get(ctx) // what cannot be read is not vacant
	select {
	case <-l.vacancies.current().begun:
		return true
	default:
		return false
	}
}
