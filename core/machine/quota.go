package machine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
)

// quotas writes what the queues of ElasticQuotas use to their status.
type quotas struct {
	*step
	leads bool                      // a scheduling cycle has begun, so this process is the leader
	asked map[string]object.Amounts // by identity: statuses that were asked to be written, and are not shown yet
}

// identity returns a text that differs for two ElasticQuotas, also if one has the name of
// the other that was deleted.
func identity(q *object.ElasticQuota) string { return q.Key() + "/" + string(q.UID) }

// write emits a patch for each ElasticQuota whose queue changed and uses something else now
// than the API shows, unless that was asked to be written. Nothing is written before the
// first scheduling cycle: until then another process may be the leader.
func (w *quotas) write() {
	if !w.leads {
		return
	}
	for _, q := range quota.Of(w.table).TakeChanged() {
		used := q.Used()
		asked, told := w.asked[identity(q.Quota)]
		if told && slices.Equal(asked, used) || !told && slices.Equal(q.Quota.Used, used) {
			continue
		}
		w.asked[identity(q.Quota)] = used
		w.emit(PatchQuotaStatus{Quota: q.Quota, Used: used})
	}
}

// shown handles an ElasticQuota that changed from before to now in the API, nil if it does
// not exist: it forgets the status that was asked for if it is shown or the object is gone.
func (w *quotas) shown(before, now object.Object) {
	q, _ := now.(*object.ElasticQuota)
	if old, _ := before.(*object.ElasticQuota); old != nil && (q == nil || q.UID != old.UID) {
		delete(w.asked, identity(old))
	}
	if q != nil && slices.Equal(w.asked[identity(q)], q.Used) {
		delete(w.asked, identity(q))
	}
}
