package replay

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/recovered"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/sim/day"
	"github.com/berth-scheduler/berth/sim/generate"
)

var worlds = flag.Uint64("worlds", 1, "how many worlds of each mix are recorded; make test plays one")

var begin = time.Date(2031, 3, 1, 12, 0, 0, 123456789, time.UTC)

// header is that of a record of the world's scheduler.
func header(t testing.TB, w *generate.World) recording.Header {
	t.Helper()
	gates := features.New()
	if err := gates.SetFromMap(w.Gates); err != nil {
		t.Fatal(err)
	}
	c := config.With(gates).Default()
	if w.Config != "" {
		var err error
		if c, err = config.With(gates).Decode([]byte(w.Config), w.Mix); err != nil {
			t.Fatal(err)
		}
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return recording.Header{Source: recording.Scheduler, Berth: "test", Seed: w.Seed, Config: string(text), FeatureGates: w.Gates}
}

// play plays the world with faults while it is recorded in dir.
func play(t testing.TB, w *generate.World, dir string, names *recording.Names, tune func(*recording.Tuning)) {
	t.Helper()
	playTo(t, w, dir, names, tune, false)
}

// playTo is play; in step: each step is on the disk before the next one is taken.
func playTo(t testing.TB, w *generate.World, dir string, names *recording.Names, tune func(*recording.Tuning), inStep bool) {
	t.Helper()
	h := header(t, w)
	options, err := Options(&h)
	if err != nil {
		t.Fatal(err)
	}
	options.Workers, options.Check = 1, true
	options.Panicked = func(p *recovered.Panic) { t.Errorf("%s %d: %v", w.Mix, w.Seed, p) }
	m := machine.New(options)
	r, err := recording.Start(recording.Options{Dir: dir, Limit: 1 << 30, Names: names, Header: h, Source: m, Logger: klog.Background(), Tune: tune})
	if err != nil {
		t.Fatal(err)
	}
	c := day.NewCluster(m, begin)
	c.Objects, c.Observe = recording.NewObjects(names), r.Observe
	if steps := uint64(0); inStep {
		c.Observe = func(s recording.Step) {
			r.Observe(s)
			for steps++; r.Counters().Entries < steps; {
				runtime.Gosched()
			}
		}
	}
	c.Faults = rand.New(rand.NewPCG(w.Seed, 7))
	live(c, w)
	r.Close(context.Background())
	if n := r.Counters(); n.Lost > 0 || n.Errors > 0 || n.Entries == 0 {
		t.Fatalf("%s %d: the recorder counts %+v", w.Mix, w.Seed, n)
	}
}

// fixedOf returns the world's objects that no decision changes.
func fixedOf(w *generate.World) (fixed []metav1.Object) {
	for _, n := range w.Nodes {
		fixed = append(fixed, n)
	}
	for _, b := range w.Budgets {
		fixed = append(fixed, b)
	}
	for _, n := range w.Namespaces {
		fixed = append(fixed, n)
	}
	return append(fixed, w.SelectorOwners...)
}

// live shows the cluster the world, pod by pod, while time passes.
func live(c *day.Cluster, w *generate.World) {
	for _, o := range slices.Concat(fixedOf(w), w.Objects) {
		c.Set(o)
	}
	for _, p := range w.Bound {
		c.Set(p)
	}
	changes := w.Changes
	for i, p := range w.Pending {
		for ; len(changes) > 0 && changes[0].After <= i; changes = changes[1:] {
			change(c, &changes[0])
		}
		c.Set(p)
		if c.Faults.IntN(3) > 0 {
			c.Settle()
		}
		c.Advance(c.Now.Add(time.Duration(c.Faults.IntN(3000)) * time.Millisecond))
		if all := c.Pods(); c.Faults.IntN(6) == 0 {
			c.Delete(all[c.Faults.IntN(len(all))].UID)
		}
	}
	c.Advance(c.Now.Add(time.Minute))
	c.Advance(c.Now.Add(10 * time.Minute))
}

func change(c *day.Cluster, ch *generate.Change) {
	switch {
	case ch.Node != nil && ch.Verb == generate.Delete:
		c.Step(machine.NodeGone{Name: ch.Node.Name})
	case ch.Node != nil:
		c.Set(ch.Node)
	case ch.Namespace != nil:
		c.Set(ch.Namespace)
	case ch.Other != nil && ch.Verb == generate.Delete:
		c.Gone(ch.Other)
	case ch.Other != nil:
		c.Set(ch.Other)
	case ch.Verb == generate.Delete:
		c.Delete(ch.Pod.UID)
	default:
		p := ch.Pod.DeepCopy()
		if now := c.Pod(p.UID); now != nil {
			p.Spec.NodeName, p.Status = now.Spec.NodeName, now.Status
		}
		c.Set(p)
	}
}

func exactly(t testing.TB, dir string) *Exactly {
	t.Helper()
	r, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	x, err := Exact(r, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Whatever happens in a cluster, faults of the API included, a replay of the record
// decides as the scheduler did: each decision, each effect.
func TestReplayIsExact(t *testing.T) {
	decisions := map[string]int{}
	for _, mix := range append(generate.Mixes(), generate.GateMixes()...) {
		for seed := range *worlds {
			w, err := generate.Cluster(mix, seed)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			play(t, &w, dir, nil, nil)
			x := exactly(t, dir)
			if x.Different > 0 || x.Same != x.Decisions || x.Decisions == 0 {
				t.Errorf("%s %d: %d steps of %d are different, %d of %d decisions the same; the first: %+v", mix, seed, x.Different, x.Steps, x.Same, x.Decisions, x.First)
			}
			for result, n := range x.ByResult {
				decisions[string(result)] += n
			}
		}
	}
	t.Log(fmt.Sprint(decisions))
}

// A record whose oldest segments are gone begins with what the scheduler knew then:
// each decision, each effect from there on is replayed as it was, whichever segment
// it begins with.
func TestCutRecordIsExact(t *testing.T) {
	records, decisions, unverified := 0, 0, 0
	for _, mix := range append(generate.Mixes(), generate.GateMixes()...) {
		for seed := range *worlds {
			w, err := generate.Cluster(mix, seed)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			playTo(t, &w, dir, nil, func(u *recording.Tuning) { u.Segment, u.Flush = 24000, 0 }, true)
			for names, _ := filepath.Glob(filepath.Join(dir, "*.berthrecord")); len(names) > 1; {
				if err := os.Remove(names[0]); err != nil {
					t.Fatal(err)
				}
				names = names[1:]
				x := exactly(t, dir)
				if x.Different > 0 || x.Same+x.Unverified != x.Decisions || len(x.Notes) > 0 {
					t.Fatalf("%s %d from %s on: %d steps of %d are different, %d of %d decisions the same; %v; the first: %+v", mix, seed, filepath.Base(names[0]), x.Different, x.Steps, x.Same, x.Decisions, x.Notes, x.First)
				}
				records, decisions, unverified = records+1, decisions+x.Decisions, unverified+x.Unverified
			}
		}
	}
	t.Logf("%d records, %d decisions, of which %d could not be compared", records, decisions, unverified)
	if unverified*100 > decisions {
		t.Errorf("%d of %d decisions could not be compared", unverified, decisions)
	}
}
