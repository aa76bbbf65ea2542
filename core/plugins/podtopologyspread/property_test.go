package podtopologyspread

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// world is a cluster that changes and a plugin whose counts are kept, each
// brought up to date only now and then.
type world struct {
	*table.Table
	t      *rapid.T
	rand   *rand.Rand
	plugin framework.Plugin
	list   []v1.TopologySpreadConstraint // the profile's
	system bool

	pool   []*question
	kept   map[string]*kept
	epoch  uint64
	serial int
	marks  []table.Mark
	before scene  // when the outermost checkpoint was made
	since  uint64 // placements then
	start  uint64 // the revision then
}

// kept is what an engine would keep of a class.
type kept struct {
	filter framework.PreFilterResult
	score  framework.PreScoreResult
	// late: not brought up to date right before the try, as an engine would;
	// what the try itself changes may then be judged otherwise than kube-scheduler does.
	late     bool
	synced   bool   // the counts to filter by were brought up to date
	revision uint64 // when they last were
}

func (w *world) one(list ...string) string { return list[w.rand.IntN(len(list))] }
func (w *world) chance(percent int) bool   { return w.rand.IntN(100) < percent }

// distinct leaves out constraints that arguments may not repeat.
func distinct(list []v1.TopologySpreadConstraint) []v1.TopologySpreadConstraint {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(c v1.TopologySpreadConstraint) bool {
		key := c.TopologyKey + string(c.WhenUnsatisfiable)
		again := seen[key]
		seen[key] = true
		return again
	})
}

func newWorld(t *rapid.T) *world {
	w := &world{Table: table.New(), t: t, kept: map[string]*kept{}}
	w.rand = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	args := &configv1.PodTopologySpreadArgs{DefaultingType: configv1.SystemDefaulting}
	w.list, w.system = system, true
	if w.chance(40) {
		args.DefaultingType, w.system = configv1.ListDefaulting, false
		args.DefaultConstraints = distinct(w.constraints(false))
		w.list = args.DefaultConstraints
	}
	var err error
	if w.plugin, err = New(args, feature.Features{MatchLabelKeysInPodTopologySpread: true}); err != nil {
		t.Fatal(err)
	}
	for range w.rand.IntN(12) {
		w.setNode(t)
	}
	for range 6 {
		w.setSelectorOwner(t)
		q := w.question()
		w.pool = append(w.pool, q, w.twin(q))
	}
	return w
}

// twin differs in one thing from q, which Sign may leave out only if no answer
// depends on it.
func (w *world) twin(q *question) *question {
	p, other := *q.pod, w.newPod()
	p.UID, p.Name = other.UID, other.Name
	switch w.rand.IntN(6) {
	case 0:
		p.Labels = other.Labels
	case 1:
		p.Namespace = other.Namespace
	case 2:
		p.RequiredNodes = match.NewNodeSelector(map[string]string{"disk": "hdd"}, nil)
	case 3:
		p.Tolerations = match.NewTolerations([]v1.Toleration{{Key: "spot", Operator: v1.TolerationOpExists}})
	case 4:
		p.Controller = object.Controller{Kind: object.SelectorOwnerKind(1 + w.rand.IntN(4)), Name: w.one("f0", "f1")}
	case 5:
		p.Priority++
	}
	t := *q
	if t.pod = &p; p.Spread != nil {
		p.Spread = match.NewSpread(q.list, p.Labels)
	}
	return &t
}

func (w *world) constraints(selectors bool) []v1.TopologySpreadConstraint {
	var list []v1.TopologySpreadConstraint
	keys := []string{v1.LabelHostname, v1.LabelTopologyZone, "rack", "nowhere"}
	for range 1 + w.rand.IntN(4) {
		c := v1.TopologySpreadConstraint{TopologyKey: keys[w.rand.IntN(3)], MaxSkew: int32(1 + w.rand.IntN(3)), WhenUnsatisfiable: v1.DoNotSchedule}
		if w.chance(3) {
			c.TopologyKey = "nowhere"
		}
		if w.chance(50) {
			c.WhenUnsatisfiable = v1.ScheduleAnyway
		}
		policy := func(into **v1.NodeInclusionPolicy) {
			if w.chance(40) {
				p := v1.NodeInclusionPolicy(w.one("Honor", "Ignore"))
				*into = &p
			}
		}
		policy(&c.NodeAffinityPolicy)
		policy(&c.NodeTaintsPolicy)
		if w.chance(30) && c.WhenUnsatisfiable == v1.DoNotSchedule {
			n := int32(1 + w.rand.IntN(4))
			c.MinDomains = &n
		}
		if selectors {
			w.selector(&c)
		}
		list = append(list, c)
	}
	return list
}

