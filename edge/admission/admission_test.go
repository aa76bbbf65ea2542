package admission_test

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/edge/admission"
)

func decoded[T any](t *testing.T, text string) *T {
	t.Helper()
	o := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o
}

func pod(t *testing.T, spec string) *v1.Pod {
	t.Helper()
	return decoded[v1.Pod](t, "metadata: {name: p, namespace: d}\nspec: "+spec)
}

func fine(*v1.Pod) error { return nil }

// Containers get the defaults of a LimitRange: a limit is the most where there is no default,
// a request the limit, and else the least. What they have stays.
func TestDefaults(t *testing.T) {
	for _, c := range []struct{ item, resources, want string }{
		{"default: {cpu: 2}, defaultRequest: {cpu: 1}", "{}", "{requests: {cpu: 1}, limits: {cpu: 2}}"},
		{"default: {cpu: 2}", "{}", "{requests: {cpu: 2}, limits: {cpu: 2}}"},
		{"max: {cpu: 2}", "{}", "{requests: {cpu: 2}, limits: {cpu: 2}}"},
		{"min: {cpu: 1}", "{}", "{requests: {cpu: 1}}"},
		{"default: {cpu: 2, memory: 1Gi}", "{requests: {cpu: 1}}", "{requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 2, memory: 1Gi}}"},
	} {
		r := admission.New()
		if !r.Add(decoded[v1.LimitRange](t, "metadata: {name: l, namespace: d}\nspec: {limits: [{type: Container, "+c.item+"}]}")) {
			t.Fatal("a LimitRange is for admission alone")
		}
		p := pod(t, "{containers: [{name: c, resources: "+c.resources+"}], initContainers: [{name: i, resources: "+c.resources+"}]}")
		if refusal := r.Change(p, fine); refusal != nil {
			t.Errorf("%s: %v", c.item, refusal)
		}
		want := decoded[v1.ResourceRequirements](t, c.want)
		for _, got := range []v1.ResourceRequirements{p.Spec.Containers[0].Resources, p.Spec.InitContainers[0].Resources} {
			if got.String() != want.String() {
				t.Errorf("%s: got %v, want %v", c.item, got, want)
			}
		}
		elsewhere := pod(t, "{containers: [{name: c}]}")
		elsewhere.Namespace = "other"
		if r.Change(elsewhere, fine); elsewhere.Spec.Containers[0].Resources.Requests != nil {
			t.Error("a LimitRange is about its namespace alone")
		}
	}
}

// A pod outside the bounds of a LimitRange, or one that its defaults make invalid, is
// refused with the reason.
func TestLimitRangeRefuses(t *testing.T) {
	for _, c := range []struct{ item, spec, want string }{
		{"type: Container, max: {cpu: 2}", "{containers: [{name: c, resources: {limits: {cpu: 3}}}]}",
			"LimitRange l: container c has a cpu limit of 3, and at most 2 is allowed"},
		{"type: Container, min: {cpu: 2}", "{containers: [{name: c, resources: {requests: {cpu: 1}}}]}",
			"LimitRange l: container c has a cpu request of 1, and at least 2 is asked for"},
		{"type: Container, maxLimitRequestRatio: {cpu: 2}", "{containers: [{name: c, resources: {requests: {cpu: 1}, limits: {cpu: 3}}}]}",
			"LimitRange l: container c has a cpu request of 1 and a cpu limit of 3, and a limit of at most 2 times the request is allowed"},
		{"type: Container, maxLimitRequestRatio: {cpu: 3}", "{containers: [{name: c, resources: {requests: {cpu: 1}, limits: {cpu: 3}}}]}", ""},
		{"type: Pod, max: {cpu: 3}", "{containers: [{name: a, resources: {limits: {cpu: 2}}}, {name: b, resources: {limits: {cpu: 2}}}]}",
			"LimitRange l: the pod has a cpu limit of 4, and at most 3 is allowed"},
		{"type: Pod, max: {cpu: 3}", "{containers: [{name: a}]}", "LimitRange l: the pod has no cpu limit, and at most 3 is allowed"},
		{"type: Pod, min: {memory: 1Gi}", "{overhead: {memory: 2Gi}, containers: [{name: a}]}", "LimitRange l: the pod has no memory request, and at least 1Gi is asked for"},
		{"type: PersistentVolumeClaim, max: {storage: 1Gi}", "{containers: [{name: a}]}", ""},
	} {
		r := admission.New()
		r.Add(decoded[v1.LimitRange](t, "metadata: {name: l, namespace: d}\nspec: {limits: [{"+c.item+"}]}"))
		got := ""
		if refusal := r.Change(pod(t, c.spec), fine); refusal != nil {
			got = refusal.Why
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.item, got, c.want)
		}
	}
	r := admission.New()
	r.Add(decoded[v1.LimitRange](t, "metadata: {name: l, namespace: d}\nspec: {limits: [{type: Container, default: {cpu: 2}}]}"))
	refusal := r.Change(pod(t, "{containers: [{name: c, resources: {requests: {cpu: 3}}}]}"), func(p *v1.Pod) error {
		if p.Spec.Containers[0].Resources.Limits.Cpu().Value() != 2 {
			t.Error("the check sees the pod without its defaults")
		}
		return errors.New("more than its limit")
	})
	if refusal == nil || refusal.Error() != "admission refuses it: more than its limit" {
		t.Error(refusal)
	}
}

