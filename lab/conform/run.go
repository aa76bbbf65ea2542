package conform

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/sim/generate"
)

// Counts is how much was compared.
type Counts struct {
	Worlds, Decisions                   int
	Scheduled, Unschedulable, Preempted int
	Gated, Failed                       int
	// Requeues is the questions whether a change requeues a pod. Extra is how often
	// Berth requeued a pod that kube-scheduler left and that still does not fit;
	// Missed how often kube-scheduler left a pod that would have fit. Spared is how
	// often it requeued a pod that Berth left: the pod still does not fit.
	Requeues, Extra, Missed, Spared int
}

func (c *Counts) add(d Counts) {
	c.Worlds += d.Worlds
	c.Decisions += d.Decisions
	c.Scheduled += d.Scheduled
	c.Unschedulable += d.Unschedulable
	c.Preempted += d.Preempted
	c.Gated += d.Gated
	c.Failed += d.Failed
	c.Requeues += d.Requeues
	c.Extra += d.Extra
	c.Missed += d.Missed
	c.Spared += d.Spared
}

// Disagreement is a point in a world where the two sides part.
type Disagreement struct {
	World generate.World
	// At is how many of World.Pending were decided before.
	At int
	// Diffs says what differs, the most telling first.
	Diffs []string
	// Steps is what happened until then; the last step is where the sides part.
	Steps []Step
}

// Step is one thing that happened in a world, with what both sides said.
// Exactly one of Order, Pod and Change is set.
type Step struct {
	// Order is the pods in the order in which kube-scheduler's queue hands
	// them out, GotOrder the order of Berth's.
	Order, GotOrder []*v1.Pod

	// Pod was decided on. Want and Got are kube-scheduler's record and
	// Berth's. Placed is the pod as it runs then, nil if it does not. Written is
	// what became of the objects that Berth wrote before.
	Pod       *v1.Pod
	Want, Got oracle.Record
	Placed    *v1.Pod
	Written   []metav1.Object

	// Change happened. Requeued are the pods that it has to requeue: those that
	// kube-scheduler requeues, and those that turned out to fit.
	Change   *generate.Change
	Requeued []*v1.Pod
}

// maxWaiting bounds the rejected pods that are followed through changes.
const maxWaiting = 5

// run is one world played on both sides.
type run struct {
	world     generate.World
	want, got Side
	waiting   []oracle.Rejected
	counts    Counts
	at        int
	steps     []Step
	started   map[types.UID]*metav1.Time // of the pods that the run placed
	pods      map[string]*v1.Pod         // all that may be preempted, by namespace/name
	nodes     map[string]bool            // there now
	running   map[types.UID]bool         // pods on them
	objects   store                      // claims, volumes and the like
	parted    bool                       // by an intended difference: nothing more is compared
	hosting   *hosting                   // of the other side: with kube-scheduler's hints it misses what these miss
}

// Compare plays a world on kube-scheduler and on the other side until they
// part; nil means that they never do.
func Compare(w generate.World, other Start) (Counts, *Disagreement) {
	r := newRun(w)
	apart := r.against(other)
	return r.counts, apart
}

func newRun(w generate.World) *run {
	r := &run{world: w, pods: map[string]*v1.Pod{}, started: map[types.UID]*metav1.Time{},
		nodes: map[string]bool{}, running: map[types.UID]bool{}, objects: store{}}
	for _, o := range w.Objects {
		r.objects[objectKey(o)] = o
	}
	for _, p := range slices.Concat(w.Bound, w.Pending) {
		r.pods[p.Namespace+"/"+p.Name] = p
	}
	for _, p := range w.Bound {
		r.running[p.UID] = true
	}
	for _, n := range w.Nodes {
		r.nodes[n.Name] = true
	}
	r.counts.Worlds = 1
	return r
}

// against plays the world. A panic, such as that of an invariant that does not
// hold, is a disagreement too.
func (r *run) against(other Start) (apart *Disagreement) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	defer func() {
		if p := recover(); p != nil {
			apart = r.disagree(fmt.Sprintf("panic: %v", p))
		}
	}()
	want, wantErr := Upstream(ctx, r.world)
	got, gotErr := other(ctx, r.world)
	if (wantErr == nil) != (gotErr == nil) {
		return r.disagree(fmt.Sprintf("start: kube-scheduler says %v, Berth %v", wantErr, gotErr))
	}
	if wantErr != nil {
		return nil
	}
	r.want, r.got = want, got
	if b, ok := got.(*berth); ok {
		r.hosting = b.hosting
	}
	if d := r.order(); d != nil {
		return d
	}
	if d := r.play(); d != nil {
		return d
	}
	if r.parted || strings.Contains(r.world.Config, generate.ExtenderAddress) {
		return nil // a pod that names a node is nothing that extenders are asked about
	}
	return r.named()
}

