package why

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/workload"
)

// Workload is the key of an object that owns pods, of their pod group, or of the ElasticQuota that
// counts what they use. Kind is in lower case.
type Workload struct{ Kind, Namespace, Name string }

func (w Workload) String() string { return w.Kind + "/" + w.Namespace + "/" + w.Name }

// workloadKinds are the kinds by the names that kubectl takes for them.
var workloadKinds = func() map[string]string {
	kinds := map[string]string{"deploy": "deployment", "rs": "replicaset", "sts": "statefulset", "ds": "daemonset", "cj": "cronjob", "rc": "replicationcontroller"}
	for kind, group := range map[string]string{"deployment": "apps", "replicaset": "apps", "statefulset": "apps", "daemonset": "apps", "job": "batch", "cronjob": "batch",
		"replicationcontroller": "", podGroup: ""} { // any order: each by itself
		kinds[kind], kinds[kind+"s"] = kind, kind
		if group != "" {
			kinds[kind+"."+group], kinds[kind+"s."+group] = kind, kind
		}
	}
	for _, name := range []string{"eq", "eqs", elasticQuota, elasticQuota + "s", elasticQuota + ".scheduling.x-k8s.io", elasticQuota + "s.scheduling.x-k8s.io"} {
		kinds[name] = elasticQuota
	}
	return kinds
}()

// ParseWorkload returns the kind and name of KIND/NAME; false where KIND is no kind of
// workload.
func ParseWorkload(text string) (kind, name string, ok bool) {
	kind, name, both := strings.Cut(text, "/")
	kind = strings.ToLower(kind)
	if of, api, qualified := strings.Cut(kind, "."); qualified && workloadKinds[of] == podGroup {
		return podGroup, api + "/" + name, both && name != ""
	}
	kind, known := workloadKinds[kind]
	return kind, name, both && known && name != ""
}

// WorkloadOf returns the workload that makes the pod, as far as its owner and labels tell; else
// its pod group; the zero value for a pod that belongs to none.
func (c *Cluster) WorkloadOf(p *v1.Pod) Workload {
	kind, name := workload.OfPod(p)
	if kind == "Node" { // a static pod
		kind, name = "", ""
	}
	if above := map[string]string{"Job": "CronJob", "ReplicaSet": "Deployment"}[kind]; above != "" {
		if by := ownerOf(c.indexWorkloads().objects[Workload{strings.ToLower(kind), p.Namespace, name}]); by != nil && by.Kind == above {
			kind, name = by.Kind, by.Name
		}
	}
	if kind == "" {
		if group := groupOf(c.Machine, p); group != "" {
			kind, name = podGroup, group
		}
	}
	if kind == "" {
		return Workload{}
	}
	return Workload{strings.ToLower(kind), p.Namespace, name}
}

// sameTemplate reports whether one workload makes both pods.
func (c *Cluster) sameTemplate(a, b *v1.Pod) bool {
	w := c.WorkloadOf(a)
	return w.Kind != "" && w.Kind != podGroup && w == c.WorkloadOf(b)
}

// groupOf returns the name of the pod's group, as the scheduler has it, or of the PodGroup in
// its spec, which may not count; "" for none.
func groupOf(m *machine.Machine, p *v1.Pod) string {
	name := decode.PodGroupName(&p.Spec)
	if m == nil { // whoever asks may not read the cluster
		return name
	}
	return cmp.Or(m.GroupName(p.Spec.SchedulerName, name, p.Labels), name)
}

