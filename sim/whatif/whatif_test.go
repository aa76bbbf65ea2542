package whatif_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/whatif"
)

// cluster reads the objects and returns them as a set and as an input.
func cluster(t *testing.T, text string) (*manifest.Set, sim.Input) {
	t.Helper()
	set := manifest.NewSet()
	set.FillBudgets = true
	if err := set.Files([]string{"-"}, strings.NewReader(text), 1); err != nil {
		t.Fatal(err)
	}
	if err := set.Resolve(); err != nil {
		t.Fatal(err)
	}
	return set, input(t, set)
}

func input(t *testing.T, set *manifest.Set) sim.Input {
	t.Helper()
	options, err := sim.Options(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	options.Check = true
	in := sim.Input{Namespaces: set.Namespaces, SelectorOwners: set.SelectorOwners, Objects: set.Objects, Machine: options}
	for _, n := range set.Nodes {
		in.Nodes = append(in.Nodes, decode.Node(n))
	}
	for _, p := range set.Pods {
		in.Pods = append(in.Pods, decode.Pod(p))
	}
	for _, b := range set.Budgets {
		in.Budgets = append(in.Budgets, decode.Budget(b))
	}
	return in
}

func run(t *testing.T, text string, words ...string) *whatif.Result {
	t.Helper()
	set, in := cluster(t, text)
	changes, err := whatif.Parse(words)
	if err != nil {
		t.Fatal(err)
	}
	r, err := whatif.Run(set, in, changes, whatif.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func node(name, more string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {kubernetes.io/hostname: %[1]s, topology.kubernetes.io/zone: %[1]s}}\n%sstatus: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}\n", name, more)
}

// pod is one of a ReplicaSet that requests CPUs.
func pod(name, node string, cpu int, more string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, labels: {app: web}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r, controller: true}]}\nspec: {nodeName: %q, %scontainers: [{name: c, resources: {requests: {cpu: %d}}}]}\n", name, node, more, cpu)
}

func moved(r *whatif.Result) string {
	var all []string
	for _, m := range r.Moved {
		all = append(all, fmt.Sprintf("%s %s-%s", strings.TrimPrefix(m.Pod, "default/"), m.From, m.To))
	}
	return strings.Join(all, ", ")
}

func stays(list []whatif.Stay) string {
	var all []string
	for _, s := range list {
		all = append(all, fmt.Sprintf("%s %s: %s", strings.TrimPrefix(s.Pod, "default/"), s.Node, s.Why))
	}
	return strings.Join(all, ", ")
}