func (r *run) play() *Disagreement {
	changes := r.world.Changes
	for r.at = 0; r.at <= len(r.world.Pending) && !r.parted; r.at++ {
		for len(changes) > 0 && changes[0].After == r.at {
			if d := r.change(changes[0]); d != nil {
				return d
			}
			changes = changes[1:]
		}
		if r.at == len(r.world.Pending) {
			break
		}
		if _, d := r.decide(r.world.Pending[r.at]); d != nil {
			return d
		}
	}
	return nil
}

// step notes what is about to happen. The answer is valid until the next step.
func (r *run) step(s Step) *Step {
	r.steps = append(r.steps, s)
	return &r.steps[len(r.steps)-1]
}

// decide compares one attempt, and places the pod or has it wait. It fits when
// it was placed without anybody's going.
func (r *run) decide(pod *v1.Pod) (fits bool, d *Disagreement) {
	if r.parted {
		return false, nil
	}
	step := r.step(Step{Pod: pod})
	want, got := r.want.Decide(pod), r.got.Decide(pod)
	if r.hosting != nil {
		r.hosting.complete(want.Plans, &got)
	}
	step.Want, step.Got = want, got
	r.count(want)
	if failsForPool(want) {
		if r.parted = want.Result != got.Result; r.parted {
			r.steps = r.steps[:len(r.steps)-1] // as a story the world ends before it
			return false, nil
		}
		want.Message = got.Message
		step.Want = want
	}
	if diffs := compare(want, got); len(diffs) > 0 {
		return false, r.disagree(diffs...)
	}
	if want.Result == oracle.Preempting {
		return false, r.preempt(pod, got)
	}
	if want.Result != oracle.Scheduled && pod.Status.NominatedNodeName != "" {
		return false, nil // an extender would not have it there; not followed any further
	}
	if want.Result != oracle.Scheduled && len(got.Writes) > 0 { // it gave up a claim's devices
		return false, r.write(step, got.Writes)
	}
	if want.Result != oracle.Scheduled {
		r.waiting = append(r.waiting, oracle.Rejected{Pod: pod, Plugins: want.Plugins, Gated: want.Result == oracle.Gated})
		if len(r.waiting) > maxWaiting {
			r.waiting = r.waiting[1:]
		}
		return false, nil
	}
	if d := r.grants(pod, got); d != nil {
		return false, d
	}
	started := metav1.NewTime(time.Date(2027, 1, 1, 0, 0, len(r.started), 0, time.UTC)) // after all that ran before
	pod = pod.DeepCopy()
	pod.Status.StartTime, r.started[pod.UID] = &started, &started
	pod.Status.NodeAllocatableResourceClaimStatuses = takenOf(got.Writes)
	r.running[pod.UID] = true
	step.Placed = pod.DeepCopy()
	step.Placed.Spec.NodeName = got.Node
	if d := r.write(step, got.Writes); d != nil {
		return false, d
	}
	for _, side := range []Side{r.want, r.got} {
		if err := side.Assume(pod, got.Node); err != nil {
			return false, r.disagree("assume: " + err.Error())
		}
	}
	return true, nil
}

// preempt has the victims of Berth's plan go on both sides and tries the pod
// again on the node that it is now nominated to. Other waiting pods are not
// followed any further: they would have been requeued for nothing.
func (r *run) preempt(pod *v1.Pod, plan oracle.Record) *Disagreement {
	r.waiting = nil
	for _, victim := range plan.Victims {
		pod := r.pods[victim]
		gone := []generate.Change{{Verb: generate.Delete, Pod: pod}}
		for _, claim := range r.extendedClaims(pod) {
			gone = append(gone, generate.Change{Verb: generate.Delete, Other: claim})
		}
		for _, c := range gone {
			r.possible(c)
			for _, side := range []Side{r.want, r.got} {
				if _, err := side.Apply(c, nil); err != nil {
					return r.disagree(fmt.Sprintf("preempt %s: %s: %v", victim, c, err))
				}
			}
		}
	}
	pod = pod.DeepCopy()
	pod.Status.NominatedNodeName = plan.Nominated
	_, d := r.decide(pod)
	return d
}

func (r *run) count(rec oracle.Record) {
	r.counts.Decisions++
	switch rec.Result {
	case oracle.Scheduled:
		r.counts.Scheduled++
	case oracle.Unschedulable:
		r.counts.Unschedulable++
	case oracle.Preempting:
		r.counts.Preempted++
	case oracle.Gated:
		r.counts.Gated++
	case oracle.Failed:
		r.counts.Failed++
	}
}

// possible tells whether what changes is there, or not there yet, and notes the
// change.
func (r *run) possible(c generate.Change) bool {
	if c.Namespace != nil {
		return true
	}
	if c.Other != nil {
		key := objectKey(c.Other)
		there := r.objects[key] != nil
		if r.objects[key] = c.Other; c.Verb == generate.Delete {
			delete(r.objects, key)
		}
		return there || c.Verb == generate.Add
	}
	if c.Node != nil {
		there := r.nodes[c.Node.Name]
		r.nodes[c.Node.Name] = c.Verb != generate.Delete
		return there == (c.Verb != generate.Add)
	}
	there := r.there(c.Pod)
	r.running[c.Pod.UID] = r.running[c.Pod.UID] && c.Verb != generate.Delete
	return there
}

