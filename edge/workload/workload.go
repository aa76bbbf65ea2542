package workload

import (
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Workload is an object whose controller makes pods, in a form that all kinds
// share. It shares parts with the object, which must not be changed.
type Workload struct {
	Kind      string // Deployment
	Namespace string
	Name      string
	// Template of the pods; one without containers makes none.
	Template v1.PodTemplateSpec
	// Replicas is how many pods it is to have. A DaemonSet has one on each node.
	Replicas int
	// Paused: it is a Deployment that makes no ReplicaSet now. One that is there is scaled.
	Paused bool
	// FromPod: the object is not known, and the rest is as a pod shows it.
	FromPod bool
	// ReplicaSet is the one that stands between a Deployment and its pods.
	ReplicaSet *appsv1.ReplicaSet

	selector labels.Selector
	owner    metav1.OwnerReference // of the pods
	owners   map[string]string     // kind and name, or prefix of names, of pods' controllers
	ordinals bool                  // StatefulSet: pods are numbered, from first
	first    int
	indexed  bool // Job: pods have a completion index
	claims   []v1.PersistentVolumeClaim
}

// The names of a Deployment's ReplicaSet, and of a CronJob's Job, end in this.
const firstRevision = "1"

// Of returns the workload that the object is; false for objects of other
// kinds, and for those whose pods another workload of the cluster makes.
func Of(o metav1.Object) (*Workload, bool) {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return deployment(o), true
	case *appsv1.ReplicaSet:
		w := newWorkload(o, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), o.Spec.Template, o.Spec.Replicas)
		return w.selects(o.Spec.Selector), metav1.GetControllerOfNoCopy(o) == nil
	case *v1.ReplicationController:
		template := v1.PodTemplateSpec{}
		if o.Spec.Template != nil {
			template = *o.Spec.Template
		}
		w := newWorkload(o, v1.SchemeGroupVersion.WithKind("ReplicationController"), template, o.Spec.Replicas)
		return w.selects(&metav1.LabelSelector{MatchLabels: o.Spec.Selector}), metav1.GetControllerOfNoCopy(o) == nil
	case *appsv1.StatefulSet:
		return statefulSet(o), true
	case *appsv1.DaemonSet:
		w := newWorkload(o, appsv1.SchemeGroupVersion.WithKind("DaemonSet"), o.Spec.Template, nil)
		w.label(map[string]string{appsv1.ControllerRevisionHashLabelKey: firstRevision, "pod-template-generation": firstRevision})
		return w.selects(o.Spec.Selector), true
	case *batchv1.Job:
		return job(o), metav1.GetControllerOfNoCopy(o) == nil
	case *batchv1.CronJob:
		return cronJob(o), true
	}
	return nil, false
}

func newWorkload(o metav1.Object, kind schema.GroupVersionKind, template v1.PodTemplateSpec, replicas *int32) *Workload {
	w := &Workload{Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName(), Template: template, Replicas: 1, selector: labels.Nothing()}
	w.owner = controllerRef(kind, o.GetName(), o.GetUID())
	w.owners = map[string]string{kind.Kind: o.GetName()}
	if replicas != nil {
		w.Replicas = int(*replicas)
	}
	return w
}

func controllerRef(kind schema.GroupVersionKind, name string, uid types.UID) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: name, UID: uid, Controller: &yes, BlockOwnerDeletion: &yes}
}

func (w *Workload) selects(s *metav1.LabelSelector) *Workload {
	if parsed, err := metav1.LabelSelectorAsSelector(s); err == nil && !parsed.Empty() {
		w.selector = parsed
	}
	return w
}

// label adds labels to the template, in a copy.
func (w *Workload) label(more map[string]string) {
	all := maps.Clone(w.Template.Labels)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	w.Template.Labels = all
}

