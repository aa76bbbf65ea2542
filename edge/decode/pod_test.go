package decode

import (
	"reflect"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
)

// podOf reads a pod spec (and status) as a user would write it.
func podOf(t testing.TB, text string) *v1.Pod {
	t.Helper()
	var p v1.Pod
	if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

const full = `
metadata:
  uid: "17"
  namespace: shop
  name: web-0
  generation: 3
  labels: {app: web}
  creationTimestamp: "2024-05-01T10:00:00Z"
spec:
  schedulerName: berth
  nodeName: n1
  priority: 7
  preemptionPolicy: Never
  schedulingGates: [{name: b}, {name: a}]
  nodeSelector: {disk: ssd}
  tolerations: [{key: gpu, operator: Exists}]
  initContainers:
  - name: once
    image: setup
    ports: [{containerPort: 1, hostPort: 1}]
  - name: sidecar
    image: registry:5000/log
    restartPolicy: Always
    ports: [{containerPort: 2, hostPort: 2, hostIP: 10.0.0.1, protocol: UDP}]
  containers:
  - name: web
    image: web:v2
    resources: {requests: {cpu: 250m, memory: 1Gi}}
    ports: [{containerPort: 80, hostPort: 8080}, {containerPort: 81}]
  volumes:
  - name: model
    image: {reference: models/llm}
status:
  nominatedNodeName: n2
  startTime: "2024-05-01T10:01:00Z"
  phase: Running
  conditions:
  - {type: Ready, status: "True"}
  - {type: PodScheduled, status: "False", reason: Unschedulable, message: none}
  - {type: DisruptionTarget, status: "True", reason: PreemptionByScheduler}
`

// Every field that the scheduler reads is decoded.
func TestPod(t *testing.T) {
	api := podOf(t, full)
	got := Pod(api)
	if got.Demand.Requests.MilliCPU != 250 || got.Demand.Requests.Memory != 1<<30 {
		t.Errorf("demand %+v", got.Demand)
	}
	want := &object.Pod{
		UID: "17", Namespace: "shop", Name: "web-0", Generation: 3, Labels: map[string]string{"app": "web"},
		SchedulerName: "berth", NodeName: "n1", NominatedNode: "n2", Priority: 7, NeverPreempts: true, Running: true,
		Created:       time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC),
		Started:       time.Date(2024, 5, 1, 10, 1, 0, 0, time.UTC),
		Gates:         []string{"b", "a"},
		Demand:        got.Demand,
		RequiredNodes: match.NewNodeSelector(map[string]string{"disk": "ssd"}, nil),
		Tolerations:   match.NewTolerations(api.Spec.Tolerations),
		HostPorts: []object.HostPort{
			{IP: "10.0.0.1", Protocol: v1.ProtocolUDP, Port: 2},
			{IP: "0.0.0.0", Protocol: v1.ProtocolTCP, Port: 8080},
		},
		Images:    []string{"setup:latest", "registry:5000/log:latest", "web:v2", "models/llm:latest"},
		Scheduled: object.Condition{Status: v1.ConditionFalse, Reason: "Unschedulable", Message: "none"},
		Disrupted: true,
	}
	got.Created, got.Started = got.Created.UTC(), got.Started.UTC()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// A pod's phase, deletion and binding decide which state it is in.
func TestPodStates(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*v1.Pod)
		holds  func(*object.Pod) bool
	}{
		{"nothing set", func(*v1.Pod) {}, func(p *object.Pod) bool {
			return reflect.DeepEqual(p, &object.Pod{Demand: p.Demand, Images: []string{}})
		}},
		{"terminating", func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, func(p *object.Pod) bool { return p.Terminating && !p.Terminal }},
		{"succeeded", func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded }, func(p *object.Pod) bool { return p.Terminal }},
		{"failed", func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }, func(p *object.Pod) bool { return p.Terminal }},
		{"running", func(p *v1.Pod) { p.Status.Phase = v1.PodRunning }, func(p *object.Pod) bool { return !p.Terminal }},
		{"may preempt", func(p *v1.Pod) { policy := v1.PreemptLowerPriority; p.Spec.PreemptionPolicy = &policy }, func(p *object.Pod) bool { return !p.NeverPreempts }},
		{"disrupted by another", func(p *v1.Pod) {
			p.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "EvictionByEvictionAPI"}}
		}, func(p *object.Pod) bool { return !p.Disrupted }},
		{"no longer disrupted", func(p *v1.Pod) {
			p.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionFalse, Reason: v1.PodReasonPreemptionByScheduler}}
		}, func(p *object.Pod) bool { return !p.Disrupted }},
		{"a term that does not parse admits no node", func(p *v1.Pod) {
			term := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: "Near"}}}
			required := &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}
			p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
		}, func(p *object.Pod) bool { return !p.RequiredNodes.Matches(match.Subject{Name: "a"}) }},
		{"preferred nodes", func(p *v1.Pod) {
			term := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpDoesNotExist}}}
			preferred := []v1.PreferredSchedulingTerm{{Weight: 5, Preference: term}}
			p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}}
		}, func(p *object.Pod) bool { return p.PreferredNodes.Score(match.Subject{Name: "a"}) == 5 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := &v1.Pod{}
			c.change(api)
			if got := Pod(api); !c.holds(got) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// An image reference without a tag means the tag latest.
func TestImage(t *testing.T) {
	for reference, want := range map[string]string{
		"web":                  "web:latest",
		"web:v1":               "web:v1",
		"host:5000/web":        "host:5000/web:latest",
		"host:5000/web:v1":     "host:5000/web:v1",
		"web@sha256:0123":      "web@sha256:0123",
		"host/web@sha256:0123": "host/web@sha256:0123",
		"":                     ":latest",
	} {
		if got := Image(reference); got != want {
			t.Errorf("%q: got %q, want %q", reference, got, want)
		}
	}
}

// A pod requires the node features that its fields need.
func TestFeatures(t *testing.T) {
	const restarts = `containers: [{name: a, restartPolicyRules: [{action: RestartAllContainers}]}]`
	for _, c := range []struct {
		spec string
		want []string
	}{
		{`{}`, nil},
		{`{hostNetwork: true}`, nil},
		{`{hostNetwork: true, hostUsers: true}`, nil},
		{`{hostNetwork: true, hostUsers: false}`, []string{"UserNamespacesHostNetworkSupport"}},
		{`{initContainers: [{name: i, volumeMounts: [{name: v, bindMountOptions: [nodev]}]}]}`, []string{"VolumeBindMountOptions"}},
		{`{volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 1Gi}}]}`, nil},
		{`{` + restarts + `}`, []string{"RestartAllContainersOnContainerExits"}},
		{`{hostNetwork: true, hostUsers: false, ` + restarts + `}`, []string{"RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"}},
	} {
		if got := Pod(podOf(t, "spec: "+c.spec)).Features; !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.spec, got, c.want)
		}
	}
}

