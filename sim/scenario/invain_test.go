package scenario

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/machine"
)

var inVain = flag.Int("in-vain", 20, "pods that fit nowhere in TestTriesInVain; ten times as many others go")

// Pods that fit nowhere are tried three times at most on average while ten times
// as many others leave their nodes, twenty a second. It makes no difference whether they
// could preempt the others, who are not enough, nor that one plugin rejects some nodes and
// another one the others.
func TestTriesInVain(t *testing.T) {
	const full = "pods guard HALF cpu=3500m priority=100 bound=odd-#\n"
	for _, c := range []struct {
		name, before, goes, pod string
	}{
		{"too large", "", "", "cpu=500"},
		{"too large, and devices to be given", unallocated, "", "cpu=500 device=gpu"},
		{"no room, and wrong nodes", full, "", "cpu=1 require=\"odd,zone notin (x)\""},
		{"no room, and a port is taken", full + "pods web HALF cpu=0 port=80 priority=100 bound=even-#\n", "", "cpu=1 port=80"},
		{"no room, and away from a pod", full + "pods web HALF cpu=0 label:app=web priority=100 bound=even-#\n", "", `cpu=1 away="zone app=web"`},
		{"no room, and near a pod", full + "pod web cpu=0 label:app=web priority=100 bound=odd-0\n", "", `cpu=1 near="zone app=web"`},
		{"no room, and a volume that is elsewhere", full + elsewhere, "", "cpu=1 claim=data"},
		{"no room, and nodes that attach no more volumes", full + limited(), "claim=shared", "cpu=1 claim=data"},
		{"nodes that attach no more volumes", limited(), "claim=shared", "claim=data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Run("nobody of lower priority", func(t *testing.T) { triesInVain(t, c.before, c.goes, c.pod) })
			if c.goes == "" { // whether nodes attach more once others go is not known beforehand
				t.Run("all others of lower priority", func(t *testing.T) { triesInVain(t, c.before, c.goes, c.pod+" priority=10") })
			}
		})
	}
}

// limited has no node attach a volume more, and two claims with their volumes.
func limited() string {
	var b strings.Builder
	for i := range *inVain / 2 {
		fmt.Fprintf(&b, `object
  apiVersion: storage.k8s.io/v1
  kind: CSINode
  metadata: {name: KIND-%d}
  spec: {drivers: [{name: csi.example.com, nodeID: n, allocatable: {count: 0}}]}
`, i)
	}
	nodes := strings.ReplaceAll(b.String(), "KIND", "odd") + strings.ReplaceAll(b.String(), "KIND", "even")
	b.Reset()
	for _, claim := range []string{"data", "shared"} {
		fmt.Fprintf(&b, `object
  apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: %[1]s, uid: %[1]s, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
  spec: {volumeName: %[1]s}
object
  apiVersion: v1
  kind: PersistentVolume
  metadata: {name: %[1]s}
  spec: {claimRef: {namespace: default, name: %[1]s, uid: %[1]s}, csi: {driver: csi.example.com, volumeHandle: %[1]s}}
`, claim)
	}
	return nodes + b.String()
}

// unallocated is a claim of devices that nothing is allocated for.
const unallocated = `object
  apiVersion: resource.k8s.io/v1
  kind: DeviceClass
  metadata: {name: gpu, uid: class-gpu}
  spec: {}
object
  apiVersion: resource.k8s.io/v1
  kind: ResourceClaim
  metadata: {name: gpu, namespace: default, uid: claim-gpu}
  spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, allocationMode: All}}]}}
`

// elsewhere is a claim whose volume is in a zone without nodes.
const elsewhere = `object
  apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: data, namespace: default, uid: data, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
  spec: {volumeName: disk}
object
  apiVersion: v1
  kind: PersistentVolume
  metadata: {name: disk}
  spec:
    claimRef: {namespace: default, name: data, uid: data}
    csi: {driver: csi.example.com, volumeHandle: disk}
    nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [none]}]}]}}
`

func triesInVain(t *testing.T, before, goes, pod string) {
	half := *inVain / 2
	var text strings.Builder
	fmt.Fprintf(&text, "nodes odd %d cpu=4 label:zone=odd-# label:odd=yes\nnodes even %d cpu=4 label:zone=even-#\n", half, half)
	text.WriteString(strings.ReplaceAll(before, "HALF", fmt.Sprint(half)))
	for i := range 10 {
		fmt.Fprintf(&text, "pods odd-%[1]d %[2]d cpu=40m bound=odd-# %[3]s\npods even-%[1]d %[2]d cpu=40m bound=even-# %[3]s\n", i, half, goes)
	}
	fmt.Fprintf(&text, "pods waits %d %s\nschedule\n", *inVain, pod)
	for i := range 10 {
		for k := range half {
			fmt.Fprintf(&text, "delete pod odd-%d-%d\nadvance 50ms\ndelete pod even-%d-%d\nadvance 50ms\n", i, k, i, k)
		}
	}
	story, err := Parse("in-vain", text.String())
	if err != nil {
		t.Fatal(err)
	}
	attempts := 0
	if err := story.Play(Engine{Seed: 1, Workers: 1, Observe: func(e machine.Effect) {
		if _, ok := e.(machine.AttemptDone); ok {
			attempts++
		}
	}}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d attempts for %d pods", attempts, *inVain)
	if attempts < *inVain || attempts > 3**inVain {
		t.Errorf("%d attempts for %d pods that fit nowhere", attempts, *inVain)
	}
}
