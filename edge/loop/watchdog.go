package loop

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// doing is what the loop does at present, for the watchdog's goroutine to read.
type doing struct {
	mu    sync.Mutex
	steps uint64        // steps and questions that have begun so far
	busy  bool          // one has begun since the loop last rested
	event machine.Event // of the last step; nil: a question, or the loop rests
	pod   *object.Pod   // of the last ScheduleOne; nil: none since the loop last rested
}

// begin records that a step begins; a nil event stands for a question (Inspect).
func (d *doing) begin(e machine.Event) {
	d.mu.Lock()
	d.steps++
	d.busy, d.event = true, e
	d.mu.Unlock()
}

// cycle records the pod whose scheduling cycle is about to run, so that a stuck loop can
// name it.
func (d *doing) cycle(p *object.Pod) {
	d.mu.Lock()
	d.pod = p
	d.mu.Unlock()
}

// rest records that the loop has nothing to do.
func (d *doing) rest() {
	d.mu.Lock()
	d.busy, d.event, d.pod = false, nil, nil
	d.mu.Unlock()
}

// look returns how many steps and questions have begun so far, and whether the loop is busy:
// it has not rested since the last one began.
func (d *doing) look() (steps uint64, busy bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.steps, d.busy
}

// String names the step under way, such as "PodSet default/web-0". It is "Inspect" for a
// question, and while the loop rests.
func (d *doing) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.event == nil {
		return "Inspect"
	}
	about := ""
	switch e := d.event.(type) {
	case machine.ScheduleOne:
		about = d.pod.Key()
	case machine.PodSet:
		about = e.Pod.Key()
	case machine.PodGone:
		about = e.Namespace + "/" + e.Name
	case machine.NodeSet:
		about = e.Node.Name
	case machine.NodeGone:
		about = e.Name
	case machine.ObjectSet:
		about = e.Object.Head().Kind.String() + " " + e.Object.Head().Key()
	case machine.BindReply:
		about = string(e.UID)
	case machine.ReadReply:
		about = string(e.UID)
	case machine.WriteReply:
		about = string(e.UID)
	case machine.ExtenderReply:
		about = string(e.UID)
	case machine.EvictReply:
		about = string(e.Victim)
	}
	return strings.TrimSpace(reflect.TypeOf(d.event).Name() + " " + about)
}

// lookEvery is how often the watchdog checks the loop.
const lookEvery = time.Second

// Watchdog finds a loop that is stuck: it has been at the same step or question for the
// limit. Time is counted in checks (lookEvery), so that a process that was stopped, or a
// clock that was set, does not look like a stuck loop.
type Watchdog struct {
	loop  *Loop
	limit time.Duration
	stuck atomic.Pointer[Stuck] // nil: the loop is not stuck
	at    atomic.Int64          // how long the loop has been at its step, in nanoseconds
}

// Stuck is a step that takes too long.
type Stuck struct {
	Step string        // its event, and the pod or object that the event is about
	For  time.Duration // how long it has taken so far
}

// Error says which step the loop is stuck in and for how long.
func (s *Stuck) Error() string {
	return fmt.Sprintf("the scheduling loop has been stuck for %s in the step %s", s.For, s.Step)
}

// NewWatchdog returns a watchdog of l, which is stuck after limit in one step. Run starts it.
func NewWatchdog(l *Loop, limit time.Duration) *Watchdog { return &Watchdog{loop: l, limit: limit} }

// Run watches the loop until the context ends. It calls stuck, on the same goroutine, once for
// each step that reaches the limit.
func (w *Watchdog) Run(ctx context.Context, stuck func(*Stuck)) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var seen uint64
	var since time.Duration
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		steps, busy := w.loop.now.look()
		if !busy || steps != seen {
			seen, since = steps, 0
			w.stuck.Store(nil)
			w.at.Store(0)
			continue
		}
		since += lookEvery
		w.at.Store(int64(since))
		if since < w.limit {
			continue
		}
		s := &Stuck{Step: w.loop.now.String(), For: since}
		if w.stuck.Swap(s) == nil {
			stuck(s)
		}
	}
}

// Age returns how long the loop has been at its present step, in whole seconds; 0 if it
// rests or the step is new.
func (w *Watchdog) Age() time.Duration { return time.Duration(w.at.Load()) }

// Name returns the name of the watchdog as a health check (healthz.HealthChecker).
func (w *Watchdog) Name() string { return "scheduling-loop" }

// Check returns the stuck step as an error, nil if the loop is not stuck.
func (w *Watchdog) Check(*http.Request) error {
	if s := w.stuck.Load(); s != nil {
		return s
	}
	return nil
}
