package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/edge/decode"
)

// set makes a scene out of steps.
type set struct {
	*scene
	nodes     []*v1.Node
	before    []*v1.Pod // decided on before the clock runs
	measured  []*v1.Pod
	devices   bool // pods get devices
	offered   []*resourcev1.ResourceSlice
	classes   []*resourcev1.DeviceClass
	claims    []*resourcev1.ResourceClaim
	templates map[string]*resourcev1.ResourceClaimTemplate // by namespace and name
}

// scene makes the workload's objects. Pods of the steps that are not measured
// are bound to the nodes in turn; where pods get devices, they are decided on
// before the clock runs. What needs a clock or an API server makes no
// sense here.
func (w *Workload) scene() (*scene, error) {
	for i, step := range w.Steps {
		if err := unfit(step); err != nil {
			return nil, fmt.Errorf("step %d: %w; use --mode cluster", i, err)
		}
	}
	s := set{scene: &scene{config: w.Config}, devices: w.devices(), templates: map[string]*resourcev1.ResourceClaimTemplate{}}
	for i, step := range w.Steps {
		if err := s.add(step); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
	}
	for _, c := range s.claims {
		s.objects = append(s.objects, c)
	}
	for _, c := range s.classes {
		s.objects = append(s.objects, c)
	}
	for _, o := range s.offered {
		s.objects = append(s.objects, o)
	}
	pods := append(s.before, s.measured...)
	s.scene.nodes, s.pods = slices.Values(s.nodes), slices.Values(pods)
	s.count, s.warmUp = len(pods), len(s.before)
	if s.preempting = preempts(s.bound, pods); s.preempting {
		s.slice = 1
	}
	return s.scene, nil
}

// unfit says why mode decide cannot take the step.
func unfit(step Step) error {
	switch step := step.(type) {
	case *Churn:
		return errors.New("churn needs a clock")
	case *DeletePods:
		return errors.New("deletePods needs a clock")
	case *UpdateObjects, *StartMeasuring, *StopMeasuring:
		return errors.New("changes during the measurement need a clock")
	case *CreatePods:
		if step.NoWait {
			return errors.New("pods that nobody waits for need a clock")
		}
		if step.Steady > 0 {
			return errors.New("a steady state needs a clock")
		}
	case *CreateObjects:
		if step.Kind == "Pod" || step.Kind == "Node" {
			return fmt.Errorf("a %s needs an API server", step.Kind)
		}
	}
	return nil
}

func (s *set) add(step Step) error {
	switch step := step.(type) {
	case *CreateNodes:
		made, err := step.All()
		s.nodes = append(s.nodes, made...)
		for _, n := range step.CSINodes(made) {
			s.objects = append(s.objects, n)
		}
		return err
	case *CreatePods:
		return s.addPods(step)
	case *CreateNamespaces:
		s.namespaces = append(s.namespaces, step.All()...)
	case *CreateObjects:
		made, err := step.All()
		for i := 0; i < len(made) && err == nil; i++ {
			err = s.addObject(step, made[i], i)
		}
		return err
	case *AllocateClaims:
		own := slices.DeleteFunc(slices.Clone(s.claims), func(c *resourcev1.ResourceClaim) bool { return c.Namespace != step.Namespace })
		return allocate(context.Background(), own, s.offered, s.classes, s.nodes)
	}
	return nil
}

// addPods makes the step's pods as the API server would hand them out.
func (s *set) addPods(step *CreatePods) error {
	if len(s.nodes) == 0 {
		return errors.New("there is no node yet")
	}
	pods, err := step.All()
	if err != nil {
		return err
	}
	claims, volumes, err := step.Volumes()
	for i := range claims {
		claims[i].UID = types.UID("claim " + claims[i].Namespace + "/" + claims[i].Name)
		s.objects = append(s.objects, claims[i], volumes[i])
	}
	for k, p := range pods {
		p.UID = types.UID(p.Namespace + "/" + p.Name)
		decode.DefaultPod(p)
		if err := s.claim(p); err != nil {
			return err
		}
		switch {
		case step.Measure:
			s.measured = append(s.measured, p)
		case s.devices:
			s.before = append(s.before, p)
		default:
			p.Spec.NodeName = s.nodes[k%len(s.nodes)].Name
			s.bound = append(s.bound, p)
		}
	}
	return err
}

