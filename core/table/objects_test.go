package table

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
)

// What the reply to a write showed is not undone by a watch that lags behind.
func TestReplied(t *testing.T) {
	tb := New()
	at := func(uid types.UID, version string) *object.PersistentVolume {
		return &object.PersistentVolume{Meta: object.Meta{Kind: object.PersistentVolumes, Name: "v", UID: uid, Version: version}}
	}
	if tb.Objects().Overtakes(at("a", "5")) {
		t.Error("a volume that is not there is overtaken")
	}
	tb.Objects().Set(at("a", "9"))
	for _, tt := range []struct {
		reply *object.PersistentVolume
		want  bool
	}{{at("a", "8"), false}, {at("a", "9"), false}, {at("a", "11"), true}, {at("b", "11"), false}, {at("a", "x"), false}} {
		if got := tb.Objects().Overtakes(tt.reply); got != tt.want {
			t.Errorf("a reply with %s %s overtakes: %t", tt.reply.UID, tt.reply.Version, got)
		}
	}
	if tb.Objects().Overtaken(at("a", "9")) {
		t.Error("overtaken without a reply")
	}
	tb.Objects().Set(at("a", "11"))
	tb.Objects().Replied(at("a", "11"))
	for _, tt := range []struct {
		shown *object.PersistentVolume
		want  bool
	}{{at("a", "10"), true}, {at("a", "11"), true}, {at("a", "12"), false}, {at("b", "10"), false}} {
		if got := tb.Objects().Overtaken(tt.shown); got != tt.want {
			t.Errorf("%s %s is overtaken: %t", tt.shown.UID, tt.shown.Version, got)
		}
	}
	tb.Objects().ForgetReplies()
	if tb.Objects().Overtaken(at("a", "10")) {
		t.Error("overtaken by a reply that is forgotten")
	}
	tb.Objects().Replied(at("a", "11"))
	tb.Objects().Remove(object.PersistentVolumes, "", "v")
	if tb.Objects().Overtaken(at("a", "10")) {
		t.Error("overtaken though it is gone")
	}
}

// TestObjects holds the store against a plain model of what the API showed and
// what is assumed on top of it.
func TestObjects(t *testing.T) {
	type entry struct{ shown, assumed *object.PersistentVolume }
	rapid.Check(t, func(t *rapid.T) {
		tb, model, version := New(), map[string]*entry{}, 0
		volume := func(name string, uid int) *object.PersistentVolume {
			version++
			return &object.PersistentVolume{Meta: object.Meta{Kind: object.PersistentVolumes, Name: name,
				UID: types.UID(fmt.Sprint(name, uid)), Version: fmt.Sprint(version)}}
		}
		some := func() string { return rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name") }
		written := map[string]bool{}
		revision := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				v := volume(some(), rapid.IntRange(0, 1).Draw(t, "uid"))
				before := tb.Objects().Set(v)
				e := model[v.Name]
				if (before != nil) != (e != nil) || e != nil && before != object.Object(e.shown) {
					t.Fatalf("before is %v", before)
				}
				if e == nil {
					e = &entry{}
					model[v.Name] = e
				}
				e.shown = v
				if e.assumed != nil && (written[v.Name] || e.assumed.UID != v.UID) {
					e.assumed = nil
					delete(written, v.Name)
				}
			},
			"remove": func(t *rapid.T) {
				name := some()
				tb.Objects().Remove(object.PersistentVolumes, "", name)
				delete(model, name)
				delete(written, name)
			},
			"assume": func(t *rapid.T) {
				if e := model[some()]; e != nil {
					v := *e.shown
					v.Class = "assumed"
					e.assumed = &v
					delete(written, v.Name)
					tb.Objects().Assume(&v)
				}
			},
			"restore": func(t *rapid.T) {
				if e := model[some()]; e != nil {
					e.assumed = nil
					delete(written, e.shown.Name)
					tb.Objects().Restore(&e.shown.Meta)
				}
			},
			"written": func(t *rapid.T) {
				e := model[some()]
				if e == nil || e.assumed == nil {
					return
				}
				tb.Objects().Written(&e.shown.Meta)
				if e.assumed.Version != e.shown.Version {
					e.assumed = nil
				} else {
					written[e.shown.Name] = true
				}
			},
			"": func(t *rapid.T) {
				var names []string
				for _, o := range tb.Objects().List(object.PersistentVolumes) {
					names = append(names, o.Head().Name)
				}
				if !slices.IsSorted(names) || len(names) != len(model) || len(tb.Objects().List(object.PersistentVolumes)) != len(model) {
					t.Fatalf("lists %v of %d", names, len(model))
				}
				for name, e := range model {
					want := e.shown
					if e.assumed != nil {
						want = e.assumed
					}
					if got := Lookup[*object.PersistentVolume](tb, object.PersistentVolumes, "", name); got != want {
						t.Fatalf("%s is %+v, want %+v", name, got, want)
					}
					if !slices.Contains(tb.Objects().List(object.PersistentVolumes), object.Object(want)) {
						t.Fatalf("%s is listed in another state", name)
					}
					if got := tb.Objects().Shown(object.PersistentVolumes, "", name); got != object.Object(e.shown) {
						t.Fatalf("%s is shown as %+v", name, got)
					}
				}
				if got := Lookup[*object.PersistentVolume](tb, object.PersistentVolumes, "", "never"); got != nil {
					t.Fatalf("never is %v", got)
				}
				now := tb.Objects().Revision(object.PersistentVolumes, object.CSINodes)
				if now < revision {
					t.Fatalf("revision %d after %d", now, revision)
				}
				revision = now
			},
		})
	})
}
