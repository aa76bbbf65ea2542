package volumebinding

import (
	"math"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/table"
)

// A node's rate is the mean over its classes of what stays free, and full or senseless
// classes give none.
func TestRate(t *testing.T) {
	s := newScorer(WithDefaults(nil, feature.Features{StorageCapacityScoring: true}).Shape)
	for _, tt := range []struct {
		classes []usage
		want    int64
	}{
		{nil, 0},
		{[]usage{{"a", 1, 4}}, 75},
		{[]usage{{"a", 1, 3}}, 67}, // 33 percent are taken
		{[]usage{{"a", 4, 4}}, 0},
		{[]usage{{"a", 5, 4}}, 0},
		{[]usage{{"a", 0, 0}}, 0},
		{[]usage{{"a", 1, 4}, {"b", 1, 2}}, 63}, // of 62.5
		{[]usage{{"a", math.MaxInt64 / 2, math.MaxInt64}}, 51},
		{[]usage{{"a", -1, 4}}, 0},
	} {
		if got := s.rate(tt.classes); got != tt.want {
			t.Errorf("%v: got %d, want %d", tt.classes, got, tt.want)
		}
	}
}

// Volumes that are there count before those to be made, and those of one class
// share its room.
func TestUsage(t *testing.T) {
	of := func(bytes int64) *object.PersistentVolumeClaim {
		return &object.PersistentVolumeClaim{Class: "c", Bytes: bytes}
	}
	room := &object.CSIStorageCapacity{Free: 10}
	c := choice{made: []makable{{&claim{PersistentVolumeClaim: of(1)}, room}, {&claim{PersistentVolumeClaim: of(2)}, room}, {&claim{PersistentVolumeClaim: of(4)}, nil}}}
	if got := c.usageByClass(nil); !slices.Equal(got, []usage{{"c", 3, 10}}) {
		t.Errorf("made: %v", got)
	}
	c.bound = []bindable{{&object.PersistentVolume{Class: "c", Bytes: 8}, of(5)}, {&object.PersistentVolume{Class: "d", Bytes: 4}, of(3)}, {&object.PersistentVolume{Class: "c", Bytes: 1}, of(1)}}
	if got := c.usageByClass(nil); !slices.Equal(got, []usage{{"c", 6, 9}, {"d", 3, 4}}) {
		t.Errorf("bound: %v", got)
	}
}

// A shape that is wrong is refused.
func TestBadShape(t *testing.T) {
	if _, err := New(&configv1.VolumeBindingArgs{Shape: []configv1.UtilizationShapePoint{{Utilization: 101}}}, feature.Features{StorageCapacityScoring: true}); err == nil {
		t.Error("no error")
	}
}

// TestRoom: of several places that reach the node the first by name.
func TestRoom(t *testing.T) {
	tb := table.New()
	tb.Objects().Set(&object.CSIDriver{Meta: object.Meta{Kind: object.CSIDrivers, Name: "csi"}, StorageCapacity: true})
	for _, name := range []string{"b", "a", "c"} {
		tb.Objects().Set(&object.CSIStorageCapacity{Meta: object.Meta{Kind: object.CSIStorageCapacities, Namespace: "ns", Name: name},
			Class: "class", Known: true, Bytes: 4, Nodes: labels.Everything()})
	}
	c := newClaim(tb, &object.PersistentVolumeClaim{Sized: true, Bytes: 3}, &object.StorageClass{Meta: object.Meta{Name: "class"}, Provisioner: "csi"})
	c.findCapacities(tb)
	if room := c.room(&object.Node{Name: "n"}); room == nil || room.Name != "a" {
		t.Errorf("got %+v", room)
	}
}
