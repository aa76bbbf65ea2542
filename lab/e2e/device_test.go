package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/proxy"
)

// driver publishes the devices of all tests.
const driver = "gpu.example.com"

// Pods with claims of their own, made from a template, and two that share one
// fill the fast devices of two nodes; the slow ones are not of the class. A
// pod more waits until a third node publishes a device, and the next one until
// a pod goes and gives its device up.
func TestDeviceClaims(t *testing.T) {
	f := newField(t, "devices")
	f.sameNodes(3, "8", 110)
	f.deviceClass()
	f.slice(0, 2, 1)
	f.slice(1, 2, 1)
	f.claimTemplate()
	f.sharedClaim("shared")
	f.berth(cluster.SchedulerOptions{})

	f.create(withTemplate(f.podsOf("own", 3, "1"))...)
	f.create(withSharedClaim(f.podsOf("sharer", 2, "1"), "shared")...)
	f.awaitBound(5)
	f.checkClaims(4)
	if one, other := f.get("sharer-0").Spec.NodeName, f.get("sharer-1").Spec.NodeName; one != other {
		t.Errorf("two pods share a device of a node and run on %s and %s", one, other)
	}

	const full = "0/3 nodes are available: 3 cannot allocate all claims. " +
		"preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
	f.create(withTemplate([]*corev1.Pod{f.pod("late", "1")})...)
	f.awaitRejected("late", full)
	f.slice(2, 1, 1)
	f.awaitBound(6)
	if node := f.get("late").Spec.NodeName; node != f.nodeName(2) {
		t.Errorf("the late pod is on node %s, and the only free device on %s", node, f.nodeName(2))
	}
	f.create(withTemplate([]*corev1.Pod{f.pod("later", "1")})...)
	f.awaitRejected("later", full)
	left := f.get("own-0").Spec.NodeName
	if err := f.client.CoreV1().Pods(f.name).Delete(t.Context(), "own-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.await("the later pod to get the device", func() string {
		if node := f.get("later").Spec.NodeName; node != left {
			return fmt.Sprintf("it is on %q, the device on %q", node, left)
		}
		return ""
	})
	f.checkClaims(5)
	f.awaitScheduledOnce()
}

// A scheduler is killed while it allocates, and another starts: the pods get
// every device there is, and none is given twice.
func TestDeviceClaimsAfterKill(t *testing.T) {
	const nodes, devices = 8, 10
	f := newField(t, "devices-killed")
	f.sameNodes(nodes, "40", 110)
	f.deviceClass()
	for i := range nodes {
		f.slice(i, devices, 0)
	}
	f.claimTemplate()
	first := f.berth(cluster.SchedulerOptions{})
	f.background("the pods", withTemplate(f.podsOf("own", nodes*devices, "1")))
	f.await("some pods to be bound", func() string { return missing(min(bound(f.seen("")), devices), devices) })
	first.Kill()
	f.berth(cluster.SchedulerOptions{})
	f.awaitBound(nodes * devices)
	f.checkClaims(nodes * devices)
}

