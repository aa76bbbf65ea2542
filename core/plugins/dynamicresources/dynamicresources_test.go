package dynamicresources

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

var all = feature.Features{DRAAdminAccess: true, DRAPrioritizedList: true, DRAPartitionableDevices: true, DRADeviceTaints: true,
	DRAConsumableCapacity: true, DRADeviceBindingConditions: true, DRAResourceClaimDeviceStatus: true, DRASchedulerFilterTimeout: true, DRAExtendedResource: true}

func newPlugin(t *testing.T) framework.Plugin {
	t.Helper()
	p, err := New(nil, all)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// world has nodes a and b, two devices on a and one on b, and the class gpu.
func world() *table.Table {
	t := plugintest.Table(&object.Node{Name: "a"}, &object.Node{Name: "b"})
	t.Objects().Set(&object.DeviceClass{Meta: object.Meta{Kind: object.DeviceClasses, Name: "gpu"},
		API: &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}})
	setSlice(t, "a", 1, "d0", "d1")
	setSlice(t, "b", 1, "d0")
	return t
}

func setSlice(t *table.Table, node string, count int64, devices ...string) {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "of-" + node}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: count}}}
	for _, d := range devices {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: d})
	}
	t.Objects().Set(&object.ResourceSlice{Meta: object.Meta{Kind: object.ResourceSlices, Name: s.Name}, API: s})
}

// claim shows a claim for n devices, and a pod that uses it.
func claim(t *table.Table, name string, n int64) *object.Pod {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("claim " + name)}}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: n}}}
	show(t, c)
	return &object.Pod{UID: types.UID("pod " + name), Namespace: "ns", Name: name, Claims: []object.PodClaim{{Claim: name}}}
}

func show(t *table.Table, c *resourcev1.ResourceClaim) {
	t.Objects().Set(&object.ResourceClaim{Meta: object.Meta{Kind: object.ResourceClaims, Namespace: c.Namespace, Name: c.Name, UID: c.UID},
		API: c, Ask: fmt.Sprint(c.Spec.Devices.Requests[0].Exactly.Count)})
}

const short = "UnschedulableAndUnresolvable: cannot allocate all claims"

// From Reserve on the devices are taken, whatever the API shows, until the
// pod gives them up.
func TestNoDeviceIsGivenTwice(t *testing.T) {
	tb, pl := world(), newPlugin(t)
	first, second := claim(tb, "first", 2), claim(tb, "second", 2)
	fits := map[string]string{"a": "", "b": short}
	if got := plugintest.Ask(t, pl, tb, second).Blocked; !maps.Equal(got, fits) {
		t.Fatalf("before: %v", got)
	}
	revision := tb.Revision()
	if s := pl.Reserve(tb, first, "a"); s != nil {
		t.Fatal(s)
	}
	if dirty := tb.AppendChanged(nil, revision, 10); len(dirty) != 1 {
		t.Errorf("rows %v are dirty, want that of node a alone", dirty)
	}
	if got := plugintest.Ask(t, pl, tb, second).Blocked; !maps.Equal(got, map[string]string{"a": short, "b": short}) {
		t.Errorf("while the first is reserved: %v", got)
	}
	if s := pl.Reserve(tb, second, "a"); s == nil {
		t.Error("node a is reserved twice")
	}
	sharing := &object.Pod{UID: "pod sharing", Namespace: "ns", Name: "sharing", Claims: first.Claims}
	if got := plugintest.Ask(t, pl, tb, sharing).Rejected; got != "UnschedulableAndUnresolvable: resource claim ns/first is in the process of being allocated" {
		t.Errorf("who shares the claim: %q", got)
	}
	pl.Unreserve(tb, sharing, "a")
	if got := plugintest.Ask(t, pl, tb, second).Blocked; maps.Equal(got, fits) {
		t.Error("another pod gave up what the first had")
	}
	pl.Unreserve(tb, first, "a")
	if got := plugintest.Ask(t, pl, tb, second).Blocked; !maps.Equal(got, fits) {
		t.Errorf("when the first gave up: %v", got)
	}
}

