package api

import (
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/quota"
)

// QuotaList is the answer of quotas: the ElasticQuotas that count, by namespace.
type QuotaList struct {
	Head
	Time   time.Time `json:"time"`
	Quotas []Quota   `json:"quotas"`
	// Total is how many there are; the list may be shorter.
	Total int `json:"total"`
}

// Quota is how it stands with one ElasticQuota.
type Quota struct {
	Quota  string `json:"quota"`            // NAMESPACE/NAME
	Parent string `json:"parent,omitempty"` // NAMESPACE/NAME of the one that it is a part of
	// Resources are those that its min or max lists, by name.
	Resources []QuotaResource `json:"resources"`
	// Waiting is how many pods of the namespace wait because a quota rejected them.
	Waiting int `json:"waiting"`
	// Faults say what of the object is wrong, and what counts instead.
	Faults []string `json:"faults,omitempty"`
}

// QuotaResource is how much of one resource a quota guarantees, allows and uses, in the units of
// NodeTable.
type QuotaResource struct {
	Name v1.ResourceName `json:"name"`
	Used int64           `json:"used"`          // with its parts
	Min  *int64          `json:"min,omitempty"` // nil: nothing is guaranteed
	Max  *int64          `json:"max,omitempty"` // nil: it has no bound of its own
	// Borrows is what is used above Min, Lends what is not used of it, so that others may.
	Borrows int64 `json:"borrows,omitempty"`
	Lends   int64 `json:"lends,omitempty"`
}

func (h *handler) quotas(r *http.Request) (any, error) {
	p := paramsOf(r, "limit")
	limit := p.limit()
	if p.err != nil {
		return nil, p.err
	}
	list := &QuotaList{Head: head("QuotaList"), Time: h.Now().UTC(), Quotas: []Quota{}}
	err := h.look(r.Context(), func(m *machine.Machine) {
		index := quota.Of(m.Table())
		queues := index.Queues()
		if list.Total = len(queues); list.Total == 0 {
			return
		}
		waiting := rejectedByQuota(m)
		for _, q := range queues[:min(limit, list.Total)] {
			list.Quotas = append(list.Quotas, quotaOf(index, q, waiting))
		}
	})
	return list, err
}

// rejectedByQuota counts by namespace the pods that a quota rejected in their last attempt.
func rejectedByQuota(m *machine.Machine) map[string]int {
	waiting := map[string]int{}
	for e := range m.Queue().Entries() {
		for plugin := range e.RejectedBy() {
			if plugin == names.CapacityScheduling {
				waiting[e.Pod.Namespace]++
			}
		}
	}
	return waiting
}

// quotaOf returns how it stands with the queue of a quota.
func quotaOf(index *quota.Index, q *quota.Queue, waiting map[string]int) Quota {
	out := Quota{Quota: q.Quota.Key(), Resources: []QuotaResource{}, Waiting: waiting[q.Quota.Namespace], Faults: index.Faults(q.Quota)}
	if up := q.Parent(); up != nil {
		out.Parent = up.Quota.Key()
	}
	for _, used := range q.Used() {
		of := QuotaResource{Name: used.Name, Used: used.Value}
		if least, listed := q.Quota.Min.Of(used.Name); listed {
			of.Min, of.Borrows, of.Lends = &least, max(used.Value-least, 0), max(least-used.Value, 0)
		}
		if most, listed := q.Quota.Max.Of(used.Name); listed {
			of.Max = &most
		}
		out.Resources = append(out.Resources, of)
	}
	return out
}
