package fix

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/edge/manifest"
)

// Annotations of a ReplicaSet that the Deployment controller sets.
const (
	revision  = "deployment.kubernetes.io/revision"
	revisions = "deployment.kubernetes.io/revision-history" // earlier ones: it was rolled out again
)

// Rollout is the last rollout of a Deployment, from one ReplicaSet to another.
type Rollout struct {
	Old, New *appsv1.ReplicaSet
	Revision int
	Changes  []TemplateChange
}

// TemplateChange is a change of a pod template that counts for where its pods fit.
type TemplateChange struct {
	Text string
	// Plugins may reject a node for it. None do where the pods ask for less than before.
	Plugins  []string
	Resource v1.ResourceName // of a request

	ops []Op // that take it back in the pod
}

// Again reports whether the new revision was rolled out before, so that its ReplicaSet is older than
// the rollout.
func (r *Rollout) Again() bool { return r.New.Annotations[revisions] != "" }

// LastRollout returns the rollout that the pod came with; nil where there was none before, where a later
// one is known, and where its Deployment says that it was complete. The pod is given with defaults
// and as it was written.
func LastRollout(set *manifest.Set, api, written *v1.Pod) *Rollout {
	owner := metav1.GetControllerOfNoCopy(api)
	if owner == nil || owner.Kind != "ReplicaSet" {
		return nil
	}
	all := slices.Concat(set.Workloads, set.Running)
	at := slices.IndexFunc(all, func(o metav1.Object) bool {
		rs, is := o.(*appsv1.ReplicaSet)
		return is && rs.Namespace == api.Namespace && rs.Name == owner.Name
	})
	if at < 0 {
		return nil
	}
	r := &Rollout{New: all[at].(*appsv1.ReplicaSet)}
	by := metav1.GetControllerOfNoCopy(r.New)
	if r.Revision = revisionOf(r.New); by == nil || by.Kind != "Deployment" || r.Revision == 0 {
		return nil
	}
	before := 0
	for _, o := range all {
		if d, is := o.(*appsv1.Deployment); is && d.Namespace == api.Namespace && d.Name == by.Name && complete(d) {
			return nil
		}
		rs, is := o.(*appsv1.ReplicaSet)
		if !is || rs.Namespace != api.Namespace {
			continue
		}
		if of := metav1.GetControllerOfNoCopy(rs); of == nil || of.Kind != by.Kind || of.Name != by.Name {
			continue
		}
		switch n := revisionOf(rs); {
		case n > r.Revision:
			return nil
		case n < r.Revision && n > before:
			r.Old, before = rs, n
		}
	}
	if r.Old == nil {
		return nil
	}
	r.compare(&api.Spec, &written.Spec)
	return r
}

// revisionOf returns 0 for a ReplicaSet of which it is not known.
func revisionOf(rs *appsv1.ReplicaSet) int {
	n, err := strconv.Atoi(rs.Annotations[revision])
	if err != nil {
		return 0
	}
	return n
}

// complete reports whether all pods of the Deployment's last rollout were available once.
func complete(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration >= d.Generation && slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentProgressing && c.Reason == "NewReplicaSetAvailable"
	})
}

// compare lists what the templates differ in. What admission changed in the pod stays.
func (r *Rollout) compare(api, written *v1.PodSpec) {
	old, now := &r.Old.Spec.Template.Spec, &r.New.Spec.Template.Spec
	r.containers("containers", "container", [4][]v1.Container{old.Containers, now.Containers, api.Containers, written.Containers})
	r.containers("initContainers", "init container", [4][]v1.Container{old.InitContainers, now.InitContainers, api.InitContainers, written.InitContainers})
	r.field("nodeSelector", "the node selector", names.NodeAffinity, old.NodeSelector, now.NodeSelector, api.NodeSelector)
	o, n, a := affinityOf(old), affinityOf(now), affinityOf(api)
	r.field("affinity/nodeAffinity", "the node affinity", names.NodeAffinity, o.NodeAffinity, n.NodeAffinity, a.NodeAffinity)
	r.field("affinity/podAffinity", "the pod affinity", names.InterPodAffinity, o.PodAffinity, n.PodAffinity, a.PodAffinity)
	r.field("affinity/podAntiAffinity", "the pod anti-affinity", names.InterPodAffinity, o.PodAntiAffinity, n.PodAntiAffinity, a.PodAntiAffinity)
	r.field("topologySpreadConstraints", "the spread constraints", names.PodTopologySpread, old.TopologySpreadConstraints, now.TopologySpreadConstraints, now.TopologySpreadConstraints)
	tolerations := slices.Clone(old.Tolerations)
	for _, t := range api.Tolerations { // admission adds some
		if !slices.ContainsFunc(now.Tolerations, func(o v1.Toleration) bool { return equality.Semantic.DeepEqual(o, t) }) {
			tolerations = append(tolerations, t)
		}
	}
	if !equality.Semantic.DeepEqual(old.Tolerations, now.Tolerations) {
		r.field("tolerations", "the tolerations", names.TaintToleration, tolerations, api.Tolerations, api.Tolerations)
	}
	for i := range written.Volumes {
		v := &written.Volumes[i]
		before, after := volumeNamed(old, v.Name), volumeNamed(now, v.Name)
		if before != nil && after != nil && !equality.Semantic.DeepEqual(before, after) {
			r.Changes = append(r.Changes, TemplateChange{Text: fmt.Sprintf("changed volume %q", v.Name),
				Plugins: []string{names.VolumeBinding, names.VolumeZone, names.VolumeRestrictions, names.NodeVolumeLimits},
				ops:     []Op{{Op: "replace", Path: at("/spec/volumes/%d", i), Value: before}}})
		}
	}
}

