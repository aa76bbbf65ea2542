package machine

import (
	"strings"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/quota"
)

// quotas writes what the queues of ElasticQuotas use to their status, reports what is wrong
// with them, and lets pods be tried again that may get back what their queue has lent.
type quotas struct {
	*step
	profiles profiles
	asked    asked[string, object.Amounts] // by identity
	reported map[string]string             // by identity: faults that were reported last
	linked   uint64                        // the revision of the queues as of report
}

// identity returns a text that differs for two ElasticQuotas, also if one has the name of
// the other that was deleted.
func identity(q *object.ElasticQuota) string { return q.Key() + "/" + string(q.UID) }

// lead begins to write, at the first ScheduleOne. What happened before calls no pod.
func (w *quotas) lead() {
	changed, _ := quota.Of(w.table).TakeChanged()
	w.patch(changed)
}

// settle follows the changes of queues in the step: it lets pods be tried again that may
// preempt others now, and writes. It does nothing before lead.
func (w *quotas) settle() {
	if !w.leads {
		return
	}
	w.report()
	changed, relief := quota.Of(w.table).TakeChanged()
	w.wake(&relief)
	w.patch(changed)
}

// patch emits a patch for the ElasticQuota of each of the queues that uses something else now
// than the API shows, unless that was asked to be written.
func (w *quotas) patch(changed []*quota.Queue) {
	for _, q := range changed {
		if used := q.Used(); w.asked.due(identity(q.Quota), q.Quota.Used, used) {
			w.emit(PatchQuotaStatus{Quota: q.Quota, Used: used})
		}
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
// not exist: it updates asked.
func (w *quotas) shown(before, now object.Object) {
	q, _ := now.(*object.ElasticQuota)
	old, _ := before.(*object.ElasticQuota)
	if old != nil && (q == nil || q.UID != old.UID) {
		delete(w.asked.by, identity(old))
		old = nil
	}
	if q != nil {
		var before *object.Amounts
		if old != nil {
			before = &old.Used
		}
		w.asked.shows(identity(q), before, q.Used)
	}
}

// wake lets those pods be tried again that the relief helps, whatever plugin rejected them.
// Nominations are ignored.
func (w *quotas) wake(relief *quota.Relief) {
	if relief.None() {
		return
	}
	event := queue.Label(framework.ResourceOf(object.ElasticQuotas), framework.UpdateOther)
	w.queue.MoveInNamespaces(w.now, event, relief.Concerns, func(p *object.Pod) bool {
		of := w.profiles[p.SchedulerName]
		return of != nil && of.Quotas != nil && relief.Helps(&quota.Ask{Pod: p, UnlistedZero: of.Quotas.UnlistedZero})
	})
}

// came lets the pods of a namespace that has its first ElasticQuota be tried again: they may
// preempt pods of any priority from now on, and the queue has reckoned with others.
func (w *quotas) came(now object.Object) {
	queues, namespace := quota.Of(w.table), now.Head().Namespace
	if q := queues.Queue(namespace); q == nil || q.Quota != now {
		return
	}
	event := queue.Label(framework.ResourceOf(object.ElasticQuotas), framework.Add)
	w.queue.MoveInNamespaces(w.now, event, func(other string) bool { return other == namespace }, func(*object.Pod) bool { return true })
}

// gone lets pods without a queue be tried again if the namespace of an ElasticQuota that was
// deleted has none any more: these pods and its own may preempt each other.
func (w *quotas) gone(old object.Object) {
	queues := quota.Of(w.table)
	if queues.Queue(old.Head().Namespace) != nil {
		return
	}
	w.queue.MoveAllToActiveOrBackoff(w.now, anythingChanged(), func(p *object.Pod) bool {
		of := w.profiles[p.SchedulerName]
		return of != nil && of.Quotas != nil && queues.Queue(p.Namespace) == nil
	})
}
