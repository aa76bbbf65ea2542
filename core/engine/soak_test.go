package engine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim/generate"
)

var (
	soakEvents = flag.Int("events", 200_000, "how many random events TestSoak lets happen")
	soakSeed   = flag.Uint64("soak-seed", 1, "the seed of TestSoak's events")
)

// perWorld is how many events happen to one cluster.
const perWorld = 1000

// Whatever happens to a table, views that were kept say what a fresh
// evaluation of every plugin on every node says. All plugins that Berth has
// are in play, on small clusters of every mix.
func TestSoak(t *testing.T) {
	mixes, events := generate.Mixes(), *soakEvents
	if testing.Short() {
		events = min(events, 6_000)
	}
	for i, mix := range mixes {
		t.Run(mix, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(*soakSeed, uint64(i)))
			var sum soaked
			for left := (events + len(mixes) - 1) / len(mixes); left > 0; left -= perWorld {
				newSoak(t, r, mix).run(t, min(left, perWorld), &sum)
			}
			t.Logf("%d events, %d decisions and %d fillings compared, %d checks of all views", sum.events, sum.decisions, sum.fillings, sum.checks)
		})
	}
}

// soaked counts what was done.
type soaked struct{ events, decisions, checks, fillings int }

// soak is a table to which things happen, and engines over it.
type soak struct {
	*stock
	*table.Table
	kept, tight, plain *engine.Engine // all views, few, none
	world              uint64
	drawn              []*v1.Pod     // the pool, as the API has them
	pool               []*object.Pod // those that are decided on, in turn
	placed             []*object.Pod
	requests           map[asked]*engine.Request
	nominated          *nominations
	sum                *soaked
	checkOneIn         int
	last               []string // what happened
}

func newSoak(t *testing.T, r *rand.Rand, mix string) *soak {
	world := r.Uint64()
	w := &soak{stock: newStock(t, rand.New(rand.NewPCG(world, 0)), mix), Table: table.New(), world: world, requests: map[asked]*engine.Request{}, nominated: &nominations{byNode: map[string][]*object.Pod{}}}
	w.kept, w.tight, w.plain = engine.New(w.Table, world, 1), engine.New(w.Table, world, 2), engine.NewPlain(w.Table, world)
	w.kept.CheckShortCuts()
	w.tight.SetBudget(3 * (engine.FixedRows + len(w.names)))
	w.checkOneIn = pickOne(w.Rand, 5, 20, 100)
	w.drawn = make([]*v1.Pod, pickOne(w.Rand, 2, 6, 20))
	w.pool = make([]*object.Pod, len(w.drawn))
	for i := range w.pool {
		w.redraw(i, w.draw(""))
	}
	for _, name := range w.names {
		if w.IntN(8) > 0 {
			w.SetNode(w.stock.node(name))
		}
	}
	return w
}

// event is one kind of thing that happens, and how often.
type event struct {
	weight int
	name   string
	happen func(*soak, *testing.T)
}

var kinds = []event{
	{8, "a node is set", (*soak).setNode},
	{3, "a node goes", func(w *soak, _ *testing.T) { w.RemoveNode(w.name()) }},
	{2, "a node flaps", (*soak).flap},
	{22, "a pod is placed", func(w *soak, _ *testing.T) { w.place(w.stock.pod(w.name())) }},
	{20, "a pod goes", (*soak).removePod},
	{4, "a pod moves or changes", (*soak).movePod},
	{4, "a pod is shown as it is", (*soak).showPod},
	{6, "a try is taken back", (*soak).try},
	{2, "a nomination", (*soak).nominate},
	{2, "a namespace is labelled", (*soak).label},
	{2, "a selector owner comes or goes", (*soak).setSelectorOwner},
	{5, "an object comes, changes or goes", (*soak).setObject},
	{6, "another class", (*soak).otherClass},
	{1, "a panic is contained", func(w *soak, _ *testing.T) { w.kept.Reset() }},
	{25, "a decision", (*soak).decide},
	{3, "equal pods fill the nodes", (*soak).fill},
}

var totalWeight = func() (sum int) {
	for _, k := range kinds {
		sum += k.weight
	}
	return sum
}()

