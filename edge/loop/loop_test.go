package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a machine that binds each pod that it was told of, in order, and
// writes down what it was told.
type script struct {
	repaired int
	begun    int        // ScheduleOnes without a pod
	mu       sync.Mutex // the test reads while the loop may write
	log      []string
	pods     []string
	timer    time.Time
	rebound  time.Duration // the timer is set again by so much at each tick
	panicOn  func(e machine.Event) bool
	resolved int
	repair   []machine.Effect
}

func (s *script) Step(now time.Time, e machine.Event) []machine.Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panicOn != nil && s.panicOn(e) {
		s.log = append(s.log, fmt.Sprintf("panic on %T", e))
		panic("scripted")
	}
	switch e := e.(type) {
	case machine.PodSet:
		s.log = append(s.log, "set "+e.Pod.Name)
		s.pods = append(s.pods, e.Pod.Name)
	case machine.PodGone:
		s.log = append(s.log, "gone "+e.Name)
	case machine.ReadReply:
		s.log = append(s.log, fmt.Sprintf("read %s: %v", e.UID, e.Err))
	case machine.BindReply:
		s.log = append(s.log, "bound "+string(e.UID))
		s.resolved++
	case machine.Tick:
		s.log = append(s.log, "tick")
		s.timer = time.Time{}
		if s.rebound > 0 {
			s.timer = now.Add(s.rebound)
		}
	case machine.ScheduleOne:
		if len(s.pods) == 0 {
			s.begun++
			return nil
		}
		name := s.pods[0]
		s.pods = s.pods[1:]
		s.log = append(s.log, "cycle "+name)
		return []machine.Effect{machine.Bind{Pod: pod(name)}}
	}
	return nil
}

func (s *script) Repair() []machine.Effect { s.repaired++; return s.repair }
func (s *script) First() *object.Pod {
	if len(s.pods) == 0 {
		return nil
	}
	return pod(s.pods[0])
}
func (s *script) NextTimer() (time.Time, bool) { return s.timer, !s.timer.IsZero() }

// told waits until the loop sleeps and returns the log from the given entry.
func (s *script) told(from int) []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log[from:])
}

func pod(name string) *object.Pod { return &object.Pod{UID: types.UID(name), Name: name} }

// recordingExecutor remembers what it was given; it is full at limit bindings.
type recordingExecutor struct {
	limit int
	mu    sync.Mutex
	binds []string
	open  int
	onDo  func(machine.Bind)
}

func (h *recordingExecutor) Do(e machine.Effect) {
	b := e.(machine.Bind)
	h.mu.Lock()
	h.binds = append(h.binds, b.Pod.Name)
	h.open++
	h.mu.Unlock()
	if h.onDo != nil {
		h.onDo(b)
	}
}

func (h *recordingExecutor) Full() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.limit > 0 && h.open >= h.limit
}

func (h *recordingExecutor) answered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open--
}

// running starts a loop in a bubble of virtual time and ends it after the
// test. The script may be read after synctest.Wait.
func running(t *testing.T, s *script, h *recordingExecutor, o Options) *Loop {
	o.Logger = klog.Background()
	l := New(s, h, o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return l
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// Events are told before pods are scheduled, and no pod is scheduled without the lead.
func TestNewsBeforeCycles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		l := running(t, s, &recordingExecutor{}, Options{})
		l.Post(machine.PodSet{Pod: pod("a")})
		l.Post(machine.PodSet{Pod: pod("b")})
		expect(t, s.told(0), "set a", "set b") // not leading: nothing is decided
		l.Lead(true)
		expect(t, s.told(0), "set a", "set b", "cycle a", "cycle b")
		l.Lead(false)
		l.Post(machine.PodSet{Pod: pod("c")})
		l.Report(machine.BindReply{UID: "a"})
		expect(t, s.told(4), "set c", "bound a")
	})
}

// When leading begins, the machine gets one ScheduleOne, even if no pod waits.
func TestLeadWithoutPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		l := running(t, s, &recordingExecutor{}, Options{})
		for i, lead := range []bool{false, true, true, false, true} {
			l.Lead(lead)
			s.told(0)
			if want := []int{0, 1, 1, 1, 2}[i]; s.begun != want {
				t.Errorf("after %d: told %d times, want %d", i, s.begun, want)
			}
		}
		l.Post(machine.PodSet{Pod: pod("a")})
		expect(t, s.told(0), "set a", "cycle a")
	})
}

// Rest comes after the last step before the loop waits. That it panics stops nothing.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		steps, atRest := 0, []int(nil)
		l := running(t, s, &recordingExecutor{}, Options{
			Observe: func(Step) { steps++ },
			Rest: func() {
				if atRest = append(atRest, steps); len(atRest) == 1 {
					panic("scripted")
				}
			},
		})
		l.Post(machine.PodSet{Pod: pod("a")})
		l.Post(machine.PodSet{Pod: pod("b")})
		l.Lead(true)
		synctest.Wait()
		expect(t, s.told(0), "set a", "set b", "cycle a", "cycle b")
		if len(atRest) == 0 || atRest[len(atRest)-1] != steps {
			t.Errorf("%d steps, rests after %v", steps, atRest)
		}
	})
}

