package compat

import (
	"iter"
	"os"
	"strings"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/object"
)

// Every resource that plugins can name without a version is known, and the kinds
// have plugins' names for them.
func TestResourcesHavePluginsNames(t *testing.T) {
	for resource, kind := range map[fwk.EventResource]object.Kind{
		fwk.PersistentVolume: object.PersistentVolumes, fwk.PersistentVolumeClaim: object.PersistentVolumeClaims,
		fwk.CSINode: object.CSINodes, fwk.CSIDriver: object.CSIDrivers, fwk.CSIStorageCapacity: object.CSIStorageCapacities,
		fwk.VolumeAttachment: object.VolumeAttachments, fwk.StorageClass: object.StorageClasses,
		fwk.ResourceClaim: object.ResourceClaims, fwk.ResourceSlice: object.ResourceSlices, fwk.DeviceClass: object.DeviceClasses,
		fwk.PodGroup: object.PodGroups,
	} {
		if got, ok := kinds[resource]; !ok || got != kind {
			t.Errorf("%s is %s (%v), want %s", resource, got, ok, kind)
		}
		if gvr, ok := builtin(resource); !ok || gvr.Resource != kind.Resource() {
			t.Errorf("%s is found at %v (%v)", resource, gvr, ok)
		}
	}
	for resource := range upstreamLabels(t, "resource") {
		if err := known(fwk.EventResource(resource)); err != nil {
			t.Error(err)
		}
	}
	if gvr, ok := builtin("DeviceTaintRule"); ok {
		t.Errorf("plugins have no name for device taint rules, and they are found at %v", gvr)
	}
}

// Each action that plugins can register for is one of Berth's.
func TestActionsArePassedOn(t *testing.T) {
	for a := fwk.Add; a&fwk.All != 0; a <<= 1 {
		if actionOf(a) == 0 {
			t.Errorf("%s is none of Berth's actions", a)
		}
	}
	named := map[string]bool{fwk.All.String(): true, "None": true}
	for _, a := range actions {
		named[a.theirs.String()] = true
	}
	for action := range upstreamLabels(t, "action") {
		if !named[action] {
			t.Errorf("%s is none of Berth's actions", action)
		}
	}
}

// upstreamLabels yields kube-scheduler's names of the parts of events: resources or actions.
func upstreamLabels(t *testing.T, part string) iter.Seq[string] {
	text, err := os.ReadFile("../../testdata/upstream/events.txt")
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(string) bool) {
		for line := range strings.Lines(string(text)) {
			if name, is := strings.CutPrefix(strings.TrimSpace(line), "label, "+part+" "); is && !yield(name) {
				return
			}
		}
	}
}
