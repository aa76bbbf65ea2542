package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// Three pods have claims that wait for their first consumer, and two of three
// nodes a local volume each. Two pods go there, and their claims are bound to
// those volumes by the volume controller; the third goes to the third node when
// a volume is made there. A pod whose claim nobody made waits and says so.
func TestVolumes(t *testing.T) {
	f := newField(t, "volumes")
	f.sameNodes(3, "4", 110)
	f.localClass()
	f.localVolume(0)
	f.localVolume(1)
	f.berth(cluster.SchedulerOptions{})

	for _, pod := range f.podsOf("user", 3, "1") {
		f.claim(pod.Name)
		f.create(withClaim(pod, pod.Name))
	}
	f.awaitBound(2)
	f.create(withClaim(f.pod("stray", "1"), "nowhere"))
	f.awaitRejected("stray", `0/3 nodes are available: persistentvolumeclaim "nowhere" not found. not found`)
	f.localVolume(2)
	f.awaitBound(3)
	f.awaitScheduledOnce()
	used := map[string]bool{}
	for i := range 3 {
		name := fmt.Sprintf("user-%d", i)
		claim, err := f.client.CoreV1().PersistentVolumeClaims(f.name).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		// Node and volume have the same name.
		if pod := f.get(name); claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName != pod.Spec.NodeName {
			t.Errorf("claim %s is %s to volume %q, its pod runs on %q", name, claim.Status.Phase, claim.Spec.VolumeName, pod.Spec.NodeName)
		}
		used[claim.Spec.VolumeName] = true
	}
	if len(used) != 3 {
		t.Errorf("volumes in use: %v, want three", used)
	}
}

func withClaim(pod *corev1.Pod, claim string) *corev1.Pod {
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	return pod
}

// localClass is a class whose volumes are made beforehand.
func (f *field) localClass() {
	f.Helper()
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: f.name}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &wait}
	if _, err := f.client.StorageV1().StorageClasses().Create(f.Context(), class, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		_ = f.client.StorageV1().StorageClasses().Delete(context.Background(), f.name, metav1.DeleteOptions{})
	})
}

// localVolume is a volume of the i-th node, with its name.
func (f *field) localVolume(i int) {
	f.Helper()
	node := f.nodeName(i)
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: corev1.PersistentVolumeSpec{
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
		_ = f.client.CoreV1().PersistentVolumes().Delete(context.Background(), node, metav1.DeleteOptions{})
	})
}

func (f *field) claim(name string) {
	f.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &f.name,
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	if _, err := f.client.CoreV1().PersistentVolumeClaims(f.name).Create(f.Context(), claim, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}
