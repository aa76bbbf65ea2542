package tool

import (
	"fmt"
	"strings"
	"testing"
)

// storage is a cluster whose pods use claims: db uses only (for one pod at a time),
// and log the disk d1, both on a. Volume here is on a and b, and there on c.
func storage() string {
	var b strings.Builder
	for _, n := range []string{"a", "b", "c"} {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {zone: %[1]s}}\nstatus: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}\n", n)
	}
	for _, c := range []struct{ claim, mode, volume, zones string }{
		{"only", "ReadWriteOncePod", "one", "a, b, c"}, {"free", "ReadWriteOncePod", "two", "a, b, c"},
		{"here", "ReadWriteOnce", "here", "a, b"}, {"there", "ReadWriteOnce", "there", "c"},
	} {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: %s, uid: %[1]s, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}\nspec: {volumeName: %s, accessModes: [%s]}\n", c.claim, c.volume, c.mode)
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: %s}\nspec: {accessModes: [%s], claimRef: {namespace: default, name: %s, uid: %[3]s}, csi: {driver: csi.example.com, volumeHandle: %[1]s}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [%[4]s]}]}]}}}\n", c.volume, c.mode, c.claim, c.zones)
	}
	b.WriteString("---\napiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: b}\nspec: {drivers: [{name: csi.example.com, nodeID: b, allocatable: {count: 1}}]}\n")
	b.WriteString("---\napiVersion: v1\nkind: Pod\nmetadata: {name: db}\nspec: {nodeName: a, volumes: [{name: v, persistentVolumeClaim: {claimName: only}}], containers: [{name: c}]}\n")
	b.WriteString("---\napiVersion: v1\nkind: Pod\nmetadata: {name: log}\nspec: {nodeName: a, volumes: [{name: v, awsElasticBlockStore: {volumeID: d1}}], containers: [{name: c}]}\n")
	return b.String()
}

// claims are volumes of a pod.
func claims(names ...string) string {
	var parts []string
	for _, n := range names {
		parts = append(parts, fmt.Sprintf("{name: %s, persistentVolumeClaim: {claimName: %[1]s}}", n))
	}
	return "volumes: [" + strings.Join(parts, ", ") + "]"
}

// The text names the claim, the volume and the pod that block, and no others.
func TestWhyNamesTheClaimThatBlocks(t *testing.T) {
	for name, c := range map[string]struct{ spec, want, not string }{
		"a claim for one pod at a time": {
			claims("here", "only", "free"), "(claim only is for one pod at a time, and default/db on a uses it)", "claim free",
		},
		"a volume that is elsewhere": {
			"affinity: {" + on("a") + "}, " + claims("here", "there"), "(claim there is bound to volume there, on nodes with zone in [c])", "claim here",
		},
		"each volume elsewhere on some nodes": {
			"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a, c]}]}]}}}, " + claims("here", "there", "free"),
			"(claim here is bound to volume here, on nodes with zone in [a b], claim there is bound to volume there, on nodes with zone in [c])", "claim free",
		},
		"a claim that is not there": {
			claims("here", "none"), "(claim none is not there)", "claim here",
		},
		"a disk that another pod has": {
			"affinity: {" + on("a") + "}, volumes: [{name: v, awsElasticBlockStore: {volumeID: d1}}]", "(default/log on a has disk d1)", "",
		},
		"more volumes than a node attaches": {
			"affinity: {" + on("b") + "}, " + claims("here", "free"), "(b attaches 1 volume of csi.example.com, has 0, and the pod brings 2)", "claim here",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {" + c.spec + ", containers: [{name: c}]}\n"
			_, out, errs := berth(storage()+pod, "why", "-f", "-", "p")
			said, _, _ := strings.Cut(out, "\nWHAT WOULD HELP")
			if errs != "" || !strings.Contains(said, c.want) || c.not != "" && strings.Contains(said, c.not) {
				t.Errorf("want %q, and not %q: %s%s", c.want, c.not, errs, out)
			}
		})
	}
}

// The text counts the devices of a claim that is short of them, and names no claim
// that is not.
func TestWhyCountsDevices(t *testing.T) {
	var b strings.Builder
	b.WriteString("---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {selectors: [{cel: {expression: 'device.driver == \"gpu.example.com\"'}}]}\n")
	for _, n := range []string{"a", "b"} {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}\n", n)
		fmt.Fprintf(&b, "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: %s}\nspec: {driver: gpu.example.com, nodeName: %[1]s, pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}, devices: [{name: d0, attributes: {model: {string: big}}}, {name: d1, attributes: {model: {string: small}}}]}\n", n)
	}
	const claim = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: %s}\nspec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: %d%s}}]}}\n"
	fmt.Fprintf(&b, claim, "one", 1, "")
	b.WriteString("status: {allocation: {devices: {results: [{request: r, driver: gpu.example.com, pool: a, device: d1}]}, nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [a]}]}]}}}\n")
	for name, c := range map[string]struct {
		count                int
		selector, want, more string
	}{
		"too many":   {3, "", "(claim mine wants 3 devices of class gpu, more than any node here has (the largest has 2))", "affinity: {" + on("a") + "}, "},
		"taken":      {1, ", selectors: [{cel: {expression: 'device.attributes[\"gpu.example.com\"].model == \"small\"'}}]", "(claim mine wants 1 device of class gpu that its selectors take; a has 0 of 1 free)", "affinity: {" + on("a") + "}, "},
		"elsewhere":  {1, "", "resourceclaim not available on the node (claim one is allocated on nodes with metadata.name In [a])", "affinity: {" + on("b") + "}, "},
		"one of two": {2, "", "(claim mine wants 2 devices of class gpu; a has 1 of 2 free)", "affinity: {" + on("a") + "}, "},
		"none":       {1, ", selectors: [{cel: {expression: 'device.attributes[\"gpu.example.com\"].model == \"none\"'}}]", "(claim mine wants 1 device of class gpu that its selectors take, and none does (the largest node has 2 of the class))", "affinity: {" + on("a") + "}, "},
	} {
		t.Run(name, func(t *testing.T) {
			pod := "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {" + c.more + "resourceClaims: [{name: x, resourceClaimName: mine}, {name: z, resourceClaimName: one}], containers: [{name: c}]}\n"
			_, out, errs := berth(b.String()+fmt.Sprintf(claim, "mine", c.count, c.selector)+pod, "why", "-f", "-", "p")
			if errs != "" || !strings.Contains(out, c.want) {
				t.Errorf("want %q: %s%s", c.want, errs, out)
			}
		})
	}
}
