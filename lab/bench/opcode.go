package bench

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// operation is one step as the file has it: the fields of all opcodes.
type operation struct {
	Opcode     string `json:"opcode"`
	Name       string `json:"name"`
	Count      int    `json:"count"`
	CountParam string `json:"countParam"`
	Namespace  string `json:"namespace"`

	TemplateParams map[string]any `json:"templateParams"`

	NodeTemplatePath        string `json:"nodeTemplatePath"`
	NodeAllocatableStrategy *struct {
		NodeAllocatable    map[v1.ResourceName]string                `json:"nodeAllocatable"`
		CSINodeAllocatable map[string]*storagev1.VolumeNodeResources `json:"csiNodeAllocatable"`
		MigratedPlugins    []string                                  `json:"migratedPlugins"`
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

	PodTemplatePath                   string          `json:"podTemplatePath"`
	PersistentVolumeTemplatePath      string          `json:"persistentVolumeTemplatePath"`
	PersistentVolumeClaimTemplatePath string          `json:"persistentVolumeClaimTemplatePath"`
	CollectMetrics                    bool            `json:"collectMetrics"`
	SkipWaitToCompletion              bool            `json:"skipWaitToCompletion"`
	SteadyState                       bool            `json:"steadyState"`
	SteadyStateParam                  string          `json:"steadyStateParam"`
	Duration                          metav1.Duration `json:"duration"`
	DurationParam                     string          `json:"durationParam"`
	NamespacePrefix                   string          `json:"namespacePrefix"`
	CreatePodsOp                      *operation      `json:"createPodsOp"`
	SignatureBatchSize                int             `json:"signatureBatchSize"`
	SignatureBatchSizeParam           string          `json:"signatureBatchSizeParam"`

	Mode                 string   `json:"mode"`
	Number               int      `json:"number"`
	IntervalMilliseconds int      `json:"intervalMilliseconds"`
	TemplatePath         string   `json:"templatePath"`
	TemplatePaths        []string `json:"templatePaths"`
	UpdatePerSecond      int      `json:"updatePerSecond"`
	Subresources         []string `json:"subresources"`

	LabelSelector       map[string]string `json:"labelSelector"`
	DeletePodsPerSecond int               `json:"deletePodsPerSecond"`
	StageRequirement    string            `json:"stageRequirement"`
	Namespaces          []string          `json:"namespaces"`
}

// opcodes are the operations that are understood. i is the operation's place
// in its workload, after which the suite names namespaces.
var opcodes = map[string]func(c *testCase, i int, op *operation, p parameters) ([]Step, error){
	"createNodes":            (*testCase).createNodes,
	"createNamespaces":       (*testCase).createNamespaces,
	"createPods":             (*testCase).createPods,
	"createPodSets":          (*testCase).createPodSets,
	"deletePods":             (*testCase).deletePods,
	"churn":                  (*testCase).churn,
	"barrier":                (*testCase).barrier,
	"createAny":              (*testCase).createAny,
	"updateAny":              (*testCase).updateAny,
	"allocResourceClaims":    (*testCase).allocResourceClaims,
	"startCollectingMetrics": (*testCase).startCollectingMetrics,
	"stopCollectingMetrics":  (*testCase).stopCollectingMetrics,
}

func (c *testCase) createNodes(i int, op *operation, p parameters) ([]Step, error) {
	count, err := p.number(op.Count, op.CountParam)
	if err != nil {
		return nil, err
	}
	s := &CreateNodes{Count: count, Step: i, Template: builtinNode}
	if op.NodeTemplatePath != "" {
		if s.Template, err = c.form(op.NodeTemplatePath, op.TemplateParams); err != nil {
			return nil, err
		}
	}
	sample := &v1.Node{}
	if err := s.Template.decode(0, count, sample); err != nil {
		return nil, err
	}
	if sample.Name != "" && s.Template.actions == nil && count > 1 {
		return nil, fmt.Errorf("%d nodes cannot all be named %s", count, sample.Name)
	}
	switch {
	case op.NodeAllocatableStrategy != nil:
		strategy := op.NodeAllocatableStrategy
		s.Allocatable, s.Migrated = v1.ResourceList{}, strings.Join(strategy.MigratedPlugins, ",")
		for name, amount := range strategy.NodeAllocatable { // any order: fills a map
			if s.Allocatable[name], err = resource.ParseQuantity(amount); err != nil {
				return nil, fmt.Errorf("nodeAllocatableStrategy: %s: %w", name, err)
			}
		}
		for _, driver := range slices.Sorted(maps.Keys(strategy.CSINodeAllocatable)) {
			s.Drivers = append(s.Drivers, storagev1.CSINodeDriver{Name: driver, Allocatable: strategy.CSINodeAllocatable[driver]})
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

func (c *testCase) createNamespaces(_ int, op *operation, p parameters) ([]Step, error) {
	count, err := p.number(op.Count, op.CountParam)
	if err != nil {
		return nil, err
	}
	s := &CreateNamespaces{Count: count, Prefix: op.Prefix, Template: &v1.Namespace{}}
	if op.NamespaceTemplatePath == "" {
		return []Step{s}, nil
	}
	f, err := c.form(op.NamespaceTemplatePath, op.TemplateParams)
	if err != nil {
		return nil, err
	}
	return []Step{s}, f.decode(0, 1, s.Template)
}

func (c *testCase) createPods(i int, op *operation, p parameters) ([]Step, error) {
	count, err := p.number(op.Count, op.CountParam)
	if err != nil {
		return nil, err
	}
	s := &CreatePods{
		Count: count, Namespace: op.Namespace, Group: fmt.Sprintf("pod-%d", i),
		Template: builtinPod, Measure: op.CollectMetrics, NoWait: op.SkipWaitToCompletion,
	}
	if s.Namespace == "" {
		s.Namespace = fmt.Sprintf("namespace-%d", i)
	}
	if s.Steady, err = op.steady(p); err != nil {
		return nil, err
	}
	if path := cmp.Or(op.PodTemplatePath, c.DefaultPodTemplatePath); path != "" {
		if s.Template, err = c.form(path, op.TemplateParams); err != nil {
			return nil, err
		}
		batch, err := p.number(op.SignatureBatchSize, op.SignatureBatchSizeParam)
		if err != nil {
			return nil, err
		}
		s.SignatureBatch = max(batch, 1)
	}
	sample := &v1.Pod{}
	if err := s.Template.decode(0, count, sample); err != nil {
		return nil, err
	}
	s.Labels = sample.Labels
	if op.PersistentVolumeClaimTemplatePath == "" {
		return []Step{s}, nil
	}
	if s.Claim, err = c.form(op.PersistentVolumeClaimTemplatePath, op.TemplateParams); err != nil {
		return nil, err
	}
	s.Volume, err = c.form(op.PersistentVolumeTemplatePath, op.TemplateParams)
	return []Step{s}, err
}

// steady is for how long pods are made over and over, 0 where they are not.
func (op *operation) steady(p parameters) (time.Duration, error) {
	steady, duration := op.SteadyState, op.Duration.Duration
	if name := strings.TrimPrefix(op.SteadyStateParam, "$"); name != "" {
		var ok bool
		if steady, ok = p.Params[name].(bool); !ok {
			return 0, fmt.Errorf("parameter $%s is neither true nor false", name)
		}
	}
	if !steady {
		return 0, nil
	}
	if name := strings.TrimPrefix(op.DurationParam, "$"); name != "" {
		var err error
		if duration, err = time.ParseDuration(fmt.Sprint(p.Params[name])); err != nil {
			return 0, fmt.Errorf("parameter $%s: %w", name, err)
		}
	}
	if duration <= 0 {
		return 0, fmt.Errorf("duration %s: must be more than 0 in a steady state", duration)
	}
	return duration, nil
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
		object, err := c.objects(path, op.TemplateParams, s.Namespace, 1)
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
	s, err := c.objects(op.TemplatePath, op.TemplateParams, op.Namespace, count)
	return []Step{s}, err
}

func (c *testCase) updateAny(_ int, op *operation, p parameters) ([]Step, error) {
	count, err := p.number(max(op.Count, 1), op.CountParam)
	if err != nil {
		return nil, err
	}
	if op.UpdatePerSecond < 0 {
		return nil, fmt.Errorf("updatePerSecond: %d is less than 0", op.UpdatePerSecond)
	}
	s, err := c.objects(op.TemplatePath, op.TemplateParams, op.Namespace, count)
	if err != nil {
		return nil, err
	}
	return []Step{&UpdateObjects{*s, op.UpdatePerSecond, op.Subresources}}, nil
}

// objects reads a template of a kind that can be created.
func (c *testCase) objects(path string, params map[string]any, namespace string, count int) (*CreateObjects, error) {
	f, err := c.form(path, params)
	if err != nil {
		return nil, err
	}
	sample := &unstructured.Unstructured{}
	if err := f.decode(0, count, &sample.Object); err != nil {
		return nil, err
	}
	if _, ok := kinds[sample.GetKind()]; !ok {
		return nil, fmt.Errorf("%s: the kind %s is not understood", path, sample.GetKind())
	}
	return &CreateObjects{namespace, count, sample.GetKind(), f}, nil
}

func (c *testCase) allocResourceClaims(_ int, op *operation, _ parameters) ([]Step, error) {
	return []Step{&AllocateClaims{op.Namespace}}, nil
}

func (c *testCase) startCollectingMetrics(_ int, op *operation, _ parameters) ([]Step, error) {
	return []Step{&StartMeasuring{op.Namespaces, op.LabelSelector}}, nil
}

func (c *testCase) stopCollectingMetrics(int, *operation, parameters) ([]Step, error) {
	return []Step{&StopMeasuring{}}, nil
}
