package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/berth-scheduler/berth/edge/spelling"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/why"
	"github.com/berth-scheduler/berth/edge/workload"
)

// Bounds of the pods that the overview reads.
const (
	pendingPage  = 500
	mostPending  = 10 * pendingPage
	mostOthers   = 10 // schedulers that Berth does not serve
	mostProfiles = 100
	mostName     = 253 // bytes of a schedulerName and of the name of a node
	mostNominees = 10  // nodes whose victims are looked at
	mostOnNode   = 1000
)

// stuckAfter is how much longer than its grace period a victim may take.
const stuckAfter = 10 * time.Second

// Unserved is a scheduler that pods ask for and that no profile of Berth is.
type Unserved struct {
	Scheduler string `json:"scheduler"`
	Pods      int    `json:"pods"`
	// Untouched counts the pods that no scheduler has written a condition for.
	Untouched int `json:"untouched"`
	// Leads is set if a scheduler with a lease of that name leads.
	Leads bool `json:"leads"`

	oldest time.Time // of the untouched
}

// StuckVictim is a pod that should be gone from the node that others are nominated to.
type StuckVictim struct {
	Pod        string   `json:"pod"`
	Node       string   `json:"node"`
	For        []string `json:"for"`
	Seconds    float64  `json:"seconds"` // since its grace period ended
	Finalizers []string `json:"finalizers,omitempty"`
}

// pending reads the pods without a node: which schedulers they ask for that Berth does not serve,
// and whether what they wait for on their nominated nodes goes.
func (s *statusCall) pending(ctx context.Context, o *Overview, core corev1.PodsGetter, leases coordinationv1.LeasesGetter) {
	switch {
	case o.empty():
		return
	case o.Scheduler == nil:
		o.miss("the pods that wait", errors.New("only the scheduler says which profiles it has, and what it says is not known"))
		return
	case o.Scheduler.Shadow != nil:
		return
	}
	profiles := o.Scheduler.Configuration.Profiles
	if long := func(name string) bool { return len(name) > mostName }; len(profiles) == 0 || len(profiles) > mostProfiles || slices.ContainsFunc(profiles, long) {
		return // it is no Berth that says so
	}
	ctx, cancel := s.part(ctx)
	defer cancel()
	unserved, nominated := map[string]*Unserved{}, map[string][]string{}
	err := eachPending(ctx, core, func(p *v1.Pod) {
		name := cmp.Or(p.Spec.SchedulerName, v1.DefaultSchedulerName)
		switch node := p.Status.NominatedNodeName; {
		case len(name) > mostName, len(node) > mostName:
		case !slices.Contains(profiles, name):
			if unserved[name] == nil {
				unserved[name] = &Unserved{Scheduler: name}
			}
			unserved[name].count(p)
		case node != "":
			nominated[node] = append(nominated[node], p.Namespace+"/"+p.Name)
		}
	})
	if err != nil {
		o.miss("some pods without a node", cmp.Or(silence(ctx), err))
	}
	for _, name := range slices.SortedFunc(maps.Keys(unserved), func(a, b string) int {
		return cmp.Or(cmp.Compare(unserved[b].Pods, unserved[a].Pods), cmp.Compare(a, b))
	})[:min(mostOthers, len(unserved))] {
		u := unserved[name]
		u.Leads = leadsElsewhere(ctx, leases, name, o.clock.now())
		o.Unserved = append(o.Unserved, *u)
	}
	for _, node := range slices.Sorted(maps.Keys(nominated))[:min(mostNominees, len(nominated))] {
		if err := o.addStuck(ctx, core, node, nominated[node]); err != nil {
			o.miss("the pods on node "+node, cmp.Or(silence(ctx), err))
			return
		}
	}
}

