package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	goruntime "runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim/generate"
)

// mostPerStep is how much memory one step may take at most, with all that it
// leads to and the check of every invariant after each. The largest objects
// here have a few MB themselves.
const mostPerStep = 512 << 20

// havoc is a world of objects that make no sense.
type havoc struct {
	*testing.T
	*mangler
	world *World
	alive map[string]metav1.Object // by type and name
	made  int
	most  uint64
}

// Whatever objects there are, nothing panics, grows or hangs, each pod that is
// not placed is told why, and a pod that asks for nothing is placed at once.
func TestBadObjects(t *testing.T) {
	for i := range 2 * len(generate.Mixes()) {
		h, objects := worldOfHavoc(t, uint64(i), uint8(i), uint8(i*7))
		h.run(objects)
	}
}

// The same holds of a few objects of a world, so that a run is short.
func FuzzBadObjects(f *testing.F) {
	for i := range 2 * len(generate.Mixes()) {
		f.Add(uint64(i), uint8(i), uint8(i*7))
	}
	f.Fuzz(func(t *testing.T, seed uint64, mix, rate uint8) {
		h, objects := worldOfHavoc(t, seed, mix, rate)
		for len(objects) > fewObjects {
			i := h.IntN(len(objects))
			objects = slices.Delete(objects, i, i+1)
		}
		h.run(objects)
	})
}

// fewObjects are enough for a node, a pod and what it needs to meet.
const fewObjects = 20

// worldOfHavoc is what generated objects are to be made nonsense of.
func worldOfHavoc(t *testing.T, seed uint64, mix, rate uint8) (*havoc, []metav1.Object) {
	mixes := generate.Mixes()
	w, err := generate.Cluster(mixes[int(mix)%len(mixes)], seed%1000)
	if err != nil {
		t.Fatal(err)
	}
	return newHavoc(t, seed, 8+int(rate)%120, false), objectsOf(&w)
}

// After worlds of nonsense that came and went the machine holds no more than
// after the first of them. Views are off, and texts brief: views and journals
// have bounds of their own (core/engine, core/table).
func TestBadObjectsLeaveNothing(t *testing.T) {
	h, mixes := newHavoc(t, 7, 60, true), generate.Mixes()
	h.brief = true
	var held []uint64
	for i := range uint64(3 * len(mixes)) {
		w, err := generate.Cluster(mixes[i%uint64(len(mixes))], i)
		if err != nil {
			t.Fatal(err)
		}
		h.run(objectsOf(&w))
		if (i+1)%uint64(len(mixes)) == 0 {
			goruntime.GC()
			var m goruntime.MemStats
			goruntime.ReadMemStats(&m)
			held = append(held, m.HeapAlloc>>10)
		}
	}
	if last := len(held) - 1; held[last] > held[0]+8<<10 {
		t.Errorf("held after each round: %v KiB", held)
	}
	goruntime.KeepAlive(h)
}

// defaultGates are made once: that takes longer than many a run.
var defaultGates = sync.OnceValue(features.New)

func newHavoc(t *testing.T, seed uint64, rate int, viewsOff bool) *havoc {
	o, err := OptionsUnder(config.With(defaultGates()).Default(), defaultGates())
	if err != nil {
		t.Fatal(err)
	}
	o.Seed, o.Check, o.ViewsOff = seed, true, viewsOff
	h := &havoc{T: t, mangler: &mangler{Rand: rand.New(rand.NewPCG(seed, 1)), rate: rate}, world: NewWorld(o, Epoch), alive: map[string]metav1.Object{}}
	h.world.Observe = h.look
	h.world.Cluster.SetNode(decode.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "haven"}, // without labels it is in no domain
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{"pods": resource.MustParse("1000000")}}}))
	return h
}

// objectsOf lists all objects of the world.
func objectsOf(w *generate.World) (all []metav1.Object) {
	for _, n := range w.Nodes {
		all = append(all, n)
	}
	for _, n := range w.Namespaces {
		all = append(all, n)
	}
	all = append(append(all, w.Objects...), w.SelectorOwners...)
	for _, b := range w.Budgets {
		all = append(all, b)
	}
	for _, p := range slices.Concat(w.Bound, w.Pending) {
		all = append(all, p)
	}
	return all
}

// run brings every object in, some again in another state, takes some away,
// and sends a canary now and then.
func (h *havoc) run(objects []metav1.Object) {
	h.Helper()
	for i, o := range objects {
		if o.GetUID() == "" {
			o = o.(runtime.Object).DeepCopyObject().(metav1.Object)
			o.SetUID(types.UID(fmt.Sprint("made-", h.made)))
			h.made++
		}
		h.set(h.mangled(o))
		switch h.IntN(6) {
		case 0:
			h.settle()
		case 1:
			h.again()
		case 2:
			h.advance(time.Duration(h.IntN(20)) * time.Second)
		}
		if i%20 == 0 {
			h.canary()
		}
	}
	h.advance(time.Minute)
	h.canary()
	h.leave()
}

// again changes or deletes an object that is there.
func (h *havoc) again() {
	keys := slices.Sorted(maps.Keys(h.alive))
	key := keys[h.IntN(len(keys))]
	if h.IntN(2) == 0 {
		h.remove(key)
		return
	}
	h.set(h.mangled(h.alive[key]))
}

// largest is how many bytes a request to an API server may have.
const largest = 3 << 20

// mangled is the object with nonsense in it; as it was if that is more than an API
// server takes.
func (h *havoc) mangled(o metav1.Object) metav1.Object {
	nonsense := o.(runtime.Object).DeepCopyObject().(metav1.Object)
	if h.mangle(nonsense); nonsense.(interface{ Size() int }).Size() > largest {
		return o
	}
	return nonsense
}

