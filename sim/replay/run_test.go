package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/sim/day"
	"github.com/berth-scheduler/berth/sim/generate"
)

// recordDay records a small generated day.
func recordDay(t testing.TB, dir string, s day.Size, source string, names *recording.Names) {
	t.Helper()
	h := header(t, &generate.World{Seed: 5})
	h.Source, h.Start = source, begin
	o, err := Options(&h)
	if err != nil {
		t.Fatal(err)
	}
	r, err := recording.Start(recording.Options{Dir: dir, Limit: 1 << 30, Names: names, Header: h, Logger: klog.Background(), Wait: true})
	if err != nil {
		t.Fatal(err)
	}
	c := day.NewCluster(machine.New(o), begin)
	c.Objects, c.Observe = recording.NewObjects(names), r.Observe
	if source == recording.Watch { // it sees no decisions, only what comes of them
		c.Observe = func(s recording.Step) {
			switch s.Event.(type) {
			case machine.ScheduleOne, machine.Tick, machine.BindReply, machine.EvictReply:
			default:
				r.Observe(recording.Step{Now: s.Now, Event: s.Event})
			}
		}
	}
	day.Generate(c, s, nil)
	r.Close(context.Background())
}

func run(t testing.TB, dir string, change func(*machine.Options)) *Day {
	t.Helper()
	l, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := l.Header()
	o, err := Options(&h)
	if err != nil {
		t.Fatal(err)
	}
	served := profileNames(o)
	change(&o)
	d, err := Run(l, served, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func profileNames(o machine.Options) (names []string) {
	for _, p := range o.Profiles {
		names = append(names, p.Name)
	}
	return names
}

var small = day.Size{Nodes: 8, Pods: 120, Length: 24 * time.Hour, Heartbeat: time.Hour, Seed: 3}

// A day that is replayed with its own configuration and seed goes as it went, also
// where only a watch was recorded; with another seed pods go elsewhere, and nothing
// else changes.
func TestRun(t *testing.T) {
	for _, source := range []string{recording.Scheduler, recording.Watch} {
		dir := t.TempDir()
		recordDay(t, dir, small, source, nil)
		own := run(t, dir, func(*machine.Options) {})
		same, elsewhere := own.Against()
		if same != small.Pods || len(elsewhere) > 0 || elsewhere == nil {
			t.Errorf("%s: %d pods of %d are where they were; elsewhere %v", source, same, small.Pods, elsewhere[:min(3, len(elsewhere))])
		}
		other := run(t, dir, func(o *machine.Options) { o.Seed = 99 })
		c := Compare("own", "other seed", own, other)
		if c.A.Placed != small.Pods || c.B.Placed != small.Pods || len(c.Elsewhere) == 0 || len(c.OnlyA)+len(c.OnlyB) > 0 || c.Same+len(c.Elsewhere) != small.Pods {
			t.Errorf("%s: %d and %d placed, %d elsewhere, %d the same", source, c.A.Placed, c.B.Placed, len(c.Elsewhere), c.Same)
		}
		if len(c.A.Samples) < 100 || c.A.CPU <= 0 || c.A.CPU > 1 {
			t.Errorf("%s: %d samples, CPU %f", source, len(c.A.Samples), c.A.CPU)
		}
	}
}

// A record whose names are redacted replays to the same decisions, whatever the order
// of the hashes, and none of the names is in it.
func TestRedacted(t *testing.T) {
	for _, mix := range append(generate.Mixes(), generate.GateMixes()...) {
		for seed := range *worlds {
			w, err := generate.Cluster(mix, seed)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(w.Config, "addedAffinity") {
				continue // which --record-redact refuses
			}
			lettered(t, &w)
			dir := t.TempDir()
			play(t, &w, dir, recording.NewNames(fmt.Appendf(nil, "%s %d", mix, seed)), nil)
			x := exactly(t, dir)
			if x.Different > 0 || x.Decisions == 0 {
				t.Errorf("%s %d: %d steps of %d are different; the first: %+v", mix, seed, x.Different, x.Steps, x.First)
			}
			hidesNames(t, dir)
		}
	}
}

// Where nodes and victims are equal in all else, a redacted record has the same ones
// chosen, although the hashes of their names are in another order.
func TestRedactedTies(t *testing.T) {
	w := generate.World{Mix: "ties", Seed: 1}
	for _, node := range []string{"ant", "bee", "cat"} {
		w.Nodes = append(w.Nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, UID: types.UID(node)},
			Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("3"), "pods": resource.MustParse("9")}}})
		for _, pod := range []string{"kiwi", "lime", "plum"} {
			w.Bound = append(w.Bound, fruit(node+pod, 0))
			w.Bound[len(w.Bound)-1].Spec.NodeName = node
		}
	}
	for _, pod := range []string{"x", "y", "z"} {
		w.Pending = append(w.Pending, fruit(pod, 10))
	}
	for key := range 8 {
		dir := t.TempDir()
		play(t, &w, dir, recording.NewNames(fmt.Append(nil, key)), nil)
		if x := exactly(t, dir); x.Different > 0 || x.ByResult[decision.ResultPreempting] == 0 {
			t.Errorf("key %d: %d steps of %d are different, %v; the first: %+v", key, x.Different, x.Steps, x.ByResult, x.First)
		}
	}
}

