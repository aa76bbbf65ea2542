package resource

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"
	"pgregory.net/rapid"
)

// wanted is the demand by way of component-helpers, as kube-scheduler calls
// it: PodInfo.CalculateResource for Usage and NonZero, the PreFilter and the
// PreScore of NodeResourcesFit for Requests and Scoring.
func wanted(pod *v1.Pod) Demand {
	def := v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("200Mi")}
	opts := helper.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true, UseDRANodeAllocatableResourceClaimStatus: true}
	usage := helper.PodRequests(pod.DeepCopy(), opts)
	opts.NonMissingContainerRequests = v1.ResourceList{}
	for name, q := range def {
		if _, ok := usage[name]; !ok || !helper.IsPodLevelRequestsSet(pod) {
			opts.NonMissingContainerRequests[name] = q
		}
	}
	nonZero := bigVector(helper.PodRequests(pod.DeepCopy(), opts))
	return Demand{
		Requests: bigVector(helper.PodRequests(pod.DeepCopy(), helper.PodResourcesOptions{})),
		Usage:    bigVector(usage),
		NonZero:  Vector{MilliCPU: nonZero.MilliCPU, Memory: nonZero.Memory},
		Scoring: bigVector(helper.PodRequests(pod.DeepCopy(), helper.PodResourcesOptions{
			SkipPodLevelResources: true, NonMissingContainerRequests: def,
		})),
	}
}

// bigVector is FromList in exact arithmetic, negative amounts left out.
func bigVector(list v1.ResourceList) Vector {
	v := Vector{MilliCPU: ceil(list["cpu"], 1000), Memory: ceil(list["memory"], 1), EphemeralStorage: ceil(list["ephemeral-storage"], 1)}
	for name, q := range list {
		if (strings.Contains(string(name), "/") || strings.HasPrefix(string(name), "hugepages")) && ceil(q, 1) > 0 {
			v.Scalars = append(v.Scalars, Scalar{name, ceil(q, 1)})
		}
	}
	sortScalars(v.Scalars)
	return v
}

// ceil is max(0, min(MaxInt64, ceil(q*by))).
func ceil(q resource.Quantity, by int64) int64 {
	d := q.AsDec()
	num, den := new(big.Int).Set(d.UnscaledBig()), big.NewInt(1)
	num.Mul(num, big.NewInt(by))
	if s := int64(d.Scale()); s > 0 {
		den.Exp(big.NewInt(10), big.NewInt(s), nil)
	} else {
		num.Mul(num, new(big.Int).Exp(big.NewInt(10), big.NewInt(-s), nil))
	}
	num.Add(num, den).Sub(num, big.NewInt(1)).Div(num, den)
	switch {
	case num.Sign() < 0:
		return 0
	case !num.IsInt64():
		return math.MaxInt64
	}
	return num.Int64()
}

