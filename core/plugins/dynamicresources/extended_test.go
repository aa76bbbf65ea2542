package dynamicresources

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/index/devicepools"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

const gpus = v1.ResourceName("example.com/gpu")

// standsFor shows the class gpu with the name of the extended resource that it
// stands for.
func standsFor(t *table.Table, name string) {
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	if name != "" {
		c.Spec.ExtendedResourceName = &name
	}
	t.Objects().Set(&object.DeviceClass{Meta: object.Meta{Kind: object.DeviceClasses, Name: "gpu"}, API: c})
}

// request is one container's.
type request struct {
	container string
	count     int64
	passing   bool
}

// asking is a pod whose containers request the resource, in order.
func asking(name string, of v1.ResourceName, containers ...request) *object.Pod {
	p := &object.Pod{UID: types.UID("pod " + name), Namespace: "ns", Name: name}
	for at, c := range containers {
		p.Extended = append(p.Extended, object.ExtendedRequest{Resource: of, Count: c.count, Container: c.container, At: at,
			Request: fmt.Sprintf("container-%d-request-0", at), Passing: c.passing})
	}
	p.Demand.Requests.Scalars = []resource.Scalar{{Name: of, Value: 1}} // the amount is for others to look at
	return p
}

func asksFor(name string, n int64) *object.Pod { return asking(name, gpus, request{"main", n, false}) }

