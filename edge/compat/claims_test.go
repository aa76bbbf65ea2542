package compat

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
)

// An allocation is pending until all pods that signalled it are through. That of a claim that
// was allocated meanwhile is not: its devices are taken already.
func TestPendingAllocations(t *testing.T) {
	claim := func(name string, allocation *resourcev1.AllocationResult) *resourcev1.ResourceClaim {
		return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
			Status: resourcev1.ResourceClaimStatus{Allocation: allocation}}
	}
	some := &resourcev1.AllocationResult{}
	h := New(Options{Logger: klog.Background(), Client: fake.NewClientset(claim("free", nil), claim("taken", some)), Dynamic: dynamicfake.NewSimpleDynamicClient(scheme.Scheme)})
	h.Connect(nil, make(noted, 10))
	_ = h.factory.Resource().V1().ResourceClaims().Informer()
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !h.WaitForSync(t.Context()) {
		t.Fatal("not synced")
	}
	tracker := (&handle{&Host{Hosts: h}}).SharedDRAManager().ResourceClaims()
	for name, pending := range map[string]bool{"free": true, "taken": false, "not created yet": true} {
		for range 2 {
			if err := tracker.SignalClaimPendingAllocation(types.UID(name), claim(name, some)); err != nil {
				t.Fatal(err)
			}
		}
		if got := tracker.GetPendingAllocation(types.UID(name)) != nil; got != pending {
			t.Errorf("%s: pending %t", name, got)
		}
		for i := range 2 {
			if ended := tracker.MaybeRemoveClaimPendingAllocation(types.UID(name), false); ended != (pending && i == 1) {
				t.Errorf("%s: ended %t by pod %d", name, ended, i)
			}
		}
	}
}