// Writes of claims are refused, and later their replies are lost: the refused
// are tried again once they are not, the lost are settled, and what a binding
// that is refused leaves behind is taken back.
func TestDeviceClaimWrites(t *testing.T) {
	f := newField(t, "device-writes")
	f.sameNodes(2, "8", 110)
	f.deviceClass()
	f.slice(0, 3, 0)
	f.slice(1, 3, 0)
	f.claimTemplate()
	f.sharedClaim("shared")
	p, berth := f.proxied()

	heal := p.Inject(proxy.Fault{Status: http.StatusUnprocessableEntity, On: func(r *http.Request) bool { return isClaimWrite(r.Method, r.URL.Path) }})
	f.create(withTemplate(f.podsOf("refused", 2, "1"))...)
	f.await("writes to be refused", func() string { return missing(min(refused(p, http.MethodPatch, http.StatusUnprocessableEntity), 2), 2) })
	f.await("the pods to say so", func() string { return missing(min(len(f.eventsOn("FailedScheduling")), 2), 2) })
	heal()
	f.awaitBound(2)

	before := f.metric(berth, "scheduler_schedule_attempts_total", `result="error"`)
	heal = p.Inject(proxy.Fault{LoseReply: true, On: func(r *http.Request) bool { return isClaimWrite(r.Method, r.URL.Path) }})
	f.create(withTemplate(f.podsOf("lost", 2, "1"))...)
	f.awaitBound(4)
	heal()
	if n := p.Count(func(e proxy.Exchange) bool { return isClaimWrite(e.Method, e.Path) && e.Lost }); n < 2 {
		t.Errorf("%d replies were lost, want two at least", n)
	}
	if n := f.metric(berth, "scheduler_schedule_attempts_total", `result="error"`); n != before {
		t.Errorf("%d attempts failed when replies were lost", n-before)
	}
	f.checkClaims(4)

	heal = p.Inject(proxy.Fault{Status: http.StatusForbidden, On: func(r *http.Request) bool { return isBinding(r.Method, r.URL.Path) }})
	f.create(withSharedClaim(f.podsOf("sharer", 1, "1"), "shared")...)
	f.await("a binding to be refused", func() string { return missing(min(refused(p, http.MethodPost, http.StatusForbidden), 1), 1) })
	f.await("the reservation to be taken back", func() string {
		claim, err := f.client.ResourceV1().ResourceClaims(f.name).Get(t.Context(), "shared", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if claim.Status.Allocation == nil || len(claim.Status.ReservedFor) > 0 {
			return fmt.Sprintf("the status is %v", claim.Status)
		}
		return ""
	})
	heal()
	f.awaitBound(5)
	f.checkClaims(5)
	f.awaitScheduledOnce()
}

// Three pods get three devices, their bindings are refused, and the watch, which
// would show what their claims got, is frozen. Three others must not get the
// same devices, whatever requeues them.
func TestDeviceClaimsAndFrozenWatch(t *testing.T) {
	f := newField(t, "devices-frozen")
	f.sameNodes(1, "8", 110)
	f.deviceClass()
	f.slice(0, 3, 0)
	pods := f.podsOf("one", 6, "1")
	for i, pod := range pods {
		f.sharedClaim(pod.Name)
		withSharedClaim(pods[i:i+1], pod.Name)
	}
	p, berth := f.proxied()
	thaw := p.Inject(proxy.Fault{Freeze: true, On: func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/resourceclaims") && r.URL.Query().Has("watch")
	}})
	heal := p.Inject(proxy.Fault{Status: http.StatusForbidden, On: func(r *http.Request) bool { return isBinding(r.Method, r.URL.Path) }})
	defer func() { thaw(); heal() }()

	f.create(pods[:3]...)
	f.await("bindings to be refused", func() string { return missing(min(refused(p, http.MethodPost, http.StatusForbidden), 3), 3) })
	f.create(pods[3:]...)
	f.await("the others to be rejected", func() string { return missing(rejected(f.seen("")), 3) })
	f.label(f.nodeName(0))
	f.await("the others to be tried in vain", func() string {
		return missing(min(f.metric(berth, "scheduler_schedule_attempts_total", `result="unschedulable"`), 6), 6)
	})
	heal()
	f.awaitBound(3)
	thaw()
	f.checkClaims(3)
	for _, pod := range f.seen("") {
		if first := slices.ContainsFunc(pods[:3], func(p *corev1.Pod) bool { return p.Name == pod.Name }); first != (pod.Spec.NodeName != "") {
			t.Errorf("pod %s is on node %q", pod.Name, pod.Spec.NodeName)
		}
	}
}

func isClaimWrite(method, path string) bool {
	return method == http.MethodPatch && strings.Contains(path, "/resourceclaims/")
}

