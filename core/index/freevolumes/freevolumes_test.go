package freevolumes

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// TestFreeVolumesByPin has volumes come, change and go, and holds what pins them
// against a look at each of them.
func TestFreeVolumesByPin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb, all := table.New(), map[string]*object.PersistentVolume{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			setLabelled(t, tb)
			v := drawVolume(t)
			if all[v.Name] != nil && rapid.IntRange(0, 2).Draw(t, "goes") == 0 {
				tb.Objects().Remove(object.PersistentVolumes, "", v.Name)
				delete(all, v.Name)
			} else {
				tb.Objects().Set(v)
				all[v.Name] = v
			}
			if rapid.IntRange(0, 2).Draw(t, "asked") == 0 {
				compareFree(t, Of(tb).InClass("class"), all)
			}
			if err := tb.Check(); err != nil {
				t.Fatal(err)
			}
		}
		compareFree(t, Of(tb).InClass("class"), all)
	})
}

// setLabelled has a node come, change its labels or go, at times.
func setLabelled(t *rapid.T, tb *table.Table) {
	n := &object.Node{Name: fmt.Sprint("n", rapid.IntRange(0, 3).Draw(t, "node")), Labels: map[string]string{}}
	for _, key := range []string{"zone", "host"} {
		if value := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, key); value != "" {
			n.Labels[key] = value
		}
	}
	switch rapid.IntRange(0, 4).Draw(t, "what") {
	case 0:
		tb.SetNode(n)
	case 1:
		tb.RemoveNode(n.Name)
	}
}

func drawVolume(t *rapid.T) *object.PersistentVolume {
	name := fmt.Sprintf("v%02d", rapid.IntRange(0, 25).Draw(t, "volume"))
	v := &object.PersistentVolume{Meta: object.Meta{Kind: object.PersistentVolumes, Name: name}, Class: "class",
		Bytes: rapid.Int64Range(0, 3).Draw(t, "bytes")}
	if key := rapid.SampledFrom([]string{"", "zone", "zone", "zone", "host"}).Draw(t, "label"); key != "" {
		v.Pin = &object.LabelPin{Key: key, Values: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b"}), 1, 2, rapid.ID).Draw(t, "values")}
	}
	return v
}

// compareFree holds what is kept of the volumes against all of them.
func compareFree(t *rapid.T, got *Volumes, all map[string]*object.PersistentVolume) {
	var unpinned []*object.PersistentVolume
	pinned, keys := map[Pin][]*object.PersistentVolume{}, []string{}
	for _, v := range all { // any order: sorted below
		if v.Pin == nil {
			unpinned = append(unpinned, v)
			continue
		}
		keys = append(keys, v.Pin.Key)
		for _, value := range v.Pin.Values {
			at := Pin{v.Pin.Key, value}
			pinned[at] = append(pinned[at], v)
		}
	}
	same := func(got, want []*object.PersistentVolume) bool {
		slices.SortFunc(want, (*object.PersistentVolume).CompareSize)
		return slices.Equal(got, want)
	}
	slices.Sort(keys)
	if !slices.Equal(got.Keys(), slices.Compact(keys)) || !same(got.Unpinned(), unpinned) {
		t.Fatalf("pinned by %v and %d unpinned, want %v and %d", got.Keys(), len(got.Unpinned()), keys, len(unpinned))
	}
	many := 0
	for at, volumes := range got.ManyPinned() {
		if many++; !same(volumes, pinned[at]) {
			t.Fatalf("%v pins %v, want %v", at, volumes, pinned[at])
		}
	}
	for at, want := range pinned { // any order: each by itself
		if len(want) > Few {
			many--
		} else if !same(got.Pinned(at), want) {
			t.Fatalf("%v pins %v, want %v", at, got.Pinned(at), want)
		}
	}
	if many != 0 {
		t.Fatalf("%d labels more than there are pin many volumes", many)
	}
}