// claim makes the claims that the pod gets by template. Pods that share a claim
// are answered one by one: while one is being bound, the next cannot be.
func (s *set) claim(p *v1.Pod) error {
	for i := range p.Spec.ResourceClaims {
		ref := &p.Spec.ResourceClaims[i]
		if ref.ResourceClaimTemplateName == nil {
			s.slice = 1
			continue
		}
		t := s.templates[p.Namespace+"/"+*ref.ResourceClaimTemplateName]
		if t == nil {
			return fmt.Errorf("there is no ResourceClaimTemplate %s/%s", p.Namespace, *ref.ResourceClaimTemplateName)
		}
		name, controller := p.Name+"-"+ref.Name, true
		s.claims = append(s.claims, &resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: p.Namespace, Name: name, UID: types.UID("claim " + p.Namespace + "/" + name),
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: &controller}},
			},
			Spec: *t.Spec.Spec.DeepCopy(),
		})
		p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, v1.PodResourceClaimStatus{Name: ref.Name, ResourceClaimName: &name})
	}
	return nil
}

// addObject takes in the i-th object of a step, as the API server would hand it
// out.
func (s *set) addObject(step *CreateObjects, object *unstructured.Unstructured, i int) error {
	into := func(o metav1.Object) error {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, o); err != nil {
			return err
		}
		if o.SetNamespace(step.Namespace); o.GetName() == "" {
			o.SetName(fmt.Sprintf("%s%d", o.GetGenerateName(), i))
		}
		o.SetUID(types.UID(step.Kind + " " + o.GetNamespace() + "/" + o.GetName()))
		return nil
	}
	switch step.Kind {
	case "Service":
		service := &v1.Service{}
		s.selectorOwners = append(s.selectorOwners, service)
		return into(service)
	case "PodDisruptionBudget":
		budget := &policyv1.PodDisruptionBudget{}
		s.budgets = append(s.budgets, budget)
		return into(budget)
	case "ResourceSlice":
		slice := &resourcev1.ResourceSlice{}
		s.offered = append(s.offered, slice)
		return into(slice)
	case "DeviceClass":
		class := &resourcev1.DeviceClass{}
		s.classes = append(s.classes, class)
		return into(class)
	case "ResourceClaim":
		claim := &resourcev1.ResourceClaim{}
		s.claims = append(s.claims, claim)
		err := into(claim)
		defaultRequests(&claim.Spec)
		return err
	case "ResourceClaimTemplate":
		t := &resourcev1.ResourceClaimTemplate{}
		err := into(t)
		defaultRequests(&t.Spec.Spec)
		s.templates[t.Namespace+"/"+t.Name] = t
		return err
	case "DeviceTaintRule":
		return nil // read behind a gate that is off
	}
	return fmt.Errorf("no scene has a %s", step.Kind)
}

// defaultRequests does what the API server does with requests for devices.
func defaultRequests(spec *resourcev1.ResourceClaimSpec) {
	set := func(mode *resourcev1.DeviceAllocationMode, count *int64) {
		if *mode == "" {
			*mode = resourcev1.DeviceAllocationModeExactCount
		}
		if *mode == resourcev1.DeviceAllocationModeExactCount && *count == 0 {
			*count = 1
		}
	}
	for i := range spec.Devices.Requests {
		r := &spec.Devices.Requests[i]
		if r.Exactly != nil {
			set(&r.Exactly.AllocationMode, &r.Exactly.Count)
		}
		for k := range r.FirstAvailable {
			set(&r.FirstAvailable[k].AllocationMode, &r.FirstAvailable[k].Count)
		}
	}
}
