package replay

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/recovered"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/sim/day"
	"github.com/berth-scheduler/berth/sim/generate"
)

var (
	gapSeeds  = flag.Uint64("gap-seeds", 0, "how many records TestGapsAreExact makes; 0: a few")
	gapEvents = flag.Int("gap-events", 800, "how many events happen in each")
	gapSeed   = flag.Uint64("gap-seed", 0, "the first seed of TestGapsAreExact")
)

// disk is a disk in a directory that is full at times. What is written then ends
// somewhere in the middle.
type disk struct {
	draw *rand.Rand
	full bool
}

func (d *disk) create(path string) (io.WriteCloser, error) {
	if d.full && d.draw.IntN(2) == 0 {
		return nil, syscall.ENOSPC
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return &onDisk{f, d}, err
}

type onDisk struct {
	*os.File
	disk *disk
}

func (f *onDisk) Write(p []byte) (int, error) {
	if !f.disk.full {
		return f.File.Write(p)
	}
	n, _ := f.File.Write(p[:f.disk.draw.IntN(len(p)+1)])
	return n, syscall.ENOSPC
}

// churn is a cluster in which replies are always awaited, pods come again under one name,
// and the scheduler and its disk fail at times.
type churn struct {
	*testing.T
	*rand.Rand
	*day.Cluster
	world    generate.World
	dir      string
	disk     *disk
	recorder *recording.Recorder
	fixed    map[string]metav1.Object // what the cluster does not keep, by type and name
	names    map[string]types.UID     // of the pods
	made     int
	redacted bool
}

const flush = time.Second

// newChurn begins a world of a mix and a seed.
func newChurn(t *testing.T, mix string, seed uint64, dir string) *churn {
	w, err := generate.Cluster(mix, seed)
	if err != nil {
		t.Fatal(err)
	}
	c := &churn{T: t, Rand: rand.New(rand.NewPCG(seed, 11)), world: w, dir: dir, fixed: map[string]metav1.Object{}, names: map[string]types.UID{}}
	c.disk, c.redacted = &disk{draw: c.Rand}, seed%4 == 3 && !strings.Contains(w.Config, "addedAffinity") // which --record-redact refuses
	c.Cluster = day.NewCluster(nil, begin)
	c.Faults = c.Rand
	c.start()
	for _, o := range fixedOf(&w) {
		c.setFixed(o)
	}
	for _, o := range w.Objects {
		c.Set(o)
	}
	for _, p := range w.Bound {
		c.Set(p)
	}
	return c
}

// start begins a scheduler and its record.
func (c *churn) start() {
	h := header(c, &c.world)
	options, err := Options(&h)
	if err != nil {
		c.Fatal(err)
	}
	options.Workers, options.Check = 1, true
	options.Panicked = func(p *recovered.Panic) { c.Errorf("%s %d: %v", c.world.Mix, c.world.Seed, p) }
	m, names := machine.New(options), (*recording.Names)(nil)
	if c.redacted {
		names = recording.NewNames(fmt.Append(nil, "a key of run ", c.made))
	}
	c.recorder, err = recording.Start(recording.Options{Dir: c.dir, Names: names, Limit: 1 << 30, Header: h, Source: m, Logger: klog.Background(),
		Tune: func(u *recording.Tuning) {
			u.Segment, u.Flush, u.Retry, u.Create = 3000, flush, 10*flush, c.disk.create
		}})
	if err != nil {
		c.Fatal(err)
	}
	c.Machine, c.Objects, c.Observe = m, recording.NewObjects(names), func(s recording.Step) {
		if err := m.Verify(); err != nil {
			c.Fatal(err)
		}
		c.recorder.Observe(s)
	}
}

func (c *churn) setFixed(o metav1.Object) {
	c.fixed[fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())] = o
	c.Set(o)
}

// kill ends the scheduler in the middle of a write, and begins another.
func (c *churn) kill() {
	c.recorder.Close(context.Background())
	if names := segmentsIn(c, c.dir); len(names) > 0 {
		last := names[len(names)-1]
		info, err := os.Stat(last)
		if err != nil {
			c.Fatal(err)
		}
		if err := os.Truncate(last, max(info.Size()-int64(c.IntN(400)), 0)); err != nil {
			c.Fatal(err)
		}
	}
	c.disk.full = false
	c.start()
	for _, key := range slices.Sorted(keysOf(c.fixed)) {
		c.Set(c.fixed[key])
	}
	c.Restart(c.Machine)
}

// write lets the recorder write what it was shown.
func (c *churn) write() {
	time.Sleep(flush)
	synctest.Wait()
}

