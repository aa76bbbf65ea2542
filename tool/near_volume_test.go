package tool

import (
	"strings"
	"testing"
)

// The one thing because of which a volume does not suit the claim is told, and mended.
func TestWhyNearVolumes(t *testing.T) {
	const class = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: local}\nprovisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer\n---\n"
	const claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c1, namespace: default, uid: u1}\nspec: {accessModes: [ReadWriteOnce], storageClassName: local, resources: {requests: {storage: 5Gi}}}\nstatus: {phase: Pending}\n---\n"
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}], volumes: [{name: v, persistentVolumeClaim: {claimName: c1}}]}\n"
	const devicePod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i, volumeDevices: [{name: v, devicePath: /dev/v}]}], volumes: [{name: v, persistentVolumeClaim: {claimName: c1}}]}\n"
	volume := func(capacity, mode, class, more, phase string) string {
		return "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv1}\nspec: {capacity: {storage: " + capacity + "}, accessModes: [" + mode + "], storageClassName: " + class + ", hostPath: {path: /x}" + more + "}\nstatus: {phase: " + phase + "}\n---\n"
	}
	for _, test := range []struct{ why, volume, told, first, command, pod string }{
		{"released", volume("5Gi", "ReadWriteOnce", "local", ", claimRef: {namespace: default, name: old, uid: u0}", "Released"),
			"volume pv1 was made for claim default/old", "1. release volume pv1 from claim default/old, whose data it has; then it goes to a",
			"kubectl patch persistentvolume pv1 --type=json -p '[{\"op\":\"remove\",\"path\":\"/spec/claimRef\"}]'\n", pod},
		{"too small", volume("2Gi", "ReadWriteOnce", "local", "", "Available"),
			"volume pv1 has 2Gi, and the claim requests 5Gi", "1. make claim c1 anew with 2Gi, as volume pv1 has; then it goes to a", "kubectl replace --force", pod},
		{"another access mode", volume("5Gi", "ReadOnlyMany", "local", "", "Available"),
			"volume pv1 is ReadOnlyMany, and the claim wants ReadWriteOnce", "1. make claim c1 anew with the access modes ReadOnlyMany, as volume pv1 has; then it goes to a", "kubectl replace --force", pod},
		{"another volume mode", volume("5Gi", "ReadWriteOnce", "local", ", volumeMode: Block", "Available"),
			"volume pv1 has the volumeMode Block, and the claim Filesystem", "1. make claim c1 anew with the volumeMode Block, as volume pv1 has; then it goes to a", "kubectl replace --force", devicePod},
		{"another volume mode, mounted", volume("5Gi", "ReadWriteOnce", "local", ", volumeMode: Block", "Available"),
			"volume pv1 has the volumeMode Block, and the claim Filesystem", "1. create the PersistentVolume pv-default-c1 for the claim c1; then it goes to a", "", pod},
		{"another class", volume("5Gi", "ReadWriteOnce", "slow", "", "Available"),
			"volume pv1 is of class \"slow\"", "", "", pod},
	} {
		_, out, errs := berth(nodeYAML+"---\n"+class+claim+test.volume+test.pod, "why", "-f", "-", "p")
		if !strings.Contains(out, test.told) || !strings.Contains(out, "\n  "+test.first) || !strings.Contains(out, test.command) {
			t.Errorf("%s: want %q and %q: %s\n%s", test.why, test.told, test.first, errs, out)
		}
	}
}
