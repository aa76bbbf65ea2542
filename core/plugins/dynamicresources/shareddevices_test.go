package dynamicresources

import (
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/plugintest"
	"github.com/berth-scheduler/berth/core/table"
)

// zones is a table of nodes named after their zone, and a class that fails on devices
// without a model.
func zones(names ...string) *table.Table {
	var nodes []*object.Node
	for _, name := range names {
		nodes = append(nodes, &object.Node{Name: name, Labels: map[string]string{"zone": name}})
	}
	t := plugintest.Table(nodes...)
	t.SetObject(&object.DeviceClass{Meta: object.Meta{Kind: object.DeviceClasses, Name: "gpu"}, API: &resourcev1.DeviceClass{
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
	t.SetObject(&object.ResourceSlice{Meta: object.Meta{Kind: object.ResourceSlices, Name: name},
		API: &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}})
}

// verdicts asks about a claim of one device on each node, and compares what is told with
// a search there.
func verdicts(t *testing.T, tb *table.Table, pl *plugin, name string) map[string]framework.Verdict {
	t.Helper()
	p, got := claim(tb, name, 1), map[string]framework.Verdict{}
	in := &framework.Input{Table: tb, Pod: p, State: pl.preFilter(tb, p).State}
	if !pl.alone(in) {
		t.Fatal("no search is shared")
	}
	for row := range tb.Rows() {
		n := tb.Node(table.Row(row))
		f, _ := pl.allocateAlike(in, table.Row(row), n, in.State.(*state).open)
		if want, _ := pl.searchOn(in, n, in.State.(*state).open); f != want {
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
		if got, err := pl.allocateAlike(in, row, tb.Node(row), in.State.(*state).open); got.verdict != want {
			t.Errorf("node %s: %+v %v, want verdict %d", node, got, err, want)
		}
	}
}
