package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	leasev1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/edge/pin"
	"github.com/berth-scheduler/berth/edge/untrusted"
)

// leaseTime bounds the reading of leases for an answer that can do without.
const leaseTime = 10 * time.Second

// stalled says by the leases of schedulers why nothing is placed now. It is empty if one of them is
// held by a scheduler that is well, and if there is none; the note then says of a leader that is one
// of many how new it is. lease is NAMESPACE/NAME of the only one
// that counts; "" means the usual ones and all that a Berth has held. scheduler is the name that the
// pods ask for, "" if they ask for several: kube-scheduler is taken to serve no other than its own.
func stalled(ctx context.Context, config *rest.Config, lease, scheduler string) (said, note string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, leaseTime, errSilent)
	defer cancel()
	clock := &apiClock{}
	to := rest.CopyConfig(config)
	to.Wrap(untrusted.Answers(mostAnswer))
	to.Wrap(clock.watch)
	client, err := coordinationv1.NewForConfig(to)
	if err != nil {
		return "", "", err
	}
	leases, err := schedulersLeases(ctx, client, lease)
	if err != nil {
		return "", "", fmt.Errorf("reading the scheduler's lease: %w", cmp.Or(silence(ctx), err))
	}
	for _, l := range thatCount(ctx, to, leases, scheduler) {
		s := leaseStatus(l, clock.now())
		switch lapse, late := s.lapse(), s.delay(); {
		case lapse != "":
			said = cmp.Or(said, "nobody schedules: "+lapse)
		case late != "":
			said = cmp.Or(said, late)
		default:
			return "", s.changes(manyHolders), nil
		}
	}
	return said, "", nil
}

// thatCount returns the leases of those that may schedule the pods. Whom one may not ask about is
// taken for one that may bind. If none is left, as the pods that held leases are gone, all count.
func thatCount(ctx context.Context, config *rest.Config, leases []*leasev1.Lease, scheduler string) []*leasev1.Lease {
	if scheduler != "" && scheduler != v1.DefaultSchedulerName {
		leases = slices.DeleteFunc(leases, func(l *leasev1.Lease) bool {
			_, err := pin.Read(l)
			return err != nil
		})
	}
	var count []*leasev1.Lease
	for _, l := range leases[:min(mostElsewhere, len(leases))] {
		if of, why := trusted(ctx, config, []*leasev1.Lease{l}); len(of) > 0 || apierrors.IsForbidden(why) {
			count = append(count, l)
		}
	}
	if len(count) == 0 {
		return leases
	}
	return count
}

// schedulersLeases returns leases of schedulers, the one that was renewed last first. Those that
// may not be read are left out if there are others.
func schedulersLeases(ctx context.Context, client coordinationv1.LeasesGetter, lease string) (found []*leasev1.Lease, err error) {
	names := usualLeases
	if lease != "" {
		names = []string{lease}
	} else if list, unlisted := client.Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: pin.Label, Limit: mostReplicas}); unlisted == nil {
		for i := range list.Items {
			found = append(found, &list.Items[i])
		}
	}
	var unread error
	for _, full := range names {
		namespace, name, _ := strings.Cut(full, "/")
		l, err := client.Leases(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			l.Namespace, l.Name = namespace, name
			found = append(found, l)
		case !apierrors.IsNotFound(err):
			unread = errors.Join(unread, err)
		}
	}
	if len(found) == 0 {
		return nil, unread
	}
	slices.SortStableFunc(found, func(a, b *leasev1.Lease) int { return renewed(b).Compare(renewed(a)) })
	return found, nil
}
