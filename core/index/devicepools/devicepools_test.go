package devicepools

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// deviceWorld draws slices and claims, few of each, so that they get into each
// other's way.
type deviceWorld struct {
	*rapid.T
	version int
}

func (w *deviceWorld) meta(kind object.Kind, name string) object.Meta {
	w.version++
	return object.Meta{Kind: kind, Name: name, UID: types.UID(name), Version: fmt.Sprint(w.version)}
}

func (w *deviceWorld) slice() *object.ResourceSlice {
	name := rapid.SampledFrom([]string{"s1", "s2", "s3", "s4"}).Draw(w.T, "slice")
	spec := resourcev1.ResourceSliceSpec{
		Driver: rapid.SampledFrom([]string{"x", "y"}).Draw(w.T, "driver"),
		Pool:   resourcev1.ResourcePool{Name: rapid.SampledFrom([]string{"p", "q"}).Draw(w.T, "pool")},
	}
	if node := rapid.SampledFrom([]string{"a", "a", "b", "", "none"}).Draw(w.T, "node"); node != "none" {
		spec.NodeName = &node
	}
	if rapid.IntRange(0, 4).Draw(w.T, "counters") == 0 {
		spec.SharedCounters = []resourcev1.CounterSet{{Name: "c"}}
	}
	for i := range rapid.IntRange(0, 2).Draw(w.T, "devices") {
		spec.Devices = append(spec.Devices, resourcev1.Device{Name: []string{"d", "e"}[i]})
	}
	s := &object.ResourceSlice{Meta: w.meta(object.ResourceSlices, name), API: &resourcev1.ResourceSlice{Spec: spec}}
	s.API.Name = name
	return s
}

func (w *deviceWorld) claim() *object.ResourceClaim {
	name := rapid.SampledFrom([]string{"c1", "c2", "c3"}).Draw(w.T, "claim")
	c := &object.ResourceClaim{Meta: w.meta(object.ResourceClaims, name), API: &resourcev1.ResourceClaim{}}
	if rapid.IntRange(0, 2).Draw(w.T, "allocated") == 0 {
		return c
	}
	a := &resourcev1.AllocationResult{}
	for range rapid.IntRange(0, 3).Draw(w.T, "results") {
		r := resourcev1.DeviceRequestAllocationResult{
			Driver: rapid.SampledFrom([]string{"x", "y"}).Draw(w.T, "driver"), Pool: rapid.SampledFrom([]string{"p", "q"}).Draw(w.T, "pool"),
			Device: rapid.SampledFrom([]string{"d", "e"}).Draw(w.T, "device"),
		}
		if admin := rapid.IntRange(0, 5).Draw(w.T, "admin"); admin < 2 {
			access := admin == 0
			r.AdminAccess = &access
		}
		a.Devices.Results = append(a.Devices.Results, r)
	}
	c.API.Status.Allocation = a
	return c
}

func (w *deviceWorld) rule() *object.DeviceTaintRule {
	some := func(label string, values ...string) *string {
		if rapid.Bool().Draw(w.T, label) {
			return nil
		}
		return new(rapid.SampledFrom(values).Draw(w.T, label))
	}
	return &object.DeviceTaintRule{Meta: w.meta(object.DeviceTaintRules, rapid.SampledFrom([]string{"r1", "r2"}).Draw(w.T, "rule")),
		Driver: some("driver", "x", "y"), Pool: some("pool", "p", "q"), Device: some("device", "d", "e"),
		Taint: resourcev1.DeviceTaint{Key: rapid.SampledFrom([]string{"k", "l"}).Draw(w.T, "key")}}
}

// checkRetainted changes a rule: exactly the slices whose taints differ are told of.
func (w *deviceWorld) checkRetainted(t *table.Table, change func()) {
	before := map[string]string{}
	for _, o := range t.Objects().List(object.ResourceSlices) {
		before[o.Head().Name] = taintsOf(Of(t).Tainted(o.(*object.ResourceSlice)).API)
	}
	change()
	var want, got []string
	for _, o := range t.Objects().List(object.ResourceSlices) {
		if taintsOf(Of(t).Tainted(o.(*object.ResourceSlice)).API) != before[o.Head().Name] {
			want = append(want, o.Head().Name)
		}
	}
	for _, s := range Of(t).Retainted() {
		got = append(got, s.New.Name)
	}
	if !slices.Equal(got, want) {
		w.T.Fatalf("slices %v are told of, %v have other taints", got, want)
	}
}

func taintsOf(s *resourcev1.ResourceSlice) string {
	var b strings.Builder
	for _, d := range s.Spec.Devices {
		fmt.Fprint(&b, d.Name, d.Taints, " ")
	}
	return b.String()
}

