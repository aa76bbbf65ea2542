package whatif

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/workload"
)

// groups are the pod groups of a session.
type groups struct{ *session }

// groupOf returns the pod's group, qualified, as object.GroupSource reads it. It returns "" if the
// pod has no group, or if the scheduler does not place groups.
func (s groups) groupOf(p *object.Pod) string {
	return s.groupName(p.SchedulerName, p.KubernetesGroup(), p.Labels)
}

// groupOfTemplate returns that of the pods of a workload.
func (s groups) groupOfTemplate(w *workload.Workload) string {
	name := w.Template.Spec.SchedulerName
	if name == "" {
		name = v1.DefaultSchedulerName
	}
	return s.groupName(name, decode.PodGroupName(&w.Template.Spec), w.Template.Labels)
}

func (s groups) groupName(schedulerName, schedulingGroup string, labels map[string]string) string {
	if !s.world.Machine.PlacesGroups() {
		return ""
	}
	return s.world.Machine.GroupName(schedulerName, schedulingGroup, labels)
}

// members returns the pods of the group that are there, by name.
func (s groups) members(namespace, group string) (pods []*object.Pod) {
	for _, p := range s.cluster.Pods() {
		if p.Namespace == namespace && s.groupOf(p) == group {
			pods = append(pods, p)
		}
	}
	return pods
}

// minimum returns how many pods of the group are placed at once, 1 if it is not known. The labels are
// those of a pod of it. The scheduler need not know of the group yet.
func (s groups) minimum(namespace, group string, labels map[string]string) int {
	kind, name, has := object.GroupObject(group)
	if !has {
		source, _ := object.GroupSource(group)
		n, _ := strconv.Atoi(labels[object.MinAvailableLabel(source)]) // else the scheduler says what is wrong
		return max(1, n)
	}
	g, _ := s.cluster.Object(kind, namespace, name).(*object.PodGroup)
	if g == nil || !g.Gang {
		return 1
	}
	return max(1, g.MinCount)
}

// groupPods returns the pods of the group that a word names: [NAMESPACE/]podgroup/NAME, where podgroup
// may be followed by a dot and the API group. It returns false for another word.
func (s groups) groupPods(word string) (pods []*object.Pod, is bool, err error) {
	parts := strings.Split(word, "/")
	n := len(parts)
	if n < 2 || n > 3 {
		return nil, false, nil
	}
	kind, api, _ := strings.Cut(strings.ToLower(parts[n-2]), ".")
	if kind != "podgroup" && kind != "podgroups" {
		return nil, false, nil
	}
	group, namespaces := parts[n-1], map[string]bool{}
	for _, p := range s.cluster.Pods() {
		source, short := object.GroupSource(s.groupOf(p))
		if source == "" {
			source = object.PodGroups.GroupVersion().Group
		}
		if short != group || api != "" && source != api || n == 3 && p.Namespace != parts[0] || s.options.Names.Only && p.Namespace != s.options.Names.Namespace {
			continue
		}
		if pods = append(pods, p); s.groupOf(p) != s.groupOf(pods[0]) && p.Namespace == pods[0].Namespace {
			return nil, true, fmt.Errorf("%s: there are several: say podgroup.%s/%[3]s or that of another API", word, source, short)
		}
		namespaces[p.Namespace] = true
	}
	switch {
	case !s.world.Machine.PlacesGroups():
		return nil, true, fmt.Errorf("%s: pods of groups are placed one by one with this configuration and these --feature-gates", word)
	case len(pods) == 0:
		return nil, true, fmt.Errorf("%s: has no pods", word)
	case len(namespaces) > 1:
		return nil, true, fmt.Errorf("%s: there are several, in namespaces %s and %s, for example", word, pods[0].Namespace, pods[len(pods)-1].Namespace)
	}
	return pods, true, nil
}

// copyGroup adds a copy of the group's object under the other name, unless it has none or the copy is
// there.
func (s groups) copyGroup(namespace, group, as string) {
	kind, short, has := object.GroupObject(group)
	_, name, _ := object.GroupObject(as)
	if !has || s.cluster.Object(kind, namespace, name) != nil {
		return
	}
	g, _ := s.cluster.Object(kind, namespace, short).(*object.PodGroup)
	if g == nil {
		return
	}
	c := *g
	c.Name, c.UID = name, types.UID("podgroup "+namespace+"/"+as)
	c.Scheduled, c.Status = object.GroupCondition{}, object.GroupStatus{}
	s.cluster.SetObject(&c)
}

// joinGroup makes a pod, or a template of pods, one of the group.
func joinGroup(m *metav1.ObjectMeta, spec *v1.PodSpec, group string) {
	label := object.PodGroupLabel
	source, name := object.GroupSource(group)
	switch source {
	case "":
		spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &name}
		return
	case object.SchedulerPlugins:
	default:
		label = object.NameLabel(source)
	}
	labels := map[string]string{}
	maps.Copy(labels, m.Labels)
	labels[label] = name
	m.Labels = labels
}

// numbered returns the name of the group that the pods of a round are in.
func numbered(group string, round int) string { return fmt.Sprintf("%s-fit-%d", group, round) }

// stopPreempting has no pod of the group preempt others: all pods of a group have one preemption
// policy, and those that are added preempt nobody.
func (s groups) stopPreempting(namespace, group string) {
	for _, p := range s.members(namespace, group) {
		never := v1.PreemptNever
		api := s.pods[p.Key()].DeepCopy()
		api.Spec.PreemptionPolicy = &never
		s.setPod(api)
	}
}

// chooseGang makes f add a copy of the group in each round. The copy has a pod for each member. If
// the members are fewer than the group's minimum, more copies of the pod like make up for it. The
// group's pending pods are removed from the cluster.
func (f *chooser) chooseGang(like *object.Pod, group string) {
	of := groups{f.session}
	members := of.members(like.Namespace, group)
	_, short := object.GroupSource(group)
	f.pod, f.group, f.alike = like.Key(), like.Namespace+"/"+short, false
	f.size = len(members) + lacking(of.minimum(like.Namespace, group, like.Labels), len(members))
	for _, p := range members {
		each := 1
		if p == like {
			each += f.size - len(members)
		}
		f.adders = append(f.adders, &copier{session: f.session, api: f.pods[p.Key()], each: each, group: group})
		if p.NodeName == "" {
			_ = f.cluster.DeletePod(p.Key()) // it is there
			f.set.Release(f.pods[p.Key()])
		}
	}
}

// joinScaled prepares the group of a workload whose replicas are added, if it has one: they preempt
// nobody, and the first ones come with as many others as the group lacks of its minimum. It returns how
// many these are.
func joinScaled(s groups, w *workload.Workload) (more int) {
	group := s.groupOfTemplate(w)
	if group == "" {
		return 0
	}
	s.stopPreempting(w.Namespace, group)
	return lacking(s.minimum(w.Namespace, group, w.Template.Labels), len(s.members(w.Namespace, group))+1)
}

// mostLacking bounds the pods that make up for what a group lacks of its minimum. A group that
// lacks more stays too small, and does not fit.
const mostLacking = 10_000

// lacking returns how many pods a group of that many lacks of its minimum, at most mostLacking.
func lacking(minimum, pods int) int { return min(max(0, minimum-pods), mostLacking) }
