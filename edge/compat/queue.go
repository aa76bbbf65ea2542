package compat

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// preEnqueue returns a function that calls the plugin's PreEnqueue for a pod. A plugin that fails,
// is overdue or cannot be called gates the pod. If the step has no time left, the pod is asked
// about again later.
func (h *Host) preEnqueue(p *hostedPlugin) func(*table.Table, *object.Pod) *decision.Status {
	return func(_ *table.Table, pod *object.Pod) *decision.Status {
		var status *fwk.Status
		ctx, api := klog.NewContext(context.Background(), h.options.Logger), APIPod(pod)
		if *h.inStep() <= 0 {
			h.askGatedLater()
		}
		if err := h.callOnce(pod.UID, "PreEnqueue", p.name, func() { status = p.preEnqueue.PreEnqueue(ctx, api) }); err != nil {
			return decision.Failed("%w", err)
		}
		s := statusOf(status)
		if s != nil && s.Err != nil {
			s.Reasons = nil // they say the same
		}
		return s
	}
}

// askGatedLater starts a timer, once in a step, after which PreEnqueue is called again for
// gated pods: the step has no time left for them.
func (h *Hosts) askGatedLater() {
	if h.step.asksLater {
		return
	}
	h.step.asksLater = true
	time.AfterFunc(h.options.Timeout, func() { h.report(machine.AskGatedAgain{}) })
}

// kinds maps the resources of plugins' events, besides pods and nodes, to the kinds
// that core knows. Plugins have no name for DeviceTaintRules, and register for
// custom resources by another name.
var kinds = func() map[fwk.EventResource]object.Kind {
	named := map[fwk.EventResource]object.Kind{}
	for k := range object.Kinds {
		if k != object.DeviceTaintRules && k.GroupVersion().Group != object.SchedulerPlugins {
			named[fwk.EventResource(k.EventResource())] = k
		}
	}
	return named
}()

// actions maps kube-scheduler's action types to core's.
var actions = []struct {
	theirs fwk.ActionType
	ours   framework.ActionType
}{
	{fwk.Add, framework.Add},
	{fwk.Delete, framework.Delete},
	{fwk.UpdateNodeAllocatable, framework.UpdateNodeAllocatable},
	{fwk.UpdateNodeLabel, framework.UpdateNodeLabel},
	{fwk.UpdateNodeTaint, framework.UpdateNodeTaint},
	{fwk.UpdateNodeCondition, framework.UpdateNodeCondition},
	{fwk.UpdateNodeAnnotation, framework.UpdateNodeAnnotation},
	{fwk.UpdateNodeDeclaredFeature, framework.UpdateNodeDeclaredFeature},
	{fwk.UpdateNodePreemptionPolicy, framework.UpdateNodePreemptionPolicy},
	{fwk.UpdatePodLabel, framework.UpdatePodLabel},
	{fwk.UpdatePodScaleDown, framework.UpdatePodScaleDown},
	{fwk.UpdatePodScaleUp, framework.UpdatePodScaleUp},
	{fwk.UpdatePodToleration, framework.UpdatePodToleration},
	{fwk.UpdatePodSchedulingGatesEliminated, framework.UpdatePodSchedulingGatesEliminated},
	{fwk.UpdatePodGeneratedResourceClaim, framework.UpdatePodGeneratedResourceClaim},
	{fwk.Update, framework.UpdateOther | framework.UpdatePodTerminating},
}

// actionOf converts an action type, a set of bits, to core's. Update stands for any update.
func actionOf(a fwk.ActionType) framework.ActionType {
	var out framework.ActionType
	for _, x := range actions {
		if a&x.theirs == x.theirs {
			out |= x.ours
		}
	}
	return out
}

