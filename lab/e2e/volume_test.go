package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/proxy"
)

// Three pods have claims that wait for their first consumer, and two of three
// nodes a local volume each. Two pods go there, and their claims are bound to
// those volumes by the volume controller; the third goes to the third node when
// a volume is made there. A pod whose claim nobody made waits and says so.
func TestVolumes(t *testing.T) {
	f := newField(t, "volumes")
	f.sameNodes(3, "4", 110)
	f.class("", noProvisioner)
	f.localVolume(0)
	f.localVolume(1)
	f.berth(cluster.SchedulerOptions{})

	for _, pod := range f.podsOf("user", 3, "1") {
		f.claim(pod.Name)
		f.create(withVolumes(pod, pod.Name))
	}
	f.awaitBound(2)
	f.create(withVolumes(f.pod("stray", "1"), "nowhere"))
	f.awaitRejected("stray", `0/3 nodes are available: persistentvolumeclaim "nowhere" not found. not found`)
	f.localVolume(2)
	f.awaitBound(3)
	f.awaitScheduledOnce()
	used := map[string]bool{}
	for i := range 3 {
		name := fmt.Sprintf("user-%d", i)
		claim := f.boundClaim(name)
		// Node and volume have the same name.
		if pod := f.get(name); claim.Spec.VolumeName != pod.Spec.NodeName {
			t.Errorf("claim %s is bound to volume %q, its pod runs on %q", name, claim.Spec.VolumeName, pod.Spec.NodeName)
		}
		used[claim.Spec.VolumeName] = true
	}
	if len(used) != 3 {
		t.Errorf("volumes in use: %v, want three", used)
	}
}