func (w *world) selector(c *v1.TopologySpreadConstraint) {
	switch w.rand.IntN(8) {
	case 0:
	case 1:
		c.LabelSelector = &metav1.LabelSelector{}
	case 2:
		c.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"y"}}}}
	default:
		c.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.one("x", "y")}}
	}
	if w.chance(25) {
		c.MatchLabelKeys = []string{w.one("rev", "app", "none")}
	}
}

func (w *world) labels() map[string]string {
	l := map[string]string{}
	if w.chance(85) {
		l["app"] = w.one("x", "x", "y")
	}
	if w.chance(50) {
		l["rev"] = w.one("1", "2")
	}
	return l
}

func (w *world) newPod() *object.Pod {
	w.serial++
	return &object.Pod{UID: types.UID(fmt.Sprint("u", w.serial)), Name: fmt.Sprint("p", w.serial), Namespace: w.one("a", "a", "b"),
		Labels: w.labels(), Terminating: w.chance(10), Priority: w.rand.Int32N(2)}
}

func (w *world) question() *question {
	q := &question{pod: w.newPod()}
	if w.chance(30) {
		q.pod.RequiredNodes = match.NewNodeSelector(map[string]string{"disk": "ssd"}, nil)
	}
	if w.chance(30) {
		q.pod.Tolerations = match.NewTolerations([]v1.Toleration{{Key: "team", Operator: v1.TolerationOpExists}})
	}
	if w.chance(70) {
		q.list = w.constraints(true)
		q.pod.Spread = match.NewSpread(q.list, q.pod.Labels)
		return q
	}
	q.list, q.byDefault, q.lenient = w.list, true, w.system
	if w.chance(50) {
		q.pod.Controller = object.Controller{Kind: object.SelectorOwnerKind(1 + w.rand.IntN(4)), Name: w.one("f0", "f1")}
	}
	return q
}

func (w *world) setNode(*rapid.T) {
	if len(w.marks) > 0 {
		return
	}
	n := &object.Node{Name: fmt.Sprint("n", w.rand.IntN(14)), Labels: map[string]string{}}
	n.Labels["rack"] = n.Name
	put := func(percent int, key string, values ...string) {
		if w.chance(percent) {
			n.Labels[key] = w.one(values...)
		}
	}
	put(90, v1.LabelHostname, n.Name, n.Name, n.Name, n.Name, n.Name, n.Name, n.Name, "shared")
	put(85, v1.LabelTopologyZone, "a", "b", "c", "c", "")
	put(60, "disk", "ssd", "hdd")
	switch w.rand.IntN(12) {
	case 0:
		delete(n.Labels, "rack")
	case 1, 2:
		n.Labels["rack"] = "shared"
	}
	if w.chance(25) {
		n.Taints = []v1.Taint{{Key: w.one("team", "spot"), Effect: v1.TaintEffect(w.one("NoSchedule", "NoExecute", "PreferNoSchedule"))}}
	}
	w.SetNode(n)
}

func (w *world) removeNode(*rapid.T) {
	if len(w.marks) == 0 {
		w.RemoveNode(fmt.Sprint("n", w.rand.IntN(14)))
	}
}

func (w *world) place(*rapid.T) {
	p := w.newPod()
	if w.chance(20) { // known, perhaps: it moves or changes
		p.UID = types.UID(fmt.Sprint("u", 1+w.rand.IntN(w.serial)))
	}
	w.AddPod(p, fmt.Sprint("n", w.rand.IntN(15)))
}

func (w *world) remove(*rapid.T) {
	for range 20 {
		if w.RemovePod(types.UID(fmt.Sprint("u", 1+w.rand.IntN(w.serial)))) {
			return
		}
	}
}

// storm is more than the journal of pod changes holds.
func (w *world) storm(t *rapid.T) {
	if len(w.marks) > 0 || w.chance(90) {
		return
	}
	p := w.newPod()
	for range 1 << 13 {
		w.AddPod(p, "n1")
		w.RemovePod(p.UID)
	}
	for range 20 {
		w.place(t)
	}
}

func (w *world) checkpoint(*rapid.T) {
	if len(w.marks) == 0 {
		w.before, w.since, w.start = w.scene(), w.PodChangeCount(), w.Revision()
	}
	if len(w.marks) < 3 {
		w.marks = append(w.marks, w.Checkpoint())
	}
}

func (w *world) undo(*rapid.T) {
	if n := len(w.marks); n > 0 {
		w.Undo(w.marks[n-1])
		w.marks = w.marks[:n-1]
	}
}