// there tells whether the pod runs or waits.
func (r *run) there(p *v1.Pod) bool {
	return r.running[p.UID] || slices.ContainsFunc(r.waiting, func(w oracle.Rejected) bool { return w.Pod.UID == p.UID })
}

// extendedClaims lists the claims that stand for the pod's extended resources. The
// garbage collector deletes them with the pod.
func (r *run) extendedClaims(p *v1.Pod) []metav1.Object {
	var claims []metav1.Object
	for _, key := range slices.Sorted(maps.Keys(r.objects)) {
		c, ok := r.objects[key].(*resourcev1.ResourceClaim)
		if ok && (&object.ResourceClaim{API: c}).IndexKey() == string(p.UID) {
			claims = append(claims, c)
		}
	}
	return claims
}

// change shows a change to both sides, compares what it requeues, and then tries
// every waiting pod again: one that fits now, or preempts, must have been requeued by
// Berth. Those that kube-scheduler alone requeues are tried first, while nothing but
// the change can help them.
func (r *run) change(c generate.Change) *Disagreement {
	if c.Pod != nil && c.Verb == generate.Delete && r.there(c.Pod) {
		for _, claim := range r.extendedClaims(c.Pod) {
			if d := r.change(generate.Change{Verb: generate.Delete, Other: claim}); d != nil {
				return d
			}
		}
	}
	if !r.possible(c) {
		return nil
	}
	if c.Pod != nil && r.started[c.Pod.UID] != nil {
		c.Pod = c.Pod.DeepCopy()
		c.Pod.Status.StartTime = r.started[c.Pod.UID]
	}
	at := len(r.steps)
	r.step(Step{Change: &c})
	want, err := r.want.Apply(c, r.waiting)
	if err != nil {
		return r.disagree(fmt.Sprintf("%s: kube-scheduler: %v", c, err))
	}
	got, err := r.got.Apply(c, r.waiting)
	if err != nil {
		return r.disagree(fmt.Sprintf("%s: Berth: %v", c, err))
	}
	waited := r.waiting
	r.waiting = nil
	// moved: somebody was placed or preempted, and the change alone explains no
	// more who fits.
	moved, preempted := false, r.counts.Preempted
	for i, pod := range changed(waited, c) {
		if pod == nil || !want[i] {
			continue
		}
		if got[i] {
			r.steps[at].Requeued = append(r.steps[at].Requeued, pod)
			continue
		}
		why := "though no attempt is known to be in vain"
		if s, ok := r.got.(sparing); ok && s.Spared(pod.UID) {
			fits, d := r.decide(pod)
			if d != nil {
				return d
			}
			if !fits && r.counts.Preempted == preempted {
				r.counts.Spared++
				continue
			}
			why = "and it fits or preempts"
		}
		r.steps = r.steps[:at+1]
		r.steps[at].Requeued = append(r.steps[at].Requeued, pod)
		return r.disagree(fmt.Sprintf("requeue: %s requeues pod %s (rejected by %v) in kube-scheduler, not in Berth, %s", c, pod.Name, waited[i].Plugins, why))
	}
	for i, pod := range changed(waited, c) {
		if pod == nil {
			continue
		}
		r.counts.Requeues++
		if want[i] && !got[i] {
			continue
		}
		fits, d := r.decide(pod)
		if d != nil {
			return d
		}
		switch {
		case fits && moved:
		case fits && !got[i] && r.hosting != nil:
			r.counts.Missed++
		case fits && !got[i]:
			r.steps = r.steps[:at+1]
			r.steps[at].Requeued = []*v1.Pod{pod}
			return r.disagree(fmt.Sprintf("needed requeue: after %s pod %s (rejected by %v) fits, and Berth did not requeue it", c, pod.Name, waited[i].Plugins))
		case fits && !want[i]:
			r.counts.Missed++
		case !want[i] && got[i]:
			r.counts.Extra++
		}
		moved = moved || fits || r.counts.Preempted > preempted
	}
	return nil
}

// changed lists the pods as the change leaves them; nil: one is gone.
func changed(waited []oracle.Rejected, c generate.Change) []*v1.Pod {
	pods := make([]*v1.Pod, len(waited))
	for i, w := range waited {
		pods[i] = w.Pod
		if c.Pod == nil || c.Pod.UID != w.Pod.UID {
			continue
		}
		if pods[i] = c.Pod; c.Verb == generate.Delete {
			pods[i] = nil
		}
	}
	return pods
}

func (r *run) disagree(diffs ...string) *Disagreement {
	return &Disagreement{World: r.world, At: r.at, Diffs: slices.Clip(diffs), Steps: r.steps}
}