// What containers request becomes requests for devices. Those of containers that
// pass are met from what comes after them, and what they lack they share.
func TestDeviceRequests(t *testing.T) {
	tests := map[string]struct {
		containers []request
		want       string
	}{
		"one":                     {[]request{{"a", 2, false}}, "container-0-request-0=2; a:0"},
		"nothing of it":           {[]request{{"a", 0, false}}, "; "},
		"two, each its own":       {[]request{{"a", 1, false}, {"b", 2, false}}, "container-0-request-0=1 container-1-request-0=2; a:0 b:1"},
		"what comes later is had": {[]request{{"i", 2, true}, {"a", 1, false}, {"b", 2, false}}, "container-1-request-0=1 container-2-request-0=2; a:1 b:2 i:1 i:2"},
		"no more than needed":     {[]request{{"i", 1, true}, {"a", 1, false}, {"b", 2, false}}, "container-1-request-0=1 container-2-request-0=2; a:1 b:2 i:1"},
		"more than comes later":   {[]request{{"i", 3, true}, {"a", 1, false}}, "container-1-request-0=1 container-0-request-0=2; a:1 i:1 i:0"},
		"the largest lack counts": {[]request{{"i", 2, true}, {"j", 4, true}, {"k", 3, true}}, "container-1-request-0=4; i:1 j:1 k:1"},
		"what starts before is not had": {[]request{{"sidecar", 2, false}, {"i", 1, true}, {"a", 1, false}, {"b", 1, false}},
			"container-0-request-0=2 container-2-request-0=1 container-3-request-0=1; sidecar:0 a:2 b:3 i:2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			requests, uses := deviceRequests(asking("p", gpus, test.containers...), resourceOfClass{gpus, "gpu"})
			var list, by []string
			for _, r := range requests {
				list = append(list, fmt.Sprintf("%s=%d", r.Name, r.Exactly.Count))
			}
			for _, u := range uses {
				by = append(by, u.ContainerName+":"+strings.TrimSuffix(strings.TrimPrefix(u.RequestName, "container-"), "-request-0"))
			}
			if got := strings.Join(list, " ") + "; " + strings.Join(by, " "); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// A node that offers the resource itself gives no devices for it, whatever it
// has; others do as far as they go. Without a class, or with the gate off,
// nobody looks at devices.
func TestNodesThatOfferTheResource(t *testing.T) {
	tb, pl := world(), newPlugin(t)
	tb.SetNode(&object.Node{Name: "own", Allocatable: resource.Vector{Scalars: []resource.Scalar{{Name: gpus, Value: 1}}}})
	two := asksFor("two", 2)
	if got := plugintest.Ask(t, pl, tb, two).Blocked; got != nil {
		t.Errorf("without a class: %v", got)
	}
	standsFor(tb, string(gpus))
	if got := plugintest.Ask(t, pl, tb, two).Blocked; !maps.Equal(got, map[string]string{"a": "", "b": short, "own": ""}) {
		t.Errorf("with one: %v", got)
	}
	byName := asking("by name", v1.ResourceName(resourcev1.ResourceDeviceClassPrefix+"gpu"), request{"main", 1, false})
	if got := plugintest.Ask(t, pl, tb, byName).Blocked; !maps.Equal(got, map[string]string{"a": "", "b": "", "own": short}) {
		t.Errorf("by the class's name: %v", got)
	}
	off := all
	off.DRAExtendedResource = false
	gated, err := New(nil, off)
	if err != nil {
		t.Fatal(err)
	}
	if got := plugintest.Ask(t, gated, tb, two).Blocked; got != nil || len(gated.Sign(nil, tb, two)) > 0 {
		t.Errorf("with the gate off: %v", got)
	}
	if s := pl.Reserve(tb, two, "own"); s != nil {
		t.Fatal(s)
	}
	if writes, s := pl.PreBind(tb, two, "own"); len(writes) > 0 || s != nil {
		t.Errorf("on a node that offers it %v is to be written, %v", writes, s)
	}
}

// From Reserve on the devices are the pod's, though no claim is there; the pod
// is held back until the API shows the claim with them.
func TestClaimIsMade(t *testing.T) {
	tb, pl := world(), newPlugin(t)
	standsFor(tb, string(gpus))
	first, second := asksFor("first", 2), asksFor("second", 1)
	if s := pl.Reserve(tb, first, "a"); s != nil {
		t.Fatal(s)
	}
	taken := map[string]string{"a": short, "b": ""}
	if got := plugintest.Ask(t, pl, tb, second).Blocked; !maps.Equal(got, taken) {
		t.Errorf("while it is reserved: %v", got)
	}
	if w := pl.RevertWrites(tb, first, "a"); len(w) > 0 {
		t.Errorf("nothing is written, and %v to be taken back", w)
	}
	writes, s := pl.PreBind(tb, first, "a")
	if s != nil || len(writes) != 3 || writes[0].Create == nil || writes[1].Subresource != "status" || writes[2].Object.Kind != object.Pods {
		t.Fatalf("PreBind: %v %v", writes, s)
	}
	made := *writes[0].Create.(*resourcev1.ResourceClaim)
	if made.UID = "made"; !strings.HasPrefix(made.Name, "first-extended-resources-") || made.Status.Allocation != nil {
		t.Errorf("made is %+v", made)
	}
	held := func(when string, want bool) {
		t.Helper()
		if s := pl.WritesDone(tb, first, "a"); (s != nil) != want {
			t.Errorf("%s the pod is held back: %v", when, s)
		}
		if got := plugintest.Ask(t, pl, tb, second).Blocked; !maps.Equal(got, taken) {
			t.Errorf("%s: %v", when, got)
		}
	}
	held("before it is shown", true)
	show(tb, &made)
	held("before its devices are", true)
	made.Status = writes[1].Result[0].(*object.ResourceClaim).API.Status
	show(tb, made.DeepCopy())
	held("once they are", false)
	if w := pl.RevertWrites(tb, first, "a"); len(w) != 2 || !w[1].Delete || w[1].Object.UID != "made" {
		t.Errorf("to be taken back: %v", w)
	}
	pl.Unreserve(tb, first, "a")
	tb.Objects().Remove(object.ResourceClaims, "ns", made.Name)
	if got := plugintest.Ask(t, pl, tb, second).Blocked; !maps.Equal(got, map[string]string{"a": "", "b": ""}) {
		t.Errorf("when it is gone: %v", got)
	}
}

// A claim that never came about leaves nothing behind, and another attempt makes
// one of another name.
func TestClaimIsNotMade(t *testing.T) {
	tb, pl := world(), newPlugin(t)
	standsFor(tb, string(gpus))
	p := asksFor("p", 2)
	names := map[string]bool{}
	for i := range 3 {
		tb.SetNow(time.Unix(int64(i), 0))
		if s := pl.Reserve(tb, p, "a"); s != nil {
			t.Fatal(s)
		}
		for _, o := range tb.Objects().List(object.ResourceClaims) {
			names[o.Head().Name] = true
		}
		pl.Unreserve(tb, p, "a")
	}
	if len(names) != 3 || len(tb.Objects().List(object.ResourceClaims)) != 0 || len(devicepools.Of(tb).On("a")[0].Taken) != 0 {
		t.Errorf("the claims %v were to be made, %d are there", names, len(tb.Objects().List(object.ResourceClaims)))
	}
}

// What an earlier attempt left behind goes first, and the pod is queued by that.
func TestClaimIsLeftOver(t *testing.T) {
	tb, pl := world(), newPlugin(t)
	standsFor(tb, string(gpus))
	p := asksFor("p", 1)
	left := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "left", UID: "left",
		Annotations:     map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: "p", UID: p.UID, Controller: new(true)}}}}
	left.Spec.Devices.Requests = []resourcev1.DeviceRequest{deviceRequest(&p.Extended[0], "gpu", 1)}
	signature := string(pl.Sign(nil, tb, p))
	show(tb, left)
	if string(pl.Sign(nil, tb, p)) == signature {
		t.Error("the pod is of the class of those without")
	}
	const stuck = "UnschedulableAndUnresolvable: cannot schedule extended resource claim"
	if got := plugintest.Ask(t, pl, tb, p).Blocked; !maps.Equal(got, map[string]string{"a": stuck, "b": stuck}) {
		t.Errorf("blocked: %v", got)
	}
	if pl.PostFilterMay(tb, p) != framework.OtherRemedy {
		t.Error("PostFilter has nothing to do")
	}
	got := pl.PostFilter(&framework.PostFilterCall{Table: tb, Pod: p})
	if got.Message != "deletion of ResourceClaim completed" || len(got.Writes) != 2 || !got.Writes[1].Delete {
		t.Errorf("PostFilter: %+v", got)
	}
	gone := framework.Event{Resource: framework.ResourceOf(object.ResourceClaims), ActionType: framework.Delete, OldObject: tb.Objects().Remove(object.ResourceClaims, "ns", "left")}
	if !plugintest.Queues(pl, p, gone) || plugintest.Queues(pl, asksFor("q", 1), gone) {
		t.Error("its end queues the pod alone")
	}
}

