package dynamicresources

import (
	"fmt"
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// zones is a table of nodes named after their zone, and a class that fails on devices
// without a model.
func zones(names ...string) *table.Table {
	var nodes []*object.Node
	for _, name := range names {
		nodes = append(nodes, &object.Node{Name: name, Labels: map[string]string{"zone": name}})
	}
	t := plugintest.Table(nodes...)
	t.Objects().Set(&object.DeviceClass{Meta: object.Meta{Kind: object.DeviceClasses, Name: "gpu"}, API: &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: `device.attributes["gpu"].model == "odd"`}}}}}})
	return t
}

func inZone(zone string) *v1.NodeSelector {
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
		{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{zone}}}}}}
}

// soundDevice is one that the class selects. It fails on an unsoundDevice.
func soundDevice(name string) resourcev1.Device {
	return resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: new("odd")}}}
}

func unsoundDevice(name string) resourcev1.Device { return resourcev1.Device{Name: name} }

// showPool shows a pool of one slice, which reaches the nodes that spec says.
func showPool(t *table.Table, name string, spec resourcev1.ResourceSliceSpec, devices ...resourcev1.Device) {
	spec.Driver, spec.Devices = "gpu", devices
	spec.Pool = resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1}
	t.Objects().Set(&object.ResourceSlice{Meta: object.Meta{Kind: object.ResourceSlices, Name: name},
		API: &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}})
}

// verdicts asks about a claim of one device on each node, and compares what is told with
// a search there.
func verdicts(t *testing.T, tb *table.Table, pl *plugin, name string) map[string]framework.Verdict {
	t.Helper()
	p, got := claim(tb, name, 1), map[string]framework.Verdict{}
	prepared := pl.preFilter(tb, p)
	in := &framework.Input{Table: tb, Pod: p, State: prepared.State}
	if !prepared.Alone {
		t.Fatal("no search is shared")
	}
	for row := range tb.Rows() {
		n := tb.Node(table.Row(row))
		f, _ := pl.allocateAlike(in, table.Row(row), n)
		if want, _ := pl.searchOn(in, n); f != want {
			t.Errorf("node %s: %+v, a search there: %+v", n.Name, f, want)
		}
		got[n.Name] = f.verdict
	}
	return got
}

// A search ends with an error at the first device on which a selector fails: the
// place of a shared pool among the node's own matters.
func TestSharedDevicesStandBetweenANodesOwn(t *testing.T) {
	tb, pl := zones("a", "z"), build(nil, all)
	for _, node := range []string{"a", "z"} {
		showPool(tb, node, resourcev1.ResourceSliceSpec{NodeName: &node}, soundDevice("d"))
	}
	showPool(tb, "m", resourcev1.ResourceSliceSpec{AllNodes: new(true)}, unsoundDevice("d"))
	if got, want := verdicts(t, tb, pl, "one"), map[string]framework.Verdict{"a": framework.Fits, "z": broken}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Where each device of a slice selects its nodes, selectors of claims are asked about
// those for other nodes, too. None of them is given.
func TestDevicesForOtherNodesCanFailASearch(t *testing.T) {
	tb, pl := zones("a", "b", "c"), build(nil, all)
	there, elsewhere, alike := soundDevice("there"), unsoundDevice("elsewhere"), soundDevice("alike")
	there.NodeSelector, elsewhere.NodeSelector, alike.NodeSelector = inZone("a"), inZone("b"), inZone("c")
	spec := resourcev1.ResourceSliceSpec{PerDeviceNodeSelection: new(true)}
	showPool(tb, "m", spec, elsewhere, there)
	showPool(tb, "n", spec, alike)
	if got, want := verdicts(t, tb, pl, "one"), map[string]framework.Verdict{"a": broken, "b": broken, "c": framework.Fits}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A slice may come to select other nodes.
func TestSharedDevicesMoveToAnotherZone(t *testing.T) {
	tb, pl := zones("a", "b"), build(nil, all)
	for i, zone := range []string{"a", "b", "a"} {
		showPool(tb, "m", resourcev1.ResourceSliceSpec{NodeSelector: inZone(zone)}, soundDevice("d"))
		want := map[string]framework.Verdict{"a": tooLittle, "b": tooLittle}
		want[zone] = framework.Fits
		if got := verdicts(t, tb, pl, []string{"first", "second", "third"}[i]); !maps.Equal(got, want) {
			t.Errorf("devices in zone %s: %v, want %v", zone, got, want)
		}
	}
}

// Two claims of a pod can have the same device where claims share it: a node with one is
// not like a node with none.
func TestClaimsOfAPodShareADevice(t *testing.T) {
	tb, pl := zones("a", "b"), build(nil, all)
	d, b := soundDevice("d"), "b"
	d.AllowMultipleAllocations = new(true)
	showPool(tb, "b", resourcev1.ResourceSliceSpec{NodeName: &b}, d)
	p := claim(tb, "one", 1)
	p.Claims = append(p.Claims, claim(tb, "two", 1).Claims...)
	in := &framework.Input{Table: tb, Pod: p, State: pl.preFilter(tb, p).State}
	for node, want := range map[string]framework.Verdict{"a": tooLittle, "b": framework.Fits} {
		row, _ := tb.Find(node)
		if got, err := pl.allocateAlike(in, row, tb.Node(row)); got.verdict != want {
			t.Errorf("node %s: %+v %v, want verdict %d", node, got, err, want)
		}
	}
}

// A claim that asks for no capacity gets all of a device, and so none of one that others
// have some of; who asks for as much as is left gets it.
func TestPartsOfADevice(t *testing.T) {
	tb, pl := zones("a", "b"), build(nil, all)
	d, b := soundDevice("d"), "b"
	d.AllowMultipleAllocations = new(true)
	d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("2")}}
	showPool(tb, "b", resourcev1.ResourceSliceSpec{NodeName: &b}, d)
	for i, tc := range []struct {
		memory string
		want   framework.Verdict
	}{{"1", framework.Fits}, {"", tooLittle}, {"1", framework.Fits}, {"1", tooLittle}} {
		p := claim(tb, fmt.Sprint("c", i), 1)
		if tc.memory != "" {
			c := *shown(tb, "ns", p.Name)
			c.API, c.Ask = c.API.DeepCopy(), "memory"
			c.API.Spec.Devices.Requests[0].Exactly.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(tc.memory)}}
			tb.Objects().Set(&c)
		}
		in := &framework.Input{Table: tb, Pod: p, State: pl.preFilter(tb, p).State}
		for node, want := range map[string]framework.Verdict{"a": tooLittle, "b": tc.want} {
			row, _ := tb.Find(node)
			got, err := pl.allocateAlike(in, row, tb.Node(row))
			if searched, _ := pl.searchOn(in, tb.Node(row)); got.verdict != want || got != searched {
				t.Errorf("claim %d, node %s: %+v %v, want verdict %d; a search there: %+v", i, node, got, err, want, searched)
			}
		}
		if tc.want == framework.Fits {
			if status := pl.reserve(tb, p, "b"); status != nil {
				t.Fatal(status)
			}
		}
	}
}