// A RuntimeClass adds its overhead, node selector and tolerations, and refuses a pod that
// has others.
func TestRuntimeClass(t *testing.T) {
	const class = "metadata: {name: kata}\nhandler: kata\noverhead: {podFixed: {cpu: 500m}}\nscheduling: {nodeSelector: {kata: a}, tolerations: [{key: kata, operator: Exists}]}"
	for _, c := range []struct{ class, spec, want, refused string }{
		{class, "{runtimeClassName: kata, containers: []}", "{runtimeClassName: kata, containers: [], overhead: {cpu: 500m}, nodeSelector: {kata: a}, tolerations: [{key: kata, operator: Exists}]}", ""},
		{class, "{runtimeClassName: kata, containers: [], overhead: {cpu: 0.5}, nodeSelector: {a: b}, tolerations: [{key: kata, operator: Exists}]}",
			"{runtimeClassName: kata, containers: [], overhead: {cpu: 500m}, nodeSelector: {a: b, kata: a}, tolerations: [{key: kata, operator: Exists}]}", ""},
		{class, "{runtimeClassName: kata, containers: [], overhead: {cpu: 1}}", "", "its overhead is not that of RuntimeClass kata"},
		{class, "{runtimeClassName: kata, containers: [], nodeSelector: {kata: b}}", "", "its node selector has kata=b, that of RuntimeClass kata has kata=a"},
		{"metadata: {name: kata}\nhandler: kata", "{runtimeClassName: kata, containers: [], overhead: {cpu: 1}}", "", "it has an overhead, and RuntimeClass kata has none"},
		{class, "{runtimeClassName: other, containers: [], overhead: {cpu: 1}}", "{runtimeClassName: other, containers: [], overhead: {cpu: 1}}", ""},
	} {
		r := admission.New()
		r.Add(decoded[nodev1.RuntimeClass](t, c.class))
		p := pod(t, c.spec)
		refusal := r.Change(p, fine)
		switch {
		case refusal != nil && refusal.Why != c.refused, refusal == nil && c.refused != "":
			t.Errorf("%s: refused %v, want %q", c.spec, refusal, c.refused)
		case refusal == nil && p.Spec.String() != pod(t, c.want).Spec.String():
			t.Errorf("%s: got %s, want %s", c.spec, p.Spec.String(), c.want)
		}
		if has := r.HasRuntime(p); has != (*p.Spec.RuntimeClassName == "kata") {
			t.Errorf("%s: HasRuntime is %t", c.spec, has)
		}
	}
}

// Of several classes that are the default the newest one counts, for claims that name none.
func TestSetClass(t *testing.T) {
	r := admission.New()
	claim := decoded[v1.PersistentVolumeClaim](t, "metadata: {name: c}")
	if r.SetClass(claim) {
		t.Error("there is no class")
	}
	for _, text := range []string{"metadata: {name: plain, creationTimestamp: 2026-01-03T00:00:00Z}", "metadata: {name: old, creationTimestamp: 2026-01-01T00:00:00Z, annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}",
		"metadata: {name: new, creationTimestamp: 2026-01-02T00:00:00Z, annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}"} {
		if r.Add(decoded[storagev1.StorageClass](t, text)) {
			t.Error("the scheduler reads storage classes, too")
		}
	}
	if !r.SetClass(claim) || *claim.Spec.StorageClassName != "new" {
		t.Errorf("class %v", claim.Spec.StorageClassName)
	}
	none := decoded[v1.PersistentVolumeClaim](t, "spec: {storageClassName: ''}")
	if r.SetClass(none) || *none.Spec.StorageClassName != "" {
		t.Error("the claim wants none")
	}
}

