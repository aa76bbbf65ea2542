package sample

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// Namespace is where the sample lives.
const Namespace = "sample"

// MinNodes is the smallest fleet (see cluster.Nodes) that has room for it: one
// whole repetition of the fleet's pattern.
const MinNodes = 10

// appLabel names the workload that a pod belongs to.
const appLabel = "app"

// workload is one Deployment, or one Job, of the sample.
type workload struct {
	name        string
	pods        int // for each ten nodes
	cpu, memory string
	selector    map[string]string
	tolerations []corev1.Toleration
	job         bool
	fits        bool
	story       string
}

// workloads is the sample for ten nodes. Those that may run anywhere ask for 33
// CPUs together, so that even a scheduler which fills the SSD nodes with them
// leaves the 12 CPUs there that "cache" needs.
var workloads = []workload{
	{name: "web", pods: 40, cpu: "250m", memory: "256Mi", fits: true, story: "many small pods"},
	{name: "api", pods: 25, cpu: "500m", memory: "1Gi", fits: true, story: "middling pods"},
	{name: "cache", pods: 12, cpu: "1", memory: "4Gi", fits: true, story: "only on nodes with an SSD",
		selector: map[string]string{cluster.DiskLabel: "ssd"}},
	{name: "batch", pods: 8, cpu: "500m", memory: "2Gi", fits: true, story: "only on the dedicated nodes, whose taint it tolerates",
		selector: map[string]string{cluster.DedicatedLabel: "batch"},
		tolerations: []corev1.Toleration{{
			Key: cluster.DedicatedLabel, Operator: corev1.TolerationOpEqual, Value: "batch", Effect: corev1.TaintEffectNoSchedule}}},
	{name: "report", pods: 10, cpu: "1", memory: "2Gi", fits: true, job: true, story: "a Job: its pods complete"},
	{name: "huge", pods: 3, cpu: "64", memory: "1Gi", story: "asks for more CPU than any node has"},
	{name: "nvme", pods: 2, cpu: "250m", memory: "256Mi", story: "asks for a disk that no node has",
		selector: map[string]string{cluster.DiskLabel: "nvme"}},
}

// Sample is the workload sized for a number of nodes.
type Sample struct {
	// Scheduler is the pods' schedulerName; empty: the API server's default.
	Scheduler string

	scale int
}

// For is the sample for a fleet of cluster.Nodes(nodes): ten pods a node, at
// whole tens of nodes.
func For(nodes int) (Sample, error) {
	if nodes < MinNodes {
		return Sample{}, fmt.Errorf("the sample workload needs at least %d nodes, not %d", MinNodes, nodes)
	}
	return Sample{scale: nodes / MinNodes}, nil
}

// Fitting and Unfitting count the pods that can be placed and those that cannot.
func (s Sample) Fitting() int   { return s.count(true) }
func (s Sample) Unfitting() int { return s.count(false) }

func (s Sample) count(fits bool) int {
	n := 0
	for _, w := range workloads {
		if w.fits == fits {
			n += w.pods * s.scale
		}
	}
	return n
}

// Describe is one line for each workload.
func (s Sample) Describe() []string {
	var lines []string
	for _, w := range workloads {
		lines = append(lines, fmt.Sprintf("%5d  %-7s %s", w.pods*s.scale, w.name, w.story))
	}
	return lines
}

// Deploy applies the sample; what is there already stays.
func (s Sample) Deploy(ctx context.Context, client kubernetes.Interface) error {
	namespace := &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: Namespace},
	}
	options := metav1.PatchOptions{FieldManager: "berth-lab"}
	patch, err := json.Marshal(namespace)
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().Namespaces().Patch(ctx, Namespace, types.ApplyPatchType, patch, options); err != nil {
		return fmt.Errorf("creating namespace %s: %w", Namespace, err)
	}
	for _, w := range workloads {
		if w.job {
			if patch, err = json.Marshal(s.job(w)); err == nil {
				_, err = client.BatchV1().Jobs(Namespace).Patch(ctx, w.name, types.ApplyPatchType, patch, options)
			}
		} else {
			if patch, err = json.Marshal(s.deployment(w)); err == nil {
				_, err = client.AppsV1().Deployments(Namespace).Patch(ctx, w.name, types.ApplyPatchType, patch, options)
			}
		}
		if err != nil {
			return fmt.Errorf("deploying %s: %w", w.name, err)
		}
	}
	return nil
}

func (s Sample) deployment(w workload) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: w.name, Namespace: Namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(w.pods * s.scale)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: w.name}},
			Template: s.template(w, corev1.RestartPolicyAlways),
		},
	}
}

func (s Sample) job(w workload) *batchv1.Job {
	pods := new(int32(w.pods * s.scale))
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: w.name, Namespace: Namespace},
		Spec: batchv1.JobSpec{
			Completions: pods, Parallelism: pods,
			Template: s.template(w, corev1.RestartPolicyNever),
		},
	}
}

func (s Sample) template(w workload, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appLabel: w.name}},
		Spec: corev1.PodSpec{
			SchedulerName: s.Scheduler,
			RestartPolicy: restart,
			NodeSelector:  w.selector,
			Tolerations:   w.tolerations,
			Containers: []corev1.Container{{
				Name:  w.name,
				Image: "registry.k8s.io/pause:3.10", // never pulled: kwok only plays it
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU:    resource.MustParse(w.cpu),
					corev1.ResourceMemory: resource.MustParse(w.memory),
				}},
			}},
		},
	}
}