// deployment has its ReplicaSet made, too: default spread constraints go by it.
func deployment(o *appsv1.Deployment) *Workload {
	w := newWorkload(o, appsv1.SchemeGroupVersion.WithKind("Deployment"), o.Spec.Template, o.Spec.Replicas).selects(o.Spec.Selector)
	w.Paused = o.Spec.Paused
	hash := map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: firstRevision}
	w.label(hash)
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name + "-" + firstRevision, Labels: w.Template.Labels, OwnerReferences: []metav1.OwnerReference{w.owner},
		UID: types.UID("replicaset " + o.Namespace + "/" + o.Name + "-" + firstRevision),
	}}
	rs.Spec.Selector = &metav1.LabelSelector{MatchLabels: hash}
	if s := o.Spec.Selector; s != nil {
		rs.Spec.Selector = s.DeepCopy()
		if rs.Spec.Selector.MatchLabels == nil {
			rs.Spec.Selector.MatchLabels = map[string]string{}
		}
		maps.Copy(rs.Spec.Selector.MatchLabels, hash)
	}
	rs.Spec.Template = w.Template
	w.ReplicaSet = rs
	w.owner = controllerRef(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), rs.Name, rs.UID)
	w.owners = map[string]string{"ReplicaSet": o.Name + "-*"}
	return w
}

func statefulSet(o *appsv1.StatefulSet) *Workload {
	w := newWorkload(o, appsv1.SchemeGroupVersion.WithKind("StatefulSet"), o.Spec.Template, o.Spec.Replicas).selects(o.Spec.Selector)
	w.ordinals, w.claims = true, o.Spec.VolumeClaimTemplates
	if o.Spec.Ordinals != nil {
		w.first = int(o.Spec.Ordinals.Start)
	}
	w.label(map[string]string{appsv1.ControllerRevisionHashLabelKey: o.Name + "-" + firstRevision})
	w.Template.Spec.Subdomain = o.Spec.ServiceName
	return w
}

func job(o *batchv1.Job) *Workload {
	w := newWorkload(o, batchv1.SchemeGroupVersion.WithKind("Job"), o.Spec.Template, o.Spec.Parallelism).selects(o.Spec.Selector)
	w.indexed = o.Spec.CompletionMode != nil && *o.Spec.CompletionMode == batchv1.IndexedCompletion
	if c := o.Spec.Completions; c != nil {
		w.Replicas = max(0, min(w.Replicas, int(*c-o.Status.Succeeded)))
	}
	if o.Spec.Suspend != nil && *o.Spec.Suspend || finished(o) {
		w.Replicas = 0
	}
	w.label(map[string]string{
		batchv1.JobNameLabel: o.Name, "job-name": o.Name,
		batchv1.ControllerUidLabel: string(o.UID), "controller-uid": string(o.UID),
	})
	return w
}

func finished(o *batchv1.Job) bool {
	for _, c := range o.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == v1.ConditionTrue {
			return true
		}
	}
	return false
}

// cronJob is its first Job.
func cronJob(o *batchv1.CronJob) *Workload {
	first := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name + "-" + firstRevision,
		UID: types.UID("job " + o.Namespace + "/" + o.Name + "-" + firstRevision)}, Spec: o.Spec.JobTemplate.Spec}
	w := job(first)
	w.Kind, w.Name = "CronJob", o.Name
	w.owners = map[string]string{"Job": o.Name + "-*"}
	if o.Spec.Suspend != nil && *o.Spec.Suspend {
		w.Replicas = 0
	}
	return w
}

// Title names the workload as messages do: "deployment default/web".
func (w *Workload) Title() string {
	return fmt.Sprintf("%s %s/%s", strings.ToLower(w.Kind), w.Namespace, w.Name)
}

// Owns tells whether the pod is one of the workload's: its controller made it,
// or its labels are those that the controller would adopt it by.
func (w *Workload) Owns(p *v1.Pod) bool {
	if p.Namespace != w.Namespace {
		return false
	}
	by := metav1.GetControllerOfNoCopy(p)
	if by == nil {
		return w.selector.Matches(labels.Set(p.Labels))
	}
	name, ok := w.owners[by.Kind]
	prefix, any := strings.CutSuffix(name, "*")
	rest, has := strings.CutPrefix(by.Name, prefix)
	return ok && (by.Name == name || any && has && rest != "" && !strings.Contains(rest, "-"))
}
