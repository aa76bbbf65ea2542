package workload

import (
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// MaxPods is the most pods that one workload may have made.
const MaxPods = 1_000_000

// Pods returns the pods that the controller adds to those that the workload
// has. taken tells the names in its namespace that pods have already.
func (w *Workload) Pods(have []*v1.Pod, nodes []*v1.Node, taken func(name string) bool) ([]*v1.Pod, error) {
	switch {
	case len(w.Template.Spec.Containers) == 0, w.Paused && len(have) == 0:
		return nil, nil
	case w.Kind == "DaemonSet":
		return w.daemons(have, nodes, taken), nil
	case w.Replicas < 0:
		return nil, fmt.Errorf("%s: the number of replicas, %d, is negative", w.Title(), w.Replicas)
	case w.Replicas-len(have) > MaxPods:
		return nil, fmt.Errorf("%s: wants %d pods; at most %d are made", w.Title(), w.Replicas, MaxPods)
	}
	var made []*v1.Pod
	for i := w.first; w.more(i, len(have)+len(made)); i++ {
		name := w.owner.Name + "-" + strconv.Itoa(i)
		if taken(name) {
			continue
		}
		p := w.pod(name)
		switch {
		case w.ordinals:
			p.Labels[appsv1.StatefulSetPodNameLabel], p.Labels[appsv1.PodIndexLabel] = name, strconv.Itoa(i)
			p.Spec.Hostname = name
			w.claimVolumes(p)
		case w.indexed:
			p.Labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(i)
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, batchv1.JobCompletionIndexAnnotation, strconv.Itoa(i))
		}
		made = append(made, p)
	}
	return made, nil
}

// more tells whether a pod with number i is to be looked at when there are so
// many. A StatefulSet's pods are those with its numbers; others are counted.
func (w *Workload) more(i, pods int) bool {
	if w.ordinals {
		return i < w.first+w.Replicas
	}
	return pods < w.Replicas
}

// pod is a pod of the template.
func (w *Workload) pod(name string) *v1.Pod {
	t := w.Template.DeepCopy()
	p := &v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, Name: name, Labels: t.Labels, Annotations: t.Annotations, Finalizers: t.Finalizers,
		OwnerReferences: []metav1.OwnerReference{w.owner},
	}, Spec: t.Spec}
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	return p
}

// claimVolumes gives the pod of a StatefulSet a volume for each claim template;
// it takes the place of a volume of that name.
func (w *Workload) claimVolumes(p *v1.Pod) {
	var volumes []v1.Volume
	for i := range w.claims {
		v := v1.Volume{Name: w.claims[i].Name}
		v.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: w.claims[i].Name + "-" + p.Name}
		volumes = append(volumes, v)
	}
	for _, v := range p.Spec.Volumes {
		if !slices.ContainsFunc(volumes, func(o v1.Volume) bool { return o.Name == v.Name }) {
			volumes = append(volumes, v)
		}
	}
	p.Spec.Volumes = volumes
}

// daemons returns a pod for each node that should run one and does not, but for those whose name
// is taken: a pod that is pinned to no node may have it.
func (w *Workload) daemons(have []*v1.Pod, nodes []*v1.Node, taken func(name string) bool) []*v1.Pod {
	has := map[string]bool{}
	for _, p := range have {
		has[daemonNode(p)] = true
	}
	var made []*v1.Pod
	for _, n := range nodes {
		p := w.pod(w.Name + "-" + n.Name)
		tolerateNodeConditions(&p.Spec)
		if has[n.Name] || taken(p.Name) || !runsOn(p, n) {
			continue
		}
		pinToNode(&p.Spec, n.Name)
		made = append(made, p)
	}
	return made
}

// daemonNode is the node that the pod of a DaemonSet is on, or is meant for.
func daemonNode(p *v1.Pod) string {
	a := p.Spec.Affinity
	if p.Spec.NodeName != "" || a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return p.Spec.NodeName
	}
	for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range t.MatchFields {
			if f.Key == metav1.ObjectNameField && len(f.Values) == 1 {
				return f.Values[0]
			}
		}
	}
	return ""
}

// runsOn tells whether a DaemonSet wants the pod on the node.
func runsOn(p *v1.Pod, n *v1.Node) bool {
	if p.Spec.NodeName != "" && p.Spec.NodeName != n.Name {
		return false
	}
	fits, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n)
	if err != nil || !fits {
		return false
	}
	_, rejected := corev1.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, p.Spec.Tolerations, func(t *v1.Taint) bool {
		return t.Effect == v1.TaintEffectNoSchedule || t.Effect == v1.TaintEffectNoExecute
	}, true)
	return !rejected
}

// tolerateNodeConditions adds what every pod of a DaemonSet tolerates.
func tolerateNodeConditions(spec *v1.PodSpec) {
	tolerate := func(effect v1.TaintEffect, keys ...string) {
		for _, key := range keys {
			t := v1.Toleration{Key: key, Operator: v1.TolerationOpExists, Effect: effect}
			if !slices.Contains(spec.Tolerations, t) {
				spec.Tolerations = append(spec.Tolerations, t)
			}
		}
	}
	tolerate(v1.TaintEffectNoExecute, v1.TaintNodeNotReady, v1.TaintNodeUnreachable)
	tolerate(v1.TaintEffectNoSchedule, v1.TaintNodeDiskPressure, v1.TaintNodeMemoryPressure, v1.TaintNodePIDPressure, v1.TaintNodeUnschedulable)
	if spec.HostNetwork {
		tolerate(v1.TaintEffectNoSchedule, v1.TaintNodeNetworkUnavailable)
	}
}

// pinToNode makes the node the only one that the required node affinity allows.
func pinToNode(spec *v1.PodSpec, node string) {
	if spec.Affinity == nil {
		spec.Affinity = &v1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &v1.NodeAffinity{}
	}
	spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{node}}},
	}}}
}