// The volumes that some plugin reads are decoded, and only these.
func TestVolumes(t *testing.T) {
	p := podOf(t, `{metadata: {namespace: ns, name: p}, spec: {volumes: [
		{name: a, emptyDir: {}}, {name: b, persistentVolumeClaim: {claimName: c}}, {name: d, ephemeral: {}},
		{name: e, iscsi: {targetPortal: p, iqn: q, lun: 0, readOnly: true}}, {name: f, rbd: {monitors: [m], pool: o, image: i}},
		{name: g, awsElasticBlockStore: {volumeID: vol-1}}, {name: h, gcePersistentDisk: {pdName: pd}},
		{name: i, azureFile: {secretName: s, shareName: i}}, {name: j, csi: {driver: x}}]}}`)
	want := []object.Volume{
		{Claimed: true, Claim: "c"}, {Claimed: true, Ephemeral: true, Claim: "p-d"},
		{Disk: &object.Disk{Kind: object.ISCSI, Name: "q", ReadOnly: true}},
		{Disk: &object.Disk{Kind: object.RBD, Name: "i", Pool: "o", Monitors: []string{"m"}}},
		{Disk: &object.Disk{Kind: object.AWSElasticBlockStore, Name: "vol-1"},
			Migrated: &object.MigratedVolume{Plugin: "kubernetes.io/aws-ebs", Source: object.VolumeSource{Driver: "ebs.csi.aws.com", Handle: "vol-1"}}},
		{Disk: &object.Disk{Kind: object.GCEPersistentDisk, Name: "pd"},
			Migrated: &object.MigratedVolume{Plugin: "kubernetes.io/gce-pd", Source: object.VolumeSource{Driver: "pd.csi.storage.gke.io", Handle: "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/pd"}}},
		{Driver: "x"},
	}
	if got := Pod(p).Volumes; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// Every field of a node that the scheduler reads is decoded.
func TestNode(t *testing.T) {
	got := Node(&v1.Node{
		ObjectMeta: metav1.ObjectMeta{UID: "3", Name: "n1", Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{"x": "y"}},
		Spec:       v1.NodeSpec{Unschedulable: true, Taints: []v1.Taint{{Key: "gpu", Effect: v1.TaintEffectNoSchedule}}},
		Status: v1.NodeStatus{
			Capacity:    v1.ResourceList{v1.ResourceCPU: resource.MustParse("4")},
			Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("3500m"), v1.ResourcePods: resource.MustParse("110")},
			Conditions:  []v1.NodeCondition{{Type: "Ready", Status: "True"}, {Type: "DiskPressure", Status: "False", Reason: "none"}},
			Images:      []v1.ContainerImage{{Names: []string{"web:v1", "web@sha256:01"}, SizeBytes: 5}},
		},
	})
	want := &object.Node{
		UID: "3", Name: "n1", Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{"x": "y"},
		Unschedulable: true, Taints: []v1.Taint{{Key: "gpu", Effect: v1.TaintEffectNoSchedule}},
		Conditions:  []object.NodeCondition{{Type: "DiskPressure", Status: "False"}, {Type: "Ready", Status: "True"}},
		AllowedPods: 110,
		Images:      []object.Image{{Names: []string{"web:v1", "web@sha256:01"}, Bytes: 5}},
	}
	want.Allocatable.MilliCPU = 3500
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// BenchmarkPod measures the decoding of a pod with every field.
func BenchmarkPod(b *testing.B) {
	p := podOf(b, full)
	b.ReportAllocs()
	for b.Loop() {
		Pod(p)
	}
}

// BenchmarkPlainPod measures the decoding of a pod with one container.
func BenchmarkPlainPod(b *testing.B) {
	p := podOf(b, `spec: {containers: [{name: web, image: web:v2, resources: {requests: {cpu: 250m, memory: 1Gi}}}]}`)
	b.ReportAllocs()
	for b.Loop() {
		Pod(p)
	}
}