func (w *world) setSelectorOwner(*rapid.T) {
	f := &object.SelectorOwner{Kind: object.SelectorOwnerKind(1 + w.rand.IntN(4)), Namespace: w.one("a", "a", "b"), Name: w.one("f0", "f1")}
	set := map[string]string{}
	if w.chance(80) {
		set["app"] = w.one("x", "y")
	}
	if w.chance(40) {
		set["rev"] = w.one("1", "2")
	}
	if f.Kind == object.Service || f.Kind == object.ReplicationController {
		f.Labels = set
	} else {
		f.Requirements, _ = labels.SelectorFromSet(set).Requirements()
	}
	f.Key = match.NewSelector(labels.SelectorFromSet(set)).Key
	w.SelectorOwners().Set(f)
}

func (w *world) removeSelectorOwner(*rapid.T) {
	w.SelectorOwners().Remove(object.SelectorOwnerKind(1+w.rand.IntN(4)), w.one("a", "b"), w.one("f0", "f1"))
}

// scene is the cluster as it is.
func (w *world) scene() scene {
	s := scene{nodes: map[table.Row]*object.Node{}, pods: map[table.Row][]*object.Pod{}}
	for i := range w.Rows() {
		r := table.Row(i)
		if n := w.Node(r); n != nil {
			s.nodes[r] = n
		}
		for _, pl := range w.Pods(r) {
			s.pods[r] = append(s.pods[r], pl.Pod)
		}
	}
	return s
}

// tried is the cluster before the try, and the result of the try.
func (w *world) tried() scene {
	if len(w.marks) == 0 {
		return w.scene()
	}
	s := w.before
	s.tries = nil
	w.PodChangesAfter(w.since, func(p table.PodChange) { s.tries = append(s.tries, p) })
	return s
}

// ask compares a class, looked at now, with what it should say.
func (w *world) ask(t *rapid.T) {
	q := w.pool[w.rand.IntN(len(w.pool))]
	if q.byDefault {
		q.owner = w.selectorOf(q.pod)
	}
	if now := w.plugin.Epoch(w.Table); w.epoch != now {
		clear(w.kept)
		w.epoch = now
	}
	key := string(w.plugin.Sign(nil, w.Table, q.pod))
	k := w.kept[key]
	if k == nil {
		k = &kept{filter: w.plugin.PreFilter(w.Table, q.pod), score: w.plugin.PreScore(w.Table, q.pod)}
		w.kept[key] = k
	}
	if _, ok := k.filter.State.(*counts); ok {
		k.late = len(w.marks) > 0 && (k.late || !k.synced || k.revision < w.start)
	}
	w.compareFilter(t, q, k)
	w.compareScore(t, q, k)
	if len(w.marks) == 0 && w.chance(20) { // as an engine that drops the class
		for _, state := range []any{k.filter.State, k.score.State} {
			if state != nil {
				state.(framework.Releaser).Release()
			}
		}
		delete(w.kept, key)
	}
}

// selectorOf derives the selector of the pod's owners from a list of all owners.
func (w *world) selectorOf(p *object.Pod) labels.Selector {
	set := labels.Set{}
	for _, f := range w.SelectorOwners().ServicesOf(p) {
		maps.Copy(set, f.Labels)
	}
	c := w.SelectorOwners().ControllerOf(p)
	if c == nil {
		return set.AsSelector()
	}
	maps.Copy(set, c.Labels)
	return set.AsSelector().Add(c.Requirements...)
}

// TestCountsFollowTheTable: whatever happens, in whatever order, what is kept
// says what a look at every node says.
func TestCountsFollowTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if w.chance(40) {
					w.ask(t)
				}
			},
			"ask": w.ask, "node": w.setNode, "unnode": w.removeNode, "place": w.place, "place2": w.place, "remove": w.remove,
			"checkpoint": w.checkpoint, "undo": w.undo, "set owner": w.setSelectorOwner, "remove owner": w.removeSelectorOwner, "storm": w.storm,
		})
	})
}

// What is said of rows without some of their pods is what a try says.
func TestExchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range 6 {
			w.setNode(t)
		}
		for range 4 {
			for range 8 {
				w.place(t)
			}
			w.without(t)
		}
	})
}

// without compares for all pods of the pool and all rows.
func (w *world) without(t *rapid.T) {
	for i := range w.pool {
		p := w.pool[i].pod
		out := w.plugin.PreFilter(w.Table, p)
		if out.Skip || out.Status != nil {
			continue
		}
		in := &framework.Input{Table: w.Table, Pod: p, State: out.State}
		for _, r := range w.All() {
			if w.Node(r) != nil && len(w.Pods(r)) > 0 {
				below := 1 + w.rand.Int32N(2)
				plugintest.CheckExchanged(t, &w.plugin, in, r, below)
				if came := w.pool[(i+1)%len(w.pool)].pod; w.Pod(came.UID) == nil {
					plugintest.CheckExchanged(t, &w.plugin, in, r, below, came)
				}
			}
		}
	}
}
