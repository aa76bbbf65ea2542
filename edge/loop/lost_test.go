package loop

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// panicking panics the given number of times on what the test says.
func panicking(times int, on func(e machine.Event) bool) func(machine.Event) bool {
	return func(e machine.Event) bool {
		if times > 0 && on(e) {
			times--
			return true
		}
		return false
	}
}

// quietly waits until the loop sleeps and keeps it from its machine meanwhile.
func (s *script) quietly(f func()) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func setOf(name string) func(machine.Event) bool {
	return func(e machine.Event) bool {
		set, ok := e.(machine.PodSet)
		return ok && set.Pod.Name == name
	}
}

// Nothing that a panic took is lost: the event is given again, less and less
// often, until it is taken in. Others come through meanwhile.
func TestLostEventIsGivenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{panicOn: panicking(3, setOf("a"))}
		l := running(t, s, &recordingExecutor{}, Options{})
		l.Post(machine.PodSet{Pod: pod("a")})
		l.Post(machine.PodSet{Pod: pod("b")})
		expect(t, s.told(0), "panic on machine.PodSet", "set b")
		for _, wait := range []time.Duration{1, 2} {
			time.Sleep(wait*time.Second - time.Millisecond)
			expect(t, s.told(2))
			time.Sleep(time.Millisecond)
			expect(t, s.told(2), "panic on machine.PodSet")
			s.quietly(func() { s.log = s.log[:2] })
		}
		time.Sleep(4 * time.Second)
		expect(t, s.told(2), "set a")
		time.Sleep(time.Hour)
		expect(t, s.told(2), "set a")
	})
}

// While an event waits to be given again, newer ones of its object take its
// place: an object that always panics costs a step a minute, however often it
// changes. What becomes of it otherwise is taken in at once.
func TestNewerEventTakesThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := 0
		s := &script{panicOn: func(e machine.Event) bool {
			bad := setOf("a")(e)
			if bad {
				panics++
			}
			return bad
		}}
		l := running(t, s, &recordingExecutor{}, Options{})
		for range 3600 {
			l.Post(machine.PodSet{Pod: pod("a")})
			time.Sleep(time.Second)
		}
		s.quietly(func() {
			if panics < 60 || panics > 70 {
				t.Errorf("%d panics in an hour", panics)
			}
		})
		from := len(s.told(0))
		l.Post(machine.PodGone{Name: "a"})
		expect(t, s.told(from), "gone a")
		time.Sleep(time.Hour)
		expect(t, s.told(from), "gone a")
	})
}

// The newest state of the object is what is given again, once.
func TestNewestStateIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := panicking(1, setOf("a"))
		var given []int32
		s := &script{panicOn: func(e machine.Event) bool {
			if bad(e) {
				return true
			}
			if set, ok := e.(machine.PodSet); ok {
				given = append(given, set.Pod.Priority)
			}
			return false
		}}
		l := running(t, s, &recordingExecutor{}, Options{})
		older, newer := pod("a"), pod("a")
		newer.Priority = 7
		l.Post(machine.PodSet{Pod: older})
		l.Post(machine.PodSet{Pod: newer})
		time.Sleep(time.Minute)
		s.quietly(func() {
			if len(given) != 1 || given[0] != 7 {
				t.Errorf("given were %v, want the newest alone", given)
			}
		})
	})
}

// That a kind cannot be listed is no news any more when it has been listed, and it is
// not what is said of another kind: else pods would wait for good for a kind that is
// there, or be placed without one that is not.
func TestNewestListingIsGiven(t *testing.T) {
	unlisted := func(k object.Kind) machine.Event { return machine.KindUnlisted{Kind: k} }
	for name, tt := range map[string]struct{ told, want []machine.Event }{
		"listed after all": {[]machine.Event{unlisted(object.ResourceClaims), machine.KindListed{Kind: object.ResourceClaims}},
			[]machine.Event{machine.KindListed{Kind: object.ResourceClaims}}},
		"two kinds": {[]machine.Event{unlisted(object.ResourceClaims), unlisted(object.PersistentVolumes)},
			[]machine.Event{unlisted(object.ResourceClaims), unlisted(object.PersistentVolumes)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad := panicking(1, func(e machine.Event) bool { return e == unlisted(object.ResourceClaims) })
				given := map[machine.Event]bool{}
				s := &script{panicOn: func(e machine.Event) bool {
					panics := bad(e)
					given[e] = !panics
					return panics
				}}
				l := running(t, s, &recordingExecutor{}, Options{})
				for _, e := range tt.told {
					l.Post(e)
				}
				time.Sleep(time.Minute)
				s.quietly(func() {
					for e, taken := range given {
						if taken != slices.Contains(tt.want, e) {
							t.Errorf("%T %v was taken in: %t", e, e, taken)
						}
					}
				})
			})
		})
	}
}

// The outcome of an effect is given again; of a read, which grows old, that it
// failed.
func TestLostOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{panicOn: panicking(2, func(e machine.Event) bool { return true })}
		l := running(t, s, &recordingExecutor{}, Options{})
		l.Report(machine.BindReply{UID: "a"})
		l.Report(machine.ReadReply{UID: "b", Pod: pod("b")})
		expect(t, s.told(0), "panic on machine.BindReply", "panic on machine.ReadReply")
		time.Sleep(firstPause)
		log := strings.Join(s.told(2), "; ")
		if !strings.Contains(log, "bound a") || !strings.Contains(log, "read b: "+errLostRead.Error()) || len(s.told(2)) != 2 {
			t.Errorf("got %q", log)
		}
	})
}