// No pod is scheduled while the executor is full, and scheduling goes on when a binding
// is answered.
func TestFullHandsPauseCycles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := &script{}, &recordingExecutor{limit: 2}
		l := running(t, s, h, Options{})
		for _, name := range []string{"a", "b", "c"} {
			l.Post(machine.PodSet{Pod: pod(name)})
		}
		l.Lead(true)
		synctest.Wait()
		expect(t, h.binds, "a", "b")
		h.answered()
		l.Report(machine.BindReply{UID: "a"})
		synctest.Wait()
		expect(t, h.binds, "a", "b", "c")
	})
}

// The machine gets a tick when its timer is due, and not before.
func TestTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{timer: time.Now().Add(time.Minute), rebound: 5 * time.Minute}
		running(t, s, &recordingExecutor{}, Options{})
		time.Sleep(59 * time.Second)
		expect(t, s.told(0))
		time.Sleep(time.Second)
		expect(t, s.told(0), "tick")
		time.Sleep(5 * time.Minute)
		expect(t, s.told(0), "tick", "tick")
	})
}

// The inbox takes no more news than its limit; outcomes get in all the same,
// even from within the step that they answer.
func TestInboxIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newInbox(2)
		posted := 0
		go func() {
			for range 3 {
				b.post(machine.Tick{})
				posted++
			}
		}()
		synctest.Wait()
		if posted != 2 {
			t.Fatalf("%d news got in, want 2", posted)
		}
		if !b.push(item{event: machine.BindReply{}}) {
			t.Fatal("an outcome was kept out")
		}
		if got := len(b.take()); got != 3 {
			t.Fatalf("took %d items, want 3", got)
		}
		synctest.Wait()
		if posted != 3 {
			t.Fatalf("%d news got in after take, want 3", posted)
		}
	})
}

// An outcome that Do reports itself does not block the loop.
func TestOutcomeReportedFromDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := &script{}, &recordingExecutor{}
		var l *Loop
		h.onDo = func(b machine.Bind) { l.Report(machine.BindReply{UID: b.Pod.UID}) }
		l = running(t, s, h, Options{})
		for i := range 3 * inboxLimit {
			l.Post(machine.PodSet{Pod: pod(fmt.Sprint(i))})
		}
		l.Lead(true)
		synctest.Wait()
		if s.resolved != 3*inboxLimit {
			t.Errorf("%d bindings answered, want %d", s.resolved, 3*inboxLimit)
		}
	})
}

// A panic costs one step, is counted, and the loop goes on.
func TestPanicCostsOneStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := 2
		s := &script{panicOn: func(e machine.Event) bool {
			_, cycle := e.(machine.ScheduleOne)
			if cycle && panics > 0 {
				panics--
				return true
			}
			return false
		}}
		counted := 0
		l := running(t, s, &recordingExecutor{}, Options{Panicked: func(machine.Event) { counted++ }})
		l.Post(machine.PodSet{Pod: pod("a")})
		l.Lead(true)
		expect(t, s.told(0), "set a", "panic on machine.ScheduleOne")

		l.Post(machine.PodSet{Pod: pod("b")}) // news get through meanwhile
		expect(t, s.told(2), "set b")
		time.Sleep(firstPause)
		expect(t, s.told(3), "panic on machine.ScheduleOne")
		time.Sleep(2*firstPause - time.Millisecond)
		expect(t, s.told(4))
		time.Sleep(2 * time.Millisecond)
		expect(t, s.told(4), "cycle a", "cycle b")
		if counted != 2 {
			t.Errorf("counted %d panics, want 2", counted)
		}
	})
}

// An inspection sees every event posted before, and fails when the loop has stopped.
func TestInspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		l := New(s, &recordingExecutor{}, Options{Logger: klog.Background()})
		ctx, cancel := context.WithCancel(t.Context())
		l.Post(machine.PodSet{Pod: pod("a")})
		go l.Run(ctx)
		seen := 0
		if err := l.Inspect(t.Context(), func() { seen = len(s.log) }); err != nil || seen != 1 {
			t.Errorf("saw %d entries, error %v", seen, err)
		}
		stopped := make(chan error, 1)
		if err := l.Inspect(t.Context(), func() {
			go func() { stopped <- l.Inspect(context.Background(), func() {}) }()
			synctest.Wait() // it has asked
			cancel()        // the loop stops before it takes the question
		}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if err := <-stopped; !errors.Is(err, ErrStopped) {
			t.Errorf("got %v, want ErrStopped for a question that the loop did not take", err)
		}
		if err := l.Inspect(t.Context(), func() {}); !errors.Is(err, ErrStopped) {
			t.Errorf("got %v, want ErrStopped", err)
		}
		l.Post(machine.Tick{}) // must not hang
	})
}
