package metrics

import (
	"net/http"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// Resources serves what each pod requests and is limited to, as kube-scheduler does at
// /metrics/resources. pods lists those that the scheduler knows, at each request.
func Resources(pods func() []*object.Pod) http.Handler {
	registry := metrics.NewKubeRegistry()
	registry.CustomMustRegister(&podResources{pods: pods})
	return metrics.HandlerWithReset(registry, metrics.HandlerOpts{})
}

var (
	requestDesc = podResource("kube_pod_resource_request", "What the pod requests of a resource, as the scheduler counts it.")
	limitDesc   = podResource("kube_pod_resource_limit", "What the pod may use of a resource at most, as the scheduler counts it.")
)

func podResource(name, help string) *metrics.Desc {
	return metrics.NewDesc(name, help, []string{"namespace", "pod", "node", "scheduler", "priority", "resource", "unit"}, nil, metrics.STABLE, "")
}

type podResources struct {
	metrics.BaseStableCollector
	pods func() []*object.Pod
}

// DescribeWithStability implements metrics.StableCollector.
func (c *podResources) DescribeWithStability(out chan<- *metrics.Desc) {
	out <- requestDesc
	out <- limitDesc
}

// CollectWithStability implements metrics.StableCollector.
func (c *podResources) CollectWithStability(out chan<- metrics.Metric) {
	for _, p := range c.pods() {
		collect(out, requestDesc, p, &p.Demand.Requests)
		if p.Limits != nil {
			collect(out, limitDesc, p, p.Limits)
		}
	}
}

func collect(out chan<- metrics.Metric, desc *metrics.Desc, p *object.Pod, v *resource.Vector) {
	priority := strconv.Itoa(int(p.Priority))
	// No API server checks this name, and a label that is not UTF-8 ends the process.
	scheduler := strings.ToValidUTF8(p.SchedulerName, "\uFFFD")
	send := func(name v1.ResourceName, unit string, value float64) {
		if value != 0 {
			out <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, value,
				p.Namespace, p.Name, p.NodeName, scheduler, priority, string(name), unit)
		}
	}
	send(v1.ResourceCPU, "cores", float64(v.MilliCPU)/1000)
	send(v1.ResourceMemory, "bytes", float64(v.Memory))
	send(v1.ResourceEphemeralStorage, "bytes", float64(v.EphemeralStorage))
	for _, s := range v.Scalars {
		send(s.Name, unitOf(s.Name), float64(s.Value))
	}
}

func unitOf(name v1.ResourceName) string {
	switch {
	case strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix):
		return "bytes"
	case strings.HasPrefix(string(name), v1.ResourceAttachableVolumesPrefix):
		return "integer"
	}
	return ""
}
