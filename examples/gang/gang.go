// Package gang has two plugins that keep state, written against
// k8s.io/kube-scheduler/framework. Gang binds the pods with one label
// example.com/gang together: by Permit, once as many as the annotation
// example.com/gang-size says have a node. Quota lets a namespace have that many pods
// that this scheduler placed: by PreFilter, with AddPod and RemovePod, so that
// preemption sees whose pods to take.
package gang

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-scheduler/framework"
)

// The names of the plugins.
const (
	Name      = "Gang"
	QuotaName = "Quota"
)

const (
	label = "example.com/gang"
	size  = "example.com/gang-size"
	// patience is how long a pod waits for the others.
	patience = 30 * time.Second
)

// Gang holds pods until their gang is complete.
type Gang struct{ handle framework.Handle }

var (
	_ framework.PermitPlugin  = &Gang{}
	_ framework.ReservePlugin = &Gang{}
)

// New makes the plugin Gang.
func New(_ context.Context, _ runtime.Object, h framework.Handle) (framework.Plugin, error) {
	return &Gang{h}, nil
}

// Name is the plugin's name.
func (g *Gang) Name() string { return Name }

// Reserve has nothing to do.
func (g *Gang) Reserve(context.Context, framework.CycleState, *v1.Pod, string) *framework.Status {
	return nil
}

// Unreserve gives the others up, too: a gang is placed together.
func (g *Gang) Unreserve(_ context.Context, _ framework.CycleState, p *v1.Pod, _ string) {
	g.each(p, func(w framework.WaitingPod) { w.Reject(Name, "a pod of the gang was not placed") })
}

// Permit holds the pod while the gang is not complete, else it lets all go.
func (g *Gang) Permit(_ context.Context, _ framework.CycleState, p *v1.Pod, _ string) (*framework.Status, time.Duration) {
	wanted, _ := strconv.Atoi(p.Annotations[size])
	here := 1
	g.each(p, func(framework.WaitingPod) { here++ })
	if here < wanted {
		return framework.NewStatus(framework.Wait), patience
	}
	g.each(p, func(w framework.WaitingPod) { w.Allow(Name) })
	return nil, 0
}

// each visits the waiting pods of the pod's gang.
func (g *Gang) each(p *v1.Pod, visit func(framework.WaitingPod)) {
	if p.Labels[label] == "" {
		return
	}
	g.handle.IterateOverWaitingPods(func(w framework.WaitingPod) {
		if other := w.GetPod(); other.Namespace == p.Namespace && other.Labels[label] == p.Labels[label] && other.UID != p.UID {
			visit(w)
		}
	})
}

// Quota bounds the pods of a namespace.
type Quota struct {
	Max int `json:"max"`
}

var _ framework.PreFilterPlugin = &Quota{}

// NewQuota makes the plugin Quota.
func NewQuota(_ context.Context, args runtime.Object, _ framework.Handle) (framework.Plugin, error) {
	q := &Quota{Max: 10}
	if raw, ok := args.(*runtime.Unknown); ok {
		if err := json.Unmarshal(raw.Raw, q); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// Name is the plugin's name.
func (q *Quota) Name() string { return QuotaName }

// used is how many pods the namespace has.
type used struct{ pods int }

// Clone copies it.
func (u *used) Clone() framework.StateData { c := *u; return &c }

const key framework.StateKey = QuotaName

// PreFilter counts.
func (q *Quota) PreFilter(_ context.Context, state framework.CycleState, p *v1.Pod, nodes []framework.NodeInfo) (*framework.PreFilterResult, *framework.Status) {
	u := &used{}
	for _, n := range nodes {
		for _, other := range n.GetPods() {
			if counts(p, other.GetPod()) {
				u.pods++
			}
		}
	}
	state.Write(key, u)
	return nil, nil
}

func counts(p, other *v1.Pod) bool {
	return other.Namespace == p.Namespace && other.Spec.SchedulerName == p.Spec.SchedulerName
}

// PreFilterExtensions keep the count up.
func (q *Quota) PreFilterExtensions() framework.PreFilterExtensions { return q }

// AddPod counts a pod that is placed for a try.
func (q *Quota) AddPod(_ context.Context, state framework.CycleState, p *v1.Pod, added framework.PodInfo, _ framework.NodeInfo) *framework.Status {
	return change(state, p, added, 1)
}

// RemovePod counts a pod that is removed for a try.
func (q *Quota) RemovePod(_ context.Context, state framework.CycleState, p *v1.Pod, removed framework.PodInfo, _ framework.NodeInfo) *framework.Status {
	return change(state, p, removed, -1)
}

func change(state framework.CycleState, p *v1.Pod, other framework.PodInfo, by int) *framework.Status {
	u, err := state.Read(key)
	if err != nil {
		return framework.AsStatus(err)
	}
	if counts(p, other.GetPod()) {
		u.(*used).pods += by
	}
	return nil
}

// Filter rejects every node where the quota is used up.
func (q *Quota) Filter(_ context.Context, state framework.CycleState, _ *v1.Pod, _ framework.NodeInfo) *framework.Status {
	u, err := state.Read(key)
	if err != nil {
		return framework.AsStatus(err)
	}
	if u.(*used).pods >= q.Max {
		return framework.NewStatus(framework.Unschedulable, "the namespace's quota is used up")
	}
	return nil
}
