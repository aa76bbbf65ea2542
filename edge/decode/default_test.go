package decode

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each case is a spec as written and the same spec as the API server would
// keep it, as far as a scheduler looks.
func TestDefaultPod(t *testing.T) {
	for _, c := range []struct{ name, written, kept string }{
		{"limits make requests",
			`{containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 250m}}}]}`,
			`{containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 250m, memory: 1Gi}}}]}`},
		{"of init containers, too",
			`{initContainers: [{name: a, resources: {limits: {cpu: 1}}}]}`,
			`{initContainers: [{name: a, resources: {limits: {cpu: 1}, requests: {cpu: 1}}}]}`},
		{"amounts are whole thousandths",
			`{containers: [{name: a, resources: {requests: {cpu: 100u}}}], overhead: {cpu: 1500u}}`,
			`{containers: [{name: a, resources: {requests: {cpu: 1m}}}], overhead: {cpu: 2m}}`},
		{"ports are TCP",
			`{containers: [{name: a, ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP}]}]}`,
			`{containers: [{name: a, ports: [{containerPort: 80, protocol: TCP}, {containerPort: 53, protocol: UDP}]}]}`},
		{"with the host's network each port is the host's",
			`{hostNetwork: true, containers: [{name: a, ports: [{containerPort: 80}, {containerPort: 81, hostPort: 82}]}]}`,
			`{hostNetwork: true, containers: [{name: a, ports: [{containerPort: 80, hostPort: 80, protocol: TCP}, {containerPort: 81, hostPort: 82, protocol: TCP}]}]}`},
		{"what is set stays",
			`{schedulerName: mine, restartPolicy: Never}`,
			`{schedulerName: mine, restartPolicy: Never}`},
		{"pod-level requests are the containers' together",
			`{resources: {limits: {cpu: 4, memory: 4Gi}}, containers: [{name: a, resources: {requests: {cpu: 1}}}, {name: b, resources: {requests: {cpu: 2}}}]}`,
			`{resources: {limits: {cpu: 4, memory: 4Gi}, requests: {cpu: 3, memory: 4Gi}}, containers: [{name: a, resources: {requests: {cpu: 1}}}, {name: b, resources: {requests: {cpu: 2}}}]}`},
		{"pod-level requests are summed before amounts are rounded",
			`{resources: {limits: {memory: 1Gi}}, containers: [{name: a, resources: {requests: {cpu: 300u}}}, {name: b, resources: {requests: {cpu: 300u}}}]}`,
			`{resources: {limits: {memory: 1Gi}, requests: {cpu: 1m, memory: 1Gi}}, containers: [{name: a, resources: {requests: {cpu: 1m}}}, {name: b, resources: {requests: {cpu: 1m}}}]}`},
		{"pod-level requests that are set stay",
			`{resources: {limits: {cpu: 4}, requests: {cpu: 2}}, containers: [{name: a, resources: {requests: {cpu: 1}}}]}`,
			`{resources: {limits: {cpu: 4}, requests: {cpu: 2}}, containers: [{name: a, resources: {requests: {cpu: 1}}}]}`},
		{"without pod-level limits none are made",
			`{resources: {requests: {cpu: 2}}, containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}}}]}`,
			`{resources: {requests: {cpu: 2}}, containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}}}]}`},
		{"huge page limits of containers are the pod's",
			`{resources: {limits: {cpu: 4}}, containers: [{name: a, resources: {limits: {hugepages-2Mi: 4Mi}}}]}`,
			`{resources: {limits: {cpu: 4, hugepages-2Mi: 4Mi}, requests: {cpu: 4, hugepages-2Mi: 4Mi}}, containers: [{name: a, resources: {limits: {hugepages-2Mi: 4Mi}, requests: {hugepages-2Mi: 4Mi}}}]}`},
		{"huge pages cannot be shared out: the pod's limit is its request",
			`{resources: {limits: {hugepages-2Mi: 8Mi}}, containers: [{name: a, resources: {limits: {hugepages-2Mi: 4Mi}}}]}`,
			`{resources: {limits: {hugepages-2Mi: 8Mi}, requests: {hugepages-2Mi: 8Mi}}, containers: [{name: a, resources: {limits: {hugepages-2Mi: 4Mi}, requests: {hugepages-2Mi: 4Mi}}}]}`},
		{"an extended resource is no pod-level resource",
			`{resources: {limits: {cpu: 4}}, containers: [{name: a, resources: {requests: {x.io/gpu: 1}}}]}`,
			`{resources: {limits: {cpu: 4}, requests: {cpu: 4}}, containers: [{name: a, resources: {requests: {x.io/gpu: 1}}}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, want := podOf(t, "spec: "+c.written), podOf(t, "spec: "+c.kept)
			want.Namespace, want.Status.Phase = "default", v1.PodPending
			if want.Spec.SchedulerName == "" {
				want.Spec.SchedulerName = "default-scheduler"
			}
			if want.Spec.RestartPolicy == "" {
				want.Spec.RestartPolicy = v1.RestartPolicyAlways
			}
			DefaultPod(got)
			if !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			DefaultPod(got)
			if !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("a second time: got %+v", got)
			}
		})
	}
}

// A node without allocatable offers its capacity.
func TestDefaultNode(t *testing.T) {
	list := func(cpu string) v1.ResourceList { return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)} }
	n := &v1.Node{Status: v1.NodeStatus{Capacity: list("4")}}
	if DefaultNode(n); n.Status.Allocatable.Cpu().String() != "4" {
		t.Errorf("allocatable %v", n.Status.Allocatable)
	}
	n = &v1.Node{Status: v1.NodeStatus{Capacity: list("4"), Allocatable: list("3")}}
	if DefaultNode(n); n.Status.Allocatable.Cpu().String() != "3" {
		t.Errorf("allocatable %v", n.Status.Allocatable)
	}
}

// A pod gets the priority of its class, of the default class, or 0.
func TestPriority(t *testing.T) {
	never := v1.PreemptNever
	class := func(name string, value int32, global bool) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: global}
	}
	var none, some PriorityClasses
	some.Add(class("low", 5, true))
	some.Add(class("lower", 3, true))
	some.Add(class("urgent", 1, false))
	urgent := class("urgent", 100, false)
	urgent.PreemptionPolicy = &never
	some.Add(urgent)
	for _, c := range []struct {
		name     string
		classes  *PriorityClasses
		spec     string
		priority int32
		policy   v1.PreemptionPolicy
		err      string
	}{
		{"no classes", &none, `{}`, 0, v1.PreemptLowerPriority, ""},
		{"the lowest global default", &some, `{}`, 3, v1.PreemptLowerPriority, ""},
		{"a class, its later version", &some, `{priorityClassName: urgent}`, 100, v1.PreemptNever, ""},
		{"what is set stays", &some, `{priorityClassName: urgent, priority: 7, preemptionPolicy: PreemptLowerPriority}`, 7, v1.PreemptLowerPriority, ""},
		{"a class that went", &none, `{priorityClassName: gone, priority: 7}`, 7, v1.PreemptLowerPriority, ""},
		{"built in", &none, `{priorityClassName: system-node-critical}`, 2000001000, v1.PreemptLowerPriority, ""},
		{"built in", &none, `{priorityClassName: system-cluster-critical}`, 2000000000, v1.PreemptLowerPriority, ""},
		{"unknown", &some, `{priorityClassName: gone}`, 0, "", "pod shop/web: spec.priorityClassName: no PriorityClass with name gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := podOf(t, "spec: "+c.spec)
			p.Namespace, p.Name = "shop", "web"
			err := c.classes.Resolve(p)
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("got error %v", err)
				}
				return
			}
			if err != nil || *p.Spec.Priority != c.priority || *p.Spec.PreemptionPolicy != c.policy {
				t.Errorf("got %d %s, error %v", *p.Spec.Priority, *p.Spec.PreemptionPolicy, err)
			}
		})
	}
}

// A pod that an API server would refuse is refused, and the error names the
// field.
func TestCheck(t *testing.T) {
	for _, c := range []struct{ pod, err string }{
		{`{metadata: {name: a}, spec: {containers: [{name: c, ports: [{containerPort: 1, hostPort: 65535}], resources: {requests: {cpu: 0}}}]}}`, ""},
		{`{metadata: {name: a, namespace: b}, spec: {containers: [{name: c, resources: {requests: {cpu: -1}}}]}}`,
			`spec.containers[0].resources.requests[cpu]: -1 is negative`},
		{`{metadata: {name: a, namespace: b}, spec: {initContainers: [{name: c, resources: {limits: {memory: -1, cpu: -2}}}]}}`,
			"spec.initContainers[0].resources.limits[cpu]: -2 is negative\nspec.initContainers[0].resources.limits[memory]: -1 is negative"},
		{`{metadata: {name: a, namespace: b}, spec: {containers: [{name: c, ports: [{containerPort: 1, hostPort: 65536}]}]}}`,
			`spec.containers[0].ports[0].hostPort: 65536 is not between 0 and 65535`},
		{`{metadata: {name: a, namespace: b}, spec: {resources: {requests: {cpu: -1}}}}`, `spec.resources.requests[cpu]: -1 is negative`},
		{`{metadata: {name: a, namespace: b}, spec: {overhead: {cpu: -1}}}`, `spec.overhead[cpu]: -1 is negative`},
	} {
		err := errors.Join(CheckPod(podOf(t, c.pod))...)
		if (err == nil) != (c.err == "") || err != nil && !strings.HasSuffix(err.Error(), c.err) {
			t.Errorf("%s: got error %v, want %s", c.pod, err, c.err)
		}
	}
	node := &v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("-1")}}}
	if problems := CheckNode(node); len(problems) != 1 || problems[0].Error() != "status.allocatable[cpu]: -1 is negative" {
		t.Errorf("got %v", problems)
	}
}
