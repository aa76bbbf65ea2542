package why

import (
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/workload"
)

// maker is the object whose pod template the pod is made of.
type maker struct {
	kind, name string
	object     metav1.Object // nil where it is not known
}

// maker returns who makes the pod, as far as its owners and labels tell; no kind for a
// pod that nobody makes, and for one of a controller that is not Kubernetes' own.
func (f *facts) maker() (m maker) {
	owner := metav1.GetControllerOfNoCopy(f.api)
	if owner == nil {
		return m
	}
	m = f.made(owner.Kind, owner.Name)
	if m.kind == "replicaset" {
		if of := ownerOf(m.object); of != nil {
			return f.made(of.Kind, of.Name)
		}
		if kind, name := workload.OfPod(f.api); kind == "Deployment" {
			return f.made(kind, name)
		}
	}
	if m.kind == "job" {
		if of := ownerOf(m.object); of != nil {
			return f.made(of.Kind, of.Name)
		}
		for _, o := range f.cluster.Set.Workloads { // of which the pod was made when the files were read
			if m.object != nil || kindOf(o) != "cronjob" {
				continue
			}
			if w, ok := workload.Of(o); ok && w.Owns(f.api) {
				return f.made(w.Kind, w.Name)
			}
		}
	}
	return m
}

func ownerOf(o metav1.Object) *metav1.OwnerReference {
	if o == nil {
		return nil
	}
	return metav1.GetControllerOfNoCopy(o)
}

// makers are the kinds whose controllers make pods, and how the API writes them.
var makers = map[string]string{"deployment": "Deployment", "replicaset": "ReplicaSet", "replicationcontroller": "ReplicationController", "statefulset": "StatefulSet",
	"daemonset": "DaemonSet", "job": "Job", "cronjob": "CronJob"}

// made is the maker of that kind and name in the pod's namespace.
func (f *facts) made(kind, name string) maker {
	kind = strings.ToLower(kind)
	if makers[kind] == "" {
		return maker{}
	}
	return maker{kind, name, f.cluster.indexWorkloads().objects[Workload{kind, f.api.Namespace, name}]}
}

func kindOf(o metav1.Object) string {
	switch o.(type) {
	case *appsv1.Deployment:
		return "deployment"
	case *appsv1.ReplicaSet:
		return "replicaset"
	case *v1.ReplicationController:
		return "replicationcontroller"
	case *appsv1.StatefulSet:
		return "statefulset"
	case *appsv1.DaemonSet:
		return "daemonset"
	case *batchv1.Job:
		return "job"
	case *batchv1.CronJob:
		return "cronjob"
	}
	return ""
}

// rollOut is what follows a change of the pod's template where its controller does not
// replace the pod by itself: a StatefulSet waits for pods that were never ready, and a
// bare ReplicaSet replaces none. A pod that was never made is not replaced either.
func (f *facts) rollOut(m *maker) []string {
	namespace := word(f.api.Namespace)
	var replace []string
	if !f.cluster.neverMade(f.api) {
		replace = []string{fmt.Sprintf("kubectl delete pod %s -n %s", word(f.api.Name), namespace)}
	}
	switch m.kind {
	case "deployment":
		if o, ok := m.object.(*appsv1.Deployment); ok && o.Spec.Paused {
			return []string{fmt.Sprintf("kubectl rollout resume deployment %s -n %s", word(m.name), namespace)}
		}
	case "daemonset":
		if o, ok := m.object.(*appsv1.DaemonSet); ok && o.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
			return replace
		}
	case "replicaset", "replicationcontroller":
		return replace
	case "statefulset":
		ordinal, err := strconv.Atoi(strings.TrimPrefix(f.api.Name, m.name+"-"))
		if o, ok := m.object.(*appsv1.StatefulSet); ok && err == nil && partition(o) > ordinal {
			lower := fmt.Sprintf(`kubectl patch statefulset %s -n %s -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":%d}}}}'`, word(m.name), namespace, ordinal)
			return append([]string{lower}, replace...)
		}
		return replace
	}
	return nil
}

// partition is the least ordinal whose pods get a new template.
func partition(o *appsv1.StatefulSet) int {
	rolling := o.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.Partition == nil {
		return 0
	}
	start := 0
	if o.Spec.Ordinals != nil {
		start = int(o.Spec.Ordinals.Start)
	}
	return start + int(*rolling.Partition)
}

// jobCommands make the pod's Job anew, as the template of a Job cannot be changed: of its
// CronJob, or of itself without what the API server gave it.
func (f *facts) jobCommands(m *maker, form, patch string) []string {
	namespace := word(f.api.Namespace)
	if m.kind == "cronjob" {
		job := metav1.GetControllerOfNoCopy(f.api).Name
		return []string{
			fmt.Sprintf("kubectl patch cronjob %s -n %s %s-p '%s'", word(m.name), namespace, form, patch),
			fmt.Sprintf("kubectl delete job %s -n %s --ignore-not-found", word(job), namespace),
			fmt.Sprintf("kubectl create job %s -n %s --from=cronjob/%s", word(job), namespace, word(m.name)),
		}
	}
	lines := []string{
		fmt.Sprintf("kubectl get job %s -n %s -o json |", word(m.name), namespace),
		fmt.Sprintf("  kubectl patch --local -f - %s-o json -p '%s' |", form, patch),
	}
	if o, ok := m.object.(*batchv1.Job); !ok || o.Spec.ManualSelector == nil || !*o.Spec.ManualSelector {
		lines = append(lines, `  kubectl patch --local -f - --type=merge -o json -p '{"spec":{"selector":null,"template":{"metadata":{"labels":{"controller-uid":null,"batch.kubernetes.io/controller-uid":null}}}}}' |`)
	}
	return append(lines, "  kubectl replace --force -f -")
}