func affinityOf(s *v1.PodSpec) v1.Affinity {
	if s.Affinity == nil {
		return v1.Affinity{}
	}
	return *s.Affinity
}

func volumeNamed(s *v1.PodSpec, name string) *v1.Volume {
	at := slices.IndexFunc(s.Volumes, func(v v1.Volume) bool { return v.Name == name })
	if at < 0 {
		return nil
	}
	return &s.Volumes[at]
}

// field lists a field that changed as a whole, unless admission changed it in the pod, too.
func (r *Rollout) field(path, what, plugin string, old, now, pod any) {
	if equality.Semantic.DeepEqual(old, now) || !equality.Semantic.DeepEqual(now, pod) {
		return
	}
	// Adding replaces what is there.
	r.Changes = append(r.Changes, TemplateChange{Text: "changed " + what, Plugins: []string{plugin}, ops: []Op{{Op: "add", Path: "/spec/" + path, Value: old}}})
}

// containers compares the containers of the old template, the new one, the pod, and the pod as it was
// written.
func (r *Rollout) containers(list, what string, of [4][]v1.Container) {
	named := func(in int, name string) int {
		return slices.IndexFunc(of[in], func(c v1.Container) bool { return c.Name == name })
	}
	fit := []string{names.NodeResourcesFit}
	for i := range of[1] {
		now := &of[1][i]
		place, before := named(3, now.Name), named(0, now.Name)
		api := named(2, now.Name)
		switch path := at("/spec/%s/%d", list, place); {
		case place < 0 || api < 0: // admission took it away
		case before < 0:
			r.Changes = append(r.Changes, TemplateChange{Text: fmt.Sprintf("added %s %q", what, now.Name), Plugins: fit, ops: []Op{{Op: "remove", Path: path}}})
		default:
			r.requests(path+"/resources", fmt.Sprintf("%s %q", what, now.Name),
				&of[0][before].Resources, &now.Resources, &of[2][api].Resources, &of[3][place].Resources)
		}
	}
	for i := range of[0] {
		if old := &of[0][i]; named(1, old.Name) < 0 {
			r.Changes = append(r.Changes, TemplateChange{Text: fmt.Sprintf("removed %s %q", what, old.Name), ops: []Op{{Op: "add", Path: at("/spec/%s/-", list), Value: old}}})
		}
	}
}

// requests compares the requests of a container, unless admission changed them in the pod.
func (r *Rollout) requests(path, of string, old, now, api, written *v1.ResourceRequirements) {
	var all []v1.ResourceName
	for _, list := range []v1.ResourceList{old.Requests, old.Limits, now.Requests, now.Limits} {
		for name := range list { // any order: sorted below
			all = append(all, name)
		}
	}
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		before, after, has := asked(old, name), asked(now, name), asked(api, name)
		if before.Cmp(after) == 0 || after.Cmp(has) != 0 {
			continue
		}
		c := TemplateChange{Resource: name, Text: fmt.Sprintf("lowered the %s request of %s from %s to %s", noun(name), of, &before, &after)}
		if before.Cmp(after) < 0 {
			c.Text, c.Plugins = strings.Replace(c.Text, "lowered", "raised", 1), []string{names.NodeResourcesFit}
		}
		c.ops = append(amountBack(path+"/requests/", name, written.Requests, v1.ResourceList{name: before}),
			amountBack(path+"/limits/", name, written.Limits, old.Limits)...)
		r.Changes = append(r.Changes, c)
	}
}

// asked returns the request, which is the limit where there is none of its own.
func asked(r *v1.ResourceRequirements, name v1.ResourceName) resource.Quantity {
	if q, ok := r.Requests[name]; ok {
		return q
	}
	return r.Limits[name]
}

// amountBack returns what gives the resource its old amount in a list.
func amountBack(path string, name v1.ResourceName, written, old v1.ResourceList) []Op {
	_, is := written[name]
	switch was, had := old[name]; {
	case had:
		return []Op{{Op: "add", Path: path + escape(string(name)), Value: was.String()}}
	case is:
		return []Op{{Op: "remove", Path: path + escape(string(name))}}
	}
	return nil
}

// rollback takes the last rollout back: all of it has to help, and those changes are named that
// are needed.
func (s *search) rollback() {
	r := LastRollout(s.set, s.api, s.written)
	if r == nil {
		return
	}
	var edits []edit
	for _, c := range r.Changes {
		edits = append(edits, edit{kind: undoRollout, stage: undoes, say: c.Text, ops: c.ops})
	}
	if len(edits) > 0 {
		s.consider(edits)
	}
}