// A driver makes volumes where the scheduler wants them; the test is the driver.
// One that is made too late costs the pod an attempt, and no more.
func TestVolumesAreMade(t *testing.T) {
	f := newField(t, "volumes-made")
	f.sameNodes(2, "4", 110)
	f.class("", "made.example.com")
	f.berth(cluster.SchedulerOptions{Config: []byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: VolumeBinding
    args: {bindTimeoutSeconds: 3}
`)})
	for _, pod := range f.podsOf("user", 3, "1") {
		f.claim(pod.Name)
		f.create(withVolumes(pod, pod.Name))
	}
	for i := range 2 {
		f.makeVolume(fmt.Sprintf("user-%d", i))
	}
	f.awaitBound(2)
	f.await("the last pod to give up", func() string {
		for _, e := range f.eventsOn("FailedScheduling")["user-2"] {
			if strings.Contains(e.Note, `running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded`) {
				return ""
			}
		}
		return "no event says so"
	})
	f.makeVolume("user-2")
	f.awaitBound(3)
	f.awaitScheduledOnce()
	for i := range 3 {
		name := fmt.Sprintf("user-%d", i)
		if claim := f.boundClaim(name); claim.Annotations[selectedNode] != f.get(name).Spec.NodeName {
			t.Errorf("claim %s is bound on node %s, its pod on %s", name, claim.Annotations[selectedNode], f.get(name).Spec.NodeName)
		}
	}
}

// Writes of volumes and claims are refused, and later their replies are lost.
// The refused are tried again once they are not, the lost are settled.
func TestVolumeWrites(t *testing.T) {
	f := newField(t, "volume-writes")
	f.sameNodes(2, "4", 110)
	f.class("", noProvisioner)
	f.class("-made", "made.example.com")
	f.localVolume(0)
	f.localVolume(1)
	p, berth := f.proxied()
	user := func(name string) { // has a volume that is there, and one to be made
		f.claim(name + "-local")
		f.claimOf(f.name+"-made", name+"-made")
		f.create(withVolumes(f.pod(name, "1"), name+"-local", name+"-made"))
	}
	writes := func(r *http.Request) bool { return isVolumeWrite(r.Method, r.URL.Path) }

	heal := p.Inject(proxy.Fault{Status: http.StatusConflict, On: writes})
	user("refused")
	f.await("a write to be refused", func() string { return missing(min(refused(p, http.MethodPatch, http.StatusConflict), 1), 1) })
	f.await("the pod to say so", func() string { return missing(min(len(f.eventsOn("FailedScheduling")["refused"]), 1), 1) })
	heal()
	f.makeVolume("refused-made")
	f.awaitBound(1)

	before := f.metric(berth, "scheduler_schedule_attempts_total", `result="error"`)
	heal = p.Inject(proxy.Fault{LoseReply: true, On: writes})
	user("lost")
	f.makeVolume("lost-made")
	f.awaitBound(2)
	heal()
	if n := p.Count(func(e proxy.Exchange) bool { return isVolumeWrite(e.Method, e.Path) && e.Lost }); n != 2 {
		t.Errorf("%d replies were lost, want two", n)
	}
	if n := f.metric(berth, "scheduler_schedule_attempts_total", `result="error"`); n != before {
		t.Errorf("%d attempts failed when replies were lost", n-before)
	}
	used := map[string]bool{}
	for _, name := range []string{"refused-local", "refused-made", "lost-local", "lost-made"} {
		claim := f.boundClaim(name)
		if used[claim.Spec.VolumeName] {
			t.Errorf("claim %s is bound to %s, as another is", name, claim.Spec.VolumeName)
		}
		used[claim.Spec.VolumeName] = true
	}
	f.awaitScheduledOnce()
}

func isVolumeWrite(method, path string) bool {
	return method == http.MethodPatch && strings.Contains(path, "/persistentvolume")
}

func withVolumes(pod *corev1.Pod, claims ...string) *corev1.Pod {
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
	return pod
}

const noProvisioner = "kubernetes.io/no-provisioner"

// class has the field's name and a suffix; its claims wait for their first
// consumer.
func (f *field) class(suffix, provisioner string) {
	f.Helper()
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: f.name + suffix}, Provisioner: provisioner, VolumeBindingMode: &wait}
	if _, err := f.client.StorageV1().StorageClasses().Create(f.Context(), class, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		_ = f.client.StorageV1().StorageClasses().Delete(context.Background(), f.name+suffix, metav1.DeleteOptions{})
	})
}

// localVolume is a volume of the i-th node, with its name.
func (f *field) localVolume(i int) {
	f.Helper()
	f.volume(f.nodeName(i), f.nodeName(i), nil)
}

// selectedNode is where the scheduler wants a claim's volume to be.
const selectedNode = "volume.kubernetes.io/selected-node"

// makeVolume waits until the scheduler wants a volume for the claim, and makes
// it where it wants it.
func (f *field) makeVolume(name string) {
	f.Helper()
	var claim *corev1.PersistentVolumeClaim
	f.await("a node for the volume of "+name, func() string {
		if claim = f.getClaim(name); claim.Annotations[selectedNode] == "" {
			return "none is selected"
		}
		return ""
	})
	f.volume("made-"+name, claim.Annotations[selectedNode], &corev1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: f.name, Name: name, UID: claim.UID})
}

func (f *field) getClaim(name string) *corev1.PersistentVolumeClaim {
	f.Helper()
	claim, err := f.client.CoreV1().PersistentVolumeClaims(f.name).Get(f.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return claim
}

// boundClaim is the claim once the volume controller says that it is bound. It says so
// after it has written to which volume, which is what a scheduler waits for.
func (f *field) boundClaim(name string) (claim *corev1.PersistentVolumeClaim) {
	f.Helper()
	f.await("claim "+name+" to be bound", func() string {
		if claim = f.getClaim(name); claim.Status.Phase != corev1.ClaimBound {
			return fmt.Sprintf("it is %s to %q", claim.Status.Phase, claim.Spec.VolumeName)
		}
		return ""
	})
	return claim
}

// volume creates a volume of a node, kept for a claim or (nil) for none.
func (f *field) volume(name, node string, claim *corev1.ObjectReference) {
	f.Helper()
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		ClaimRef:               claim,
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName:       f.name,
		PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}},
	}}
	if _, err := f.client.CoreV1().PersistentVolumes().Create(f.Context(), volume, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		_ = f.client.CoreV1().PersistentVolumes().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

// claim creates a claim of the class without a suffix.
func (f *field) claim(name string) {
	f.Helper()
	f.claimOf(f.name, name)
}

func (f *field) claimOf(class, name string) {
	f.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class,
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	if _, err := f.client.CoreV1().PersistentVolumeClaims(f.name).Create(f.Context(), claim, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}