func (w *soak) run(t *testing.T, events int, sum *soaked) {
	w.sum = sum
	storm := w.IntN(10 * events)
	for i := range events {
		if w.happen(t); i == storm {
			w.storm(t)
		}
		if sum.events++; w.IntN(w.checkOneIn) == 0 {
			w.check(t)
		}
	}
	w.check(t)
	if err := w.Table.Check(); err != nil {
		w.fail(t, err)
	}
}

func (w *soak) happen(t *testing.T) {
	n := w.IntN(totalWeight)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			w.last = append(w.last, k.name)
			k.happen(w, t)
			return
		}
	}
}

// setObject has a claim, a volume or the like come, change or go, or be assumed
// to be another.
func (w *soak) setObject(*testing.T) {
	if len(w.objects) == 0 {
		return
	}
	o := pickOne(w.Rand, w.objects...)
	switch m := o.Head(); w.IntN(6) {
	case 0:
		w.Objects().Remove(m.Kind, m.Namespace, m.Name)
	case 1:
		w.Objects().Assume(o)
	case 2:
		w.Objects().Restore(m)
	default:
		w.Objects().Set(o)
	}
}

func (w *soak) fail(t *testing.T, what any) {
	t.Helper()
	t.Fatalf("world %d after %q: %v", w.world, w.last[max(0, len(w.last)-12):], what)
}

func (w *soak) check(t *testing.T) {
	t.Helper()
	w.sum.checks++
	for _, e := range []*engine.Engine{w.kept, w.tight} {
		if err := e.Check(); err != nil {
			w.fail(t, err)
		}
	}
}

// settled: pods are placed where the events put them, tries or not.
func (w *soak) settled(t *testing.T) {
	t.Helper()
	if n := w.PlacedPods(); n != len(w.placed) || w.Trying() {
		w.fail(t, fmt.Sprintf("%d pods are placed, want %d", n, len(w.placed)))
	}
	for _, p := range w.placed {
		if pl := w.Pod(p.UID); pl == nil || pl.Pod != p || w.Name(pl.Row) != p.NodeName {
			w.fail(t, fmt.Sprintf("pod %s is not on %s", p.UID, p.NodeName))
		}
	}
}

func (w *soak) setNode(*testing.T) { w.SetNode(w.stock.node(w.name())) }

func (w *soak) flap(*testing.T) {
	name := w.name()
	n := w.stock.node(name)
	for range 1 + w.IntN(4) {
		w.SetNode(n)
		w.RemoveNode(name)
	}
	if w.IntN(2) == 0 {
		w.SetNode(n)
	}
}

func (w *soak) place(p *object.Pod) {
	w.AddPod(p, p.NodeName)
	w.placed = append(w.placed, p)
}

func (w *soak) removePod(*testing.T) {
	if len(w.placed) == 0 {
		return
	}
	i := w.IntN(len(w.placed))
	w.RemovePod(w.placed[i].UID)
	w.placed = slices.Delete(w.placed, i, i+1)
}

// movePod places a pod once more: elsewhere, or as another with its UID.
func (w *soak) movePod(*testing.T) {
	if len(w.placed) == 0 {
		return
	}
	i, now := w.IntN(len(w.placed)), w.stock.pod(w.name())
	if w.IntN(2) == 0 {
		now.NodeName = w.placed[i].NodeName
	}
	now.UID, now.Name = w.placed[i].UID, w.placed[i].Name
	w.AddPod(now, now.NodeName)
	w.placed[i] = now
}

// showPod places a pod once more where it is, as when the API shows what was
// assumed: as it was except for what counts for nobody, or for one thing.
func (w *soak) showPod(*testing.T) {
	if len(w.placed) == 0 {
		return
	}
	i := w.IntN(len(w.placed))
	now := *w.placed[i]
	now.Started, now.Scheduled.Status = now.Started.Add(1), v1.ConditionTrue
	other := w.stock.pod(now.NodeName)
	switch w.IntN(12) {
	case 0:
		now.Labels = other.Labels
	case 1:
		now.Terminating = !now.Terminating
	case 2:
		now.Demand = other.Demand
	case 3:
		now.Affinity = other.Affinity
	case 4:
		now.HostPorts = other.HostPorts
	case 5:
		now.Namespace = other.Namespace
	}
	w.AddPod(&now, now.NodeName)
	w.placed[i] = &now
}

