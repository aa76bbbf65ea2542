package why

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/admission"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/workload"
)

// Missing is pods of a workload that its controller never made.
type Missing struct {
	// Workload is kind/namespace/name.
	Workload string `json:"workload"`
	Pods     int    `json:"pods"`
	// Reason is quota, admission, or controller for whatever else its controller says.
	Reason  string     `json:"reason"`
	Message string     `json:"message"`
	Since   *time.Time `json:"since"`
	// Holders are the workloads that hold most of the quota.
	Holders []Holder `json:"holders,omitempty"`
}

// refusal is why a controller makes no pods, as it says itself.
type refusal struct {
	message string
	since   time.Time
}

// missing lists the workloads of the scope that have fewer pods than they want, with what
// their controllers say about it. Without a word of a controller, pods may be on their way.
// whole is false if the context ended before all were looked at.
func (c *Cluster) missing(ctx context.Context, scope *Scope) (all []Missing, whole bool) {
	all = []Missing{}
	pods := workload.NewIndex(c.Set.Pods)
	for _, o := range c.all() {
		if ctx.Err() != nil {
			return all, false
		}
		said := c.refusalOf(o)
		if said == nil {
			continue
		}
		w, ok := workload.Of(o)
		if !ok || !scope.hasWorkload(c, w, o) {
			continue
		}
		m := Missing{Workload: Workload{strings.ToLower(w.Kind), w.Namespace, w.Name}.String(), Pods: c.lacking(w, pods.PodsOf(w)), Reason: reasonOf(said.message), Message: bounded(said.message), Since: pointer(said.since)}
		if m.Pods > 0 {
			m.Holders = c.quotaHolders(w.Namespace, said.message)
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b Missing) int { return strings.Compare(a.Workload, b.Workload) })
	return all, true
}

func (s *Scope) hasWorkload(c *Cluster, w *workload.Workload, o metav1.Object) bool {
	if s.Workload != nil {
		by := metav1.GetControllerOfNoCopy(o)
		return s.Workload.Namespace == w.Namespace && (s.Workload.Kind == strings.ToLower(w.Kind) && s.Workload.Name == w.Name ||
			by != nil && strings.ToLower(by.Kind) == s.Workload.Kind && by.Name == s.Workload.Name)
	}
	pod := v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Labels: w.Template.Labels}}
	return s.Has(c, &pod)
}

// lacking counts the pods that the workload wants and does not have. It owns the pods.
func (c *Cluster) lacking(w *workload.Workload, owned []*v1.Pod) int {
	have := slices.DeleteFunc(owned, func(p *v1.Pod) bool { return decode.Ended(p) || c.neverMade(p) })
	if w.Kind != "DaemonSet" {
		return w.Replicas - len(have)
	}
	more, err := w.Pods(have, c.Set.Nodes, func(string) bool { return false })
	if err != nil {
		return 0
	}
	return len(more)
}

// isUnplaced reports whether the pod has no node and still needs one.
func isUnplaced(p *v1.Pod) bool {
	return p.Spec.NodeName == "" && !decode.Ended(p)
}

// neverMade reports whether the pod is one that the cluster does not have: its controller says
// that it cannot make pods, and this one was made of a file's template.
func (c *Cluster) neverMade(p *v1.Pod) bool {
	if !p.CreationTimestamp.IsZero() || metav1.GetControllerOfNoCopy(p) == nil {
		return false
	}
	if c.refusing == nil {
		c.refusing = map[Workload]bool{}
		for _, o := range c.all() {
			if c.refusalOf(o) == nil {
				continue
			}
			if w, ok := workload.Of(o); ok {
				c.refusing[Workload{strings.ToLower(w.Kind), w.Namespace, w.Name}] = true
			}
		}
	}
	return c.refusing[c.WorkloadOf(p)] && c.Set.Made[p]
}

// refusalOf returns why the controller of the workload, or of one that it made, makes no pods;
// nil where it says nothing.
func (c *Cluster) refusalOf(o metav1.Object) *refusal {
	if r := failure(o); r != nil {
		return r
	}
	events := c.indexEvents()
	for _, below := range c.indexWorkloads().below[keyOf(o)] {
		if r := failure(below); r != nil {
			return r
		}
		if r := events.refusals[keyOf(below)]; r != nil {
			return r
		}
	}
	return events.refusals[keyOf(o)]
}

