package compat

import (
	"context"
	"sync"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/machine"
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
		rule := &resourcev1beta2.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: resourcev1beta2.DeviceTaintRuleSpec{
			DeviceSelector: &resourcev1beta2.DeviceTaintSelector{Device: &device},
			Taint:          resourcev1beta2.DeviceTaint{Key: "broken", Effect: resourcev1beta2.DeviceTaintEffectNoSchedule}}}
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
			if _, err := h.options.Client.ResourceV1beta2().DeviceTaintRules().Create(t.Context(), rule, metav1.CreateOptions{}); err != nil {
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