// fruit is a pod of one CPU.
func fruit(name string, priority int32) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	p.Spec.SchedulerName, p.Spec.Priority = v1.DefaultSchedulerName, &priority
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("1")}}}}
	return p
}

// lettered writes the numbers in names as letters: whole numbers are not redacted, and
// the order of the names would stay.
func lettered(t *testing.T, w *generate.World) {
	t.Helper()
	for _, list := range []any{&w.Nodes, &w.Bound, &w.Pending, &w.Budgets, &w.Namespaces} {
		rewrite(t, list)
	}
	for _, list := range [][]metav1.Object{w.SelectorOwners, w.Objects} {
		for _, o := range list {
			rewrite(t, o)
		}
	}
	for i := range w.Changes {
		c := &w.Changes[i]
		for _, o := range []any{c.Node, c.Pod, c.Namespace, c.Other} {
			if o != nil && !reflect.ValueOf(o).IsNil() {
				rewrite(t, o)
			}
		}
	}
}

var number = regexp.MustCompile(`[a-z]-[0-9]+\b`)

func rewrite(t *testing.T, o any) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	text = number.ReplaceAllFunc(text, func(b []byte) []byte {
		for i := 2; i < len(b); i++ {
			b[i] += 'a' - '0'
		}
		return b
	})
	v := reflect.ValueOf(o).Elem()
	v.Set(reflect.Zero(v.Type()))
	if err := json.Unmarshal(text, o); err != nil {
		t.Fatal(err)
	}
}

func hidesNames(t *testing.T, dir string) {
	t.Helper()
	l, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for {
		e, err := l.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if set, ok := e.Event.(machine.PodSet); ok && (strings.Contains(set.Pod.Recorded, "team-a") || strings.Contains(set.Pod.Recorded, "node-a")) {
			t.Fatalf("the record has %q", set.Pod.Recorded)
		}
	}
}

// sizeOf returns the size of the files in the directory.
func sizeOf(t testing.TB, dir string) (sum int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		stat, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		sum += stat.Size()
	}
	return sum
}

// The generated day is recorded exactly, in few bytes.
func TestDayIsExact(t *testing.T) {
	dir := t.TempDir()
	recordDay(t, dir, small, recording.Scheduler, nil)
	x := exactly(t, dir)
	if x.Different > 0 || x.Decisions < small.Pods {
		t.Errorf("%d decisions, %d steps of %d different; the first: %+v", x.Decisions, x.Different, x.Steps, x.First)
	}
	if per := float64(sizeOf(t, dir)) / float64(x.Steps); per > 200 {
		t.Errorf("%.0f bytes an event, of %d", per, x.Steps)
	} else {
		t.Logf("%.0f bytes an event, of %d", per, x.Steps)
	}
}

// told is a log of what is told at times after the start.
type told []recording.Entry

func (l *told) Next() (*recording.Entry, error) {
	if len(*l) == 0 {
		return nil, io.EOF
	}
	e := (*l)[0]
	*l = (*l)[1:]
	return &e, nil
}