// What is assumed ends when the API shows the allocation, and not before.
func TestTheAPIsWordTakesOver(t *testing.T) {
	tb, pl := world(), newPlugin(t)
	first, second := claim(tb, "first", 2), claim(tb, "second", 1)
	if s := pl.Reserve(tb, first, "a"); s != nil {
		t.Fatal(s)
	}
	writes, s := pl.PreBind(tb, first, "a")
	if s != nil || len(writes) != 2 || writes[0].Subresource != "" || writes[1].Subresource != "status" {
		t.Fatalf("PreBind: %v %v", writes, s)
	}
	now := writes[1].Result[0].(*object.ResourceClaim)
	if !now.ReservedFor(first.UID) || len(now.Allocation().Devices.Results) != 2 {
		t.Fatalf("the claim is to become %+v", now.API.Status)
	}
	bare := *shown(tb, "ns", "first").API // only the finalizer was written so far
	bare.Finalizers = []string{resourcev1.Finalizer}
	show(tb, &bare)
	if got := plugintest.Ask(t, pl, tb, second).Blocked["a"]; got != short {
		t.Errorf("before the allocation is shown: %q", got)
	}
	show(tb, now.API)
	if got := plugintest.Ask(t, pl, tb, second).Blocked["a"]; got != short {
		t.Errorf("when it is shown: %q", got)
	}
	freed := bare
	freed.Status = resourcev1.ResourceClaimStatus{}
	show(tb, &freed)
	if got := plugintest.Ask(t, pl, tb, second).Blocked["a"]; got != "" {
		t.Errorf("when it is given up: %q", got)
	}
}

// A pod without claims is skipped, and has no part in its signature.
func TestPodsWithoutClaimsPayNothing(t *testing.T) {
	tb, pl := world(), newPlugin(t)
	if got := pl.PreFilter(tb, &object.Pod{}); !got.Skip {
		t.Errorf("PreFilter: %+v", got)
	}
	if got := pl.Sign(nil, tb, &object.Pod{}); len(got) != 0 {
		t.Errorf("signature %q", got)
	}
}

// Pods whose claims ask for the same are of one class, others are not.
func TestClaimsOfEqualRequestsSignEqual(t *testing.T) {
	tb, pl := world(), newPlugin(t)
	one, same, two := claim(tb, "one", 1), claim(tb, "same", 1), claim(tb, "two", 2)
	sign := func(p *object.Pod) string { return string(pl.Sign(nil, tb, p)) }
	if sign(one) != sign(same) {
		t.Error("claims that ask for the same tell pods apart")
	}
	if sign(one) == sign(two) {
		t.Error("claims that ask for more do not tell pods apart")
	}
	if s := pl.Reserve(tb, one, "a"); s != nil {
		t.Fatal(s)
	}
	if sign(one) == sign(same) {
		t.Error("a claim that is being given something is like one that is not")
	}
}

// A pod whose claim is missing or another's is kept out of the queue; a missing class
// rejects it at PreFilter only.
func TestMissing(t *testing.T) {
	tb, pl := world(), newPlugin(t)
	p := claim(tb, "one", 1)
	lost := &object.Pod{UID: "1", Namespace: "ns", Name: "lost", Claims: []object.PodClaim{{Claim: "gone"}}}
	stolen := &object.Pod{UID: "2", Namespace: "ns", Name: "thief", Claims: []object.PodClaim{{Claim: "one", Owned: true}}}
	for _, c := range []struct {
		pod  *object.Pod
		want string
	}{
		{lost, `UnschedulableAndUnresolvable: could not find ResourceClaim "ns/gone"`},
		{stolen, "UnschedulableAndUnresolvable: ResourceClaim ns/one was not created for Pod ns/thief (Pod is not owner)"},
	} {
		if got := plugintest.Ask(t, pl, tb, c.pod).Rejected; got != c.want {
			t.Errorf("%s: got %q", c.pod.Name, got)
		}
		if pl.PreEnqueue(tb, c.pod) == nil {
			t.Errorf("%s: is not kept out of the queue", c.pod.Name)
		}
	}
	tb.Objects().Remove(object.DeviceClasses, "", "gpu")
	if got := plugintest.Ask(t, pl, tb, p).Rejected; got != "UnschedulableAndUnresolvable: request r: device class gpu does not exist" {
		t.Errorf("without the class: %q", got)
	}
	if pl.PreEnqueue(tb, p) != nil {
		t.Error("a missing class keeps the pod out of the queue")
	}
}