func keyOf(o metav1.Object) string { return fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName()) }

// set has the object decoded and told, as the edge does.
func (h *havoc) set(o metav1.Object) {
	h.Helper()
	h.alive[keyOf(o)] = o
	c := h.world.Cluster
	switch o := o.(type) {
	case *v1.Node:
		c.SetNode(decode.Node(o))
	case *v1.Pod:
		if bound := c.Pod(o.Namespace + "/" + o.Name); bound != nil && bound.NodeName != "" && o.Spec.NodeName == "" {
			o.Spec.NodeName = bound.NodeName
		}
		c.SetPod(decode.Pod(o))
	case *v1.Namespace:
		c.SetNamespace(decode.Namespace(o))
	case *policyv1.PodDisruptionBudget:
		h.tell(machine.BudgetSet{Budget: decode.Budget(o)})
	case *v1.Service, *v1.ReplicationController, *appsv1.ReplicaSet, *appsv1.StatefulSet:
		if f := decode.SelectorOwner(o); f != nil {
			h.tell(machine.SelectorOwnerSet{Owner: f})
		}
	default:
		c.SetObject(decode.Object(o))
	}
	h.measure(h.world.Deliver)
}

func (h *havoc) tell(e machine.Event) { h.measure(func() { h.world.step(e) }) }

func (h *havoc) remove(key string) {
	o := h.alive[key]
	delete(h.alive, key)
	c := h.world.Cluster
	switch o := o.(type) {
	case *v1.Node:
		_ = c.DeleteNode(o.Name)
	case *v1.Pod:
		_ = c.DeletePod(o.Namespace + "/" + o.Name)
	case *v1.Namespace:
		h.tell(machine.NamespaceGone{Name: o.Name})
	case *policyv1.PodDisruptionBudget:
		h.tell(machine.BudgetGone{Namespace: o.Namespace, Name: o.Name})
	case *v1.Service, *v1.ReplicationController, *appsv1.ReplicaSet, *appsv1.StatefulSet:
		if f := decode.SelectorOwner(o); f != nil {
			h.tell(machine.SelectorOwnerGone{Kind: f.Kind, Namespace: f.Namespace, Name: f.Name})
		}
	default:
		m := decode.Object(o).Head()
		c.DeleteObject(m.Kind, m.Namespace, m.Name)
	}
	h.measure(h.world.Deliver)
}

// settle and advance are the world's, step by step.
func (h *havoc) settle() {
	h.Helper()
	for more := true; more; {
		h.measure(func() { more = h.world.Cycle() })
	}
}

func (h *havoc) advance(d time.Duration) {
	h.Helper()
	for end := h.world.Now.Add(d); ; {
		h.settle()
		next, ok := h.world.Machine.NextTimer()
		if !ok || next.After(end) {
			h.world.Now = end
			return
		}
		h.measure(func() { h.world.tick(next) })
	}
}

// measure fails when f takes absurdly much memory.
func (h *havoc) measure(f func()) {
	h.Helper()
	before := allocated()
	f()
	if took := allocated() - before; took > h.most {
		if h.most = took; took > mostPerStep {
			h.Fatalf("one step took %d MiB", took>>20)
		}
	}
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// look sees every effect: who is not placed is told why, in bounds.
func (h *havoc) look(e machine.Effect) {
	d, ok := e.(machine.AttemptDone)
	if !ok || d.Decision.Result == decision.ResultScheduled {
		return
	}
	if why := explain.Message(d.Decision); why == "" && d.Decision.Result != decision.ResultWaiting {
		h.Errorf("%s: %s without a reason", d.Decision.Pod, d.Decision.Result)
	}
	if err := d.Decision.Err; err != nil && strings.Contains(err.Error(), "panicked") {
		h.Errorf("%s: %v", d.Decision.Pod, err)
	}
}

// canary sends a pod that asks for nothing; it is to be placed at once.
func (h *havoc) canary() {
	h.Helper()
	h.made++
	name := fmt.Sprint("canary-", h.made)
	h.set(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "canaries", Name: name, UID: types.UID(name)},
		Spec: v1.PodSpec{SchedulerName: "default-scheduler", Containers: []v1.Container{{Name: "c"}}}})
	h.settle()
	if p := h.world.Cluster.Pod("canaries/" + name); p == nil || p.NodeName == "" {
		h.Fatalf("%s is not placed: %s", name, h.world.Machine.Entry(types.UID(name)).Place())
	}
	m := h.world.Machine
	if m.Panics() > 0 || len(m.Queue().Panics()) > 0 {
		h.Fatalf("%d panics, of hints %v", m.Panics(), m.Queue().Panics())
	}
}

// leave takes everything away: nothing is left behind.
func (h *havoc) leave() {
	h.Helper()
	for _, key := range slices.Sorted(maps.Keys(h.alive)) {
		h.remove(key)
	}
	for _, p := range h.world.Cluster.Pods() {
		_ = h.world.Cluster.DeletePod(p.Key())
	}
	h.advance(time.Minute)
	if err := h.world.Machine.Verify(); err != nil {
		h.Fatal(err)
	}
	m := h.world.Machine
	if pods := m.Pods(); len(pods) > 0 || m.Assumed() > 0 || m.ExtenderCycles() > 0 || m.Table().Live() > 1 {
		h.Fatalf("left are %d pods, %d assumed, %d extender cycles, %d nodes", len(pods), m.Assumed(), m.ExtenderCycles(), m.Table().Live()-1)
	}
}
