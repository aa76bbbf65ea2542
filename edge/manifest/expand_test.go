package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/workload"
)

const expandNode = "apiVersion: v1\nkind: Node\nmetadata: {name: %s}\nspec: {%s}\nstatus: {allocatable: {cpu: 1}}\n---\n"

// maker is a workload of two pods (a DaemonSet: of one on each node) with the
// label app: x.
func maker(kind, name, more string) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: %s\nmetadata: {name: %s}\nspec: {replicas: 2, selector: {matchLabels: {app: x}}, %stemplate: {metadata: {labels: {app: x}}, spec: {containers: [{name: c}]}}}\n---\n", kind, name, more)
}

// Workloads become the pods that their controllers would make.
func TestExpand(t *testing.T) {
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {%stemplate: {spec: {containers: [{name: c}]}}}\n---\n"
	const cron = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c}\nspec: {%sschedule: '@daily', jobTemplate: {spec: {parallelism: 2, template: {spec: {containers: [{name: c}]}}}}}\n---\n"
	nodes := fmt.Sprintf(expandNode, "a", "") + fmt.Sprintf(expandNode, "b", "taints: [{key: k, effect: NoSchedule}]") + fmt.Sprintf(expandNode, "c", "unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]")
	pod := func(name, more string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", labels: {app: x}" + more + "}\nspec: {nodeName: a, containers: [{name: c}]}\n---\n"
	}
	daemons := strings.Replace(maker("DaemonSet", "d", ""), "replicas: 2, ", "", 1)
	for name, c := range map[string]struct {
		text   string
		expand Expand
		want   string
	}{
		"a Deployment":              {maker("Deployment", "d", ""), ExpandNew, "d-1-0 d-1-1"},
		"a ReplicaSet":              {maker("ReplicaSet", "r", ""), ExpandNew, "r-0 r-1"},
		"a Deployment's ReplicaSet": {strings.Replace(maker("ReplicaSet", "r", ""), "name: r", "name: r, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: d, uid: d, controller: true}]", 1), ExpandNew, ""},
		"a StatefulSet":             {maker("StatefulSet", "s", "ordinals: {start: 3}, "), ExpandNew, "s-3 s-4"},
		"a DaemonSet":               {daemons, ExpandNew, "d-a d-c"},
		"a Job":                     {fmt.Sprintf(job, ""), ExpandNew, "j-0"},
		"a parallel Job":            {fmt.Sprintf(job, "parallelism: 3, completions: 2, "), ExpandNew, "j-0 j-1"},
		"a suspended Job":           {fmt.Sprintf(job, "suspend: true, "), ExpandNew, ""},
		"a CronJob":                 {fmt.Sprintf(cron, ""), ExpandNew, "c-1-0 c-1-1"},
		"a suspended CronJob":       {fmt.Sprintf(cron, "suspend: true, "), ExpandNew, ""},
		"one that has a pod":        {pod("d-old-x", ", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: d-old, uid: r, controller: true}]") + maker("Deployment", "d", ""), ExpandNew, "d-old-x"},
		"what it lacks":             {pod("d-old-x", ", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: d-old, uid: r, controller: true}]") + maker("Deployment", "d", ""), ExpandAll, "d-old-x d-1-0"},
		"another Deployment's pod":  {pod("d-e-old-x", ", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: d-e-old, uid: r, controller: true}]") + maker("Deployment", "d", ""), ExpandNew, "d-e-old-x d-1-0 d-1-1"},
		"a number that is missing":  {pod("s-1", "") + maker("StatefulSet", "s", ""), ExpandAll, "s-1 s-0"},
		"a name that is taken":      {strings.Replace(pod("r-0", ""), "app: x", "app: z", 1) + maker("ReplicaSet", "r", ""), ExpandNew, "r-0 r-1 r-2"},
		"a node that has its pod":   {pod("d-x", ", ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: d, controller: true}]") + daemons, ExpandAll, "d-x d-c"},
		"one that is being deleted": {strings.Replace(maker("Deployment", "d", ""), "name: d", "name: d, deletionTimestamp: 2024-01-01T00:00:00Z", 1), ExpandAll, ""},
		"none, as asked for":        {maker("Deployment", "d", ""), ExpandNone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSet()
			s.Expand = c.expand
			s, err := readInto(t, s, "in.yaml", nodes+c.text)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range s.Pods {
				got = append(got, p.Name)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("pods %q, want %q", got, c.want)
			}
		})
	}
}

// The pods of a DaemonSet may run on their node alone, and tolerate what
// happens to nodes.
func TestExpandDaemonSet(t *testing.T) {
	s, err := read(t, "in.yaml", fmt.Sprintf(expandNode, "a", "")+strings.Replace(maker("DaemonSet", "d", ""), "replicas: 2, ", "", 1))
	if err != nil || len(s.Pods) != 1 {
		t.Fatalf("%v, %d pods", err, len(s.Pods))
	}
	p := s.Pods[0]
	terms := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || terms[0].MatchFields[0].Values[0] != "a" || len(p.Spec.Tolerations) != 6 || p.Labels["controller-revision-hash"] == "" {
		t.Errorf("terms %v, tolerations %v, labels %v", terms, p.Spec.Tolerations, p.Labels)
	}
	if by := p.OwnerReferences[0]; by.Kind != "DaemonSet" || by.Name != "d" || by.UID != "daemonset default/d" {
		t.Errorf("owner %+v", by)
	}
}