// eachPending calls use with each pod without a node that has not ended.
func eachPending(ctx context.Context, core corev1.PodsGetter, use func(*v1.Pod)) error {
	options := metav1.ListOptions{FieldSelector: "spec.nodeName=,status.phase=Pending", Limit: pendingPage}
	for read := 0; ; {
		list, err := core.Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			if p := &list.Items[i]; p.Spec.NodeName == "" && p.DeletionTimestamp == nil {
				use(p)
			}
		}
		if err := turn(&options, list); err != nil || options.Continue == "" {
			return err
		}
		if read += len(list.Items); read >= mostPending {
			return fmt.Errorf("there are more than %d", read)
		}
	}
}

func (u *Unserved) count(p *v1.Pod) {
	u.Pods++
	if why.NotScheduled(p) != nil || len(p.Spec.SchedulingGates) > 0 {
		return
	}
	u.Untouched++
	if at := p.CreationTimestamp.Time; u.Untouched == 1 || at.Before(u.oldest) {
		u.oldest = at
	}
}

// leadsElsewhere reports whether somebody holds a lease that is called as the scheduler is.
func leadsElsewhere(ctx context.Context, leases coordinationv1.LeasesGetter, scheduler string, now time.Time) bool {
	if scheduler == v1.DefaultSchedulerName {
		scheduler = "kube-scheduler"
	}
	list, err := leases.Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + scheduler, Limit: mostOthers})
	if err != nil {
		l, err := leases.Leases(metav1.NamespaceSystem).Get(ctx, scheduler, metav1.GetOptions{})
		return err == nil && leaseStatus(l, now).lapse() == ""
	}
	for i := range list.Items {
		if l := &list.Items[i]; l.Name == scheduler && leaseStatus(l, now).lapse() == "" {
			return true
		}
	}
	return false
}

// addStuck adds the pods on a node that should be gone by now.
func (o *Overview) addStuck(ctx context.Context, core corev1.PodsGetter, node string, by []string) error {
	list, err := core.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node, Limit: mostOnNode})
	if err != nil {
		return err
	}
	now := o.clock.now()
	for i := range list.Items {
		p := &list.Items[i]
		_, due, terminating := workload.Termination(p)
		if p.Spec.NodeName != node || !terminating || now.Sub(due) < stuckAfter {
			continue
		}
		o.StuckVictims = append(o.StuckVictims, StuckVictim{p.Namespace + "/" + p.Name, node, by, now.Sub(due).Seconds(), p.Finalizers})
	}
	return nil
}

// judgePending looks at what the pods without a node wait for. A scheduler that Berth does not
// serve is none of its faults unless nobody has looked at the pods.
func (o *Overview) judgePending(now time.Time) {
	for i := range o.Unserved {
		u := &o.Unserved[i]
		near := spelling.Profile(u.Scheduler, o.Scheduler.Configuration.Profiles)
		waits := now.Sub(u.oldest)
		switch {
		case u.Untouched == 0 || u.Leads:
		case near != "":
			o.attend("%s the scheduler %s, which no profile serves%s", wantText(u.Untouched), u.Scheduler, near)
		case waits >= young:
			o.attend("%s the scheduler %s, which Berth does not serve, and no scheduler has looked at them for up to %s", wantText(u.Untouched), u.Scheduler, ageText(waits.Seconds()))
		}
	}
	for i := range o.StuckVictims[:min(shownPreemptions, len(o.StuckVictims))] {
		v := &o.StuckVictims[i]
		held := ""
		if len(v.Finalizers) > 0 {
			held = "; it keeps " + strings.Join(v.Finalizers, ", ")
		}
		o.attend("%s for %s to leave %s, whose grace period ended %s ago%s", waitsText(v.For), v.Pod, v.Node, ageText(v.Seconds), held)
	}
	if more := len(o.StuckVictims) - shownPreemptions; more > 0 {
		o.attend("%s more should be gone from the nodes that pods are nominated to", terminal.Count(more, "pod"))
	}
}

func wantText(pods int) string {
	if pods == 1 {
		return "1 pod wants"
	}
	return fmt.Sprintf("%d pods want", pods)
}

// waitsText says which pods wait.
func waitsText(pods []string) string {
	if len(pods) == 1 {
		return pods[0] + " waits"
	}
	return fmt.Sprintf("%s and %d more wait", pods[0], len(pods)-1)
}
