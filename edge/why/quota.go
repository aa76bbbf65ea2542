package why

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// quotaText says, of a pod that quotas reject, what its ElasticQuota and those above it use,
// and which others use more than their min of what the pod requests.
func (a *Answer) quotaText(b *strings.Builder) {
	d := a.facts.decision
	if d == nil || !slices.Contains(d.RejectedBy, names.CapacityScheduling) {
		return
	}
	queues := quota.Of(a.facts.cluster.Machine.Table())
	var own []*quota.Queue
	for q := queues.Queue(a.facts.pod.Namespace); q != nil; q = q.Parent() {
		own = append(own, q)
	}
	lines := quotaLines(own, a.facts.pod, false)
	for _, q := range queues.Queues() {
		if !slices.Contains(own, q) {
			lines = append(lines, quotaLines([]*quota.Queue{q}, a.facts.pod, true)...)
		}
	}
	if len(lines) > 0 {
		terminal.Fprintf(b, "\nQUOTAS\n")
	}
	for _, line := range lines {
		terminal.Fprintf(b, "  %s\n", line)
	}
}

// quotaLines describes what the queues use of the resources that the pod requests and they
// list. With over set, only uses beyond a min count.
func quotaLines(queues []*quota.Queue, p *object.Pod, over bool) (lines []string) {
	for _, q := range queues {
		for _, used := range q.Used() {
			least, guaranteed := q.Quota.Min.Of(used.Name)
			if p.Demand.Usage.Of(used.Name) == 0 || over && used.Value <= least {
				continue
			}
			bounds := ""
			if guaranteed {
				bounds += ", min " + amountText(used.Name, least)
			}
			if most, bounded := q.Quota.Max.Of(used.Name); bounded {
				bounds += ", max " + amountText(used.Name, most)
			}
			if guaranteed && used.Value > least {
				bounds += fmt.Sprintf("; %s above its min", amountText(used.Name, resource.Sub(used.Value, least)))
			}
			lines = append(lines, fmt.Sprintf("ElasticQuota %s: %s of %s used%s", q.Quota.Key(), amountText(used.Name, used.Value), used.Name, bounds))
		}
	}
	return lines
}

// amountText formats an amount of the resource.
func amountText(name v1.ResourceName, amount int64) string {
	return resource.Quantity(name, amount).String()
}
