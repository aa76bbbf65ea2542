package bench

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Workload is one workload of a suite: steps that are taken in order.
type Workload struct {
	Name  string // test case / workload
	Steps []Step
}

// Step is one operation of a workload.
type Step interface{ step() }

type (
	// CreateNodes makes nodes from a template.
	CreateNodes struct {
		Count    int
		Name     string // of one node, or what the names begin with
		Template *v1.Node
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
		Template  *v1.Pod
		Measure   bool // this is the phase that is measured
		NoWait    bool
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
		Objects   []*unstructured.Unstructured
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
		Object    *unstructured.Unstructured
	}
)

func (*CreateNodes) step()      {}
func (*CreateNamespaces) step() {}
func (*CreatePods) step()       {}
func (*DeletePods) step()       {}
func (*Churn) step()            {}
func (*Barrier) step()          {}
func (*CreateObjects) step()    {}

// operation is one step as the file has it: the fields of all opcodes.
type operation struct {
	Opcode     string `json:"opcode"`
	Count      int    `json:"count"`
	CountParam string `json:"countParam"`
	Namespace  string `json:"namespace"`

	NodeTemplatePath        string `json:"nodeTemplatePath"`
	NodeAllocatableStrategy *struct {
		NodeAllocatable map[v1.ResourceName]string `json:"nodeAllocatable"`
	} `json:"nodeAllocatableStrategy"`
	LabelNodePrepareStrategy *struct {
		LabelKey    string   `json:"labelKey"`
		LabelValues []string `json:"labelValues"`
	} `json:"labelNodePrepareStrategy"`
	UniqueNodeLabelStrategy *struct {
		LabelKey string `json:"labelKey"`
	} `json:"uniqueNodeLabelStrategy"`

	Prefix                string `json:"prefix"`
	NamespaceTemplatePath string `json:"namespaceTemplatePath"`

	PodTemplatePath      string     `json:"podTemplatePath"`
	CollectMetrics       bool       `json:"collectMetrics"`
	SkipWaitToCompletion bool       `json:"skipWaitToCompletion"`
	NamespacePrefix      string     `json:"namespacePrefix"`
	CreatePodsOp         *operation `json:"createPodsOp"`

	Mode                 string   `json:"mode"`
	Number               int      `json:"number"`
	IntervalMilliseconds int      `json:"intervalMilliseconds"`
	TemplatePath         string   `json:"templatePath"`
	TemplatePaths        []string `json:"templatePaths"`

	LabelSelector       map[string]string `json:"labelSelector"`
	DeletePodsPerSecond int               `json:"deletePodsPerSecond"`
	StageRequirement    string            `json:"stageRequirement"`
	Namespaces          []string          `json:"namespaces"`
}

// opcodes are the operations that are understood. i is the operation's place
// in its workload, after which the suite names namespaces.
var opcodes = map[string]func(c *testCase, i int, op *operation, p parameters) ([]Step, error){
	"createNodes":      (*testCase).createNodes,
	"createNamespaces": (*testCase).createNamespaces,
	"createPods":       (*testCase).createPods,
	"createPodSets":    (*testCase).createPodSets,
	"deletePods":       (*testCase).deletePods,
	"churn":            (*testCase).churn,
	"barrier":          (*testCase).barrier,
	"createAny":        (*testCase).createAny,
}

func (c *testCase) createNodes(i int, op *operation, p parameters) ([]Step, error) {
	count, err := p.number(op.Count, op.CountParam)
	if err != nil {
		return nil, err
	}
	s := &CreateNodes{Count: count, Name: fmt.Sprintf("node-%d", i), Template: builtinNode()}
	if op.NodeTemplatePath != "" {
		s.Template = &v1.Node{}
		if err := c.template(op.NodeTemplatePath, s.Template); err != nil {
			return nil, err
		}
	}
	if s.Template.Name != "" {
		if s.Name = s.Template.Name; count > 1 {
			return nil, fmt.Errorf("%d nodes cannot all be named %s", count, s.Name)
		}
	}
	switch {
	case op.NodeAllocatableStrategy != nil:
		if s.Template.Status.Allocatable == nil {
			s.Template.Status.Allocatable = s.Template.Status.Capacity.DeepCopy()
		}
		for name, amount := range op.NodeAllocatableStrategy.NodeAllocatable { // any order: fills a map
			if s.Template.Status.Allocatable[name], err = resource.ParseQuantity(amount); err != nil {
				return nil, fmt.Errorf("nodeAllocatableStrategy: %s: %w", name, err)
			}
		}
	case op.LabelNodePrepareStrategy != nil:
		s.LabelKey, s.LabelValues = op.LabelNodePrepareStrategy.LabelKey, op.LabelNodePrepareStrategy.LabelValues
		if len(s.LabelValues) == 0 {
			return nil, errors.New("labelNodePrepareStrategy has no labelValues")
		}
	case op.UniqueNodeLabelStrategy != nil:
		s.LabelKey = op.UniqueNodeLabelStrategy.LabelKey
	}
	return []Step{s}, nil
}