// try places and removes pods under checkpoints; one that is broken off is
// rolled back.
func (w *soak) try(t *testing.T) {
	defer w.settled(t)
	marks := []table.Mark{w.Checkpoint()}
	for range 1 + w.IntN(8) {
		switch n := w.IntN(10); {
		case n < 4:
			p := w.stock.pod(w.name())
			w.AddPod(p, p.NodeName)
		case n < 8 && len(w.placed) > 0:
			w.RemovePod(pickOne(w.Rand, w.placed...).UID)
		case n == 8:
			marks = append(marks, w.Checkpoint())
		case len(marks) > 1:
			w.Undo(marks[len(marks)-1])
			marks = marks[:len(marks)-1]
		}
	}
	if w.IntN(3) == 0 {
		w.Rollback()
		return
	}
	for _, m := range slices.Backward(marks) {
		w.Undo(m)
	}
}

func (w *soak) nominate(*testing.T) {
	node := w.name()
	p := w.stock.pod("")
	if w.IntN(3) == 0 {
		p = pickOne(w.Rand, w.pool...)
	}
	w.nominated.add(p, node)
	if nodes := w.nominated.NominatedNodes(); len(w.nominated.byNode[node]) > 2 || len(nodes) > 3 {
		for _, n := range nodes[:1+w.IntN(len(nodes))] {
			w.nominated.drop(n)
		}
	}
}

func (w *soak) label(*testing.T) {
	if len(w.namespaces) == 0 {
		return
	}
	n := *pickOne(w.Rand, w.namespaces...)
	if w.IntN(4) == 0 {
		n.Labels = nil
	}
	w.Namespaces().Set(&n)
}

func (w *soak) setSelectorOwner(*testing.T) {
	if len(w.owners) == 0 {
		return
	}
	f := pickOne(w.Rand, w.owners...)
	if w.IntN(3) == 0 {
		w.SelectorOwners().Remove(f.Kind, f.Namespace, f.Name)
	} else {
		w.SelectorOwners().Set(f)
	}
}

// otherClass replaces one of the pool, mostly by a twin of another.
func (w *soak) otherClass(*testing.T) {
	i, p := w.IntN(len(w.pool)), w.draw("")
	if w.IntN(3) > 0 {
		p = w.twin(pickOne(w.Rand, w.drawn...))
	}
	w.redraw(i, p)
}

func (w *soak) redraw(i int, p *v1.Pod) { w.drawn[i], w.pool[i] = p, decode.Pod(p) }

// storm is more placements than the journal holds. In some there are more terms
// of pod affinity and named resources, too, than the table keeps when no pod
// has them any more; after those views are made anew.
func (w *soak) storm(t *testing.T) {
	for range 3 * len(w.pool) {
		w.decide(t)
	}
	if w.IntN(3) == 0 {
		for range 1200 {
			p := w.stock.odd()
			w.AddPod(p, w.name())
			w.RemovePod(p.UID)
		}
	}
	for range 9000 {
		w.AddPod(pickOne(w.Rand, w.pool...), w.name()) // it moves
	}
	for _, p := range w.pool {
		w.RemovePod(p.UID)
	}
	w.check(t)
}

// decide asks every engine about a pod, and mostly places it where they say.
func (w *soak) decide(t *testing.T) {
	w.sum.decisions++
	p, by := pickOne(w.Rand, w.pool...), w.profiles[0]
	if w.IntN(6) == 0 {
		by = w.profiles[1]
	}
	in, script := w.IntN(3) == 0, w.Uint64()
	want := w.ask(w.plain, by, p, in, script)
	if n := len(want.best()); in && want.ties != n && want.ties > 0 {
		w.fail(t, fmt.Sprintf("plain: %d ties, %d nodes have the best total", want.ties, n))
	}
	for _, e := range []*engine.Engine{w.kept, w.tight} {
		if got := w.ask(e, by, p, in, script); !reflect.DeepEqual(got, want) {
			w.fail(t, fmt.Sprintf("pod %+v:\ngot  %+v\nwant %+v", p, got, want))
		}
	}
	w.settled(t)
	if want.node != "" && w.IntN(3) > 0 {
		w.stock.serial++
		placed := *p
		placed.Name, placed.NodeName = fmt.Sprint("s-", w.stock.serial), want.node
		placed.UID = types.UID(placed.Name)
		w.place(&placed)
	}
}