// eventsOf returns the cluster events that may make a pod schedulable that the plugin has rejected,
// from its EventsToRegister. A plugin without that gets all events. It returns an error if
// EventsToRegister fails, panics or names an unknown resource.
func (h *Host) eventsOf(ctx context.Context, p *hostedPlugin) (list []framework.ClusterEventWithHint, err error) {
	if p.events == nil {
		list = append(list, framework.ClusterEventWithHint{Resource: framework.AssignedPod, ActionType: framework.All},
			framework.ClusterEventWithHint{Resource: framework.UnscheduledPod, ActionType: framework.All},
			framework.ClusterEventWithHint{Resource: framework.TargetPod, ActionType: framework.All},
			framework.ClusterEventWithHint{Resource: framework.Node, ActionType: framework.All})
		for _, kind := range kinds { // any order: each is asked
			list = append(list, framework.ClusterEventWithHint{Resource: framework.ResourceOf(kind), ActionType: framework.All})
		}
		return list, nil
	}
	var events []fwk.ClusterEventWithHint
	if panicked := contain(func() { events, err = p.events.EventsToRegister(ctx) }); panicked != nil {
		err = panicked
	}
	if err != nil {
		return nil, fmt.Errorf("EventsToRegister: %w", err)
	}
	for i := range events {
		if err := known(events[i].Event.Resource); err != nil {
			return nil, err
		}
		if events[i].PreQueueingHintFn != nil && !h.options.PreQueueingHints {
			h.tell(p, "PreQueueingHintFn", "gate", features.SchedulerPreQueueingHints)
		}
		list = append(list, h.eventOf(p, &events[i])...)
	}
	return list, nil
}

// known returns an error if r is neither a resource that kube-scheduler knows nor of
// the form resource.version.group.
func known(r fwk.EventResource) error {
	switch r {
	case fwk.Pod, fwk.AssignedPod, fwk.UnscheduledPod, fwk.TargetPod, fwk.Node, fwk.CompositePodGroup, fwk.WildCard:
		return nil
	}
	if _, ok := builtin(r); ok {
		return nil
	}
	if gvr, _ := schema.ParseResourceArg(string(r)); gvr == nil {
		return fmt.Errorf("EventsToRegister: %q is neither a known resource nor of the form resource.version.group", r)
	}
	return nil
}

// eventOf converts an event that a plugin registered, with its hint; it may become
// several or none. It records that the resource must be watched if core does not send
// its events.
func (h *Host) eventOf(p *hostedPlugin, e *fwk.ClusterEventWithHint) []framework.ClusterEventWithHint {
	resource, action := e.Event.Resource, actionOf(e.Event.ActionType)
	hint := h.narrow(p, e.PreQueueingHintFn, h.hint(p, e.QueueingHintFn))
	on := func(r framework.EventResource) framework.ClusterEventWithHint {
		return framework.ClusterEventWithHint{Resource: r, ActionType: action, QueueingHintFn: hint}
	}
	kind, native := kinds[resource]
	switch {
	case resource == fwk.WildCard:
		return []framework.ClusterEventWithHint{on(framework.WildCard)}
	case resource == fwk.Pod:
		return []framework.ClusterEventWithHint{on(framework.AssignedPod), on(framework.UnscheduledPod), on(framework.TargetPod)}
	case resource == fwk.AssignedPod:
		return []framework.ClusterEventWithHint{on(framework.AssignedPod)}
	case resource == fwk.UnscheduledPod:
		return []framework.ClusterEventWithHint{on(framework.UnscheduledPod)}
	case resource == fwk.TargetPod:
		return []framework.ClusterEventWithHint{on(framework.TargetPod)}
	case resource == fwk.Node:
		return []framework.ClusterEventWithHint{on(framework.Node)}
	case resource == fwk.CompositePodGroup, resource == fwk.PodGroup && !h.options.PodGroups: // the API server may serve none
		return nil
	case native && hint == nil && h.factory == nil:
		return []framework.ClusterEventWithHint{on(framework.ResourceOf(kind))}
	}
	h.watched[string(resource)] = true
	other := on(framework.HostedObject)
	other.QueueingHintFn = func(rejected *object.Pod, event *framework.Event) bool {
		return event.HostedResource == string(resource) && (hint == nil || hint(rejected, event))
	}
	return []framework.ClusterEventWithHint{other}
}