// Each change has the effect that its name promises.
func TestChanges(t *testing.T) {
	const budget = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {%s, selector: {matchLabels: {app: web}}}\n"
	daemon := strings.NewReplacer("kind: ReplicaSet", "kind: DaemonSet", "app: web", "app: agent").Replace(pod("agent-a", "a", 1, ""))
	static := func(name, node string) string {
		return strings.NewReplacer("apps/v1, kind: ReplicaSet", "v1, kind: Node", "app: web", "app: proxy").Replace(pod(name, node, 1, ""))
	}
	two := node("a", "") + node("b", "")
	file := filepath.Join(t.TempDir(), "apply.yaml")
	if err := os.WriteFile(file, []byte(node("c", "")+pod("q", "", 3, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text, words               string
		moved, kept, gone, placed string
	}{
		"nothing":                {two + pod("p", "a", 1, "") + pod("q", "", 1, ""), "", "", "", "", "q=b"},
		"drain":                  {two + pod("p", "a", 1, "") + daemon, "drain a", "p a-b", "", "", "p=b"},
		"drain by label":         {two + pod("p", "a", 1, ""), "drain topology.kubernetes.io/zone=a", "p a-b", "", "", "p=b"},
		"drain of all":           {two + pod("p", "a", 1, ""), "drain a b", "p a-", "", "", ""},
		"a budget lets one go":   {two + pod("p", "a", 3, "") + pod("q", "b", 3, "") + fmt.Sprintf(budget, "maxUnavailable: 1"), "drain a b", "p a-", "q b: budget default/web lets 1 of its pods be down at once, and 1 are", "", ""},
		"a budget lets none go":  {two + pod("p", "a", 1, "") + fmt.Sprintf(budget, "minAvailable: 100%"), "drain a", "", "p a: budget default/web lets 0 of its pods be down at once, and 0 are", "", ""},
		"one after the other":    {two + node("c", "") + pod("p", "a", 2, "") + pod("q", "a", 2, "") + fmt.Sprintf(budget, "maxUnavailable: 1"), "drain a", "p a-b, q a-c", "", "", "p=b q=c"},
		"cordon":                 {two + pod("p", "a", 1, "") + pod("q", "", 1, ""), "cordon b", "", "", "", "q=a"},
		"uncordon":               {node("a", "spec: {unschedulable: true}\n") + pod("q", "", 1, ""), "uncordon a", "", "", "", "q=a"},
		"remove":                 {two + pod("p", "a", 1, "") + daemon, "remove a", "p a-b", "", "agent-a a: a pod of DaemonSet web", "p=b"},
		"a zone":                 {two + pod("p", "a", 1, ""), "lose-zone a", "p a-b", "", "", "p=b"},
		"added like another":     {two + pod("q", "", 4, "") + pod("r", "", 3, "") + pod("p", "b", 4, "") + daemon, "add-nodes 1 a", "", "", "", "agent-a-on-a-copy-1=a-copy-1 r=a"},
		"added with static pods": {two + static("proxy-a", "a") + static("etcd-a", "a") + static("proxy-b", "b") + pod("p", "b", 3, "") + pod("q", "", 3, ""), "add-nodes 1 a", "", "", "", "proxy-a-on-a-copy-1=a-copy-1 q=a-copy-1"},
		"added by shape":         {two + pod("q", "", 8, ""), "add-nodes 1 cpu=9,name=big", "", "", "", "q=big-1"},
		"scaled up":              {two + pod("p", "a", 4, ""), "scale rs/web=2", "", "", "", "web-0=b"},
		"scaled down":            {two + pod("p", "a", 1, "") + pod("q", "a", 1, "") + pod("r", "b", 1, ""), "scale replicaset/web=2", "", "", "p a: scaled down", ""},
		"evicted":                {two + pod("p", "a", 2, "") + pod("q", "a", 2, ""), "evict p", "p a-b", "", "", "p=b"},
		"all of a workload":      {two + pod("p", "a", 4, "") + pod("q", "b", 4, ""), "evict rs/web, cordon a", "p a-b, q b-", "", "", "p=b"},
		"priority":               {node("a", "") + pod("p", "a", 4, "") + pod("q", "", 4, ""), "priority q=9", "p a-", "", "", "q=a"},
		"a file with a new node": {two + pod("p", "a", 4, "") + pod("q", "b", 4, ""), "apply " + file, "q b-c", "", "", "q=c"},
		"several":                {two + node("c", "") + pod("p", "a", 1, ""), "remove b , drain a", "p a-c", "", "", "p=c"},
		"its node goes as well":  {two + node("c", "") + pod("p", "a", 1, ""), "drain a, remove a b", "p a-c", "", "", "p=c"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, c.text, strings.Fields(c.words)...)
			var placed []string
			for _, p := range slices.Sorted(maps.Keys(r.Placed)) {
				placed = append(placed, strings.TrimPrefix(p, "default/")+"="+r.Placed[p])
			}
			got := [...]string{moved(r), stays(r.Kept), stays(r.Gone), strings.Join(placed, " ")}
			if want := [...]string{c.moved, c.kept, c.gone, c.placed}; got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

// Pods that belong to a node are left there by a drain, which says so; they hold up
// nothing.
func TestDrainLeavesDaemons(t *testing.T) {
	daemon := strings.NewReplacer("kind: ReplicaSet", "kind: DaemonSet", "app: web", "app: agent").Replace(pod("agent-a", "a", 1, ""))
	text := node("a", "") + node("b", "") + daemon + pod("p", "a", 1, "")
	for words, want := range map[string]string{
		"drain a":           "agent-a a: a pod of DaemonSet web",
		"drain a drain a":   "agent-a a: a pod of DaemonSet web",
		"drain a, remove a": "",
		"cordon a":          "",
	} {
		if r := run(t, text, strings.Fields(words)...); stays(r.Stayed) != want || r.Stuck()+len(r.Kept) > 0 {
			t.Errorf("%s: stayed %q, want %q; unplaced %v, kept %v", words, stays(r.Stayed), want, r.Unplaced, r.Kept)
		}
	}
}

// A budget that a failure breaks is said to be broken.
func TestBroken(t *testing.T) {
	const budget = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {maxUnavailable: 1, selector: {}}\n"
	text := node("a", "") + node("b", "") + pod("p", "a", 1, "") + pod("q", "a", 1, "") + budget
	for words, want := range map[string]whatif.BudgetUse{
		"remove a": {Budget: "default/web", Allowed: 1, Down: 2},
		"drain a":  {Budget: "default/web", Allowed: 1, Down: 1},
	} {
		r := run(t, text, strings.Fields(words)...)
		if len(r.Budgets) != 1 || r.Budgets[0] != want || r.Budgets[0].Broken() != (want.Down > 1) {
			t.Errorf("%s: %+v, want %+v", words, r.Budgets, want)
		}
	}
}

// The claim of an ephemeral volume is made anew where the pod goes, and a claim
// of its own keeps the pod where its volume is.
func TestClaims(t *testing.T) {
	const storage = `---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: csi.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s, uid: c, ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: pod default/p, controller: true}], annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec: {storageClassName: fast, volumeName: v}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: v}
spec: {storageClassName: fast, claimRef: {namespace: default, name: %[1]s, uid: c}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [a]}]}]}}}
`
	nodes := node("a", "") + node("b", "")
	if r := run(t, nodes+fmt.Sprintf(storage, "p-data")+pod("p", "a", 1, "volumes: [{name: data, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast}}}}], "), "drain", "a"); moved(r) != "p a-b" {
		t.Errorf("with an ephemeral volume: %s; %v", moved(r), r.Unplaced)
	}
	if r := run(t, nodes+fmt.Sprintf(storage, "data")+pod("p", "a", 1, "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}], "), "drain", "a"); moved(r) != "p a-" {
		t.Errorf("with a claim: %s", moved(r))
	}
}

// A StatefulSet of a live cluster is known: its new pods have claims of their own.
func TestScaleLive(t *testing.T) {
	set := manifest.NewSet()
	text := node("a", "") + "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\nprovisioner: csi.example.com\nvolumeBindingMode: WaitForFirstConsumer\n"
	if err := set.Files([]string{"-"}, strings.NewReader(text), 1); err != nil {
		t.Fatal(err)
	}
	none, class := int32(0), "fast"
	db := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db"}, Spec: appsv1.StatefulSetSpec{
		Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
		VolumeClaimTemplates: []v1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: v1.PersistentVolumeClaimSpec{StorageClassName: &class}}},
	}}
	db.Spec.Template.Labels, db.Spec.Template.Spec.Containers = db.Spec.Selector.MatchLabels, []v1.Container{{Name: "c"}}
	if err := errors.Join(set.Add(db, "apps/v1/StatefulSet", "the cluster"), set.Resolve()); err != nil {
		t.Fatal(err)
	}
	r, err := whatif.Run(set, input(t, set), []whatif.Change{{Verb: "scale", Operands: []string{"statefulset/db=2"}}}, whatif.Options{})
	if err != nil {
		t.Fatal(err)
	}
	claim, _ := r.Cluster.Object(object.PersistentVolumeClaims, "shop", "data-db-1").(*object.PersistentVolumeClaim)
	if r.Placed["shop/db-0"] != "a" || r.Placed["shop/db-1"] != "a" || claim == nil || !claim.Bound() {
		t.Errorf("placed %v, unplaced %v, claim %+v", r.Placed, r.Unplaced, claim)
	}
}

// Devices that were allocated to a pod are free when it is gone.
func TestDevices(t *testing.T) {
	const class = "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\n"
	const devices = `---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %s}
spec: {driver: gpu.example.com, nodeName: %[1]s, pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}, devices: [{name: d}]}
`
	const claim = `---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: g}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
status:
  allocation:
    devices: {results: [{request: r, driver: gpu.example.com, pool: a, device: d}]}
    nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [a]}]}]}
  reservedFor: [{resource: pods, name: p, uid: pod default/p}]
`
	r := run(t, node("a", "")+node("b", "")+class+fmt.Sprintf(devices, "a")+fmt.Sprintf(devices, "b")+claim+
		pod("p", "a", 1, "resourceClaims: [{name: g, resourceClaimName: g}], "), "drain", "a")
	if moved(r) != "p a-b" || r.Decisions != 1 {
		t.Errorf("%s after %d decisions; %v", moved(r), r.Decisions, r.Unplaced)
	}
	after, _ := r.Cluster.Object(object.ResourceClaims, "default", "g").(*object.ResourceClaim)
	if a := after.Allocation(); a == nil || a.Devices.Results[0].Pool != "b" {
		t.Errorf("allocation %+v", a)
	}
}
