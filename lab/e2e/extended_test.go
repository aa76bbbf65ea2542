package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/proxy"
)

// card is an extended resource that one node offers itself and a device class
// stands for on others.
const card = "e2e.example.com/card"

// Pods request a resource of which one node has one and two others have devices
// that stand for it. All are given away, through claims that are made for the
// pods on nodes with devices; who comes later gets what a pod gives up.
func TestExtendedResources(t *testing.T) {
	f := newField(t, "extended")
	own := f.node(0, "8", 110)
	own.Status.Capacity[card], own.Status.Allocatable[card] = resource.MustParse("1"), resource.MustParse("1")
	f.addNodes(own, f.node(1, "8", 110), f.node(2, "8", 110))
	f.extendedClass()
	f.slice(1, 2, 1)
	f.slice(2, 1, 1)
	f.berth(cluster.SchedulerOptions{})

	f.create(withCard(f.podsOf("user", 4, "1"))...)
	f.awaitBound(4)
	f.checkCards(3)
	f.create(withCard(f.podsOf("late", 1, "1"))...)
	f.awaitRejected("late-0", "0/3 nodes are available: 1 Insufficient e2e.example.com/card, 2 cannot allocate all claims. "+
		"preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.")
	for i := range 4 {
		if name := fmt.Sprintf("user-%d", i); f.get(name).Spec.NodeName == f.nodeName(1) {
			if err := f.client.CoreV1().Pods(f.name).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	f.await("the late pod to get the card", func() string {
		if node := f.get("late-0").Spec.NodeName; node != f.nodeName(1) {
			return fmt.Sprintf("it is on %q", node)
		}
		return ""
	})
	f.checkCards(3)
	f.awaitScheduledOnce()
}

// The replies to all writes of such a claim are lost, and later a binding is
// refused: the pod is bound all the same, and what was made for the other goes.
func TestExtendedResourceWrites(t *testing.T) {
	f := newField(t, "extended-writes")
	f.sameNodes(1, "8", 110)
	f.extendedClass()
	f.slice(0, 2, 0)
	p, berth := f.proxied()

	heal := p.Inject(proxy.Fault{LoseReply: true, On: func(r *http.Request) bool {
		return r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/resourceclaims")
	}})
	f.create(withCard(f.podsOf("lost", 1, "1"))...)
	f.awaitBound(1)
	heal()
	if n := f.metric(berth, "scheduler_schedule_attempts_total", `result="error"`); n != 0 {
		t.Errorf("%d attempts failed when replies were lost", n)
	}
	f.checkCards(1)

	heal = p.Inject(proxy.Fault{Status: http.StatusForbidden, On: func(r *http.Request) bool { return isBinding(r.Method, r.URL.Path) }})
	f.create(withCard(f.podsOf("refused", 1, "1"))...)
	f.await("what was made for the pod to be deleted", func() string {
		return missing(min(p.Count(func(e proxy.Exchange) bool {
			return e.Method == http.MethodDelete && strings.Contains(e.Path, "/resourceclaims/") && e.Status == http.StatusOK
		}), 1), 1)
	})
	heal()
	f.awaitBound(2)
	f.checkCards(2)
	f.awaitScheduledOnce()
}

// checkCards reads the field's pods and claims back: n devices are given, to
// pods that run where the device is and say which claim is theirs; the other
// pods are on the node that has cards itself.
func (f *field) checkCards(n int) {
	f.Helper()
	list, err := f.client.ResourceV1().ResourceClaims(f.name).List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	pods, given := f.listed(), map[string]string{}
	for _, claim := range list.Items {
		if claim.Status.Allocation == nil || claim.DeletionTimestamp != nil {
			continue
		}
		owner := metav1.GetControllerOf(&claim)
		for _, got := range claim.Status.Allocation.Devices.Results {
			device := got.Pool + "/" + got.Device
			if other := given[device]; other != "" {
				f.Errorf("device %s is given to claims %s and %s", device, other, claim.Name)
			}
			given[device] = claim.Name
			for _, pod := range pods {
				status := pod.Status.ExtendedResourceClaimStatus
				if owner != nil && pod.UID == owner.UID && (pod.Spec.NodeName != got.Pool || status == nil || status.ResourceClaimName != claim.Name) {
					f.Errorf("device %s is given for pod %s on node %q with status %v", device, pod.Name, pod.Spec.NodeName, status)
				}
			}
		}
		if owner == nil || len(claim.Status.ReservedFor) != 1 || claim.Status.ReservedFor[0].UID != owner.UID {
			f.Errorf("claim %s of %v is reserved for %v", claim.Name, owner, claim.Status.ReservedFor)
		}
	}
	if len(given) != n {
		f.Errorf("%d devices are given, want %d", len(given), n)
	}
}

// extendedClass is the class of fast devices, which stands for cards. Of all
// classes that do, the newest counts; none is left of other tests.
func (f *field) extendedClass() {
	f.Helper()
	name := card
	f.classOf(&name)
}

// withCard has each of the pods request a card.
func withCard(pods []*corev1.Pod) []*corev1.Pod {
	for _, pod := range pods {
		resources := &pod.Spec.Containers[0].Resources
		resources.Requests[card] = resource.MustParse("1")
		resources.Limits = corev1.ResourceList{card: resource.MustParse("1")}
	}
	return pods
}
