package chaos

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim/apiserver"
)

const elasticQuotas = "elasticquotas." + object.SchedulerPlugins

// quota makes the quota of a namespace, or changes it: how many CPUs min= and max= are.
func (p *play) quota(words []string) error {
	if len(words) != 3 {
		return errors.New("want a namespace, min=CPUS and max=CPUS")
	}
	var of [2]decode.Quantities
	for i, key := range []string{"min=", "max="} {
		text, found := strings.CutPrefix(words[i+1], key)
		if n, err := strconv.Atoi(text); !found || err != nil || n < 0 {
			return errors.New("want a namespace, min=CPUS and max=CPUS")
		}
		of[i] = decode.Quantities{v1.ResourceCPU: decode.QuantityText(text)}
	}
	spec := decode.ElasticQuotaSpec{Min: of[0], Max: of[1]}
	if p.server.Get(elasticQuotas, words[0], "q") != nil {
		return p.server.Update(elasticQuotas, words[0], "q", func(o apiserver.Object) { o.(*decode.ElasticQuota).Spec = spec })
	}
	return p.server.Create(&decode.ElasticQuota{ObjectMeta: metav1.ObjectMeta{Namespace: words[0], Name: "q"}, Spec: spec})
}

// quotaOf is one quota: thousandths of CPUs.
type quotaOf struct{ min, max, used, shown int64 }

// quotaList are the quotas by namespace; nil if the story has none.
type quotaList map[string]*quotaOf

func milliCPU(list decode.Quantities) int64 {
	q, err := resource.ParseQuantity(string(list[v1.ResourceCPU]))
	if err != nil {
		return -1
	}
	return q.MilliValue()
}

// quotaList reads the quotas, and counts what the pods use.
func (p *play) quotaList(pods []*v1.Pod) quotaList {
	if !p.quotas {
		return nil
	}
	list := quotaList{}
	for _, o := range p.server.List(elasticQuotas) {
		q := o.(*decode.ElasticQuota)
		list[q.Namespace] = &quotaOf{min: milliCPU(q.Spec.Min), max: milliCPU(q.Spec.Max), shown: milliCPU(q.Status.Used)}
	}
	for _, pod := range pods {
		if q := list[pod.Namespace]; q != nil && pod.Spec.NodeName != "" && pod.Status.Phase != v1.PodSucceeded {
			q.used += requestsOf(pod).milliCPU
		}
	}
	return list
}

// untrue says which status does not show what is used.
func (l quotaList) untrue() string {
	for _, namespace := range sortedKeys(l) {
		if q := l[namespace]; q.shown != q.used {
			return fmt.Sprintf("the quota of namespace %s shows that %dm CPUs are used, and %dm are", namespace, q.shown, q.used)
		}
	}
	return ""
}

// admits reports whether the quotas have room for that many such pods.
func (l quotaList) admits(pod *v1.Pod, many int) bool {
	q := l[pod.Namespace]
	if q == nil {
		return true
	}
	used, least := int64(0), int64(0)
	for _, other := range l { // any order: sums
		used, least = used+other.used, least+other.min
	}
	asked := int64(many) * requestsOf(pod).milliCPU
	return q.used+asked <= q.max && used+asked <= least
}

// reclaims reports whether the pod is within its queue's min, and fits on the node if some pods
// there go of queues that keep their min, and of gangs that keep theirs or go whole.
func (w *batchWorld) reclaims(pod *v1.Pod, n *v1.Node) bool {
	l, pods := w.quotas, w.pods
	q, asked := l[pod.Namespace], requestsOf(pod).milliCPU
	if q == nil || q.used+asked > q.min || q.used+asked > q.max || !preempts(pod) {
		return false
	}
	var lent []*v1.Pod
	for _, p := range pods {
		if p.Spec.NodeName == n.Name && p.Namespace != pod.Namespace && l[p.Namespace] != nil && p.Status.Phase != v1.PodSucceeded {
			lent = append(lent, p)
		}
	}
	if len(lent) > 10 {
		return false // nobody counts so far
	}
	for some := range 1 << len(lent) {
		gone := map[*v1.Pod]bool{}
		left, used, least := map[string]int64{}, int64(0), int64(0)
		for namespace, q := range l { // any order: a copy
			left[namespace], used, least = q.used, used+q.used, least+q.min
		}
		for i, p := range lent {
			if some&(1<<i) != 0 {
				gone[p] = true
				left[p.Namespace] -= requestsOf(p).milliCPU
				used -= requestsOf(p).milliCPU
			}
		}
		kept := true
		for p := range gone { // any order: all must hold
			kept = kept && left[p.Namespace] >= l[p.Namespace].min && w.gangs[groupOf(p)].stands(gone)
		}
		if kept && len(gone) > 0 && used+asked <= least && fits(pod, n, pods, func(p *v1.Pod) bool { return gone[p] }) {
			return true
		}
	}
	return false
}

func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

// queues are the quotas as a process was told of them.
type queues map[string]*object.ElasticQuota // by namespace

func cpuOf(list object.Amounts) (int64, bool) {
	for _, a := range list {
		if a.Name == v1.ResourceCPU {
			return a.Value, true
		}
	}
	return 0, false
}

// overQuota says which quota the pod that a process has placed exceeds, as the process knows
// it; "" for none for sure.
func (c *check) overQuota(k *cluster, pod *v1.Pod) string {
	q := k.queues[pod.Namespace]
	if q == nil {
		return ""
	}
	used, total, least := requestsOf(pod).milliCPU, requestsOf(pod).milliCPU, int64(0)
	for _, l := range c.as(k, pod).sure {
		if l.pod.Namespace == pod.Namespace {
			used += requestsOf(l.pod).milliCPU
		}
		if k.queues[l.pod.Namespace] != nil {
			total += requestsOf(l.pod).milliCPU
		}
	}
	for _, other := range k.queues { // any order: a sum
		n, _ := cpuOf(other.Min)
		least += n
	}
	if most, listed := cpuOf(q.Max); listed && used > most {
		return fmt.Sprintf("%dm CPUs are used then, and the quota's max is %dm", used, most)
	}
	if total > least {
		return fmt.Sprintf("all quotas use %dm CPUs then, and %dm are guaranteed", total, least)
	}
	return ""
}

// undercut says which queue would have less than its min without the victim, as the process
// knows it; "" for none for sure.
func (c *check) undercut(k *cluster, victim, preemptor *object.Pod) string {
	q := k.queues[victim.Namespace]
	if q == nil || victim.Namespace == preemptor.Namespace {
		return ""
	}
	left := int64(0)
	for uid := range k.perhaps { // any order: a sum
		if p := c.specs[uid]; p != nil && p.Namespace == victim.Namespace && uid != victim.UID && !k.evicting[uid] {
			left += requestsOf(p).milliCPU
		}
	}
	if least, _ := cpuOf(q.Min); left < least {
		return fmt.Sprintf("namespace %s has %dm CPUs then, and its min is %dm", victim.Namespace, left, least)
	}
	return ""
}