// What a plugin says of one pod does not take the place of what it says of another:
// each pod waits for its own.
func TestLostAnswersOfPlugins(t *testing.T) {
	for _, answers := range [][2]machine.Event{
		{machine.PreBindReply{UID: "a"}, machine.PreBindReply{UID: "b"}},
		{machine.PermitReply{UID: "a", Plugin: "p"}, machine.PermitReply{UID: "a", Plugin: "q"}},
		{machine.PostFilterReply{UID: "a", Call: 1}, machine.PostFilterReply{UID: "b", Call: 2}},
		{machine.NominationSet{UID: "a"}, machine.NominationSet{UID: "b"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			panics, given := 2, 0
			s := &script{panicOn: func(machine.Event) bool {
				if panics--; panics < 0 {
					given++
				}
				return panics >= 0
			}}
			l := running(t, s, &recordingExecutor{}, Options{})
			l.Report(answers[0])
			l.Report(answers[1])
			time.Sleep(time.Minute)
			s.quietly(func() {
				if given != 2 {
					t.Errorf("%T: %d of 2 are given again", answers[0], given)
				}
			})
		})
	}
}

// What the repair asks for is carried out, and an effect that panics is tried
// again.
func TestLostEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := &script{panicOn: panicking(1, setOf("a")), repair: []machine.Effect{machine.Bind{Pod: pod("x")}}}, &recordingExecutor{}
		panics := 2
		h.onDo = func(machine.Bind) {
			if panics > 0 {
				panics--
				panic("executor")
			}
		}
		l := running(t, s, h, Options{})
		l.Post(machine.PodSet{Pod: pod("a")})
		time.Sleep(time.Minute)
		synctest.Wait()
		h.mu.Lock()
		defer h.mu.Unlock()
		expect(t, h.binds, "x", "x", "x")
	})
}

// When many events were lost to one cause they come back as fast as they are
// taken in; as long as they panic there is one try a second at most.
func TestManyLostEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		broken, panics := true, 0
		s := &script{panicOn: func(e machine.Event) bool {
			_, set := e.(machine.PodSet)
			if broken && set {
				panics++
			}
			return broken && set
		}}
		l := running(t, s, &recordingExecutor{}, Options{})
		for i := range n {
			l.Post(machine.PodSet{Pod: pod(fmt.Sprint(i))})
		}
		time.Sleep(10 * time.Minute)
		s.quietly(func() {
			if panics > n+601 || panics < n+500 {
				t.Errorf("%d panics of %d objects in ten minutes", panics, n)
			}
			broken = false
		})
		time.Sleep(time.Minute)
		s.quietly(func() {
			if len(s.pods) != n {
				t.Errorf("%d of %d events were given again", len(s.pods), n)
			}
		})
	})
}

// A tick that panics does not come again at once.
func TestTickThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{timer: time.Now()}
		panics := 0
		s.panicOn = func(e machine.Event) bool { panics++; return panics <= 3 }
		running(t, s, &recordingExecutor{}, Options{})
		time.Sleep(5 * time.Second)
		s.quietly(func() {
			if panics != 3 {
				t.Errorf("%d ticks in five seconds", panics)
			}
		})
		time.Sleep(5 * time.Second)
		expect(t, s.told(3), "tick")
	})
}

// Panics at one place are logged once a minute, with their number.
func TestPanicsAreReportedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines atomic.Int32
		last := atomic.Value{}
		s := &script{panicOn: func(e machine.Event) bool { _, set := e.(machine.PodSet); return set }}
		var counted atomic.Int32
		l := New(s, &recordingExecutor{}, Options{Panicked: func(machine.Event) { counted.Add(1) },
			Logger: funcr.New(func(_, args string) { lines.Add(1); last.Store(args) }, funcr.Options{})})
		go l.Run(t.Context())
		for i := range 60 {
			l.Post(machine.PodSet{Pod: pod(fmt.Sprint(i))})
		}
		synctest.Wait()
		if lines.Load() != 1 || counted.Load() != 60 {
			t.Errorf("%d lines for %d panics", lines.Load(), counted.Load())
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if lines.Load() != 2 || !strings.Contains(last.Load().(string), `"panicsSinceLastReport"=1`) {
			t.Errorf("%d lines after a minute, the last: %.200s", lines.Load(), last.Load())
		}
	})
}

// Effects of which somebody waits for the outcome are kept each for its own, also two
// for one pod.
func TestEveryLostEffectIsKept(t *testing.T) {
	l := &Loop{}
	l.lost.waiting = map[subject]*again{}
	kept := []machine.Effect{
		machine.RunPlugins{Pod: pod("a"), Point: "PreBind"}, machine.RunPlugins{Pod: pod("a"), Point: "Bind"},
		machine.Write{Pod: pod("a")}, machine.Write{Pod: pod("a"), Call: 1},
		machine.CallExtender{Pod: pod("a"), Call: 1}, machine.CallExtender{Pod: pod("a"), Call: 2},
	}
	for _, e := range kept {
		l.loseEffect(e)
	}
	l.loseEffect(machine.RunPlugins{Pod: pod("a"), Point: "PostBind"})
	if len(l.lost.waiting) != len(kept) {
		t.Errorf("%d of %d effects are kept", len(l.lost.waiting), len(kept))
	}
}