// Pods are charged to the quotas in whose scopes they are, until one has no room. What a
// status does not tell is counted of the pods that are there.
func TestQuota(t *testing.T) {
	const spec = "{containers: [{name: c, resources: {requests: {cpu: 1, nvidia.com/gpu: 1}, limits: {cpu: 2, nvidia.com/gpu: 1}}}]}"
	for _, c := range []struct {
		quota, spec string
		fit         int
		want        string
	}{
		{"hard: {pods: 2}", spec, 1, "ResourceQuota q allows pods 2 in all; 2 is used, and it takes 1 more"},
		{"hard: {count/pods: 3}", spec, 2, "ResourceQuota q allows count/pods 3 in all; 3 is used, and it takes 1 more"},
		{"hard: {requests.cpu: 3500m}", spec, 2, "ResourceQuota q allows requests.cpu 3500m in all; 3 is used, and it takes 1 more"},
		{"hard: {cpu: 2}", spec, 1, "ResourceQuota q allows cpu 2 in all; 2 is used, and it takes 1 more"},
		{"hard: {limits.cpu: 4}", spec, 1, "ResourceQuota q allows limits.cpu 4 in all; 4 is used, and it takes 2 more"},
		{"hard: {requests.nvidia.com/gpu: 2}", spec, 1, "ResourceQuota q allows requests.nvidia.com/gpu 2 in all; 2 is used, and it takes 1 more"},
		{"hard: {memory: 1Gi}", spec, 0, "ResourceQuota q is about memory, and container c names no such amount"},
		{"hard: {requests.ephemeral-storage: 1Gi}", spec, 9, ""},
		{"hard: {services: 0}", spec, 9, ""},
		{"hard: {pods: 0}, scopes: [BestEffort]", spec, 9, ""},
		{"hard: {pods: 1}, scopes: [NotBestEffort, NotTerminating]", spec, 0, "ResourceQuota q allows pods 1 in all; 1 is used, and it takes 1 more"},
		{"hard: {pods: 0}, scopes: [Terminating]", spec, 9, ""},
		{"hard: {pods: 0}, scopes: [Terminating]", "{activeDeadlineSeconds: 5, containers: [{name: c}]}", 0, "ResourceQuota q allows pods 0 in all; 0 is used, and it takes 1 more"},
		{"hard: {pods: 0}, scopes: [BestEffort]", "{containers: [{name: c}]}", 0, "ResourceQuota q allows pods 0 in all; 0 is used, and it takes 1 more"},
		{"hard: {pods: 0}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}]}", spec, 9, ""},
		{"hard: {pods: 0}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}]}", "{priorityClassName: high, containers: []}", 0,
			"ResourceQuota q allows pods 0 in all; 0 is used, and it takes 1 more"},
		{"hard: {pods: 0}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}]}", spec, 9, ""},
		{"hard: {pods: 0}, scopes: [CrossNamespacePodAffinity]", spec, 9, ""},
		{"hard: {pods: 0}, scopes: [CrossNamespacePodAffinity]", "{containers: [], affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: k, namespaces: [x]}]}}}", 0,
			"ResourceQuota q allows pods 0 in all; 0 is used, and it takes 1 more"},
	} {
		r := admission.New()
		r.Add(decoded[v1.ResourceQuota](t, "metadata: {name: q, namespace: d}\nspec: {"+c.quota+"}"))
		r.Count([]*v1.Pod{pod(t, spec)}, nil)
		p, fit := pod(t, c.spec), 0
		var refusal *admission.Refusal
		for ; fit < 9 && refusal == nil; fit++ {
			refusal = r.Charge(p)
		}
		if refusal != nil {
			fit--
		}
		if fit != c.fit || refusal != nil && refusal.Why != c.want || refusal == nil && c.want != "" {
			t.Errorf("%s: %d fit, then %v; want %d, %q", c.quota, fit, refusal, c.fit, c.want)
		}
		if fit == 0 || fit == 9 {
			continue
		}
		if !refusal.Waits {
			t.Errorf("%s: others could go", c.quota)
		}
		if r.Release(p); r.Charge(p) != nil {
			t.Errorf("%s: no room after a pod of that size is gone", c.quota)
		}
	}
}

// A status tells what is used, a copy is charged alone, and a pod that is larger than the
// quota waits for nothing.
func TestQuotaStatus(t *testing.T) {
	r := admission.New()
	r.Add(decoded[v1.ResourceQuota](t, "metadata: {name: q, namespace: d}\nspec: {hard: {pods: 4, services: 1}}\nstatus: {used: {pods: 3}}"))
	p := pod(t, "{containers: []}")
	r.Count([]*v1.Pod{p, p}, nil)
	if c := r.Clone(); c.Charge(p) != nil || c.Charge(p) == nil {
		t.Error("not one pod had room")
	}
	if r.Charge(p) != nil {
		t.Error("the copy's pod was charged here")
	}
	if got := r.Uncounted(); len(got) != 1 || got[0] != "ResourceQuota d/q: services" {
		t.Error(got)
	}
	r.Add(decoded[v1.ResourceQuota](t, "metadata: {name: q, namespace: d}\nspec: {hard: {pods: 0}}"))
	if refusal := r.Charge(p); refusal == nil || refusal.Waits {
		t.Error(refusal)
	}
	gone := p.DeepCopy()
	gone.DeletionTimestamp = &metav1.Time{}
	gone.Status.Phase = v1.PodFailed
	r.Release(gone)
	if r.Charge(p) == nil {
		t.Error("a pod that has ended used nothing")
	}
}