// hint converts a QueueingHintFn to core's types; nil for nil. A hint that fails or is
// overdue queues the pod.
func (h *Host) hint(p *hostedPlugin, f fwk.QueueingHintFn) func(*object.Pod, *framework.Event) bool {
	if f == nil {
		return nil
	}
	return func(rejected *object.Pod, e *framework.Event) bool {
		old, now := objectsOf(e)
		var answer fwk.QueueingHint
		var failed error
		err := h.callOnce("", "QueueingHint", p.name, func() {
			answer, failed = f(h.options.Logger, APIPod(rejected), old, now)
		})
		return err != nil || failed != nil || answer == fwk.Queue
	}
}

// narrow returns the hint (nil: queue any pod) for just the pods that pre names for the event.
// It returns the hint itself if pre is nil or not to be called. pre is called once for an
// event; an event without objects is not narrowed.
func (h *Host) narrow(p *hostedPlugin, pre fwk.PreQueueingHintFn, hint func(*object.Pod, *framework.Event) bool) func(*object.Pod, *framework.Event) bool {
	if pre == nil || !h.options.PreQueueingHints {
		return hint
	}
	var last framework.Event
	var named map[types.NamespacedName]bool // of last; nil: all pods
	return func(rejected *object.Pod, e *framework.Event) bool {
		if *e != last {
			last, named = *e, h.podsNamed(p, pre, e)
		}
		if named != nil && !named[rejected.NamespacedName()] {
			return false
		}
		return hint == nil || hint(rejected, e)
	}
}

// podsNamed returns the pods that the PreQueueingHintFn names for the event; nil for all pods.
// If it fails or is overdue it returns nil.
func (h *Host) podsNamed(p *hostedPlugin, pre fwk.PreQueueingHintFn, e *framework.Event) map[types.NamespacedName]bool {
	old, now := objectsOf(e)
	if old == nil && now == nil {
		return nil
	}
	var result fwk.PreQueueingHintResult
	var failed error
	err := h.callOnce("", "PreQueueingHint", p.name, func() { result, failed = pre(h.options.Logger, old, now) })
	if err == nil {
		err = failed
	}
	if err != nil {
		h.options.Logger.Error(err, "PreQueueingHintFn failed, falling back to evaluate all pods", "plugin", p.name)
		return nil
	}
	if result.AllPods {
		return nil
	}
	named := map[types.NamespacedName]bool{}
	for _, name := range result.Pods {
		named[name] = true
	}
	return named
}

// objectsOf returns the API objects before and after the event; nil if it has none.
func objectsOf(e *framework.Event) (old, now any) {
	if e.OldNode != nil {
		old = APINode(e.OldNode)
	}
	if e.NewNode != nil {
		now = APINode(e.NewNode)
	}
	if e.OldPod != nil {
		old = placedPod(e.OldPod)
	}
	if e.NewPod != nil {
		now = placedPod(e.NewPod)
	}
	if e.Resource == framework.HostedObject {
		old, now = e.OldHostedObject, e.NewHostedObject
	}
	return old, now
}

// placedPod returns the pod's API object with the node and nomination that core's pod has.
func placedPod(p *object.Pod) *v1.Pod {
	pod := onNode(APIPod(p), p.NodeName)
	if pod.Status.NominatedNodeName != p.NominatedNode {
		c := *pod
		c.Status.NominatedNodeName = p.NominatedNode
		return &c
	}
	return pod
}

// resources returns, sorted, the resources besides pods and nodes whose events plugins
// registered for.
func (h *Hosts) resources() []string {
	var list []string
	for r := range h.watched { // any order: sorted below
		list = append(list, r)
	}
	slices.Sort(list)
	return list
}