// A selector that says nothing is named in an error.
func TestClassWithoutSelector(t *testing.T) {
	tb, pl := world(), newPlugin(t)
	p := claim(tb, "one", 1)
	tb.Objects().Set(&object.DeviceClass{Meta: object.Meta{Kind: object.DeviceClasses, Name: "gpu"},
		API: &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
			Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{}}}}})
	if got := plugintest.Ask(t, pl, tb, p).Rejected; !strings.Contains(got, "class gpu: selector #0: CEL expression empty") {
		t.Errorf("got %q", got)
	}
}

// Which of several claims gives its devices up is drawn, by the seed.
func TestClaimToGiveUpIsDrawn(t *testing.T) {
	tb, pl := world(), newPlugin(t)
	p := &object.Pod{UID: "p", Namespace: "ns", Name: "p"}
	for _, name := range []string{"one", "two"} {
		claim(tb, name, 1)
		p.Claims = append(p.Claims, object.PodClaim{Claim: name})
		given := *tb.Objects().Named(object.ResourceClaims, "ns", name).(*object.ResourceClaim).API
		given.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "gpu", Pool: "a", Device: "d0"}}}}
		tb.Objects().Set(&object.ResourceClaim{Meta: object.Meta{Kind: object.ResourceClaims, Namespace: "ns", Name: name, UID: given.UID},
			API: &given, Ask: "1", Nodes: match.NewNodeSelector(map[string]string{"is": "elsewhere"}, nil)})
	}
	for i, want := range []string{"one", "two"} {
		got := pl.PostFilter(&framework.PostFilterCall{Table: tb, Pod: p, Draw: func(n int) int {
			if n != 2 {
				t.Errorf("one of %d", n)
			}
			return i
		}, Filters: framework.FilterResults{Run: func(table.Row) *decision.Blocker {
			return &decision.Blocker{Plugin: pl.Name, Reasons: []string{notAvailable}}
		}}})
		if len(got.Writes) != 1 || !strings.Contains(fmt.Sprintf("%+v", got.Writes[0]), want) {
			t.Errorf("draw %d: got %+v", i, got)
		}
	}
}

