package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim/apiserver"
)

// The kinds of pod groups that a story may have, and the resources of their objects.
const (
	nativeGroups  = "native"       // those of Kubernetes, with the gate GenericWorkload
	labelGroups   = "coscheduling" // those of scheduler-plugins, and of labels alone
	podGroups     = "podgroups.scheduling.k8s.io"
	pluginsGroups = "podgroups.scheduling.x-k8s.io"
	labelsPrefix  = "pod-group.scheduling.sigs.k8s.io"
)

// batchYAML is the configuration of stories with groups from labels, or with quotas.
const batchYAML = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true}
profiles:
- plugins:
    multiPoint: {enabled: [%s]}
%s
`

const (
	groupSort   = "    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: \"*\"}]}\n"
	quotaSearch = "    postFilter: {disabled: [{name: DefaultPreemption}]}\n"
	groupLabels = "  pluginConfig:\n  - {name: CoschedulingLabels, args: {prefixes: [" + labelsPrefix + "]}}\n"
)

// batch turns groups of a kind on, and quotas.
func (p *play) batch(words []string) error {
	if len(p.replicas) > 0 {
		return errors.New("it must stand before the replicas")
	}
	native, labelled, quotas := slices.Contains(words, nativeGroups), slices.Contains(words, labelGroups), slices.Contains(words, withQuotas)
	if native == labelled && (native || !quotas) {
		return fmt.Errorf("want %s or %s, and %s or not, or %s alone", nativeGroups, labelGroups, withQuotas, withQuotas)
	}
	gates := features.New()
	if native {
		if err := gates.Set("GenericWorkload=true"); err != nil {
			return err
		}
	}
	var plugins []string
	text := ""
	if labelled {
		plugins, text = append(plugins, "{name: Coscheduling}"), groupSort
	}
	if quotas {
		plugins, text = append(plugins, "{name: CapacityScheduling}"), text+quotaSearch
	}
	if labelled {
		text += groupLabels
	}
	c, err := config.With(gates).Decode(fmt.Appendf(nil, batchYAML, strings.Join(plugins, ", "), text), "batch")
	if err != nil {
		return err
	}
	p.config, p.gates, p.nativeGroups, p.quotas = c, features.Plugins(gates), native, quotas
	return nil
}

// podGroup makes a group: its name and its minimum, and with native groups a priority. Of
// one that is there it changes the minimum, which Kubernetes' own do not allow.
func (p *play) podGroup(words []string) error {
	if len(words) < 2 {
		return errors.New("want a name, min=NUMBER, and priority=NUMBER")
	}
	namespace, called := name(words[0])
	values := map[string]int32{}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || key != "min" && key != "priority" {
			return errors.New("want a name, min=NUMBER, and priority=NUMBER")
		}
		values[key] = int32(n)
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: called}
	if p.nativeGroups {
		if p.server.Get(podGroups, namespace, called) != nil {
			return nil
		}
		priority := values["priority"]
		return p.server.Create(&schedulingv1beta1.PodGroup{ObjectMeta: meta, Spec: schedulingv1beta1.PodGroupSpec{Priority: &priority,
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: values["min"]}}}})
	}
	minMember := json.RawMessage(strconv.Itoa(int(values["min"])))
	if p.server.Get(pluginsGroups, namespace, called) != nil {
		return p.server.Update(pluginsGroups, namespace, called, func(o apiserver.Object) { o.(*decode.PodGroup).Spec.MinMember = minMember })
	}
	return p.server.Create(&decode.PodGroup{ObjectMeta: meta, Spec: decode.PodGroupSpec{MinMember: minMember}})
}

// deletePodGroup deletes the object of a group.
func (p *play) deletePodGroup(word string) {
	namespace, called := name(word)
	p.server.Delete(podGroups, namespace, called)
	p.server.Delete(pluginsGroups, namespace, called)
}

// finish lets a pod that runs succeed.
func (p *play) finish(words []string) error {
	namespace, called := name(strings.Join(words, ""))
	pod, _ := p.server.Get("pods", namespace, called).(*v1.Pod)
	if pod == nil || pod.Status.Phase != v1.PodRunning || pod.DeletionTimestamp != nil {
		return nil
	}
	return p.server.Update("pods", namespace, called, func(o apiserver.Object) { o.(*v1.Pod).Status.Phase = v1.PodSucceeded })
}

// groupOf names the group of a pod: its source, namespace and name; "" for none.
func groupOf(p *v1.Pod) string {
	source, called := podGroups, ""
	if g := p.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		called = *g.PodGroupName
	} else if called = p.Labels[object.PodGroupLabel]; called != "" {
		source = pluginsGroups
	} else if called = p.Labels[labelsPrefix+"/name"]; called != "" {
		source = labelsPrefix
	}
	if called == "" {
		return ""
	}
	return source + "/" + p.Namespace + "/" + called
}

// minimumOf is how many pods a group's object asks for; 0 if it is none.
func minimumOf(o any) int {
	switch o := o.(type) {
	case *schedulingv1beta1.PodGroup:
		return int(o.Spec.SchedulingPolicy.Gang.MinCount)
	case *decode.PodGroup:
		n, err := strconv.Atoi(string(o.Spec.MinMember))
		if err != nil {
			return 0
		}
		return n
	}
	return 0
}

// gang is a group as the API server has it.
type gang struct {
	name           string
	min            int // 0: not known
	bound, waiting []*v1.Pod
	unlike         bool // its pods do not request and select the same
	condition      metav1.ConditionStatus
}

// gangs are the groups of the pods, by name.
func (p *play) gangs(pods []*v1.Pod) map[string]*gang {
	all := map[string]*gang{}
	for _, pod := range pods {
		called := groupOf(pod)
		if called == "" || pod.Status.Phase == v1.PodSucceeded || len(pod.Spec.SchedulingGates) > 0 {
			continue
		}
		g := all[called]
		if g == nil {
			g = p.gangOf(called, pod)
			all[called] = g
		}
		for _, other := range slices.Concat(g.bound, g.waiting) {
			g.unlike = g.unlike || !alike(other, pod)
		}
		if pod.Spec.NodeName != "" {
			g.bound = append(g.bound, pod)
		} else {
			g.waiting = append(g.waiting, pod)
		}
	}
	return all
}

// stands reports whether the gang keeps its minimum without the pods that are gone, or goes
// whole. No gang (nil) does.
func (g *gang) stands(gone map[*v1.Pod]bool) bool {
	if g == nil {
		return true
	}
	left := count(g.bound, func(p *v1.Pod) bool { return !gone[p] })
	return left == 0 || left >= g.min
}

func alike(a, b *v1.Pod) bool {
	return requestsOf(a) == requestsOf(b) && selected(a, b.Spec.NodeSelector) && selected(b, a.Spec.NodeSelector) && priority(a) == priority(b) &&
		a.Spec.SchedulerName == b.Spec.SchedulerName && a.Labels[labelsPrefix+"/min-available"] == b.Labels[labelsPrefix+"/min-available"]
}

// gangOf is the group of that name, without its pods.
func (p *play) gangOf(called string, pod *v1.Pod) *gang {
	g := &gang{name: called}
	words := strings.Split(called, "/")
	short := words[len(words)-1]
	switch words[0] {
	case labelsPrefix:
		g.min, _ = strconv.Atoi(pod.Labels[labelsPrefix+"/min-available"])
	case podGroups:
		o, ok := p.server.Get(podGroups, pod.Namespace, short).(*schedulingv1beta1.PodGroup)
		if !ok {
			break
		}
		g.min = minimumOf(o)
		for i := range o.Status.Conditions {
			if o.Status.Conditions[i].Type == schedulingv1beta1.PodGroupInitiallyScheduled {
				g.condition = o.Status.Conditions[i].Status
			}
		}
	default:
		if o, ok := p.server.Get(pluginsGroups, pod.Namespace, short).(*decode.PodGroup); ok {
			g.min = minimumOf(o)
		}
	}
	return g
}

// groupChanged records that the group has changed since its pods were bound.
func (c *check) groupChanged(o apiserver.Object, change *apiserver.Change) {
	source := podGroups
	if _, ok := o.(*decode.PodGroup); ok {
		source = pluginsGroups
	}
	if change.Type == watch.Deleted || change.Before != nil && minimumOf(change.Before) != minimumOf(o) {
		c.hurt[source+"/"+o.GetNamespace()+"/"+o.GetName()] = true
	}
}

// memberChanged records that a group has lost a pod that was bound, or has one that somebody
// else has bound.
func (c *check) memberChanged(p, before *v1.Pod, change *apiserver.Change) {
	called := groupOf(p)
	if called == "" || before == nil {
		return
	}
	bound := p.Spec.NodeName != "" && before.Spec.NodeName == ""
	lost := before.Spec.NodeName != "" && (change.Type == watch.Deleted || p.DeletionTimestamp != nil || p.Status.Phase == v1.PodSucceeded)
	if lost || bound && change.By == "" {
		c.hurt[called] = true
	}
}

// isHurt reports whether a group may have fewer bound pods than its minimum.
func (c *check) isHurt(called string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hurt[called] || c.setBack
}

// restless says what is wrong with a group as a whole. That a gang of which fewer pods are bound
// than its minimum could be placed whole, gangWaits says.
func (g *gang) restless(hurt bool) string {
	if !hurt && g.min > 0 && len(g.bound) >= g.min && strings.HasPrefix(g.name, podGroups+"/") && g.condition != metav1.ConditionTrue {
		return fmt.Sprintf("group %s is placed, and its condition does not say so", g.name[strings.LastIndex(g.name, "/")+1:])
	}
	return ""
}
