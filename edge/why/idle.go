package why

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/workload"
)

// idle says why the workload has no pending pod, as its object and its pods tell it.
func (l *listing) idle(w Workload) (texts []string) {
	o := l.indexWorkloads().objects[w]
	if text := idleText(o); text != "" {
		texts = append(texts, text)
	}
	texts = append(texts, idleGroup(l.Cluster, w)...)
	placed := 0
	var waiting []string
	var unready *v1.Pod
	for _, p := range l.Set.Pods {
		if p.Spec.NodeName == "" || decode.Ended(p) || !l.belongs(p, w) {
			continue
		}
		placed++
		if why := NotRunning(p); why != "" {
			waiting = append(waiting, p.Name+": "+why)
		}
		if unready == nil && !workload.Ready(p) {
			unready = p
		}
	}
	if placed > 0 {
		texts = append(texts, terminal.Count(placed, "pod")+terminal.Plural(placed, " has", " have")+" a node")
	}
	if len(waiting) > 0 {
		texts = append(texts, fmt.Sprintf("%d of these %s not run: %s", len(waiting), terminal.Plural(len(waiting), "does", "do"), list(waiting, shortNames)))
	}
	if s, is := o.(*appsv1.StatefulSet); is && unready != nil && s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement && placed < replicas(s.Spec.Replicas) {
		texts = append(texts, fmt.Sprintf("its pods are made one after the other, and the next one waits until %s is ready", unready.Name))
	}
	return texts
}

// idleText says what of the workload's object keeps its controller from making pods, and what
// changes that; "" where nothing does.
func idleText(o metav1.Object) string {
	switch o := o.(type) {
	case *batchv1.Job:
		return idleJob(o)
	case *batchv1.CronJob:
		if o.Spec.Suspend != nil && *o.Spec.Suspend {
			return resumed("cronjob", o)
		}
		return fmt.Sprintf("its next Job is made by its schedule, %q", o.Spec.Schedule)
	case *appsv1.Deployment:
		text := scaledDown("deployment", o, o.Spec.Replicas)
		if o.Spec.Paused && text == "" {
			return fmt.Sprintf("spec.paused is true, so a changed template is not rolled out: kubectl rollout resume deployment %s -n %s", word(o.Name), word(o.Namespace))
		}
		return text
	case *appsv1.ReplicaSet:
		return scaledDown("replicaset", o, o.Spec.Replicas)
	case *appsv1.StatefulSet:
		return scaledDown("statefulset", o, o.Spec.Replicas)
	case *v1.ReplicationController:
		return scaledDown("replicationcontroller", o, o.Spec.Replicas)
	}
	return ""
}

func idleJob(o *batchv1.Job) string {
	for _, c := range o.Status.Conditions {
		if c.Status != v1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			return "it is complete" + sinceTime(o.Status.CompletionTime)
		case batchv1.JobFailed, batchv1.JobFailureTarget:
			return "it has failed and makes no more pods" + inBrackets(c.Reason, c.Message)
		}
	}
	if o.Spec.Suspend != nil && *o.Spec.Suspend {
		return resumed("job", o)
	}
	return ""
}

// sinceTime says since when, "" where that is not known.
func sinceTime(at *metav1.Time) string {
	if at == nil {
		return ""
	}
	return sinceText(pointer(at.UTC()))
}

// resumed says that the workload is suspended, and how it goes on.
func resumed(kind string, o metav1.Object) string {
	return fmt.Sprintf(`spec.suspend is true, so it makes none: kubectl patch %s %s -n %s -p '{"spec":{"suspend":false}}'`, kind, word(o.GetName()), word(o.GetNamespace()))
}

// scaledDown says that the workload is to have no pod, "" where it is to have some.
func scaledDown(kind string, o metav1.Object, want *int32) string {
	if replicas(want) > 0 {
		return ""
	}
	return fmt.Sprintf("spec.replicas is 0, so it makes none: kubectl scale %s %s -n %s --replicas=1", kind, word(o.GetName()), word(o.GetNamespace()))
}

// replicas is how many pods are asked for: 1 where nothing is said.
func replicas(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}
