package whatif

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/workload"
	"github.com/berth-scheduler/berth/sim"
)

// PodsFit is how many more of a pod fit into a cluster.
type PodsFit struct {
	Pod   string // namespace/name
	Fits  int
	Nodes map[string]int // how many of them, by node
	// Stops is why the next one does not fit.
	Stops string
	// Notices are for the user.
	Notices []string
}

// maxBatch is the most copies that are added at once.
const maxBatch = 4096

// Fit counts the copies of a pod that can be placed without an eviction, after
// all other pending pods, once the changes are made. name names the pod, or a workload one
// of whose pods it is; "" is the only pending pod.
func Fit(set *manifest.Set, in sim.Input, after []Change, name string, names Names) (*PodsFit, error) {
	s := newSession(set, &in, Options{Names: names})
	pending := pendingPods(set, in)
	f := &fitting{session: s, batch: 1}
	decided := in.Decided
	in.Decided = func(d *decision.Decision) {
		f.decided(d)
		if decided != nil {
			decided(d)
		}
	}
	in.Begin = func(w *sim.World) error {
		if err := f.start(w.Cluster, after, name); err != nil {
			return err
		}
		if f.refused != "" {
			return nil
		}
		if scheduler := f.api.Spec.SchedulerName; !w.HasProfile(scheduler) && in.NoProfile != nil {
			return errors.New(in.NoProfile(scheduler))
		}
		return nil
	}
	in.Idle = func(*sim.World) bool { return f.evictAllowed() || f.more() }
	run, err := sim.Run(in)
	if err != nil {
		return nil, err
	}
	if f.err != nil {
		return nil, f.err
	}
	if f.stops == "" {
		f.stops = f.refused
	}
	room := &PodsFit{Pod: f.api.Namespace + "/" + f.api.Name, Nodes: map[string]int{}, Stops: f.stops, Notices: endlessNotices(run)}
	if run.Cut != "" && room.Stops == "" {
		room.Stops = "it was not tried: " + run.Cut
	}
	for _, key := range f.copies {
		if p := s.cluster.Pod(key); p != nil && p.NodeName != "" {
			room.Fits++
			room.Nodes[p.NodeName]++
		}
		pending[key] = true // it is no other pod
	}
	var stuck []string
	for pod := range run.Unplaced { // any order: sorted below
		if !pending[pod] {
			stuck = append(stuck, pod)
		}
	}
	if len(stuck) > 0 {
		room.Notices = append(room.Notices, firstNames(stuck)+": without a node after the changes; what-if says why")
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

// start makes the changes and chooses the pod: before them, so that pods which lose their
// node come before the copies, or after them if it is not there yet.
func (f *fitting) start(c *sim.Cluster, after []Change, name string) error {
	f.cluster = c
	notYet := f.choose(name)
	if notYet != nil && len(after) == 0 {
		return notYet
	}
	if err := f.begin(c, after); err != nil {
		return fmt.Errorf("--after: %w", err)
	}
	if notYet != nil {
		return f.choose(name)
	}
	return nil
}

// fitting adds copies of a pod until one finds no place.
type fitting struct {
	*session
	api     *v1.Pod
	decoded *object.Pod // a copy; nil before the first
	copies  []string    // namespace/name
	last    []string    // of the last batch
	batch   int
	stops   string
	refused string // why admission refuses the next, "" as long as it does not
	err     error
}

// choose finds the pod and takes it away, if it is pending, with the pending
// pods of the same controller.
func (f *fitting) choose(name string) error {
	p, err := f.chosen(name)
	if r := f.refusal(name, p); r != nil {
		f.api, f.refused = r.Pod, r.Error()
		return nil
	}
	if err != nil {
		return err
	}
	f.api = f.pods[p.Key()]
	owner := metav1.GetControllerOfNoCopy(f.api)
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
func (f *fitting) refusal(name string, p *object.Pod) *manifest.Refused {
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
func (f *fitting) isNamed(word, namespace, kind, name string) bool {
	parts := strings.Split(word, "/")
	n := len(parts)
	return n > 1 && kind != "" && kinds[strings.ToLower(parts[n-2])] == kind && parts[n-1] == name && (n == 2 || parts[0] == namespace)
}

func (f *fitting) chosen(name string) (*object.Pod, error) {
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

// decided notes why a copy was not placed. What preemption says of it does not
// count: copies evict nobody.
func (f *fitting) decided(d *decision.Decision) {
	if d.Result == decision.ResultScheduled || f.stops != "" || !slices.Contains(f.last, d.Pod.String()) {
		return
	}
	plain := *d
	plain.PostFilter = nil
	f.stops = strings.TrimSpace(explain.Message(&plain))
}

// more adds the next copies, if all before found a place.
func (f *fitting) more() bool {
	if f.refused != "" {
		return false
	}
	for _, key := range f.last {
		if p := f.cluster.Pod(key); p == nil || p.NodeName == "" {
			return false
		}
	}
	if len(f.copies) >= workload.MaxPods {
		f.stops = fmt.Sprintf("it was not tried: %d are enough", len(f.copies))
		return false
	}
	f.last = nil
	for range f.batch {
		if refusal := f.set.Charge(f.api); refusal != nil {
			f.refused = refusal.Error()
			break
		}
		if f.err = f.add(); f.err != nil {
			return false
		}
	}
	f.batch = min(2*f.batch, maxBatch)
	return true
}

// add adds a copy. All copies share what is decoded of the pod, as it may be as large as
// the API takes it. Those that need claims of their own are made one by one, through the
// set.
func (f *fitting) add() error {
	name := fmt.Sprintf("%s-fit-%d", f.api.Name, len(f.copies)+1)
	key := f.api.Namespace + "/" + name
	f.copies, f.last = append(f.copies, key), append(f.last, key)
	if slices.ContainsFunc(f.api.Spec.Volumes, func(v v1.Volume) bool { return v.Ephemeral != nil }) || len(f.api.Spec.ResourceClaims) > 0 {
		p := f.copyOf(name)
		objects, owners := len(f.set.Objects), len(f.set.SelectorOwners)
		if err := f.set.AddPod(p, "the copy"); err != nil {
			return err
		}
		f.tellNew(objects, owners)
		f.cluster.SetPod(f.set.DecodePod(p))
		return nil
	}
	if f.decoded == nil {
		f.decoded = f.set.DecodePod(f.copyOf(name))
	}
	p := *f.decoded
	p.Name, p.UID = name, copyUID(p.Namespace, name)
	if p.API != nil {
		p.API = f.copyOf(name)
	}
	f.cluster.SetPod(&p)
	return nil
}

// copyOf returns a copy of the pod that is pending and evicts nobody.
func (f *fitting) copyOf(name string) *v1.Pod {
	never := v1.PreemptNever
	p := f.api.DeepCopy()
	p.ObjectMeta = metav1.ObjectMeta{Namespace: p.Namespace, Name: name, UID: copyUID(p.Namespace, name),
		Labels: p.Labels, Annotations: p.Annotations, OwnerReferences: p.OwnerReferences}
	p.Spec.NodeName, p.Spec.PreemptionPolicy = "", &never
	p.Status = v1.PodStatus{}
	return p
}

func copyUID(namespace, name string) types.UID { return types.UID("pod " + namespace + "/" + name) }

// NodesFit is how many more nodes of a shape place all pods.
type NodesFit struct {
	Shape string
	// Nodes is the least number after which no more help.
	Nodes int
	// Placed are the pods that they place, beyond those that have a node
	// without them.
	Placed int
	// Unplaced has the reasons why pods stay pending all the same, by
	// namespace/name.
	Unplaced map[string]string
	// Notices are for the user.
	Notices []string
}

// FitNodes finds how few more nodes of a shape place all pods that can be
// placed on such nodes, once the changes are made. Pods that are preempted count as pending. It takes it
// that more nodes never place fewer pods. Each run has a scheduler of its own,
// which options describes.
func FitNodes(set *manifest.Set, in sim.Input, options func() (machine.Options, error), after []Change, shape string) (*NodesFit, error) {
	results := map[int]map[string]string{}
	var notices []string // of the last run
	unplaced := func(n int) (map[string]string, error) {
		if results[n] != nil {
			return results[n], nil
		}
		changes := slices.Clip(after)
		if n > 0 {
			changes = append(changes, Change{Verb: "add-nodes", Operands: []string{fmt.Sprint(n), shape}})
		}
		var err error
		if in.Machine, err = options(); err != nil {
			return nil, err
		}
		r, err := Run(set.Clone(), in, changes, Options{})
		if cause := errors.Unwrap(err); n > 0 && cause != nil { // of the shape: without it the run went well
			return nil, fmt.Errorf("--nodes-like: %w", cause)
		}
		if err != nil && len(after) > 0 {
			return nil, fmt.Errorf("--after: %w", err)
		}
		if err != nil {
			return nil, err
		}
		if r.Cut != "" { // how many are needed is not known then
			return nil, errors.New(r.Cut)
		}
		results[n], notices = r.Unplaced, endlessNotices(r.Result)
		return r.Unplaced, nil
	}
	without, err := unplaced(0)
	if err != nil {
		return nil, err
	}
	most := min(max(len(without), 1), maxAdded) // a node that helps places at least one pod
	least, err := unplaced(most)
	if err != nil {
		return nil, err
	}
	low, high := 0, most // with high nodes as few pods are pending as can be
	for low < high {
		middle := (low + high) / 2
		with, err := unplaced(middle)
		if err != nil {
			return nil, err
		}
		if len(with) <= len(least) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return &NodesFit{Shape: shape, Nodes: high, Placed: len(without) - len(results[high]), Unplaced: results[high], Notices: notices}, nil
}
