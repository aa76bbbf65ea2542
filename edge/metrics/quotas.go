package metrics

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// Quota is an ElasticQuota, with what its pods use.
type Quota struct {
	Quota *object.ElasticQuota
	Used  object.Amounts
}

// quotaMetrics are the metrics about ElasticQuotas. There is no series without any.
type quotaMetrics struct {
	amounts   *metrics.GaugeVec
	reclaimed *metrics.CounterVec
}

func newQuotaMetrics() quotaMetrics {
	return quotaMetrics{
		metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: berth, Name: "elastic_quota", StabilityLevel: metrics.ALPHA,
			Help: "What an ElasticQuota guarantees (min), allows at most (max), and what its pods use (used), in cores, bytes or pieces."}, []string{"quota_namespace", "elasticquota", "resource", "type"}),
		metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: berth, Name: "reclaimed_pods_total", StabilityLevel: metrics.ALPHA,
			Help: "Pods of a namespace that were preempted for pods of another ElasticQuota, which has its min back from them."}, []string{"quota_namespace"}),
	}
}

// refresh sets the gauge to the ElasticQuotas.
func (m *quotaMetrics) refresh(all []Quota) {
	m.amounts.Reset()
	for _, q := range all {
		for kind, list := range map[string]object.Amounts{"used": q.Used, "min": q.Quota.Min, "max": q.Quota.Max} { // any order: each has its gauges
			for _, a := range list {
				value := float64(a.Value)
				if a.Name == v1.ResourceCPU {
					value /= 1000
				}
				m.amounts.WithLabelValues(q.Quota.Namespace, q.Quota.Name, string(a.Name), kind).Set(value)
			}
		}
	}
}

// evicted counts a pod that is evicted for one of another ElasticQuota.
func (m *quotaMetrics) evicted(e machine.Evict) {
	if e.Reclaims {
		m.reclaimed.WithLabelValues(e.Victim.Namespace).Inc()
	}
}