// change does one thing to the table.
func (w *deviceWorld) change(t *table.Table) {
	claims := t.Objects().List(object.ResourceClaims)
	switch rapid.IntRange(0, 11).Draw(w.T, "what") {
	case 0, 1:
		t.Objects().Set(w.slice())
	case 2:
		t.Objects().Remove(object.ResourceSlices, "", w.slice().Name)
	case 3, 4:
		t.Objects().Set(w.claim())
	case 5:
		t.Objects().Remove(object.ResourceClaims, "", w.claim().Name)
	case 6: // the same slice again, in another object
		if all := t.Objects().List(object.ResourceSlices); len(all) > 0 {
			again := *rapid.SampledFrom(all).Draw(w.T, "again").(*object.ResourceSlice)
			again.API = again.API.DeepCopy()
			t.Objects().Set(&again)
		}
	case 7:
		if len(claims) > 0 {
			shown := rapid.SampledFrom(claims).Draw(w.T, "assumed").Head()
			c := w.claim()
			c.Name, c.UID, c.Version = shown.Name, shown.UID, shown.Version
			t.Objects().Assume(c)
		}
	case 8:
		if len(claims) > 0 {
			t.Objects().Restore(rapid.SampledFrom(claims).Draw(w.T, "restored").Head())
		}
	case 9, 10:
		w.checkRetainted(t, func() { t.Objects().Set(w.rule()) })
	case 11:
		w.checkRetainted(t, func() { t.Objects().Remove(object.DeviceTaintRules, "", w.rule().Name) })
	}
}

// seen is what the node sees of devices, and that only.
func seen(t *table.Table, node string) string {
	var b strings.Builder
	for _, p := range append(slices.Clone(Of(t).On(node)), Of(t).Shared()...) {
		fmt.Fprintf(&b, "%s/%s node %q local %v:", p.Driver, p.Name, p.Node, p.Local)
		for _, s := range p.Slices {
			fmt.Fprintf(&b, " %s(%s, %d counters, for %v)", s.Name, taintsOf(s), len(s.Spec.SharedCounters), s.Spec.NodeName != nil)
		}
		var taken []string
		if p.Node == "" || p.Node == node { // else what is taken is that node's business
			for _, r := range p.Taken {
				taken = append(taken, r.Device)
			}
		}
		slices.Sort(taken)
		fmt.Fprintln(&b, " taken", taken)
	}
	return b.String()
}

// Whatever came and went, the table shows of devices what one shows that was
// given only what is there now; and whoever sees something else is told.
func TestDevicesFollowTheObjects(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, tb := &deviceWorld{T: rt}, table.New()
		for _, name := range []string{"a", "b"} {
			tb.SetNode(&object.Node{Name: name})
		}
		for range rapid.IntRange(1, 30).Draw(rt, "changes") {
			before := map[string]string{"a": seen(tb, "a"), "b": seen(tb, "b")}
			revision, devices := tb.Revision(), Of(tb).Revision()
			w.change(tb)
			for node, was := range before {
				row, _ := tb.Find(node)
				told := Of(tb).Revision() != devices || slices.Contains(tb.AppendChanged(nil, revision, 10), row)
				if is := seen(tb, node); is != was && !told {
					rt.Fatalf("node %s is not told: it saw\n%s\nand sees\n%s", node, was, is)
				}
			}
		}
		fresh := table.New()
		for _, kind := range []object.Kind{object.DeviceTaintRules, object.ResourceClaims, object.ResourceSlices} {
			for _, o := range tb.Objects().List(kind) {
				fresh.Objects().Set(o)
			}
		}
		for _, node := range []string{"a", "b", ""} {
			if got, want := seen(tb, node), seen(fresh, node); got != want {
				rt.Fatalf("node %q sees\n%s\nand with a fresh table\n%s", node, got, want)
			}
		}
		if got, want := len(Of(tb).pools), len(Of(fresh).pools); got != want {
			rt.Fatalf("%d pools are kept, %d are there", got, want)
		}
	})
}

// That nodes share no devices is found out once.
func TestNoSharedPoolsAreLookedForOnce(t *testing.T) {
	tb, node := table.New(), "a"
	tb.Objects().Set(&object.ResourceSlice{Meta: object.Meta{Kind: object.ResourceSlices, Name: "s"}, API: &resourcev1.ResourceSlice{
		Spec: resourcev1.ResourceSliceSpec{Driver: "x", NodeName: &node, Pool: resourcev1.ResourcePool{Name: "p"}}}})
	if n := testing.AllocsPerRun(10, func() {
		if len(Of(tb).Shared()) != 0 {
			t.Error("a node's own pool is shared")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