// live lets things happen.
func (c *churn) live(events int) {
	changes := c.world.Changes
	for i := range events {
		switch at := c.IntN(100); {
		case at < 20:
			c.arrive()
		case at < 28:
			c.leave()
		case at < 31:
			c.relabel()
		case at < 34 && len(changes) > 0:
			c.change(&changes[0])
			changes = changes[1:]
		case at < 60:
			c.Step(machine.ScheduleOne{})
		case at < 92 && c.Waiting() > 3:
			c.DeliverOne(c.IntN(2) == 0)
		case at < 96:
			c.pass(time.Duration(c.IntN(2000)) * time.Millisecond)
		case at == 96 && i%50 == 0:
			c.pass(time.Minute)
		case at < 98:
			c.write()
		case at == 98 && c.IntN(4) == 0:
			c.disk.full = !c.disk.full
			c.write()
		case at == 99 && c.IntN(40) == 0:
			c.kill()
		}
	}
	c.disk.full = false
	c.recorder.Close(context.Background())
}

// pass lets time pass: timers fire.
func (c *churn) pass(d time.Duration) {
	to := c.Now.Add(d)
	for range 20 {
		due, ok := c.Machine.NextTimer()
		if !ok || due.After(to) {
			break
		}
		if due.After(c.Now) {
			c.Now = due
		}
		c.Step(machine.Tick{})
	}
	c.Now = to
}

// arrive makes a pod, mostly under a name that was used before.
func (c *churn) arrive() {
	p := c.world.Pending[c.IntN(len(c.world.Pending))].DeepCopy()
	c.made++
	p.UID = types.UID(fmt.Sprintf("%s-%d", p.UID, c.made))
	key := p.Namespace + "/" + p.Name
	if old := c.names[key]; c.IntN(3) > 0 { // else the watch shows no deletion
		c.DeleteLater(old)
	} else if o := c.Pod(old); o != nil {
		c.Forget(old)
	}
	c.names[key] = p.UID
	c.Later(p)
}

func (c *churn) leave() {
	if all := c.Pods(); len(all) > 0 {
		c.DeleteLater(all[c.IntN(len(all))].UID)
	}
}

func (c *churn) relabel() {
	if all := c.Pods(); len(all) > 0 {
		p := all[c.IntN(len(all))].DeepCopy()
		metav1.SetMetaDataLabel(&p.ObjectMeta, "turn", fmt.Sprint(c.IntN(3)))
		c.Later(p)
	}
}

func (c *churn) change(ch *generate.Change) {
	switch {
	case ch.Pod != nil:
	case ch.Node != nil && ch.Verb == generate.Delete:
		delete(c.fixed, fmt.Sprintf("%T %s/%s", ch.Node, "", ch.Node.Name))
		c.Step(machine.NodeGone{Name: ch.Node.Name})
	case ch.Node != nil:
		c.setFixed(ch.Node)
	case ch.Namespace != nil:
		c.setFixed(ch.Namespace)
	case ch.Verb == generate.Delete:
		c.Gone(ch.Other)
	default:
		c.Later(ch.Other)
	}
}

func segmentsIn(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.berthrecord"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func keysOf(m map[string]metav1.Object) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// totals of what was replayed.
type totals struct{ records, gaps, replays, decisions, unverified, wrong int }

// replayAll replays the record from each of its segments on.
func (s *totals) replayAll(t *testing.T, name, dir string) {
	s.records++
	for names := segmentsIn(t, dir); len(names) > 0; names = names[1:] {
		x := exactly(t, dir)
		s.replays, s.decisions, s.unverified = s.replays+1, s.decisions+x.Decisions, s.unverified+x.Unverified
		if x.Different > 0 || x.Same+x.Unverified != x.Decisions || len(x.Notes) > 0 {
			s.wrong++
			t.Errorf("%s from %s on: %d steps of %d are different, %d of %d decisions the same; %v; the first: %+v",
				name, filepath.Base(names[0]), x.Different, x.Steps, x.Same, x.Decisions, x.Notes, x.First)
			return
		}
		if err := os.Remove(names[0]); err != nil {
			t.Fatal(err)
		}
	}
}

// A record of a busy scheduler that has gaps, as the disk was full or the scheduler was
// killed, replays exactly from whichever segment it begins with. Nearly all of it is
// compared, though replies are awaited at every moment.
func TestGapsAreExact(t *testing.T) {
	mixes := append(generate.Mixes(), generate.GateMixes()...)
	seeds := []uint64{851, 1013} // that were red once
	for i := range cmp.Or(*gapSeeds, uint64(len(mixes))) {
		seeds = append(seeds, *gapSeed+i)
	}
	var s totals
	for _, seed := range seeds {
		mix, dir := mixes[seed%uint64(len(mixes))], t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			c := newChurn(t, mix, seed, dir)
			c.live(*gapEvents)
			if c.recorder.Counters().Errors > 0 {
				s.gaps++
			}
		})
		s.replayAll(t, fmt.Sprintf("%s %d", mix, seed), dir)
	}
	t.Logf("%+v", s)
	if s.unverified*50 > s.decisions {
		t.Errorf("%d of %d decisions could not be compared", s.unverified, s.decisions)
	}
}
