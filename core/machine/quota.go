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
	asked    asked[string, object.Amounts] // by identity: statuses that are not shown yet
	reported map[string]string             // by identity: faults that were reported last
	linked   uint64                        // revision of the queues at the last report
}

// identity returns a text that identifies the ElasticQuota. It differs for a later one with the
// same name.
func identity(q *object.ElasticQuota) string { return q.Key() + "/" + string(q.UID) }

// lead begins to write, at the first ScheduleOne: it patches the statuses that have changed so far.
// These changes wake no pod.
func (w *quotas) lead() {
	changed, _ := quota.Of(w.table).TakeChanged()
	w.patch(changed)
}

// settle follows the changes of queues in the step: it reports faults, lets pods be tried again
// that may preempt others now, and patches statuses. It does nothing before lead.
func (w *quotas) settle() {
	if !w.leads {
		return
	}
	w.report()
	changed, relief := quota.Of(w.table).TakeChanged()
	w.wake(&relief)
	w.patch(changed)
}

// patch emits a patch of the ElasticQuota of each changed queue that uses something else now than
// the API shows, unless a patch with the same was emitted before.
func (w *quotas) patch(changed []*quota.Queue) {
	for _, q := range changed {
		if used := q.Used(); w.asked.due(identity(q.Quota), q.Quota.Used, used) {
			w.emit(PatchQuotaStatus{Quota: q.Quota, Used: used})
		}
	}
}

// report emits the faults of each ElasticQuota that has faults, if they differ from those that were
// reported last. It forgets what was reported of ElasticQuotas that are gone or have no faults any
// more. It does nothing if no ElasticQuota changed since the last call.
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

// shown handles an ElasticQuota that changed from before to now in the API, nil if it does not
// exist: it forgets the status that was asked for if the API shows it, or shows another one than
// before, which somebody else wrote.
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

// came handles an ElasticQuota that was created. If it is the one that counts in its namespace, the
// pods of the namespace are tried again: they may preempt pods of any priority from now on, which
// was not considered when they were rejected.
func (w *quotas) came(now object.Object) {
	queues, namespace := quota.Of(w.table), now.Head().Namespace
	if q := queues.Queue(namespace); q == nil || q.Quota != now {
		return
	}
	event := queue.Label(framework.ResourceOf(object.ElasticQuotas), framework.Add)
	w.queue.MoveInNamespaces(w.now, event, func(other string) bool { return other == namespace }, func(*object.Pod) bool { return true })
}

// gone handles an ElasticQuota that was deleted. If its namespace has no queue any more, all pods
// without a queue whose profile heeds ElasticQuotas are tried again: they and the pods of the
// namespace may preempt each other from now on.
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
