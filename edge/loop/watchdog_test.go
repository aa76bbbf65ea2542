package loop

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
)

// A step that does not end is found out, named and told of once; when it ends
// after all, all is well again. A loop that has nothing to do is not stuck.
func TestStuckLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		h := &recordingExecutor{onDo: func(machine.Bind) { <-hold }}
		l := running(t, &script{}, h, Options{})
		w := NewWatchdog(l, 30*time.Second)
		var told []string
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.Run(ctx, func(s *Stuck) { told = append(told, s.Error()) })

		time.Sleep(time.Hour)
		if err := w.Check(nil); err != nil {
			t.Errorf("with nothing to do: %v", err)
		}
		l.Post(machine.PodSet{Pod: pod("p")})
		l.Lead(true)
		time.Sleep(29 * time.Second)
		if err := w.Check(nil); err != nil {
			t.Errorf("too soon: %v", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		const want = "the scheduling loop has been stuck for 30s in the step ScheduleOne /p"
		expect(t, told, want)
		if err := w.Check(nil); err == nil || w.Age() < time.Minute {
			t.Errorf("check: %v, age %s", err, w.Age())
		}
		close(hold)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if err := w.Check(nil); err != nil || w.Age() != 0 {
			t.Errorf("after its end: %v, age %s", err, w.Age())
		}
	})
}

// Steps that follow each other without a pause are no step that is stuck.
func TestBusyLoopIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recordingExecutor{onDo: func(machine.Bind) { time.Sleep(20 * time.Second) }}
		l := running(t, &script{}, h, Options{})
		w := NewWatchdog(l, 30*time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.Run(ctx, func(s *Stuck) { t.Error(s) })
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			l.Post(machine.PodSet{Pod: pod(name)})
		}
		l.Lead(true)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		expect(t, h.binds, "a", "b", "c", "d", "e")
	})
}

// The longest step is known, and a question counts as one.
func TestLongestStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &script{panicOn: func(e machine.Event) bool {
			if p, ok := e.(machine.PodSet); ok && p.Pod.Name == "slow" {
				time.Sleep(2 * time.Second)
			}
			return false
		}}
		l := running(t, m, &recordingExecutor{}, Options{})
		l.Post(machine.PodSet{Pod: pod("slow")})
		l.Post(machine.PodSet{Pod: pod("quick")})
		synctest.Wait()
		time.Sleep(time.Minute)
		if l.Longest() != 2*time.Second {
			t.Errorf("longest step %s, want 2s", l.Longest())
		}
		if err := l.Inspect(t.Context(), func() { time.Sleep(3 * time.Second) }); err != nil || l.Longest() != 3*time.Second {
			t.Errorf("%v; longest step %s, want the question's 3s", err, l.Longest())
		}
	})
}

// A step is named by its event and by the object that it is about.
func TestStepsAreNamed(t *testing.T) {
	var d doing
	d.cycle(pod("p"))
	for want, e := range map[string]machine.Event{
		"Inspect":        nil,
		"Tick":           machine.Tick{},
		"PodSet /p":      machine.PodSet{Pod: pod("p")},
		"NodeGone n":     machine.NodeGone{Name: "n"},
		"BindReply uid":  machine.BindReply{UID: "uid"},
		"ScheduleOne /p": machine.ScheduleOne{},
		"PodGone ns/p":   machine.PodGone{Namespace: "ns", Name: "p"},
		"NamespaceGone":  machine.NamespaceGone{Name: "ns"},
	} {
		d.begin(e)
		if got := d.String(); got != want {
			t.Errorf("%T: %q, want %q", e, got, want)
		}
	}
}
