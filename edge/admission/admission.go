package admission

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rules are the objects that admission goes by. Quotas also hold what is used of them.
type Rules struct {
	ranges   map[string][]*v1.LimitRange // by namespace
	runtimes map[string]*nodev1.RuntimeClass
	storage  map[string]*storagev1.StorageClass
	quotas   map[string][]*quota // by namespace
}

// Refusal is why a pod is not admitted.
type Refusal struct {
	Why string
	// Waits is set if the pod is admitted once other pods are gone.
	Waits bool
}

// Error returns the reason.
func (r *Refusal) Error() string { return "admission refuses it: " + r.Why }

// New returns rules without objects.
func New() *Rules {
	return &Rules{ranges: map[string][]*v1.LimitRange{}, runtimes: map[string]*nodev1.RuntimeClass{},
		storage: map[string]*storagev1.StorageClass{}, quotas: map[string][]*quota{}}
}

// Clone returns rules with the same objects. What is charged to one is not charged to
// the other.
func (r *Rules) Clone() *Rules {
	c := &Rules{ranges: maps.Clone(r.ranges), runtimes: maps.Clone(r.runtimes), storage: maps.Clone(r.storage), quotas: map[string][]*quota{}}
	for namespace, list := range r.quotas { // any order: into a map
		for _, q := range list {
			c.quotas[namespace] = append(c.quotas[namespace], q.clone())
		}
	}
	return c
}

// Add adds an object, in the place of one of the same kind and name. It reports whether
// admission goes by objects of this kind and nothing else does.
func (r *Rules) Add(o metav1.Object) bool {
	switch o := o.(type) {
	case *v1.LimitRange:
		defaultLimitRange(o)
		r.ranges[o.Namespace] = append(without(r.ranges[o.Namespace], func(old *v1.LimitRange) bool { return old.Name == o.Name }), o)
	case *v1.ResourceQuota:
		r.quotas[o.Namespace] = append(without(r.quotas[o.Namespace], func(old *quota) bool { return old.name == o.Name }), newQuota(o))
	case *nodev1.RuntimeClass:
		r.runtimes[o.Name] = o
	case *storagev1.StorageClass:
		r.storage[o.Name] = o
		return false
	default:
		return false
	}
	return true
}

func without[T any](list []T, drop func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), drop)
}

// Change sets in the pod what its RuntimeClass and the LimitRanges of its namespace set. It
// returns why they, or the check of a pod that they are about, do not allow the pod, nil
// if they do.
func (r *Rules) Change(p *v1.Pod, check func(*v1.Pod) error) *Refusal {
	ranges := r.ranges[p.Namespace]
	if len(ranges) == 0 && p.Spec.RuntimeClassName == nil {
		return nil
	}
	if why := r.applyRuntime(p); why != "" {
		return &Refusal{Why: why}
	}
	for _, l := range ranges {
		setDefaults(l, p)
	}
	if err := check(p); err != nil {
		return &Refusal{Why: err.Error()}
	}
	for _, l := range ranges {
		if why := violation(l, p); why != "" {
			return &Refusal{Why: "LimitRange " + l.Name + ": " + why}
		}
	}
	return nil
}

// StorageClass returns the class of that name, nil if there is none.
func (r *Rules) StorageClass(name string) *storagev1.StorageClass { return r.storage[name] }

// SetClass sets the default storage class in a claim that names none. Of several classes
// that are the default the newest counts. It reports whether it changed the claim.
func (r *Rules) SetClass(c *v1.PersistentVolumeClaim) bool {
	if c.Spec.StorageClassName != nil || metav1.HasAnnotation(c.ObjectMeta, v1.BetaStorageClassAnnotation) {
		return false
	}
	var found *storagev1.StorageClass
	for _, class := range r.storage { // any order: the newest, then the first by name
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] != "true" {
			continue
		}
		if found == nil || found.CreationTimestamp.Before(&class.CreationTimestamp) ||
			found.CreationTimestamp.Equal(&class.CreationTimestamp) && class.Name < found.Name {
			found = class
		}
	}
	if found != nil {
		c.Spec.StorageClassName = &found.Name
	}
	return found != nil
}