// belongs reports whether the pod is one of the workload's.
func (c *Cluster) belongs(p *v1.Pod, w Workload) bool {
	if w.Kind == elasticQuota {
		return isOfQuota(c.Machine, p.Namespace, w)
	}
	if p.Namespace != w.Namespace {
		return false
	}
	switch owner := metav1.GetControllerOfNoCopy(p); {
	case w.Kind == podGroup:
		return isGroup(groupOf(c.Machine, p), w.Name)
	case owner != nil && strings.ToLower(owner.Kind) == w.Kind && owner.Name == w.Name:
		return true
	case w.Kind == "cronjob" && owner != nil && owner.Kind == "Job":
		scheduled, ok := strings.CutPrefix(owner.Name, w.Name+"-")
		return c.WorkloadOf(p) == w || ok && strings.Trim(scheduled, "0123456789") == ""
	}
	return c.WorkloadOf(p) == w
}

// FindWorkload finds the workload in the namespace; where that is empty, in the cluster's own,
// and then in all.
func (c *Cluster) FindWorkload(kind, name, namespace string) (Workload, error) {
	w := Workload{kind, cmp.Or(namespace, c.Namespace, v1.NamespaceDefault), name}
	if c.knows(w) {
		return w, checkOneGroup(c, w)
	}
	elsewhere := map[string]bool{}
	for _, o := range c.all() {
		if kindOf(o) == kind && o.GetName() == name {
			elsewhere[o.GetNamespace()] = true
		}
	}
	for _, key := range quotas(c.Machine) {
		if key == (Workload{kind, key.Namespace, name}) {
			elsewhere[key.Namespace] = true
		}
	}
	for _, key := range groupsIn(c) {
		if kind == podGroup && isGroup(key.Name, name) {
			elsewhere[key.Namespace] = true
		}
	}
	for _, p := range c.Set.Pods {
		if kind != elasticQuota && c.belongs(p, Workload{kind, p.Namespace, name}) {
			elsewhere[p.Namespace] = true
		}
	}
	in := slices.Sorted(maps.Keys(elsewhere))
	switch {
	case namespace != "" || len(in) == 0:
		return w, c.noSuchWorkload(w)
	case len(in) == 1:
		w.Namespace = in[0]
		return w, checkOneGroup(c, w)
	}
	return w, fmt.Errorf("%s %s: is in several namespaces: say which with -n: %s", kind, name, list(in, 5))
}

// knows reports whether the cluster has the workload or pods of it.
func (c *Cluster) knows(w Workload) bool {
	if w.Kind == elasticQuota {
		return slices.Contains(quotas(c.Machine), w)
	}
	if w.Kind == podGroup {
		return len(groupsOf(c, w)) > 0
	}
	return c.indexWorkloads().objects[w] != nil || slices.ContainsFunc(c.Set.Pods, func(p *v1.Pod) bool { return c.belongs(p, w) })
}

// noSuchWorkload says that nothing is known of the workload, and which others are like it.
func (c *Cluster) noSuchWorkload(w Workload) error {
	known := map[string]bool{}
	for _, p := range c.Set.Pods {
		if o := c.WorkloadOf(p); o.Kind == w.Kind {
			known[o.Namespace+"/"+o.Name] = true
		}
	}
	for _, o := range c.all() {
		if kindOf(o) == w.Kind {
			known[o.GetNamespace()+"/"+o.GetName()] = true
		}
	}
	for _, key := range groupsIn(c) {
		if w.Kind == podGroup {
			known[key.String()] = true
		}
	}
	text := fmt.Sprintf("%s %s/%s: there is none, and no pod of it", w.Kind, w.Namespace, w.Name)
	if w.Kind == elasticQuota {
		text = fmt.Sprintf("%s %s/%s: there is none", w.Kind, w.Namespace, w.Name)
		if none := noQuotas(c); none != "" {
			return fmt.Errorf("%s %s/%s: %s", w.Kind, w.Namespace, w.Name, none)
		}
		for _, key := range quotas(c.Machine) {
			known[key.Namespace+"/"+key.Name] = true
		}
	}
	if meant := didYouMean(w.Namespace, w.Name, known); meant != "" {
		return fmt.Errorf("%s; %s", text, meant)
	}
	return fmt.Errorf("%s among %d", text, len(known))
}