var (
	plain = []string{"0", "1", "3", "100m", "250m", "1500m", "0.5", "2", "64", "128Mi", "1.5Gi", "1G", "7k", "12e3"}
	odd   = []string{"1n", "100u", "0.0001", "3333u", "0.3", "1.1Mi"}
	huge  = []string{"8E", "8Ei", "9223372036854775807", "9223372036854775806", "5e18", "92e17", "10E", "1e30", "4611686018427387904", "9223372036854775"}
	minus = []string{"-1", "-100m", "-5Gi", "-9223372036854775808", "-1e40", "-3u"}
	names = []v1.ResourceName{"cpu", "memory", "cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "hugepages-1Gi", "example.com/gpu", "kubernetes.io/x0", "storage", "pods"}
)

type world struct{ quantities []string }

func (w world) list(t *rapid.T, at string) v1.ResourceList {
	if rapid.IntRange(0, 3).Draw(t, at+" absent") == 0 {
		return nil
	}
	list := v1.ResourceList{}
	for range rapid.IntRange(0, 4).Draw(t, at+" size") {
		list[rapid.SampledFrom(names).Draw(t, at)] = resource.MustParse(rapid.SampledFrom(w.quantities).Draw(t, at))
	}
	return list
}

func (w world) requirements(t *rapid.T, at string) *v1.ResourceRequirements {
	if !rapid.Bool().Draw(t, at+" set") {
		return nil
	}
	return &v1.ResourceRequirements{Requests: w.list(t, at), Limits: w.list(t, at+" limit")}
}

func (w world) containers(t *rapid.T, at string, most int) ([]v1.Container, []v1.ContainerStatus) {
	var list []v1.Container
	var statuses []v1.ContainerStatus
	always, never := v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicy("Never")
	for i := range rapid.IntRange(0, most).Draw(t, at+"s") {
		c := v1.Container{Name: fmt.Sprint(at, i), Resources: v1.ResourceRequirements{Requests: w.list(t, at), Limits: w.list(t, at+" limit")}}
		c.RestartPolicy = rapid.SampledFrom([]*v1.ContainerRestartPolicy{nil, nil, &always, &never}).Draw(t, at+" restart")
		list = append(list, c)
		if rapid.Bool().Draw(t, at+" has status") {
			statuses = append(statuses, v1.ContainerStatus{
				Name: c.Name, AllocatedResources: w.list(t, at+" promised"), Resources: w.requirements(t, at+" in force"),
			})
		}
	}
	return list, statuses
}

// quantity is none in some cases.
func (w world) quantity(t *rapid.T, at string) *resource.Quantity {
	if rapid.IntRange(0, 3).Draw(t, at+" absent") == 0 {
		return nil
	}
	q := resource.MustParse(rapid.SampledFrom(w.quantities).Draw(t, at))
	return &q
}

func (w world) mapping(t *rapid.T) (list []v1.NodeAllocatableMappedResources) {
	for range rapid.IntRange(0, 2).Draw(t, "mappings") {
		list = append(list, v1.NodeAllocatableMappedResources{Name: rapid.SampledFrom(names).Draw(t, "mapped"), Quantity: w.quantity(t, "mapped")})
	}
	return list
}

func (w world) overhead(t *rapid.T) (list []v1.NodeAllocatableOverheadResources) {
	for range rapid.IntRange(0, 2).Draw(t, "overheads") {
		list = append(list, v1.NodeAllocatableOverheadResources{Name: rapid.SampledFrom(names).Draw(t, "overhead of"),
			PerPod: w.quantity(t, "per pod"), PerContainer: w.quantity(t, "per container")})
	}
	return list
}

func (w world) pod(t *rapid.T) *v1.Pod {
	pod := &v1.Pod{}
	pod.Spec.Containers, pod.Status.ContainerStatuses = w.containers(t, "container", 3)
	pod.Spec.InitContainers, pod.Status.InitContainerStatuses = w.containers(t, "init", 4)
	pod.Spec.Overhead = w.list(t, "overhead")
	pod.Spec.Resources = w.requirements(t, "pod")
	pod.Status.Resources = w.requirements(t, "pod in force")
	pod.Status.AllocatedResources = w.list(t, "pod promised")
	for i := range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "claims of devices") {
		pod.Status.NodeAllocatableResourceClaimStatuses = append(pod.Status.NodeAllocatableResourceClaimStatuses,
			v1.NodeAllocatableResourceClaimStatus{ResourceClaimName: fmt.Sprint(i), Containers: make([]string, rapid.IntRange(0, 2).Draw(t, "containers")),
				Mapping: w.mapping(t), Overhead: w.overhead(t)})
	}
	if reason := rapid.SampledFrom([]string{"", v1.PodReasonInfeasible, v1.PodReasonDeferred}).Draw(t, "resize"); reason != "" {
		pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodResizePending, Reason: reason}}
	}
	return pod
}

// A pod's requests equal what component-helpers computes.
func TestDemandEqualsComponentHelpers(t *testing.T) {
	for name, w := range map[string]world{
		"plain":          {plain},
		"with fractions": {append(odd, plain...)},
		"with huge":      {append(huge, plain...)},
		"with all":       {append(append(huge, odd...), plain...)},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				pod := w.pod(t)
				before := pod.DeepCopy()
				got, want := OfPod(pod), wanted(pod)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("got  %+v\nwant %+v", got, want)
				}
				if !reflect.DeepEqual(pod, before) {
					t.Fatal("the pod was changed")
				}
			})
		})
	}
}