// postFilter has something to give up where a claim of the pod has devices that nobody else
// uses, and nothing where that is not so.
func TestClaimsToGiveUp(t *testing.T) {
	user := func(uid types.UID) resourcev1.ResourceClaimConsumerReference {
		return resourcev1.ResourceClaimConsumerReference{Resource: "pods", UID: uid}
	}
	for name, c := range map[string]struct {
		allocated bool
		users     []resourcev1.ResourceClaimConsumerReference
		want      bool
	}{
		"nothing allocated": {}, "nobody uses it": {true, nil, true}, "the pod uses it": {true, []resourcev1.ResourceClaimConsumerReference{user("pod c")}, true},
		"another uses it": {true, []resourcev1.ResourceClaimConsumerReference{user("another")}, false},
		"both use it":     {true, []resourcev1.ResourceClaimConsumerReference{user("pod c"), user("another")}, false},
	} {
		tb := world()
		p := claim(tb, "c", 1)
		given := *shown(tb, "ns", "c").API
		if given.Status.ReservedFor = c.users; c.allocated {
			given.Status.Allocation = &resourcev1.AllocationResult{}
		}
		show(tb, &given)
		if got := newPlugin(t).PostFilterMay(tb, p) == framework.OtherRemedy; got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Numbers that the allocator does not survive are refused, by name; of others
// that are too large it tells itself.
func TestAbsurdCounts(t *testing.T) {
	for n, want := range map[int64]string{
		-1:            `Error: claim ns/c, request r: -1 is no number of devices`,
		math.MinInt64: `Error: claim ns/c, request r: -9223372036854775808 is no number of devices`,
		math.MaxInt64: `Error: claim ns/c, request r: adding 9223372036854775807 devices exceeds the claim limit of 32, with 0 already accounted for`,
	} {
		tb := world()
		p := claim(tb, "c", n)
		answer := plugintest.Ask(t, newPlugin(t), tb, p)
		if got := cmp.Or(answer.Rejected, answer.Blocked["a"]); got != want {
			t.Errorf("%d devices: %q", n, got)
		}
	}
}

// A search that would go on for ever ends, the same way each time.
func TestSearchIsBounded(t *testing.T) {
	tb := plugintest.Table(&object.Node{Name: "a"})
	tb.Objects().Set(&object.DeviceClass{Meta: object.Meta{Kind: object.DeviceClasses, Name: "gpu"},
		API: &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}})
	var devices []string
	for i := range 31 {
		devices = append(devices, fmt.Sprintf("d%d", i))
	}
	setSlice(tb, "a", 1, devices...)
	pl := newPlugin(t)
	var p *object.Pod
	for i := range 4 { // eight of 31, four times over: one too many, found out late
		q := claim(tb, fmt.Sprintf("c%d", i), 8)
		if p == nil {
			p = q
		} else {
			p.Claims = append(p.Claims, q.Claims...)
		}
	}
	want := "Error: node a: timed out trying to allocate devices"
	if got := plugintest.Ask(t, pl, tb, p).Blocked["a"]; got != want {
		t.Errorf("got %q", got)
	}
}

// A pod is requeued by its own claim, by devices that another claim gives up, and by
// slices, classes and nodes' labels.
func TestQueueingHints(t *testing.T) {
	tb := world()
	p := claim(tb, "one", 1)
	c := shown(tb, "ns", "one")
	held := &object.ResourceClaim{Meta: object.Meta{Kind: object.ResourceClaims, Namespace: "other", Name: "x"},
		API: &resourcev1.ResourceClaim{Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{}}}}
	free := &object.ResourceClaim{Meta: held.Meta, API: &resourcev1.ResourceClaim{}}
	event := func(r framework.EventResource, a framework.ActionType, old, now object.Object) framework.Event {
		return framework.Event{Resource: r, ActionType: a, OldObject: old, NewObject: now}
	}
	for _, tc := range []struct {
		name  string
		event framework.Event
		want  bool
	}{
		{"its claim comes", event(framework.ResourceOf(object.ResourceClaims), framework.Add, nil, c), true},
		{"its claim stays", event(framework.ResourceOf(object.ResourceClaims), framework.UpdateOther, c, c), false},
		{"another claim comes", event(framework.ResourceOf(object.ResourceClaims), framework.Add, nil, free), false},
		{"another claim is given up", event(framework.ResourceOf(object.ResourceClaims), framework.UpdateOther, held, free), true},
		{"another claim gets something", event(framework.ResourceOf(object.ResourceClaims), framework.UpdateOther, free, held), false},
		{"a slice", framework.Event{Resource: framework.ResourceOf(object.ResourceSlices), ActionType: framework.Add}, true},
		{"a class", framework.Event{Resource: framework.ResourceOf(object.DeviceClasses), ActionType: framework.UpdateOther}, true},
		{"a slice goes", framework.Event{Resource: framework.ResourceOf(object.ResourceSlices), ActionType: framework.Delete}, true},
		{"another claim goes with what it has", event(framework.ResourceOf(object.ResourceClaims), framework.Delete, held, nil), true},
		{"another claim goes", event(framework.ResourceOf(object.ResourceClaims), framework.Delete, free, nil), false},
		{"a node's labels", framework.Event{Resource: framework.Node, ActionType: framework.UpdateNodeLabel}, true},
	} {
		if got := plugintest.Queues(newPlugin(t), p, tc.event); got != tc.want {
			t.Errorf("%s: got %v", tc.name, got)
		}
	}
}