// failure returns what the condition ReplicaFailure says.
func failure(o metav1.Object) *refusal {
	switch o := o.(type) {
	case *appsv1.Deployment:
		for i := range o.Status.Conditions {
			if c := &o.Status.Conditions[i]; c.Type == appsv1.DeploymentReplicaFailure && c.Status == v1.ConditionTrue {
				return &refusal{c.Message, c.LastTransitionTime.Time}
			}
		}
	case *appsv1.ReplicaSet:
		for i := range o.Status.Conditions {
			if c := &o.Status.Conditions[i]; c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == v1.ConditionTrue {
				return &refusal{c.Message, c.LastTransitionTime.Time}
			}
		}
	case *v1.ReplicationController:
		for i := range o.Status.Conditions {
			if c := &o.Status.Conditions[i]; c.Type == v1.ReplicationControllerReplicaFailure && c.Status == v1.ConditionTrue {
				return &refusal{c.Message, c.LastTransitionTime.Time}
			}
		}
	}
	return nil
}

// reasonOf says what refuses the pods that the message of a controller is about.
func reasonOf(message string) string {
	switch {
	case strings.Contains(message, "exceeded quota"), strings.Contains(message, "failed quota"), strings.Contains(message, "must specify limits"), strings.Contains(message, "must specify requests"):
		return "quota"
	case strings.Contains(message, "is forbidden"), strings.Contains(message, "denied"), strings.Contains(message, "admission webhook"), strings.Contains(message, "is invalid"), strings.Contains(message, "webhook"):
		return "admission"
	}
	return "controller"
}

// Refusing returns the namespaces of workloads of the scope whose controllers say that they cannot
// make pods, and whether one of these is a DaemonSet, whose pods go by nodes.
func (c *Cluster) Refusing(scope *Scope) (namespaces []string, onNodes bool) {
	for _, o := range c.all() {
		if c.refusalOf(o) == nil {
			continue
		}
		if w, ok := workload.Of(o); ok && scope.hasWorkload(c, w, o) {
			namespaces, onNodes = append(namespaces, w.Namespace), onNodes || w.Kind == "DaemonSet"
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces), onNodes
}

// Unmade lists the pods of the scope that were never made, of the namespaces whose pods the set
// has, and those that made room for others. It needs no machine.
func (c *Cluster) Unmade(ctx context.Context, scope Scope, namespaces []string) *List {
	l := &List{}
	l.Missing, _ = c.missing(ctx, &scope)
	l.Missing = slices.DeleteFunc(l.Missing, func(m Missing) bool { return !slices.Contains(namespaces, strings.Split(m.Workload, "/")[1]) })
	l.Preempted = c.preempted(&scope)
	return l
}

// limited finds the quota and the resources that a refusal is about.
var limited = regexp.MustCompile(`exceeded quota: ([^ ,]+), .*, limited: ([^ ]+)`)

// quotaHolders lists the workloads of the namespace that hold most of the quota that the message
// is about, of its first resource: of the pods that the quota counts. It returns nil for a quota or
// resource that is not known.
func (c *Cluster) quotaHolders(namespace, message string) []Holder {
	found := limited.FindStringSubmatch(message)
	if found == nil {
		return nil
	}
	of, _, _ := strings.Cut(found[2], "=")
	resource := v1.ResourceName(strings.TrimPrefix(strings.TrimPrefix(of, v1.DefaultResourceRequestsPrefix), "limits."))
	if resource == "count/pods" {
		resource = v1.ResourcePods
	}
	held := holdings{}
	for _, p := range c.Set.CoveredBy(namespace, found[1]) {
		if decode.Ended(p) || c.neverMade(p) {
			continue
		}
		if q, has := admission.Usage(p)[v1.ResourceName(of)]; has {
			has := q.Value()
			if resource == v1.ResourceCPU {
				has = q.MilliValue()
			}
			held.add(cmp.Or(c.WorkloadOf(p), Workload{"pod", p.Namespace, p.Name}), has)
		}
	}
	return held.holders(c, resource)
}
