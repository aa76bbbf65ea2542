package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/spelling"
	"github.com/berth-scheduler/berth/edge/workload"
)

// kinds are the workloads by the words that kubectl has for them.
var kinds = map[string]string{
	"deployment": "Deployment", "deployments": "Deployment", "deploy": "Deployment",
	"statefulset": "StatefulSet", "statefulsets": "StatefulSet", "sts": "StatefulSet",
	"replicaset": "ReplicaSet", "replicasets": "ReplicaSet", "rs": "ReplicaSet",
	"replicationcontroller": "ReplicationController", "rc": "ReplicationController",
	"daemonset": "DaemonSet", "daemonsets": "DaemonSet", "ds": "DaemonSet",
	"job": "Job", "jobs": "Job", "cronjob": "CronJob", "cronjobs": "CronJob", "cj": "CronJob",
}

// pod finds the pod that is called NAME, pod/NAME or NAMESPACE/NAME. A name
// without namespace is looked for as the session's Names say.
func (s *session) pod(word string) (*object.Pod, error) {
	name := strings.TrimPrefix(word, "pod/")
	key := name
	if !strings.Contains(name, "/") {
		key = s.options.Names.namespace() + "/" + name
	}
	if p := s.cluster.Pod(key); p != nil {
		return p, nil
	}
	var all []string
	var found []*object.Pod
	for _, p := range s.cluster.Pods() {
		all = append(all, p.Key())
		if p.Name == name && !s.options.Names.Only {
			found = append(found, p)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("several pods are called %s: %s and %s, for example", name, found[0].Key(), found[1].Key())
	}
	return nil, fmt.Errorf("no pod is called %s%s", name, spelling.DidYouMean(key, all))
}

// workload finds what is called [NAMESPACE/]KIND/NAME: an object of the input,
// or what the controllers of pods tell.
func (s *session) workload(word string) (*workload.Workload, error) {
	parts := strings.Split(word, "/")
	name, namespace, kind := parts[len(parts)-1], "", ""
	if len(parts) > 1 {
		kind = kinds[strings.ToLower(parts[len(parts)-2])]
	}
	switch {
	case len(parts) == 3:
		namespace = parts[0]
	case s.options.Names.Only:
		namespace = s.options.Names.Namespace
	}
	if kind == "" || len(parts) > 3 {
		return nil, fmt.Errorf("%s: is no workload: want [NAMESPACE/]KIND/NAME, such as deployment/web", word)
	}
	found, all := s.workloads(kind, name, namespace)
	switch {
	case len(found) > 1 && found[0].Namespace != s.options.Names.namespace():
		return nil, fmt.Errorf("%s: there are several, in namespaces %s and %s, for example", word, found[0].Namespace, found[1].Namespace)
	case len(found) > 0:
		return found[0], nil
	}
	if namespace == "" {
		namespace = s.options.Names.namespace()
	}
	return nil, fmt.Errorf("there is no %s/%s/%s%s", namespace, strings.ToLower(kind), name, spelling.DidYouMean(namespace+"/"+strings.ToLower(kind)+"/"+name, all))
}

// workloads lists those of that name, the one of the usual namespace first, and
// the names of all of that kind.
func (s *session) workloads(kind, name, namespace string) (found []*workload.Workload, all []string) {
	byKey := map[string]*workload.Workload{}
	for _, key := range slices.Sorted(maps.Keys(s.pods)) {
		p := s.pods[key]
		if of, called := workload.OfPod(p); of == kind && s.cluster.Pod(key) != nil {
			at := p.Namespace + "/" + strings.ToLower(kind) + "/" + called
			if byKey[at] == nil {
				byKey[at] = workload.Like(kind, called, p, 0)
			}
			byKey[at].Replicas++
		}
	}
	for _, o := range slices.Concat(s.set.Running, s.set.Workloads) {
		if w, ok := workload.Of(o); ok && w.Kind == kind {
			byKey[w.Namespace+"/"+strings.ToLower(kind)+"/"+w.Name] = w
		}
	}
	for _, at := range slices.Sorted(maps.Keys(byKey)) {
		all = append(all, at)
		if w := byKey[at]; w.Name == name && (namespace == "" || w.Namespace == namespace) {
			found = append(found, w)
		}
	}
	slices.SortStableFunc(found, func(a, b *workload.Workload) int {
		return cmp.Compare(btoi(a.Namespace != s.options.Names.namespace()), btoi(b.Namespace != s.options.Names.namespace()))
	})
	return found, all
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// targets are the pods that a word names: a pod, or those of a workload or a pod group.
func (s *session) targets(word string) ([]*object.Pod, error) {
	if pods, is, err := (groups{s}).groupPods(word); is {
		return pods, err
	}
	parts := strings.Split(word, "/")
	if len(parts) < 2 || len(parts) == 2 && kinds[strings.ToLower(parts[0])] == "" || parts[0] == "pod" {
		p, err := s.pod(word)
		if err != nil {
			return nil, err
		}
		return []*object.Pod{p}, nil
	}
	w, err := s.workload(word)
	if err != nil {
		return nil, err
	}
	var pods []*object.Pod
	for _, p := range s.owned(w) {
		pods = append(pods, s.cluster.Pod(p.Namespace+"/"+p.Name))
	}
	if len(pods) == 0 {
		return nil, fmt.Errorf("%s: has no pods", word)
	}
	return pods, nil
}

func (s *session) evict(c *Change) error {
	for _, word := range c.Operands {
		pods, err := s.targets(word)
		if err != nil {
			return err
		}
		for _, p := range pods {
			if p.NodeName == "" && len(pods) == 1 {
				return fmt.Errorf("%s: is on no node", p.Key())
			}
			if p.NodeName != "" {
				s.leave(p)
			}
		}
	}
	return nil
}

// priority changes what pods are worth. A pending pod is made anew.
func (s *session) priority(c *Change) error {
	for _, word := range c.Operands {
		name, value, ok := cutLast(word)
		if !ok {
			return fmt.Errorf("%s: want POD=NUMBER or POD=PRIORITYCLASS", word)
		}
		pods, err := s.targets(name)
		if err != nil {
			return err
		}
		for _, p := range pods {
			api := s.pods[p.Key()].DeepCopy()
			number, err := strconv.ParseInt(value, 10, 32)
			if errors.Is(err, strconv.ErrRange) {
				return fmt.Errorf("%s: a priority has 32 bits: from %d to %d", word, math.MinInt32, math.MaxInt32)
			}
			if err == nil {
				n := int32(number)
				api.Spec.Priority = &n
			} else {
				api.Spec.Priority, api.Spec.PreemptionPolicy, api.Spec.PriorityClassName = nil, nil, value
				if err := s.set.Priority(api); err != nil {
					return err
				}
			}
			if p.NodeName == "" {
				_ = s.cluster.DeletePod(p.Key()) // it is there
				api.UID += "-again"
			}
			s.pods[p.Key()] = api
			s.cluster.SetPod(s.set.DecodePod(api))
		}
	}
	return nil
}

func cutLast(word string) (name, value string, ok bool) {
	i := strings.LastIndexByte(word, '=')
	if i < 1 || i == len(word)-1 {
		return "", "", false
	}
	return word[:i], word[i+1:], true
}

func (s *session) scale(c *Change) error {
	for _, word := range c.Operands {
		name, value, ok := cutLast(word)
		number, err := strconv.Atoi(value)
		if !ok || err != nil || number < 0 {
			return fmt.Errorf("%s: want WORKLOAD=NUMBER, such as deployment/web=5", word)
		}
		w, err := s.workload(name)
		if err != nil {
			return err
		}
		if w.Kind == "DaemonSet" {
			return fmt.Errorf("%s: a DaemonSet has a pod on each node", name)
		}
		if err := s.scaleTo(w, number); err != nil {
			return err
		}
	}
	return nil
}

const scaledDown = "scaled down"

func (s *session) scaleTo(w *workload.Workload, number int) error {
	w.Replicas = number
	maps.DeleteFunc(s.set.Refused, func(_ string, r manifest.Refused) bool { return w.Owns(r.Pod) }) // they are tried again, or not wanted
	have := w.Active(s.owned(w))
	if number >= len(have) {
		_, err := s.make(w, have)
		return err
	}
	w.SortForDeletion(have, s.start)
	for _, p := range have[:len(have)-number] {
		s.dropPod(p.Namespace+"/"+p.Name, scaledDown)
	}
	return nil
}

// dropPod takes the pod away for good.
func (s *session) dropPod(key, why string) {
	if p := s.cluster.Pod(key); p != nil {
		s.gone[key] = why
		_ = s.cluster.DeletePod(key) // it is there
		s.set.Remove(s.pods[key])
	}
}

// make adds the pods that the workload lacks, and returns them.
func (s *session) make(w *workload.Workload, have []*v1.Pod) ([]*v1.Pod, error) {
	if needsClaim(w) && len(have) < w.Replicas {
		return nil, errors.New(w.Title() + ": its claim templates are not known; give its manifest with -f")
	}
	objects, owners := len(s.set.Objects), len(s.set.SelectorOwners)
	pods, err := s.set.Make(w, have)
	if err != nil {
		return nil, err
	}
	s.tellNew(objects, owners)
	for _, p := range pods {
		if old := s.pods[p.Namespace+"/"+p.Name]; old != nil && old.UID == p.UID {
			p.UID += "-again"
			s.releaseClaims(old.UID, s.set.DecodePod(p))
		}
		s.setPod(p)
	}
	return pods, nil
}

// needsClaim tells a StatefulSet that is known by a pod alone, whose claims
// cannot be told from others.
func needsClaim(w *workload.Workload) bool {
	return w.Kind == "StatefulSet" && w.FromPod && slices.ContainsFunc(w.Template.Spec.Volumes, func(v v1.Volume) bool { return v.PersistentVolumeClaim != nil })
}

// adopt adds a pod.
func (s *session) adopt(p *v1.Pod) error {
	if err := s.set.Add(p, "v1/Pod", "the new node"); err != nil {
		return err
	}
	if err := s.set.Priority(p); err != nil {
		return err
	}
	s.setPod(p)
	return nil
}

func (s *session) setPod(p *v1.Pod) {
	s.pods[p.Namespace+"/"+p.Name] = p
	s.cluster.SetPod(s.set.DecodePod(p))
}

// tellNew shows the cluster what the set has beyond these numbers.
func (s *session) tellNew(objects, owners int) {
	for _, o := range s.set.Objects[objects:] {
		s.cluster.SetObject(o)
	}
	for _, o := range s.set.SelectorOwners[owners:] {
		s.cluster.SetSelectorOwner(o)
	}
}

// sameTemplate tells whether the pods of two workloads are alike.
func sameTemplate(a, b *workload.Workload) bool {
	return equality.Semantic.DeepEqual(a.Template, b.Template)
}