// checkClaims reads the field's claims and pods back: n claims have a device
// each, of the right model, no device is given twice, and each claim is
// reserved for just the pods that use it, which run where the device is.
func (f *field) checkClaims(n int) {
	f.Helper()
	list, err := f.client.ResourceV1().ResourceClaims(f.name).List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	users := map[string]map[types.UID]string{} // of a claim, by UID, with their nodes
	for _, pod := range f.listed() {
		for _, status := range pod.Status.ResourceClaimStatuses {
			users[*status.ResourceClaimName] = map[types.UID]string{pod.UID: pod.Spec.NodeName}
		}
		if len(pod.Spec.ResourceClaims) == 0 {
			continue
		}
		if shared := pod.Spec.ResourceClaims[0].ResourceClaimName; shared != nil {
			if users[*shared] == nil {
				users[*shared] = map[types.UID]string{}
			}
			users[*shared][pod.UID] = pod.Spec.NodeName
		}
	}
	given := map[string]string{}
	for _, claim := range list.Items {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, got := range claim.Status.Allocation.Devices.Results {
			device := got.Pool + "/" + got.Device
			if other := given[device]; other != "" {
				f.Errorf("device %s is given to claims %s and %s", device, other, claim.Name)
			}
			given[device] = claim.Name
			if !strings.HasPrefix(got.Device, "fast") {
				f.Errorf("claim %s has device %s, which its class does not select", claim.Name, device)
			}
			for uid, node := range users[claim.Name] {
				if node != got.Pool {
					f.Errorf("claim %s has device %s, its user %s runs on %q", claim.Name, device, uid, node)
				}
			}
		}
		var reserved []types.UID
		for _, user := range claim.Status.ReservedFor {
			reserved = append(reserved, user.UID)
		}
		slices.Sort(reserved)
		if want := slices.Sorted(maps.Keys(users[claim.Name])); !slices.Equal(reserved, want) {
			f.Errorf("claim %s is reserved for %v, its users are %v", claim.Name, reserved, want)
		}
	}
	if len(given) != n {
		f.Errorf("%d devices are given, want %d", len(given), n)
	}
}

// deviceClass is the class of fast devices, with the field's name.
func (f *field) deviceClass() {
	f.Helper()
	f.classOf(nil)
}

// classOf is the class of fast devices, which stands for an extended resource.
func (f *field) classOf(extended *string) {
	f.Helper()
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: f.name}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: extended,
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: fmt.Sprintf(`device.driver == %q && device.attributes[%q].speed == "fast"`, driver, driver)}}}}}
	if _, err := f.client.ResourceV1().DeviceClasses().Create(f.Context(), class, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		_ = f.client.ResourceV1().DeviceClasses().Delete(context.Background(), f.name, metav1.DeleteOptions{})
	})
}

// slice publishes devices of node i, in a pool with its name.
func (f *field) slice(i, fast, slow int) {
	f.Helper()
	node := f.nodeName(i)
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourcev1.ResourceSliceSpec{
		Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}}}
	for speed, n := range map[string]int{"fast": fast, "slow": slow} {
		for j := range n {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("%s-%d", speed, j),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"speed": {StringValue: &speed}}})
		}
	}
	if _, err := f.client.ResourceV1().ResourceSlices().Create(f.Context(), slice, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		_ = f.client.ResourceV1().ResourceSlices().Delete(context.Background(), node, metav1.DeleteOptions{})
	})
}

// oneDevice asks for a device of the field's class.
func (f *field) oneDevice() resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: f.name}}}}}
}

// claimTemplate creates the template "one", of claims for one device.
func (f *field) claimTemplate() {
	f.Helper()
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: f.oneDevice()}}
	if _, err := f.client.ResourceV1().ResourceClaimTemplates(f.name).Create(f.Context(), template, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

func (f *field) sharedClaim(name string) {
	f.Helper()
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: f.oneDevice()}
	if _, err := f.client.ResourceV1().ResourceClaims(f.name).Create(f.Context(), claim, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

// withTemplate gives each of the pods a claim of its own.
func withTemplate(pods []*corev1.Pod) []*corev1.Pod {
	template := "one"
	return withClaims(pods, corev1.PodResourceClaim{Name: "device", ResourceClaimTemplateName: &template})
}

// withSharedClaim has all of the pods use one claim.
func withSharedClaim(pods []*corev1.Pod, claim string) []*corev1.Pod {
	return withClaims(pods, corev1.PodResourceClaim{Name: "device", ResourceClaimName: &claim})
}

func withClaims(pods []*corev1.Pod, claim corev1.PodResourceClaim) []*corev1.Pod {
	for _, pod := range pods {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{claim}
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: claim.Name}}
	}
	return pods
}