// A pod of a DaemonSet that is pinned to no node has the name of the pod that its node is to get:
// that one is not made, and is no error.
func TestExpandDaemonSetWithTakenName(t *testing.T) {
	const pod = `---
apiVersion: v1
kind: Pod
metadata: {name: d-a, namespace: default, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: d, controller: true}]}
spec: {containers: [{name: c, image: i}]}
`
	s, err := read(t, "in.yaml", fmt.Sprintf(expandNode, "a", "")+strings.Replace(maker("DaemonSet", "d", ""), "replicas: 2, ", "", 1)+pod)
	if err != nil || len(s.Pods) != 1 || len(s.Workloads) != 1 {
		t.Fatalf("%v, %d pods", err, len(s.Pods))
	}
	w, _ := workload.Of(s.Workloads[0])
	if made, err := s.Make(w, s.Pods); err != nil || len(made) > 0 {
		t.Errorf("%d pods are made, error %v", len(made), err)
	}
}

// Claims are made of a StatefulSet's templates, of ephemeral volumes and of
// device claim templates: for new pods, and with --expand for all that are pending. Those
// of a class that does not wait are bound.
func TestExpandClaims(t *testing.T) {
	const classes = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: slow, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: csi.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: now}
provisioner: csi.example.com
volumeBindingMode: Immediate
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}
---
`
	const podSpec = `spec: {containers: [{name: c}], resourceClaims: [{name: g, resourceClaimTemplateName: gpu}], volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: now}}}}]}`
	set := "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\nspec: {selector: {matchLabels: {app: x}}, volumeClaimTemplates: [{metadata: {name: data}}], template: {metadata: {labels: {app: x}}, " + podSpec + "}}\n---\n"
	bare := "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u}\n" + podSpec + "\n---\n"
	want := map[Expand][]string{
		ExpandNew: {"PersistentVolumeClaim default/data-s-0 slow false", "PersistentVolume pvc-persistentvolumeclaim default/s-0-scratch",
			"PersistentVolumeClaim default/s-0-scratch now true", "ResourceClaim default/s-0-g"},
		ExpandAll: {"PersistentVolume pvc-persistentvolumeclaim default/p-scratch", "PersistentVolumeClaim default/p-scratch now true", "ResourceClaim default/p-g",
			"PersistentVolumeClaim default/data-s-0 slow false", "PersistentVolume pvc-persistentvolumeclaim default/s-0-scratch",
			"PersistentVolumeClaim default/s-0-scratch now true", "ResourceClaim default/s-0-g"},
		ExpandNone: nil,
	}
	for expand, want := range want {
		s := NewSet()
		s.Expand = expand
		s, err := readInto(t, s, "in.yaml", fmt.Sprintf(expandNode, "a", "")+classes+bare+set)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range s.Objects {
			text := o.Head().Kind.String() + " " + o.Head().Key()
			switch c := o.(type) {
			case *object.StorageClass:
				continue
			case *object.PersistentVolumeClaim:
				text += fmt.Sprintf(" %s %t", c.Class, c.Bound())
			}
			got = append(got, text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d: got %q, want %q", expand, got, want)
		}
		if p := s.Pods[len(s.Pods)-1]; expand != ExpandNone && *p.Status.ResourceClaimStatuses[0].ResourceClaimName != "s-0-g" {
			t.Errorf("the status names claim %q", *p.Status.ResourceClaimStatuses[0].ResourceClaimName)
		}
	}
}

// Classes and claims have the API server's defaults.
func TestStorageAndDeviceDefaults(t *testing.T) {
	s, err := read(t, "in.yaml", `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: s}
provisioner: csi.example.com
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, tolerations: [{key: k}]}}, {name: q, firstAvailable: [{name: a, deviceClassName: gpu}, {name: b, deviceClassName: gpu, allocationMode: All}]}]}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Objects[0].(*object.StorageClass); !c.HasBindingMode || c.WaitForFirstConsumer {
		t.Errorf("class %+v", c)
	}
	requests := s.Objects[1].(*object.ResourceClaim).API.Spec.Devices.Requests
	r, a, b := requests[0].Exactly, requests[1].FirstAvailable[0], requests[1].FirstAvailable[1]
	if r.AllocationMode != "ExactCount" || r.Count != 1 || r.Tolerations[0].Operator != "Equal" || a.Count != 1 || b.Count != 0 || b.AllocationMode != "All" {
		t.Errorf("requests %+v", requests)
	}
}

// A workload that nobody could expand is an error that names it.
func TestExpandTooMany(t *testing.T) {
	for replicas, want := range map[string]string{
		"2000000000": "deployment default/d: wants 2000000000 pods; at most 1000000 are made",
		"-1":         "deployment default/d: the number of replicas, -1, is negative",
	} {
		_, err := read(t, "in.yaml", strings.Replace(maker("Deployment", "d", ""), "replicas: 2", "replicas: "+replicas, 1))
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	many := strings.Replace(maker("Deployment", "many", ""), "replicas: 2", "replicas: 999999", 1)
	_, err := read(t, "1.yaml", maker("Deployment", "d", ""), "2.yaml", many)
	if err == nil || err.Error() != "deployment default/many: wants 999999 pods; with those of the workloads before it, more than 1000000 are made" {
		t.Error(err)
	}
}