// A pod's limits equal what component-helpers computes.
func TestLimitsEqualComponentHelpers(t *testing.T) {
	for name, w := range map[string]world{"plain": {plain}, "with all": {append(append(huge, odd...), plain...)}} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				pod := w.pod(t)
				before := pod.DeepCopy()
				var got Vector
				if limits := Limits(pod); limits != nil {
					got = *limits
				}
				want := bigVector(helper.PodLimits(pod.DeepCopy(), helper.PodResourcesOptions{}))
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("got  %+v\nwant %+v", got, want)
				}
				if !reflect.DeepEqual(pod, before) {
					t.Fatal("the pod was changed")
				}
			})
		})
	}
}

// Requests are the same whether they are added as int64 or as quantities.
func TestExactPathEqualsFastPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := world{plain}.pod(t)
		if fast, slow := OfPod(pod), exactly(pod); !reflect.DeepEqual(fast, slow) {
			t.Fatalf("fast  %+v\nexact %+v", fast, slow)
		}
	})
}

// No quantity makes a request negative.
func TestNegativeAndAbsurdQuantities(t *testing.T) {
	w := world{append(append(minus, huge...), "1", "1u", "1e999999999", "-1e999999999")}
	rapid.Check(t, func(t *rapid.T) {
		d := OfPod(w.pod(t))
		for _, v := range []Vector{d.Requests, d.Usage, d.NonZero, d.Scoring} {
			if v.MilliCPU < 0 || v.Memory < 0 || v.EphemeralStorage < 0 {
				t.Fatalf("negative: %+v", v)
			}
			for _, s := range v.Scalars {
				if s.Value <= 0 {
					t.Fatalf("scalar not positive: %+v", v)
				}
			}
		}
	})
}

// A pod may request more resources than the fast path has room for, and none is
// lost.
func TestManyScalars(t *testing.T) {
	for _, memory := range []string{"1Gi", "1e999999999"} {
		pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{}, {}}}}
		pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{"memory": resource.MustParse(memory)}
		for i := range 2 * fastPathScalars {
			c := &pod.Spec.Containers[i%2]
			if c.Resources.Requests == nil {
				c.Resources.Requests = v1.ResourceList{}
			}
			c.Resources.Requests[v1.ResourceName(fmt.Sprintf("example.com/r%02d", i))] = resource.MustParse("2")
		}
		d := OfPod(pod)
		if len(d.Requests.Scalars) != 2*fastPathScalars || d.Requests.Of("example.com/r15") != 2 {
			t.Errorf("memory %s: %+v", memory, d.Requests)
		}
		if memory != "1Gi" && d.Requests.Memory != math.MaxInt64 {
			t.Errorf("memory %s: %d", memory, d.Requests.Memory)
		}
	}
}

// BenchmarkOfPod measures the sum of a pod's requests, beside that of
// component-helpers.
func BenchmarkOfPod(b *testing.B) {
	list := func(cpu, memory string) v1.ResourceRequirements {
		return v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}}
	}
	one := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a", Resources: list("250m", "512Mi")}}}}
	three := one.DeepCopy()
	three.Spec.Containers = append(three.Spec.Containers, v1.Container{Name: "b", Resources: list("1", "1Gi")})
	three.Spec.InitContainers = []v1.Container{{Name: "i", Resources: list("2", "64Mi")}}
	for _, c := range three.Spec.Containers {
		r := c.Resources
		three.Status.ContainerStatuses = append(three.Status.ContainerStatuses, v1.ContainerStatus{Name: c.Name, Resources: &r, AllocatedResources: r.Requests})
	}
	gpu := one.DeepCopy()
	gpu.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1")
	fraction := one.DeepCopy()
	fraction.Spec.Containers[0].Resources.Requests["memory"] = resource.MustParse("1500m")
	for name, pod := range map[string]*v1.Pod{"one container": one, "three with status": three, "gpu": gpu, "fraction": fraction} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				OfPod(pod)
			}
		})
	}
	b.Run("component-helpers", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			exactly(one)
		}
	})
}
