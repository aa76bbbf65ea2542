package manifest

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-scheduler/berth/core/object"
)

const admissionRules = `apiVersion: v1
kind: LimitRange
metadata: {name: l}
spec: {limits: [{type: Container, max: {cpu: 2}, defaultRequest: {cpu: 1}}]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: q}
spec: {hard: {pods: 4, services: 1}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: std, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: csi.example.com
volumeBindingMode: WaitForFirstConsumer
---
`

func podText(name, metadata, spec string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s%s}\nspec: {%scontainers: [{name: c}]}\n---\n", name, metadata, spec)
}

// Admission sees the pods that no API server has seen, in the order of the input, and then
// those that controllers make. A pod that has a node, a UID or a time of creation stays as
// it is, and counts in quotas.
func TestAdmission(t *testing.T) {
	s, err := read(t, "in.yaml", fmt.Sprintf(expandNode, "a", "")+podText("new", "", "")+podText("bound", "", "nodeName: a, ")+podText("known", ", uid: u", "")+
		podText("old", ", creationTimestamp: 2026-01-01T00:00:00Z", "")+strings.Replace(podText("large", "", ""), "name: c}", "name: c, resources: {limits: {cpu: 3}}}", 1)+
		maker("Deployment", "d", "")+admissionRules)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range s.Pods {
		got = append(got, p.Name+" "+p.Spec.Containers[0].Resources.Requests.Cpu().String())
	}
	if want := "new 1, bound 0, known 0, old 0"; strings.Join(got, ", ") != want {
		t.Errorf("pods %q, want %q", got, want)
	}
	refused := map[string]string{}
	for _, pod := range []string{"d-1-0", "d-1-1"} {
		refused["default/"+pod] = "admission refuses it: ResourceQuota q allows pods 4 in all; 4 is used, and it takes 1 more"
	}
	refused["default/large"] = "admission refuses it: LimitRange l: container c has a cpu limit of 3, and at most 2 is allowed"
	if fmt.Sprint(s.Refusals()) != fmt.Sprint(refused) {
		t.Errorf("refused %v, want %v", s.Refusals(), refused)
	}
	if want := "ResourceQuota default/q: services: does not count, as only what pods take of a quota does"; len(s.Notices) != 1 || s.Notices[0] != want {
		t.Errorf("notices %q", s.Notices)
	}
}

// Another version of a new pod is admitted like the pod, one of another pod is not changed.
func TestAdmitAnotherVersion(t *testing.T) {
	s, err := read(t, "in.yaml", podText("new", "", "")+podText("known", ", uid: u", "")+fmt.Sprintf(expandNode, "a", "")+admissionRules)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"1", "0"} {
		again := s.Pods[i].DeepCopy()
		again.Spec.Containers[0].Resources = v1.ResourceRequirements{}
		if err := s.AdmitPod(again); err != nil || again.Spec.Containers[0].Resources.Requests.Cpu().String() != want {
			t.Errorf("%s: %v, requests %v, want %s CPUs", again.Name, err, again.Spec.Containers[0].Resources.Requests, want)
		}
	}
	large := s.Pods[0].DeepCopy()
	large.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("4")
	if err := s.AdmitPod(large); err == nil || !strings.Contains(err.Error(), "LimitRange l") {
		t.Errorf("a limit of 4 CPUs: %v", err)
	}
}

// A claim that names no class gets the default one, unless it is bound, wherever the class
// stands in the input.
func TestDefaultClass(t *testing.T) {
	const claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: %s, uid: %s}\nspec: {%s}\n---\n"
	s, err := read(t, "in.yaml", fmt.Sprintf(expandNode, "a", "")+fmt.Sprintf(claim, "free", "u1", "")+fmt.Sprintf(claim, "bound", "u2", "volumeName: v")+
		fmt.Sprintf(claim, "none", "u3", "storageClassName: ''")+admissionRules)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, o := range s.Objects {
		if c, ok := o.(*object.PersistentVolumeClaim); ok {
			got += c.Name + "=" + c.Class + " "
		}
	}
	if got != "free=std bound= none= " {
		t.Error(got)
	}
}

// A pod of a RuntimeClass that is not there stays as it is, and a notice says so.
func TestUnknownRuntime(t *testing.T) {
	s, err := read(t, "in.yaml", fmt.Sprintf(expandNode, "a", "")+podText("p", "", "runtimeClassName: kata, ")+podText("q", "", "runtimeClassName: kata, "))
	const want = "pod default/p: runtimeClassName kata: the input has no such RuntimeClass, so its overhead, node selector and tolerations do not count (2 pods)"
	if err != nil || len(s.Pods) != 2 || len(s.Notices) != 1 || s.Notices[0] != want {
		t.Errorf("%v, %d pods, notices %q", err, len(s.Pods), s.Notices)
	}
}
