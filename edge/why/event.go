package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
)

// actions are the parts of an ActionType, and what they are in plain words.
var actions = []struct {
	action framework.ActionType
	text   string
}{
	{framework.Add, "comes"},
	{framework.Delete, "goes"},
	{framework.UpdateNodeAllocatable, "offers more resources"},
	{framework.UpdateNodeLabel, "gets other labels"},
	{framework.UpdateNodeTaint, "loses a taint or is uncordoned"},
	{framework.UpdateNodeCondition, "changes its conditions"},
	{framework.UpdateNodeAnnotation, "gets other annotations"},
	{framework.UpdateNodeDeclaredFeature, "declares other features"},
	{framework.UpdateNodePreemptionPolicy, "gets another preemption policy"},
	{framework.UpdatePodLabel, "gets other labels"},
	{framework.UpdatePodScaleDown, "requests less"},
	{framework.UpdatePodScaleUp, "requests more"},
	{framework.UpdatePodSchedulingGatesEliminated, "loses its scheduling gates"},
	{framework.UpdatePodToleration, "gets a toleration"},
	{framework.UpdatePodGeneratedResourceClaim, "has its resource claims generated"},
	{framework.UpdateNamespaceLabel, "gets other labels"},
	{framework.UpdateSelector, "changes its selector"},
	{framework.UpdatePodTerminating, "begins to go"},
	{framework.UpdateOther, "changes"},
}

// events are what may requeue the pod, from the plugins that rejected it.
func (c *Cluster) events(a *Answer, p *object.Pod, d *decision.Decision) []Event {
	events := []Event{}
	profile := c.Machine.Profile(p.SchedulerName)
	if profile == nil {
		return events
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(d.RejectedBy, d.PendingBy)))) {
		pl := profile.Plugins[name]
		if pl == nil {
			continue
		}
		for _, e := range pl.EventsToRegister {
			events = append(events, eventsOf(name, e)...)
		}
	}
	slices.SortFunc(events, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Text, b.Text))
	})
	if room := a.leastRoom(); room != "" {
		for i := range events {
			if e := &events[i]; e.Plugin == names.NodeResourcesFit && e.Resource == "Pod" && e.Action == "Delete" {
				e.Text = room
			}
		}
	}
	return slices.CompactFunc(events, func(a, b Event) bool {
		return a.Plugin == b.Plugin && a.Resource == b.Resource && a.Action == b.Action
	})
}

// leastRoom is what has to become free where the pod comes nearest, in words; ""
// where it is not room of one kind that is short.
func (a *Answer) leastRoom() string {
	for i := range a.Groups {
		b := a.Groups[i].Blockers
		if len(b) != 1 || b[0].Plugin != names.NodeResourcesFit || b[0].Code != decision.Unschedulable.String() || len(b[0].insufficient) != 1 {
			continue
		}
		resource := b[0].insufficient[0]
		if resource == v1.ResourcePods {
			return ""
		}
		node, free, _ := a.facts.freest(resource, a.Groups[i].names)
		short := a.facts.pod.Demand.Requests.Of(resource) - free
		return fmt.Sprintf("a pod on %s that frees %s goes", node, amount(resource, short))
	}
	return ""
}

func eventsOf(plugin string, e framework.ClusterEventWithHint) (events []Event) {
	kind, noun := nounOf(e.Resource)
	for _, a := range actions {
		if e.ActionType&a.action == 0 {
			continue
		}
		text := fmt.Sprintf("%s %s", noun, a.text)
		own := e.Resource == framework.TargetPod && a.action&framework.UpdatePod != 0
		switch {
		case own:
			text = "the pod itself " + a.text
		case kind == "Pod" && a.action == framework.Delete && plugin == names.NodeResourcesFit:
			text = "a pod goes and frees room on its node"
		case kind == "Pod" && a.action == framework.Delete && plugin == names.NodePorts:
			text = "the pod that has the port goes"
		}
		events = append(events, Event{Resource: kind, Action: a.action.String(), Plugin: plugin, Text: text, own: own})
	}
	return events
}

// article is "a", or "an" before a vowel.
func article(noun string) string {
	if strings.ContainsAny(noun[:1], "AEIO") {
		return "an"
	}
	return "a"
}

// nounOf is the API's name of a resource, and a noun for it.
func nounOf(r framework.EventResource) (kind, noun string) {
	switch r {
	case framework.AssignedPod, framework.UnscheduledPod, framework.TargetPod:
		return "Pod", "a pod"
	case framework.Node:
		return "Node", "a node"
	case framework.Namespace:
		return "Namespace", "a namespace"
	case framework.SelectorOwner:
		return "Service", "a Service or controller"
	}
	if k, ok := r.Kind(); ok {
		return k.String(), article(k.String()) + " " + k.String()
	}
	return "*", "anything"
}