// builtinNode is the node that the suite takes where a step names no template:
// 4 CPUs, 32 GiB, 110 pods, ready.
func builtinNode() *v1.Node {
	return &v1.Node{Status: v1.NodeStatus{
		Capacity: v1.ResourceList{
			v1.ResourceCPU:    resource.MustParse("4"),
			v1.ResourceMemory: resource.MustParse("32Gi"),
			v1.ResourcePods:   resource.MustParse("110"),
		},
		Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
	}}
}

func (c *testCase) createNamespaces(_ int, op *operation, p parameters) ([]Step, error) {
	count, err := p.number(op.Count, op.CountParam)
	if err != nil {
		return nil, err
	}
	s := &CreateNamespaces{Count: count, Prefix: op.Prefix, Template: &v1.Namespace{}}
	if op.NamespaceTemplatePath != "" {
		err = c.template(op.NamespaceTemplatePath, s.Template)
	}
	return []Step{s}, err
}

func (c *testCase) createPods(i int, op *operation, p parameters) ([]Step, error) {
	count, err := p.number(op.Count, op.CountParam)
	if err != nil {
		return nil, err
	}
	s := &CreatePods{
		Count: count, Namespace: op.Namespace, Group: fmt.Sprintf("pod-%d", i),
		Template: &v1.Pod{}, Measure: op.CollectMetrics, NoWait: op.SkipWaitToCompletion,
	}
	if s.Namespace == "" {
		s.Namespace = fmt.Sprintf("namespace-%d", i)
	}
	path := op.PodTemplatePath
	if path == "" {
		path = c.DefaultPodTemplatePath
	}
	if path == "" {
		s.Template = builtinPod()
		return []Step{s}, nil
	}
	return []Step{s}, c.template(path, s.Template)
}

// builtinPod is the pod that the suite takes where neither the step nor the
// test case names a template: 100m CPU, 500 MiB.
func builtinPod() *v1.Pod {
	room := v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("500Mi")}
	return &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{
		Name:      "pause",
		Image:     "registry.k8s.io/pause:3.10.2",
		Ports:     []v1.ContainerPort{{ContainerPort: 80}},
		Resources: v1.ResourceRequirements{Limits: room, Requests: room},
	}}}}
}

func (c *testCase) createPodSets(i int, op *operation, p parameters) ([]Step, error) {
	count, err := p.number(op.Count, op.CountParam)
	if err != nil {
		return nil, err
	}
	if op.CreatePodsOp == nil {
		return nil, errors.New("createPodsOp is missing")
	}
	var steps []Step
	for k := range count {
		one := *op.CreatePodsOp
		one.Namespace = fmt.Sprintf("%s-%d", op.NamespacePrefix, k)
		made, err := c.createPods(i, &one, p)
		if err != nil {
			return nil, err
		}
		made[0].(*CreatePods).Group = fmt.Sprintf("pod-%d-%d", i, k)
		steps = append(steps, made...)
	}
	return steps, nil
}

func (c *testCase) deletePods(_ int, op *operation, _ parameters) ([]Step, error) {
	if op.DeletePodsPerSecond < 0 {
		return nil, fmt.Errorf("deletePodsPerSecond: %d is less than 0", op.DeletePodsPerSecond)
	}
	return []Step{&DeletePods{op.Namespace, op.LabelSelector, op.DeletePodsPerSecond, op.SkipWaitToCompletion}}, nil
}

