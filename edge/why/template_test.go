package why

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/manifest"
)

// A template as the API has it, and a pod of it as admission left it: with a sidecar
// before its container and the two default tolerations.
const (
	deploymentText = `
metadata: {name: web, namespace: shop}
spec:
  template:
    spec:
      priorityClassName: low
      nodeSelector: {disk: ssd, zone: a}
      containers:
      - {name: web, image: web, ports: [{containerPort: 80, hostPort: 80}], resources: {requests: {cpu: "2", memory: 1Gi}}}
      - {name: log, image: log, resources: {requests: {cpu: "1"}}}
`
	podText = `
metadata:
  name: web-abc-1
  namespace: shop
  labels: {pod-template-hash: abc}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-abc, uid: u, controller: true}]
spec:
  priorityClassName: low
  priority: 1
  nodeSelector: {disk: ssd, zone: a}
  tolerations:
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  containers:
  - {name: proxy, image: proxy, resources: {requests: {cpu: 100m}}}
  - {name: web, image: web, ports: [{containerPort: 80, hostPort: 80}], resources: {requests: {cpu: "2", memory: 1Gi}}}
  - {name: log, image: log, resources: {requests: {cpu: "1"}}}
`
)

// The command for a pod of a Deployment changes in the template just what the fix
// changes in the pod.
func TestTemplateCommands(t *testing.T) {
	gpu := v1.Toleration{Key: "gpu", Operator: v1.TolerationOpExists}
	cpu := "/spec/containers/1/resources/requests/cpu"
	for name, tt := range map[string]struct {
		ops  []fix.Op
		want func(*v1.PodSpec)
	}{
		"lower a request": {[]fix.Op{{Op: "replace", Path: cpu, Value: "900m"}}, func(s *v1.PodSpec) {
			s.Containers[0].Resources.Requests = requests(t, `{cpu: 900m, memory: 1Gi}`)
		}},
		"lower two": {[]fix.Op{{Op: "replace", Path: cpu, Value: "900m"}, {Op: "replace", Path: "/spec/containers/2/resources/requests/cpu", Value: "0"}}, func(s *v1.PodSpec) {
			s.Containers[0].Resources.Requests = requests(t, `{cpu: 900m, memory: 1Gi}`)
			s.Containers[1].Resources.Requests = requests(t, `{cpu: "0"}`)
		}},
		"remove a request": {[]fix.Op{{Op: "remove", Path: cpu}}, func(s *v1.PodSpec) {
			s.Containers[0].Resources.Requests = requests(t, `{memory: 1Gi}`)
		}},
		"tolerate":         {[]fix.Op{{Op: "add", Path: "/spec/tolerations/-", Value: gpu}}, func(s *v1.PodSpec) { s.Tolerations = []v1.Toleration{gpu} }},
		"loosen":           {[]fix.Op{{Op: "remove", Path: "/spec/nodeSelector/zone"}}, func(s *v1.PodSpec) { delete(s.NodeSelector, "zone") }},
		"drop":             {[]fix.Op{{Op: "remove", Path: "/spec/nodeSelector"}}, func(s *v1.PodSpec) { s.NodeSelector = nil }},
		"free a host port": {[]fix.Op{{Op: "remove", Path: "/spec/containers/1/ports/0/hostPort"}}, func(s *v1.PodSpec) { s.Containers[0].Ports[0].HostPort = 0 }},
		"a priority": {[]fix.Op{{Op: "replace", Path: "/spec/priority", Value: 9}, {Op: "add", Path: "/spec/priorityClassName", Value: "high"}}, func(s *v1.PodSpec) {
			s.PriorityClassName = "high"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var pod v1.Pod
			var before, want, got appsv1.Deployment
			parse(t, podText, &pod)
			parse(t, deploymentText, &before)
			parse(t, deploymentText, &want)
			tt.want(&want.Spec.Template.Spec)
			f := &facts{api: &pod, cluster: &Cluster{Set: manifest.NewSet()}}
			lines := f.podCommand(&fix.Change{Kind: "Pod", Namespace: "shop", Name: pod.Name, Patch: tt.ops})
			patch, ok := strings.CutPrefix(lines[len(lines)-1], "kubectl patch deployment web -n shop -p '")
			if !ok || len(lines) != 1 {
				t.Fatalf("the command is %q", lines)
			}
			text, err := json.Marshal(before)
			if err != nil {
				t.Fatal(err)
			}
			merged, err := strategicpatch.StrategicMergePatch(text, []byte(strings.TrimSuffix(patch, "'")), before)
			if err != nil {
				t.Fatalf("%s: %v", patch, err)
			}
			parse(t, string(merged), &got)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got\n%s\nwant\n%+v", patch, merged, want.Spec.Template.Spec)
			}
		})
	}
}

// A pod of a controller that is not Kubernetes' own is changed there: the controller
// would make a replaced pod anew.
func TestCommandForPodOfOtherController(t *testing.T) {
	var pod v1.Pod
	parse(t, strings.Replace(podText, "apiVersion: apps/v1, kind: ReplicaSet, name: web-abc", "apiVersion: example.com/v1, kind: SparkApp, name: s", 1), &pod)
	f := &facts{api: &pod, cluster: &Cluster{Set: manifest.NewSet()}}
	lines := f.podCommand(&fix.Change{Kind: "Pod", Namespace: "shop", Name: pod.Name, Patch: []fix.Op{{Op: "remove", Path: "/spec/nodeSelector"}}})
	if got := strings.Join(lines, "\n"); got != "# change it in SparkApp s, which makes this pod" {
		t.Errorf("the command is %q", got)
	}
}

// A node to add is told by its shape: nobody makes a node with kubectl.
func TestTextOfAddedNode(t *testing.T) {
	n := &v1.Node{}
	parse(t, "metadata: {labels: {topology.kubernetes.io/zone: b}}\nstatus: {allocatable: {cpu: 16, memory: 64Gi, pods: 110, nvidia.com/gpu: 4}}\n", n)
	if got := strings.Join((&facts{cluster: &Cluster{Set: &manifest.Set{Nodes: []*v1.Node{n}}}}).createText(&fix.Change{Kind: "Node", Create: n}), "\n"); got != "# zone b, 16 CPUs, 64Gi memory, 4 nvidia.com/gpu (grow the node pool of that node)" {
		t.Errorf("got %q", got)
	}
}

func requests(t *testing.T, text string) (list v1.ResourceList) {
	parse(t, text, &list)
	return list
}

func parse(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