// A device with binding conditions is waited for until they hold.
func TestBindingConditions(t *testing.T) {
	tb, pl := world(), newPlugin(t)
	p := claim(tb, "one", 1)
	if s := pl.Reserve(tb, p, "a"); s != nil {
		t.Fatal(s)
	}
	c := *tb.Objects().Named(object.ResourceClaims, "ns", "one").(*object.ResourceClaim).API
	if s := pl.WritesDone(tb, p, "a"); s != nil {
		t.Errorf("without conditions: %v", s)
	}
	if n := pl.WaitNotice(tb, p, "a"); n != nil {
		t.Errorf("without conditions: %v", n)
	}
	r := &c.Status.Allocation.Devices.Results[0]
	r.BindingConditions, r.BindingFailureConditions = []string{"attached"}, []string{"broken"}
	show(tb, &c)
	const note = "waiting for binding conditions for device on node a"
	if n := pl.WaitNotice(tb, p, "a"); n == nil || n.Reason != "BindingConditionsPending" || n.Action != "Scheduling" || n.Note != note ||
		len(n.WaitedDevices) != 1 || n.WaitedDevices[0] != (framework.WaitedDevice{Driver: r.Driver, Conditional: true}) {
		t.Errorf("with conditions: %v", n)
	}
	if s := pl.WritesDone(tb, p, "a"); s == nil || s.Code != decision.Wait {
		t.Errorf("before anything is known: %v", s)
	}
	allocated := c.Status.Allocation.AllocationTimestamp.Time
	for after, want := range map[time.Duration]string{
		10 * time.Minute: "", 10*time.Minute + 1: "device binding timeout: claim=one",
	} {
		tb.SetNow(allocated.Add(after))
		s := pl.WritesDone(tb, p, "a")
		if got := s.Err; want == "" && s.Code != decision.Wait || want != "" && (got == nil || got.Error() != want) {
			t.Errorf("after %v: %+v, want %q", after, s, want)
		}
		if got := plugintest.Ask(t, pl, tb, p).Blocked["a"]; (got != "") != (want != "") {
			t.Errorf("tried again after %v: %q", after, got)
		}
	}
	tb.SetNow(allocated)
	status := func(name string) {
		now := c
		now.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: r.Driver, Pool: r.Pool, Device: r.Device,
			Conditions: []metav1.Condition{{Type: name, Status: metav1.ConditionTrue, Reason: "why"}}}}
		show(tb, &now)
	}
	status("broken")
	if s := pl.WritesDone(tb, p, "a"); s == nil || s.Code != decision.Error || s.Err.Error() != `device binding failed: claim=one, reason=why, message=""` {
		t.Errorf("when it failed: %v", s)
	}
	status("attached")
	if s := pl.WritesDone(tb, p, "a"); s != nil {
		t.Errorf("when it is attached: %v", s)
	}
}

