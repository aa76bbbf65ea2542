package recording

import (
	"context"
	"io"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
)

// failing is a disk of which every write fails while it is set.
type failing struct{ atomic.Bool }

func (d *failing) create(path string) (io.WriteCloser, error) {
	f, err := createFile(path)
	return &failingFile{f, d}, err
}

type failingFile struct {
	io.WriteCloser
	disk *failing
}

func (f *failingFile) Write(p []byte) (int, error) {
	if f.disk.Load() {
		return 0, syscall.ENOSPC
	}
	return f.WriteCloser.Write(p)
}

// gapped records a first half, and a second half after a gap in which the disk took
// nothing; it returns the begin of the run after the gap.
func gapped(t *testing.T, first, lost []Step) *Begin {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		disk := &failing{}
		r, err := Start(Options{Dir: dir, Limit: 1 << 30, Logger: klog.Background(), Header: Header{Source: Scheduler},
			Tune: func(t *Tuning) { t.Create = disk.create }})
		if err != nil {
			t.Fatal(err)
		}
		observe := func(steps ...Step) {
			for _, s := range steps {
				r.Observe(s)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		observe(first...)
		disk.Store(true)
		observe(lost...)
		disk.Store(false)
		observe(Step{Now: start.Add(time.Hour), Event: machine.Tick{}})
		observe(Step{Now: start.Add(time.Hour), Event: machine.Tick{}})
		r.Close(context.Background())
		if c := r.Counters(); c.Lost != uint64(len(lost))+1 || c.Errors != 1 {
			t.Errorf("counted %+v, want %d steps lost", c, len(lost)+1)
		}
	})
	entries, _, err := all(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Begin != nil && !e.Begin.Whole {
			if e.Begin.Gap == "" {
				t.Error("the record does not say why there is a gap")
			}
			return e.Begin
		}
	}
	t.Fatal("no run follows the gap")
	return nil
}

// A disk that takes nothing for a while makes a gap. Nobody waits for it, and the
// log goes on with all objects that are there.
func TestGap(t *testing.T) {
	steps := script(3000)
	last := map[string]string{}
	for _, s := range steps {
		switch e := s.Event.(type) {
		case machine.PodSet:
			last[e.Pod.Key()] = describe(e)
		case machine.PodGone:
			delete(last, e.Namespace+"/"+e.Name)
		}
	}
	begin := gapped(t, steps[:2000], steps[2000:])
	if len(begin.Objects) != len(last) {
		t.Fatalf("after the gap there are %d objects, want %d", len(begin.Objects), len(last))
	}
	for _, e := range begin.Objects {
		if p := e.(machine.PodSet).Pod; last[p.Key()] != describe(e) {
			t.Errorf("after the gap: %s, want %s", describe(e), last[p.Key()])
		}
	}
}

// pod is a pod that has a UID of its own.
func pod(uid types.UID) machine.Event {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0", UID: uid, ResourceVersion: "5"}, Spec: v1.PodSpec{NodeName: "node-1"}}
	e := machine.PodSet{Pod: decode.Pod(p)}
	NewObjects(nil).Attach(e, p)
	return e
}

// A pod that was made again under its name while there was a gap is there after it if it is
// there then, and the one before it is not.
func TestGapOverOneName(t *testing.T) {
	gone := func(uid types.UID) machine.Event { return machine.PodGone{UID: uid, Namespace: "shop", Name: "db-0"} }
	for name, c := range map[string]struct {
		first, lost []machine.Event
		want        types.UID
	}{
		"made again, and gone":         {[]machine.Event{pod("a")}, []machine.Event{gone("a"), pod("b"), gone("b")}, ""},
		"made again unseen, and gone":  {[]machine.Event{pod("a")}, []machine.Event{pod("b"), gone("b")}, ""},
		"made again":                   {[]machine.Event{pod("a")}, []machine.Event{gone("a"), pod("b")}, "b"},
		"the deletion is shown late":   {[]machine.Event{pod("a")}, []machine.Event{pod("b"), gone("a")}, "b"},
		"an old deletion comes late":   {[]machine.Event{pod("a"), pod("b")}, []machine.Event{gone("a")}, "b"},
		"made and gone within the gap": {nil, []machine.Event{pod("a"), gone("a")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			steps := func(events []machine.Event) (list []Step) {
				for _, e := range append(events, machine.Tick{}) {
					list = append(list, Step{Now: start, Event: e})
				}
				return list
			}
			begin, uid := gapped(t, steps(c.first), steps(c.lost)), types.UID("")
			if len(begin.Objects) > 0 {
				uid = begin.Objects[0].(machine.PodSet).Pod.UID
			}
			if uid != c.want {
				t.Errorf("after the gap pod %q is there, want %q", uid, c.want)
			}
		})
	}
}

// hanging is a disk that hangs while a channel is set, until it is closed.
type hanging struct{ until atomic.Pointer[chan struct{}] }

func (d *hanging) create(path string) (io.WriteCloser, error) {
	f, err := createFile(path)
	return &hangingFile{f, d}, err
}

type hangingFile struct {
	io.WriteCloser
	disk *hanging
}

func (f *hangingFile) Write(p []byte) (int, error) {
	if until := f.disk.until.Load(); until != nil {
		<-*until
	}
	return f.WriteCloser.Write(p)
}

// A disk that hangs, as a network's may, holds nobody up, however long it hangs: what waits
// for it, and what is known of objects, is bounded. The record goes on when it is back.
func TestHangingDisk(t *testing.T) {
	const unwritten, pending, alive = 64 << 10, 4096, 100
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := &hanging{}
		r, err := Start(Options{Dir: dir, Limit: 1 << 30, Logger: klog.Background(), Header: Header{Source: Scheduler},
			Tune: func(t *Tuning) { t.Create, t.Unwritten, t.Pending = d.create, unwritten, pending }})
		if err != nil {
			t.Fatal(err)
		}
		back := make(chan struct{})
		d.until.Store(&back)
		for i := range 50_000 {
			before := time.Now()
			r.Observe(Step{Now: start, Event: podSet(i, 2*i+1)})
			if i >= alive {
				r.Observe(Step{Now: start, Event: podGone(i - alive)})
			}
			if held := time.Since(before); held > 0 {
				t.Fatalf("step %d was held up for %v", i, held)
			}
			if i%1000 > 0 {
				continue
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if n := r.disk.state(0).bytes; n > unwritten+frameTarget {
				t.Fatalf("%d bytes wait for the disk", n)
			}
			if n := len(r.steps); n > 2*pending {
				t.Fatalf("%d steps wait for the writer", n)
			}
			if n := len(r.out.encoder.objects); n > alive+1 {
				t.Fatalf("%d objects are remembered, %d are there", n, alive)
			}
		}
		d.until.Store(nil)
		close(back)
		for range 2 { // the gap may end with the first
			time.Sleep(time.Hour)
			r.Observe(Step{Now: start, Event: machine.Tick{}})
		}
		r.Close(context.Background())
		if c := r.Counters(); c.Errors != 1 || c.Entries+c.Lost != 2*50_000-alive+2 {
			t.Errorf("counted %+v", c)
		}
	})
	entries, _, err := all(dir)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(entries, func(e *Entry) bool { return e.Begin != nil && !e.Begin.Whole })
	if at < 0 || entries[at].Begin.Gap != "the disk could not keep up" || len(entries[at].Begin.Objects) > alive+1 {
		t.Fatalf("the run after the gap is entry %d of %d", at, len(entries))
	}
	if last := entries[len(entries)-1].Event; last != (machine.Tick{}) {
		t.Errorf("the record ends with %T", last)
	}
}
