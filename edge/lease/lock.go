package lease

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// renewal is when a renewal was sent, by two clocks: one that is never set but
// stands still while the machine is suspended, and one that goes on then but
// may be set.
type renewal struct{ monotonic, wall time.Time }

func newRenewal(now time.Time) *renewal { return &renewal{now, now.Round(0)} }

// age is the longer of the times that the two clocks tell.
func (r *renewal) age(now time.Time) time.Duration {
	return max(now.Sub(r.monotonic), now.Round(0).Sub(r.wall))
}

var errSuperseded = errors.New("another scheduler has held the lease in between")

var errNotOver = errors.New("requests that the lease guards may not have ended: the lease is not released and will expire")

// lock is the elector's access to the lease. It notes when the renewals were
// sent that took effect, and lets the lease be given up only when that is safe.
type lock struct {
	resourcelock.Interface
	lease *Lease
}

// Get reads the lease. A process that has held the lease, and finds that it does not
// hold it any more, ends: another may have held it since, and the watches may not show
// yet what that one did. The record does not tell: a lease that was deleted and made
// anew counts its terms anew, too.
func (k lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := k.Interface.Get(ctx)
	if err == nil && r.HolderIdentity != k.Identity() && k.lease.renewed.Load() != nil {
		k.lease.superseded.Store(true)
		k.lease.ended.Store(true)
	}
	k.lease.vacancies.read(r, raw, err, k.Identity(), k.lease.handovers.last())
	return r, raw, err
}

// Create makes the lease, held by this process.
func (k lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	sent := newRenewal(time.Now())
	err := k.Interface.Create(ctx, r)
	if err == nil {
		k.lease.renewed.Store(sent)
	}
	return err
}

// Update takes, renews or gives up the lease. A renewal that need not be sent
// yet is not: the elector asks for one each time that a candidate would look.
func (k lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	sent := newRenewal(time.Now())
	if r.HolderIdentity != "" && k.lease.renewedLately(sent.monotonic) {
		return nil
	}
	// The elector gives up by what it saw last, which may be this process's own renewal,
	// though the version that it replaces is another's.
	if k.lease.superseded.Load() || r.HolderIdentity != "" && k.lease.ended.Load() {
		return errSuperseded
	}
	if r.HolderIdentity == "" {
		k.lease.ended.Store(true)
		if !k.lease.over() {
			return errNotOver
		}
	}
	err := k.Interface.Update(ctx, r)
	if err == nil {
		k.lease.renewed.Store(sent)
	}
	return err
}
