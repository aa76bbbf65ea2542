package compat

import (
	"context"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	k8sresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
)

// noted is a loop that notes what it is told.
type noted chan machine.Event

func (n noted) Inspect(_ context.Context, look func()) error { look(); return nil }
func (n noted) Report(e machine.Event)                       { n <- e }
func (n noted) Post(e machine.Event)                         { n <- e }

// Plugins see devices with the taints that DeviceTaintRules give them, where the
// feature gate is on, and are told of slices that a rule changes.
func TestDeviceTaintRules(t *testing.T) {
	for _, on := range []bool{false, true} {
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "d", Pool: resourcev1.ResourcePool{Name: "p"}, Devices: []resourcev1.Device{{Name: "one"}, {Name: "two"}}}}
		device := "two"
		rule := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: &resourcev1.DeviceTaintSelector{Device: &device},
			Taint:          resourcev1.DeviceTaint{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}}
		h := New(Options{Logger: klog.Background(), Client: fake.NewClientset(slice), Dynamic: dynamicfake.NewSimpleDynamicClient(scheme.Scheme), DeviceTaintRules: on})
		told := make(noted, 10)
		h.Connect(nil, told)
		manager := (&handle{&Host{Hosts: h}}).SharedDRAManager()
		_ = h.factory.Resource().V1().ResourceSlices().Informer()
		h.watched[string(fwk.ResourceSlice)] = true
		if err := h.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !h.WaitForSync(t.Context()) {
			t.Fatal("not synced")
		}
		<-told // the slice is there
		if on {
			if _, err := h.options.Client.ResourceV1().DeviceTaintRules().Create(t.Context(), rule, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			e := (<-told).(machine.HostedObjectChanged)
			if now := e.New.(*resourcev1.ResourceSlice); len(now.Spec.Devices[1].Taints) != 1 {
				t.Errorf("told of %+v", now.Spec.Devices)
			}
		}
		list, err := manager.ResourceSlices().ListWithDeviceTaintRules()
		if err != nil || len(list) != 1 {
			t.Fatalf("got %v, %v", list, err)
		}
		if devices := list[0].Spec.Devices; len(devices[0].Taints) != 0 || (len(devices[1].Taints) == 1) != on {
			t.Errorf("gate %t: %+v", on, devices)
		}
	}
}

// A plugin that asks for the manager when nodes are filtered, on several goroutines,
// starts nothing: it sees the slices without what rules add.
func TestManagerThatIsAskedForLate(t *testing.T) {
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	h := New(Options{Logger: klog.Background(), Client: fake.NewClientset(slice), Dynamic: dynamicfake.NewSimpleDynamicClient(scheme.Scheme), DeviceTaintRules: true})
	h.Connect(nil, make(noted, 10))
	_ = h.factory.Resource().V1().ResourceSlices().Informer()
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !h.WaitForSync(t.Context()) {
		t.Fatal("not synced")
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			list, err := (&handle{&Host{Hosts: h}}).SharedDRAManager().ResourceSlices().ListWithDeviceTaintRules()
			if err != nil || len(list) != 1 {
				t.Errorf("got %v, %v", list, err)
			}
		})
	}
	all.Wait()
	if h.slices != nil {
		t.Error("a tracker was started that nobody stops")
	}
}

// Devices that Berth gives to a pod are taken for plugins, too, before that is written:
// the allocation of the claim is pending. So it is while the informers lag behind.
func TestAllocationsOfBerth(t *testing.T) {
	one := "one"
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourcePods: k8sresource.MustParse("9")}}}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "d", NodeName: &node.Name, Pool: resourcev1.ResourcePool{Name: "p", ResourceSliceCount: 1}, Devices: []resourcev1.Device{{Name: one}}}}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim", UID: "u", ResourceVersion: "1"},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: "c", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}}}}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod", UID: "pod"}, Spec: v1.PodSpec{
		Containers:     []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Claims: []v1.ResourceClaim{{Name: "claim"}}}}},
		ResourceClaims: []v1.PodResourceClaim{{Name: "claim", ResourceClaimName: &claim.Name}}}}
	decode.DefaultPod(pod)

	profiles, err := profile.BuildAll(config.Profiles(config.Default()), plugins.Registry(features.Plugins(features.New())))
	if err != nil {
		t.Fatal(err)
	}
	m := machine.New(machine.Options{Profiles: profiles, Seed: 1, Workers: 1, InitialBackoff: time.Second, MaxBackoff: time.Second, MaxUnschedulable: time.Hour})
	h := New(Options{Logger: klog.Background(), Client: fake.NewClientset(claim), Dynamic: dynamicfake.NewSimpleDynamicClient(scheme.Scheme)})
	told := make(noted, 10)
	h.Connect(m, told)
	_ = h.factory.Resource().V1().ResourceClaims().Informer()
	h.watched[string(fwk.ResourceClaim)] = true
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !h.WaitForSync(t.Context()) {
		t.Fatal("not synced")
	}
	tracker := (&handle{&Host{Hosts: h}}).SharedDRAManager().ResourceClaims()
	state := func(taken, pending bool) {
		t.Helper()
		devices, err := tracker.ListAllAllocatedDevices()
		if err != nil || devices.Has(structured.MakeDeviceID("d", "p", one)) != taken || devices.Len() > 1 {
			t.Errorf("taken: %v, %v", devices, err)
		}
		if a := tracker.GetPendingAllocation("u"); (a != nil) != pending {
			t.Errorf("pending: %v", a)
		}
	}
	m.Step(time.Now(), machine.NodeSet{Node: decode.Node(node)})
	for _, o := range []any{class, slice, claim} {
		m.Step(time.Now(), machine.ObjectSet{Object: decode.Object(o)})
	}
	<-told // the claim is there
	m.Step(time.Now(), machine.PodSet{Pod: decode.Pod(pod)})
	state(false, false)
	var written *resourcev1.ResourceClaim
	for _, e := range m.Step(time.Now(), machine.ScheduleOne{}) {
		w, ok := e.(machine.Write)
		if !ok {
			continue
		}
		for i := range w.Writes {
			for _, o := range w.Writes[i].Result {
				written = o.(*object.ResourceClaim).API.DeepCopy()
			}
		}
	}
	if written == nil {
		t.Fatal("nothing is written")
	}
	state(true, true)
	written.ResourceVersion = "2"
	m.Step(time.Now(), machine.ObjectSet{Object: decode.Object(written)})
	state(true, true)
	if _, err := h.options.Client.ResourceV1().ResourceClaims("default").UpdateStatus(t.Context(), written, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-told
	state(true, false)
}
