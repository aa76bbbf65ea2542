package machine

import (
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
)

// quotas writes what the queues of ElasticQuotas use to their status, and reports what is
// wrong with them.
type quotas struct {
	*step
	profiles profiles
	leads    bool                      // a ScheduleOne came, so this process is the leader
	asked    map[string]object.Amounts // by identity: statuses that were asked to be written, and are not shown yet
	reported map[string]string         // by identity: faults that were reported last
	linked   uint64                    // the revision of the queues as of report
}

// identity returns a text that differs for two ElasticQuotas, also if one has the name of
// the other that was deleted.
func identity(q *object.ElasticQuota) string { return q.Key() + "/" + string(q.UID) }

// write emits a patch for each ElasticQuota whose queue changed and uses something else now
// than the API shows, unless that was asked to be written. Nothing is written before the
// first ScheduleOne: until then another process may be the leader.
func (w *quotas) write() {
	if !w.leads {
		return
	}
	w.report()
	for _, q := range quota.Of(w.table).TakeChanged() {
		used := q.Used()
		shown := q.Quota.Used
		if asked, isAsked := w.asked[identity(q.Quota)]; isAsked {
			shown = asked // before long
		}
		if slices.Equal(shown, used) {
			continue
		}
		w.asked[identity(q.Quota)] = used
		w.emit(PatchQuotaStatus{Quota: q.Quota, Used: used})
	}
}

// report emits the faults of each ElasticQuota that has others than were reported last. It
// forgets those of objects that are gone.
func (w *quotas) report() {
	queues := quota.Of(w.table)
	if queues.Revision() == w.linked {
		return
	}
	w.linked = queues.Revision()
	reported := map[string]string{}
	for _, o := range w.table.Objects().List(object.ElasticQuotas) {
		q := o.(*object.ElasticQuota)
		faults := strings.Join(queues.Faults(q), "; ")
		if faults == "" {
			continue
		}
		if reported[identity(q)] = faults; w.reported[identity(q)] != faults {
			w.emit(ReportQuotaFaults{Quota: q, Faults: faults})
		}
	}
	w.reported = reported
}

// shown handles an ElasticQuota that changed from before to now in the API, nil if it does
// not exist: it forgets the status that was asked for if the object is gone, or shows it, or
// shows another one than before, which somebody else may have written.
func (w *quotas) shown(before, now object.Object) {
	q, _ := now.(*object.ElasticQuota)
	old, _ := before.(*object.ElasticQuota)
	if old != nil && (q == nil || q.UID != old.UID) {
		delete(w.asked, identity(old))
	}
	if q != nil && (slices.Equal(w.asked[identity(q)], q.Used) || old != nil && !slices.Equal(old.Used, q.Used)) {
		delete(w.asked, identity(q))
	}
}

// wake lets those pods be tried again, whatever plugin rejected them, that may preempt others
// now that an ElasticQuota changed from before to now, nil if it does not exist. The events
// of CapacityScheduling reach only pods that it rejected itself.
func (w *quotas) wake(before, now object.Object) {
	old, _ := before.(*object.ElasticQuota)
	if q, is := now.(*object.ElasticQuota); is && old != nil && old.Alike(q) {
		return
	}
	queues := quota.Of(w.table)
	w.queue.MoveAllToActiveOrBackoff(w.now, anythingChanged(), func(p *object.Pod) bool {
		of := w.profiles[p.SchedulerName]
		if of == nil || of.Quotas == nil {
			return false
		}
		if queues.Queue(p.Namespace) == nil { // pods without a queue preempt each other
			return now == nil
		}
		return queues.Reclaim(&quota.Ask{Pod: p, UnlistedZero: of.Quotas.UnlistedZero}, nil).Entitled() // nominations are ignored
	})
}