// A pod that is not bound gives up its reservations, and those alone: the claim
// keeps what it got, and others their part of it.
func TestRevertWrites(t *testing.T) {
	tb, pl := world(), newPlugin(t)
	p := claim(tb, "shared", 1)
	other := &object.Pod{UID: "pod other", Namespace: "ns", Name: "other", Claims: p.Claims}
	if s := pl.Reserve(tb, p, "a"); s != nil {
		t.Fatal(s)
	}
	if writes := pl.RevertWrites(tb, p, "a"); len(writes) > 0 {
		t.Errorf("before anything is written: %+v", writes)
	}
	for _, user := range []*object.Pod{p, other} {
		writes, s := pl.PreBind(tb, user, "a")
		if s != nil {
			t.Fatal(s)
		}
		show(tb, writes[len(writes)-1].Result[0].(*object.ResourceClaim).API)
	}
	writes := pl.RevertWrites(tb, p, "a")
	if len(writes) != 1 || writes[0].Subresource != "status" || !writes[0].Strategic {
		t.Fatalf("writes %+v", writes)
	}
	text, err := json.Marshal(writes[0].Patch)
	if want := `{"status":{"reservedFor":[{"$patch":"delete","uid":"pod shared"}]}}`; err != nil || string(text) != want {
		t.Errorf("patch %s, want %s", text, want)
	}
	left := writes[0].Result[0].(*object.ResourceClaim)
	if left.Allocation() == nil || left.ReservedFor(p.UID) || !left.ReservedFor(other.UID) {
		t.Errorf("what is left: %+v", left.API.Status)
	}
	show(tb, left.API)
	if writes := pl.RevertWrites(tb, p, "a"); len(writes) > 0 {
		t.Errorf("once more: %+v", writes)
	}
}

// A rule taints the devices that it selects: who does not tolerate that does not get
// them, until the rule is gone.
func TestTaintRules(t *testing.T) {
	tb, pl := world(), newPlugin(t)
	p := claim(tb, "two", 2)
	tolerant := claim(tb, "tolerant", 2)
	c := shown(tb, "ns", "tolerant").API.DeepCopy()
	c.Spec.Devices.Requests[0].Exactly.Tolerations = []resourcev1.DeviceToleration{{Key: "broken", Operator: resourcev1.DeviceTolerationOpExists}}
	tb.Objects().Set(&object.ResourceClaim{Meta: object.Meta{Kind: object.ResourceClaims, Namespace: "ns", Name: "tolerant", UID: c.UID}, API: c, Ask: "tolerant"})
	rule := func(driver, pool, device *string, effect resourcev1.DeviceTaintEffect) {
		tb.Objects().Set(&object.DeviceTaintRule{Meta: object.Meta{Kind: object.DeviceTaintRules, Name: "rule"}, Driver: driver, Pool: pool, Device: device,
			Taint: resourcev1.DeviceTaint{Key: "broken", Effect: effect}})
	}
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"none", func() {}, ""},
		{"of everything", func() { rule(nil, nil, nil, resourcev1.DeviceTaintEffectNoSchedule) }, short},
		{"of another driver", func() { rule(new("nic"), nil, nil, resourcev1.DeviceTaintEffectNoSchedule) }, ""},
		{"of one device", func() { rule(new("gpu"), new("a"), new("d1"), resourcev1.DeviceTaintEffectNoExecute) }, short},
		{"of another pool", func() { rule(new("gpu"), new("b"), nil, resourcev1.DeviceTaintEffectNoExecute) }, ""},
		{"without effect", func() { rule(nil, nil, nil, resourcev1.DeviceTaintEffectNone) }, ""},
		{"of the driver", func() { rule(new("gpu"), nil, nil, resourcev1.DeviceTaintEffectNoSchedule) }, short},
		{"of the driver, and the slice is new", func() { setSlice(tb, "a", 1, "d0", "d1", "d2") }, short},
		{"gone", func() { tb.Objects().Remove(object.DeviceTaintRules, "", "rule") }, ""},
	} {
		step.do()
		if got := plugintest.Ask(t, pl, tb, p).Blocked["a"]; got != step.want {
			t.Errorf("a rule %s: %q, want %q", step.what, got, step.want)
		}
		if got := plugintest.Ask(t, pl, tb, tolerant).Blocked["a"]; got != "" {
			t.Errorf("a rule %s, tolerated: %q", step.what, got)
		}
	}
}
