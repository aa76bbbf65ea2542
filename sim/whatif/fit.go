package whatif

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/workload"
	"github.com/berth-scheduler/berth/sim"
)

// PodsFit is how many more of a pod fit into a cluster.
type PodsFit struct {
	Pod string // namespace/name
	// Group is the pod group that the pod is placed with, as namespace/name; "" for none. Whole groups
	// are counted then, of Size pods each.
	Group string
	Size  int
	Fits  int
	Nodes map[string]int // how many of the pods, by node
	// Stops is why the next one does not fit.
	Stops string
	// Nearest is the node that lacks least for it, nil if it is no resource that stops it.
	Nearest *Shortage
	// Notices are for the user.
	Notices []string
}

// Fit counts the copies of a pod that can be placed without an eviction, after
// all other pending pods, once the changes are made. Of a pod that is placed with a group it
// counts copies of the group. name names the pod, or a workload or a pod group one of whose pods
// it is; "" is the only pending pod.
func Fit(set *manifest.Set, in sim.Input, after []Change, name string, names Names) (*PodsFit, error) {
	c := &chooser{fitting: &fitting{session: newSession(set, &in, Options{Names: names}), alike: true}}
	notices, err := c.play(in, func() error { return c.start(after, name) })
	if err != nil {
		return nil, err
	}
	room := &PodsFit{Pod: c.pod, Nodes: map[string]int{}, Stops: c.stop.why, Nearest: c.nearest, Notices: notices}
	counted := c.added
	if room.Group, room.Size = c.group, c.size; c.group != "" {
		counted = c.finished
	}
	for _, key := range counted {
		if p := c.cluster.Pod(key); p != nil && p.NodeName != "" {
			room.Fits++
			room.Nodes[p.NodeName]++
		}
	}
	if c.group != "" {
		room.Fits = c.rounds
	}
	return room, nil
}

// pendingPods returns the pods that have no node at the start, by namespace/name.
func pendingPods(set *manifest.Set, in sim.Input) map[string]bool {
	pending := map[string]bool{}
	for _, p := range in.Pods {
		if p.NodeName == "" && !p.Terminal {
			pending[p.Key()] = true
		}
	}
	for pod := range set.Refused { // any order: into a map
		pending[pod] = true
	}
	return pending
}

// chooser finds the pod of which copies are added.
type chooser struct {
	*fitting
	pod   string // namespace/name
	group string // likewise; "" for a pod that is placed by itself
	size  int    // of the group
}

// start makes the changes and chooses the pod: before them, so that pods which lose their
// node come before the copies, or after them if it is not there yet.
func (f *chooser) start(after []Change, name string) error {
	notYet := f.choose(name)
	if notYet != nil && len(after) == 0 {
		return notYet
	}
	if err := f.begin(f.world, after); err != nil {
		return fmt.Errorf("--after: %w", err)
	}
	if notYet != nil {
		return f.choose(name)
	}
	return nil
}

// choose finds the pod and takes it away, if it is pending, with the pending
// pods of the same controller.
func (f *chooser) choose(name string) error {
	p, err := f.chosen(name)
	if r := f.refusal(name, p); r != nil {
		f.pod, f.refused = r.Pod.Namespace+"/"+r.Pod.Name, r.Error()
		return nil
	}
	if err != nil {
		return err
	}
	if group := (groups{f.session}).groupOf(p); group != "" {
		f.chooseGang(p, group)
		return nil
	}
	api := f.pods[p.Key()]
	f.pod, f.adders = p.Key(), []adder{&copier{session: f.session, api: api, each: 1}}
	owner := metav1.GetControllerOfNoCopy(api)
	for _, q := range f.cluster.Pods() {
		by := metav1.GetControllerOfNoCopy(f.pods[q.Key()])
		if q.NodeName == "" && (q == p || owner != nil && by != nil && by.UID == owner.UID) {
			_ = f.cluster.DeletePod(q.Key()) // it is there
			f.set.Release(f.pods[q.Key()])
		}
	}
	return nil
}

// refusal returns the first of the pods that admission refuses, by name, that is meant: all
// of the name's, or, without a name, of the input's are refused. p is a pod that is not, nil
// for none.
func (f *chooser) refusal(name string, p *object.Pod) *manifest.Refused {
	if p != nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(f.set.Refused)) {
		r := f.set.Refused[key]
		kind, owner := workload.OfPod(r.Pod)
		if name == "" || strings.TrimPrefix(name, "pod/") == r.Pod.Name || name == key || f.isNamed(name, r.Pod.Namespace, kind, owner) {
			return &r
		}
	}
	return nil
}

// isNamed reports whether [NAMESPACE/]KIND/NAME means the workload.
func (f *chooser) isNamed(word, namespace, kind, name string) bool {
	parts := strings.Split(word, "/")
	n := len(parts)
	return n > 1 && kind != "" && kinds[strings.ToLower(parts[n-2])] == kind && parts[n-1] == name && (n == 2 || parts[0] == namespace)
}

func (f *chooser) chosen(name string) (*object.Pod, error) {
	if name != "" {
		pods, err := f.targets(name)
		if err != nil {
			return nil, err
		}
		return pods[0], nil
	}
	var pending []*object.Pod
	of := map[string]bool{}
	for _, p := range f.cluster.Pods() {
		if p.NodeName == "" {
			pending = append(pending, p)
			kind, owner := workload.OfPod(f.pods[p.Key()])
			if kind == "" {
				kind, owner = "Pod", p.Name
			}
			if group := (groups{f.session}).groupOf(p); group != "" {
				kind, owner = "PodGroup", group
			}
			of[kind+" "+p.Namespace+"/"+owner] = true
		}
	}
	switch {
	case len(pending) == 0:
		return nil, errors.New("no pod is pending; name one with --pod")
	case len(of) > 1:
		return nil, fmt.Errorf("%d pods are pending, %s and %s for example; name one with --pod", len(pending), pending[0].Key(), pending[len(pending)-1].Key())
	}
	return pending[0], nil
}