func (c *testCase) churn(i int, op *operation, _ parameters) ([]Step, error) {
	s := &Churn{
		Namespace: op.Namespace, Recreate: op.Mode == "recreate", Number: op.Number,
		Interval: time.Duration(op.IntervalMilliseconds) * time.Millisecond,
	}
	if s.Namespace == "" {
		s.Namespace = fmt.Sprintf("namespace-%d", i)
	}
	if s.Interval <= 0 {
		s.Interval = 500 * time.Millisecond // the suite's default
	}
	if op.Mode != "create" && op.Mode != "recreate" {
		return nil, fmt.Errorf("mode %q: must be create or recreate", op.Mode)
	}
	if s.Recreate && s.Number < 1 {
		return nil, fmt.Errorf("number %d: must be at least 1 in mode recreate", s.Number)
	}
	for _, path := range op.TemplatePaths {
		object, err := c.object(path)
		if err != nil {
			return nil, err
		}
		s.Objects = append(s.Objects, object)
	}
	return []Step{s}, nil
}

func (c *testCase) barrier(_ int, op *operation, _ parameters) ([]Step, error) {
	if op.StageRequirement != "" && op.StageRequirement != "Attempted" && op.StageRequirement != "Scheduled" {
		return nil, fmt.Errorf("stageRequirement %q: must be Attempted or Scheduled", op.StageRequirement)
	}
	return []Step{&Barrier{op.Namespaces, op.LabelSelector, op.StageRequirement == "Attempted"}}, nil
}

func (c *testCase) createAny(_ int, op *operation, p parameters) ([]Step, error) {
	count, err := p.number(max(op.Count, 1), op.CountParam)
	if err != nil {
		return nil, err
	}
	object, err := c.object(op.TemplatePath)
	return []Step{&CreateObjects{op.Namespace, count, object}}, err
}

// object reads a template of a kind that can be created.
func (c *testCase) object(path string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := c.template(path, &object.Object); err != nil {
		return nil, err
	}
	if _, ok := kinds[object.GetKind()]; !ok {
		return nil, fmt.Errorf("%s: the kind %s is not understood", path, object.GetKind())
	}
	return object, nil
}

// limit has measured steps create no more pods than that; 0 is no limit.
func (w *Workload) limit(pods int) {
	for _, s := range w.Steps {
		if s, ok := s.(*CreatePods); ok && s.Measure && pods > 0 {
			s.Count = min(s.Count, pods)
		}
	}
}

// Measured is how many pods the measured steps create.
func (w *Workload) Measured() int {
	n := 0
	for _, s := range w.Steps {
		if pods, ok := s.(*CreatePods); ok && pods.Measure {
			n += pods.Count
		}
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

// All makes the step's nodes, one at a time.
func (s *CreateNodes) All() iter.Seq[*v1.Node] {
	return func(yield func(*v1.Node) bool) {
		for i := range s.Count {
			if !yield(s.node(i)) {
				return
			}
		}
	}
}

func (s *CreateNodes) node(i int) *v1.Node {
	n := s.Template.DeepCopy()
	n.TypeMeta, n.GenerateName, n.Name = metav1.TypeMeta{}, "", s.Name
	if s.Template.Name == "" {
		n.Name = fmt.Sprintf("%s-%05d", s.Name, i)
	}
	labels := maps.Clone(n.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1.LabelHostname] = n.Name
	switch {
	case s.LabelKey == "":
	case len(s.LabelValues) > 0:
		labels[s.LabelKey] = s.LabelValues[i%len(s.LabelValues)]
	default:
		labels[s.LabelKey] = n.Name
	}
	n.Labels = labels
	if n.Status.Allocatable == nil {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
	return n
}

// All makes the namespaces, prefix-0 and on.
func (s *CreateNamespaces) All() []*v1.Namespace {
	var list []*v1.Namespace
	for i := range s.Count {
		n := s.Template.DeepCopy()
		n.GenerateName, n.Name = "", fmt.Sprintf("%s-%d", s.Prefix, i)
		list = append(list, n)
	}
	return list
}

// All makes the step's pods.
func (s *CreatePods) All() []*v1.Pod {
	pods := make([]*v1.Pod, s.Count)
	for i := range pods {
		p := s.Template.DeepCopy()
		p.TypeMeta, p.GenerateName = metav1.TypeMeta{}, ""
		p.Namespace, p.Name = s.Namespace, fmt.Sprintf("%s-%05d", s.Group, i)
		pods[i] = p
	}
	return pods
}