// Of classes that name one resource the newest stands for it, and when that
// goes the next.
func TestNewestClassStands(t *testing.T) {
	tb := table.New()
	class := func(name string, age int, resource string) *object.DeviceClass {
		return &object.DeviceClass{Meta: object.Meta{Kind: object.DeviceClasses, Name: name}, API: &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(100-age), 0))},
			Spec:       resourcev1.DeviceClassSpec{ExtendedResourceName: &resource}}}
	}
	stands := func(want string) {
		t.Helper()
		got := ""
		if c := devicepools.Of(tb).ClassFor(gpus); c != nil {
			got = c.Name
		}
		if got != want {
			t.Errorf("%q stands for it, want %q", got, want)
		}
	}
	for _, c := range []*object.DeviceClass{class("old", 9, string(gpus)), class("new", 1, string(gpus)), class("as-new", 1, string(gpus)), class("middle", 5, string(gpus))} {
		tb.Objects().Set(c)
	}
	stands("as-new")
	tb.Objects().Remove(object.DeviceClasses, "", "as-new")
	stands("new")
	tb.Objects().Set(class("new", 1, "example.com/other"))
	stands("middle")
	for _, name := range []string{"middle", "old"} {
		tb.Objects().Remove(object.DeviceClasses, "", name)
	}
	stands("")
}