// The means are over the time in which all of the cluster was known: not that before
// the first lists, nor that in which they came.
func TestMeansBeginAfterTheFirstLists(t *testing.T) {
	one := resource.MustParse("1")
	node := machine.NodeSet{Node: decode.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourcePods: one}}})}
	pod := machine.PodSet{Pod: decode.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "p", UID: "p"},
		Spec: v1.PodSpec{SchedulerName: "default-scheduler", NodeName: "a", Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: one}}}}}})}
	h := header(t, &generate.World{Seed: 5})
	h.Start = begin
	o, err := Options(&h)
	if err != nil {
		t.Fatal(err)
	}
	at := func(ms int, e machine.Event) recording.Entry {
		return recording.Entry{Now: begin.Add(time.Duration(ms) * time.Millisecond), Event: e}
	}
	first := recording.Entry{Begin: &recording.Begin{Header: h}}
	for name, c := range map[string]struct {
		log     told
		samples int
	}{
		"nothing follows":              {told{first, at(100, node), at(200, pod)}, 1},
		"a pause follows":              {told{first, at(900, node), at(1800, pod), at(3100, node)}, 3},
		"a decision follows":           {told{first, at(900, node), at(1800, pod), at(2100, machine.ScheduleOne{}), at(2200, node), at(3100, node)}, 2},
		"all is known at the start":    {told{{Begin: &recording.Begin{Header: h, Objects: []machine.Event{node, pod}}}, at(1500, node)}, 1},
		"the lists come a while later": {told{first, at(5000, node), at(5100, pod), at(7500, node)}, 3},
	} {
		d, err := Run(&c.log, profileNames(o), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s := SideOf("", d); math.Abs(s.CPU-0.5) > 1e-9 || len(s.Samples) != c.samples {
			t.Errorf("%s: the mean is %f of %d samples, want 0.5 of %d", name, s.CPU, len(s.Samples), c.samples)
		}
	}
}

// Pods that a configuration has no profile for stay without a node, and text and JSON say so
// first; the other side's day is as ever.
func TestPodsThatNoProfileServes(t *testing.T) {
	dir := t.TempDir()
	recordDay(t, dir, small, recording.Scheduler, nil)
	a, b := run(t, dir, func(*machine.Options) {}), run(t, dir, func(o *machine.Options) { o.Profiles[0].Name = "other" })
	c := Compare("old", "new", a, b)
	note := fmt.Sprintf("no profile of B serves default-scheduler: %d pods stay without a node", small.Pods)
	if len(c.Notes) != 1 || c.Notes[0] != note {
		t.Errorf("notes %q, want %q", c.Notes, note)
	}
	if c.A.Placed != small.Pods || c.B.Placed != 0 || len(c.OnlyA) != small.Pods {
		t.Errorf("%d placed under A, %d under B, %d under A alone", c.A.Placed, c.B.Placed, len(c.OnlyA))
	}
	var text bytes.Buffer
	if err := c.Write(&text, false); err != nil || !strings.HasPrefix(text.String(), "Note: "+note+".\n") {
		t.Errorf("%v: the text begins with %.100s", err, text.String())
	}
	changed := ChangedOf("new", b)
	if len(changed.Notes) != 1 || changed.Notes[0] != strings.Replace(note, " B ", " new ", 1) || changed.Same != 0 || len(changed.Elsewhere) != small.Pods {
		t.Errorf("replayed: notes %q, %d the same, %d elsewhere", changed.Notes, changed.Same, len(changed.Elsewhere))
	}
}

// What was played to a time is settled, and holds nothing of a later run.
func TestPlayTo(t *testing.T) {
	node := func(name string) machine.Event {
		return machine.NodeSet{Node: decode.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourcePods: resource.MustParse("1")}}})}
	}
	pod := machine.PodSet{Pod: decode.Pod(fruit("p", 0))}
	h := header(t, &generate.World{Seed: 5})
	h.Start = begin
	o, err := Options(&h)
	if err != nil {
		t.Fatal(err)
	}
	later := h
	later.Start = begin.Add(time.Hour)
	log := &told{{Begin: &recording.Begin{Header: h}}, {Now: begin, Event: node("a")}, {Now: begin, Event: pod}, {Begin: &recording.Begin{Header: later, Objects: []machine.Event{node("b")}}}}
	p := NewPlayer(log, profileNames(o), o, nil)
	gone, stop := context.WithCancel(t.Context())
	stop()
	if err := p.PlayTo(gone, begin); err == nil || p.World() != nil {
		t.Errorf("nobody waits: %v", err)
	}
	for _, c := range []struct {
		at   time.Time
		runs int
	}{{begin, 1}, {begin.Add(time.Minute), 1}, {later.Start, 2}} {
		if err := p.PlayTo(t.Context(), c.at); err != nil {
			t.Fatal(err)
		}
		w := p.World()
		if is := w.Cluster.Pod("default/p"); is == nil || is.NodeName != "a" || !w.Now.Equal(c.at) || len(w.Cluster.Nodes()) != c.runs {
			t.Errorf("%s: %+v at %s, %d nodes", c.at, is, w.Now, len(w.Cluster.Nodes()))
		}
	}
	p.World().Close()
}
