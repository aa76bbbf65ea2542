package config

import (
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/queue"
)

// wokenElsewhere are the events for which kube-scheduler's plugin registers and Berth's does
// not, alsoWakes those for which Berth's registers alone: each with the reason.
var (
	wokenElsewhere = map[string]string{
		"DefaultPreemption AssignedPodDelete":                  "the queue waits for evictions that are under way",
		"DeferredPodScheduling NodeAdd":                        "only the refused gate enables the plugin",
		"DeferredPodScheduling NodeUpdateNodePreemptionPolicy": "only the refused gate enables the plugin",
		"NodeResourcesFit AssignedPodUpdatePodScaleUp":         "only a refused gate registers it",
		"NodeResourcesFit TargetPodUpdatePodScaleUp":           "only a refused gate registers it",
		"GangScheduling CompositePodGroupAdd":                  "only a refused gate registers it",
	}
	alsoWakes = map[string]string{
		"DynamicResources AssignedPodDelete":             "it frees what devices take of the node's resources",
		"DynamicResources AssignedPodUpdatePodScaleDown": "it frees what devices take of the node's resources",
		"DynamicResources ResourceSliceDelete":           "it made its pool invalid",
		"InterPodAffinity NamespaceUpdateNamespaceLabel": "a namespaceSelector selects other namespaces",
		"InterPodAffinity NodeDelete":                    "the pods of a domain go with it",
		"NodeVolumeLimits CSIDriverDelete":               "no driver has to be on the node any more",
		"NodeVolumeLimits CSIDriverUpdate":               "no driver has to be on the node any more",
		"NodeVolumeLimits CSINodeDelete":                 "the node has no limit any more",
		"NodeVolumeLimits NodeAdd":                       "a new node has room",
		"NodeVolumeLimits PersistentVolumeAdd":           "the volume is one that is attached already",
		"NodeVolumeLimits PersistentVolumeDelete":        "the volume counts no more",
		"NodeVolumeLimits PersistentVolumeUpdate":        "the volume is one that is attached already",
		"NodeVolumeLimits PersistentVolumeClaimDelete":   "the volume counts no more",
		"NodeVolumeLimits PersistentVolumeClaimUpdate":   "the claim is bound to a volume that is attached already",
		"NodeVolumeLimits StorageClassDelete":            "the claim has no driver any more, and counts no more",
		"PodTopologySpread AssignedPodUpdate":            "a pod that terminates counts no more",
		"PodTopologySpread SelectorOwnerAdd":             "the default constraints select other pods",
		"PodTopologySpread SelectorOwnerDelete":          "the default constraints select other pods",
		"PodTopologySpread SelectorOwnerUpdateSelector":  "the default constraints select other pods",
		"PodTopologySpread TargetPodUpdate":              "its constraints, or the controller that the default ones go by, are others",
		"VolumeBinding CSIDriverDelete":                  "the capacity that the driver reports counts no more",
		"VolumeBinding CSINodeDelete":                    "no driver of the node serves the volumes of an in-tree plugin any more",
		"VolumeBinding PersistentVolumeDelete":           "it was reserved for a claim of the pod",
		"VolumeRestrictions NodeDelete":                  "the pods that hold a claim go with it",
	}
)

// Each plugin registers for the events for which kube-scheduler's does.
func TestWakeUpsAreUpstreams(t *testing.T) {
	got := map[string]bool{}
	for name, pl := range defaultProfile(t, "AllAlpha=true,AllBeta=true").Plugins {
		for _, w := range pl.EventsToRegister {
			for action := framework.ActionType(1); action != 0; action <<= 1 {
				if w.ActionType&action == 0 {
					continue
				}
				label := queue.Label(w.Resource, action)
				got[name+" "+label[strings.Index(label, "/")+1:]] = true // without the group
			}
		}
	}
	want := map[string]bool{}
	for _, line := range upstream(t, "wakeups") {
		name, event, _ := strings.Cut(line, ": ")
		resource, actions, _ := strings.Cut(event, " ")
		for action := range strings.SplitSeq(actions, "|") {
			want[name+" "+resource+action] = true
		}
	}
	for event := range want {
		if got[event] == (wokenElsewhere[event] != "") {
			t.Errorf("%s: registered %v, listed as woken elsewhere %q", event, got[event], wokenElsewhere[event])
		}
	}
	for event := range got {
		resource, _, _ := strings.Cut(event, "Update")
		anyUpdate := resource + "Update" // stands for each update
		if !want[event] && !want[anyUpdate] && alsoWakes[event] == "" && alsoWakes[anyUpdate] == "" {
			t.Errorf("%s: kube-scheduler does not register it", event)
		}
	}
	for event := range wokenElsewhere {
		if !want[event] {
			t.Errorf("%s is listed, and kube-scheduler does not register it", event)
		}
	}
	for event := range alsoWakes {
		if !got[event] || want[event] {
			t.Errorf("%s is listed as Berth's own: registered %v, by kube-scheduler %v", event, got[event], want[event])
		}
	}
}
