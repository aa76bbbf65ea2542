package bench

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Workload is one workload of a suite: steps that are taken in order.
type Workload struct {
	Name   string // test case / workload
	Config string // KubeSchedulerConfiguration of both schedulers, "": the defaults
	// Threshold is the least number of pods a second that Kubernetes' own runs must come
	// to; 0 if there is none.
	Threshold float64
	Steps     []Step
}

// Step is one operation of a workload.
type Step interface{ step() }

type (
	// CreateNodes makes nodes from a template.
	CreateNodes struct {
		Count       int
		Step        int // its place in the workload; names are made of it
		Template    *form
		Allocatable v1.ResourceList // over what the template says
		// Drivers, when there are any, are in each node's CSINode, Migrated in its
		// annotation about volume plugins.
		Drivers  []storagev1.CSINodeDriver
		Migrated string
		// LabelKey, when set, is a label whose values go round; without values
		// each node has its own.
		LabelKey    string
		LabelValues []string
	}
	// CreateNamespaces makes namespaces, prefix-0 and on.
	CreateNamespaces struct {
		Count    int
		Prefix   string
		Template *v1.Namespace
	}
	// CreatePods makes pods from a template and waits until all are bound.
	CreatePods struct {
		Count     int
		Namespace string
		Group     string // what the names begin with, no other step's do
		Template  *form
		Labels    map[string]string // of the first; barriers select by them
		// SignatureBatch, when set, is how many pods in a row share a value of the label
		// "signature". kube-scheduler batches only pods with the same labels.
		SignatureBatch int
		// Volume and Claim, when set, are templates: each pod gets a volume, bound
		// to a claim of its own.
		Volume, Claim *form
		Measure       bool // this is the phase that is measured
		NoWait        bool
		// Steady: for so long, each pod is deleted once it is bound, and another
		// one is made.
		Steady time.Duration
	}
	// DeletePods deletes the pods of a namespace, at a rate if one is given, in
	// the background if NoWait is set.
	DeletePods struct {
		Namespace string
		Labels    map[string]string
		PerSecond int
		NoWait    bool
	}
	// Churn makes objects at an interval in the background; Recreate deletes
	// each again in turn.
	Churn struct {
		Namespace string
		Objects   []*CreateObjects
		Recreate  bool
		Number    int // 0: without end
		Interval  time.Duration
	}
	// Barrier waits for the pods of the steps that did not.
	Barrier struct {
		Namespaces []string // none: all
		Labels     map[string]string
		Attempted  bool // it is enough that the scheduler has looked at them
	}
	// CreateObjects makes objects of any kind.
	CreateObjects struct {
		Namespace string
		Count     int
		Kind      string
		Template  *form
	}
	// UpdateObjects replaces objects, at a rate if one is given.
	UpdateObjects struct {
		CreateObjects
		PerSecond    int
		Subresources []string
	}
	// AllocateClaims gives the claims of a namespace their devices, on nodes
	// taken at random, though no pod asks for them.
	AllocateClaims struct{ Namespace string }
	// StartMeasuring begins the phase that is measured, in which pods of the
	// namespaces with these labels count; StopMeasuring ends it.
	StartMeasuring struct {
		Namespaces []string
		Labels     map[string]string
	}
	// StopMeasuring ends what StartMeasuring began.
	StopMeasuring struct{}
)

func (*CreateNodes) step()      {}
func (*CreateNamespaces) step() {}
func (*CreatePods) step()       {}
func (*DeletePods) step()       {}
func (*Churn) step()            {}
func (*Barrier) step()          {}
func (*CreateObjects) step()    {}
func (*UpdateObjects) step()    {}
func (*AllocateClaims) step()   {}
func (*StartMeasuring) step()   {}
func (*StopMeasuring) step()    {}

// counts says whether the step's pods are among those that are measured.
func (s *StartMeasuring) counts(pods *CreatePods) bool {
	return slices.Contains(s.Namespaces, pods.Namespace) && labels.SelectorFromSet(s.Labels).Matches(labels.Set(pods.Labels))
}

// limit has measured steps create no more pods than that; 0 is no limit. What
// is measured between two steps of its own stays as it is: deletions and
// updates go with it.
func (w *Workload) limit(pods int) {
	for _, s := range w.Steps {
		if s, ok := s.(*CreatePods); ok && s.Measure && pods > 0 {
			s.Count = min(s.Count, pods)
		}
	}
}

// measured lists the steps whose pods are measured.
func (w *Workload) measured() []*CreatePods {
	var steps []*CreatePods
	open := &StartMeasuring{}
	for _, s := range w.Steps {
		switch s := s.(type) {
		case *StartMeasuring:
			open = s
		case *StopMeasuring:
			open = &StartMeasuring{}
		case *CreatePods:
			if s.Measure || open.counts(s) {
				steps = append(steps, s)
			}
		}
	}
	return steps
}

// Measured is how many pods the measured steps create.
func (w *Workload) Measured() int {
	n := 0
	for _, s := range w.measured() {
		n += s.Count
	}
	return n
}

// nodes is how many nodes the workload has.
func (w *Workload) nodes() int {
	n := 0
	for _, s := range w.Steps {
		if nodes, ok := s.(*CreateNodes); ok {
			n += nodes.Count
		}
	}
	return n
}

// devices says whether pods of the workload get devices.
func (w *Workload) devices() bool {
	return slices.ContainsFunc(w.Steps, func(s Step) bool {
		created, ok := s.(*CreateObjects)
		return ok && created.Kind == "ResourceSlice"
	})
}
