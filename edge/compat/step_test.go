package compat_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

// slow is a plugin that takes so long at one point until it is well. It rejects pods whose
// names begin with w, and the tenth of a group where Unreserve is slow.
type slow struct {
	everyPoint
	at   string
	take time.Duration
	well atomic.Bool

	mu    sync.Mutex
	calls map[string]int // by point
}

func newSlow(at string, take time.Duration) *slow {
	x := &slow{at: at, take: take, calls: map[string]int{}}
	x.everyPoint = everyPoint{named: "B", answer: func(c call) answer {
		x.count(c.at, 1)
		x.be(c.at)
		switch {
		case c.at == "Filter" && c.pod.Name[0] == 'w', c.at == "Permit" && at == "Unreserve" && c.pod.Name == "g-9":
			return answer{status: fwk.NewStatus(fwk.Unschedulable, "no"), wait: -time.Hour}
		case c.at == "Bind":
			return answer{status: fwk.NewStatus(fwk.Skip)}
		}
		return answer{wait: -time.Hour}
	}}
	return x
}

// count counts n calls, and returns how many there were.
func (x *slow) count(at string, n int) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls[at] += n
	return x.calls[at]
}

func (x *slow) be(at string) {
	if at == x.at && !x.well.Load() {
		time.Sleep(x.take)
	}
}

func (x *slow) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{
		Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add},
		QueueingHintFn: func(klog.Logger, *v1.Pod, any, any) (fwk.QueueingHint, error) {
			x.be("QueueingHint")
			return fwk.Queue, nil
		},
	}}, nil
}

// An attempt may take a second, a step of the loop two, and a little more where what comes
// last has to be done all the same.
const attemptLimit, stepLimit = time.Second, 2200 * time.Millisecond

// inSteps runs the test in virtual time.
func inSteps(t *testing.T, x *slow, test func(t *testing.T, c *Cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := New(t, WithPodGroups(), WithTimeout(attemptLimit), WithConfig(bindersInOrder),
			WithPlugin("B", with(func(fwk.Handle) fwk.Plugin { return x })))
		test(t, c)
		x.well.Store(true)
		time.Sleep(2 * x.take) // what hangs has returned
	})
}

// What plugins take in one step of the loop is bounded, whatever the number of pods that the
// step is about: here those that an event may help.
func TestHintsOfOneEvent(t *testing.T) {
	for name, take := range map[string]time.Duration{"hang": 10 * attemptLimit, "are slow": attemptLimit / 2} {
		t.Run(name, func(t *testing.T) {
			inSteps(t, newSlow("QueueingHint", take), func(t *testing.T, c *Cluster) {
				c.Add(Node("a"))
				for i := range 20 {
					c.Add(Pod(fmt.Sprint("w", i)))
					c.Decision(fmt.Sprint("w", i), 0)
				}
				began := time.Now()
				c.Add(Node("b"))
				if took := time.Since(began); took > stepLimit {
					t.Errorf("the event took %v", took)
				}
				for i := range 20 {
					c.Decision(fmt.Sprint("w", i), 1)
				}
			})
		})
	}
}

// Where PreEnqueue hangs for some pods there is no time left for those that come after them
// in the same step. They are asked about later, though nothing happens.
func TestPreEnqueueInOneStep(t *testing.T) {
	x := newSlow("PreEnqueue", 100*attemptLimit)
	x.well.Store(true)
	inSteps(t, x, func(t *testing.T, c *Cluster) {
		c.Add(Node("a"))
		for i := range 20 {
			c.Add(Pod(fmt.Sprint("w", i)))
			c.Decision(fmt.Sprint("w", i), 0)
		}
		x.well.Store(false)
		began := time.Now()
		c.Add(Node("b"))
		x.well.Store(true) // what hangs goes on
		if took := time.Since(began); took > stepLimit {
			t.Errorf("the event took %v", took)
		}
		c.Until("all but two are tried again", func() bool {
			return x.count("Filter", 0) >= 20+18*2 // on a, and on both
		})
	})
}

// The cycle of a pod group is one step, in which all calls for its pods have one budget:
// that they are many does not hold up the loop.
func TestCallsOfAGroup(t *testing.T) {
	for at, take := range map[string]time.Duration{
		"PreFilter": attemptLimit / 2, "Filter": attemptLimit / 2, "Score": attemptLimit / 4, "Reserve": attemptLimit / 2,
	} {
		t.Run(at, func(t *testing.T) {
			x := newSlow(at, take)
			inSteps(t, x, func(t *testing.T, c *Cluster) {
				addGroup(c)
				began := time.Now()
				c.Add(member("g-9", "g"))
				d := c.Decision("g-9", 0)
				if took := time.Since(began); took > stepLimit {
					t.Errorf("the group's cycle took %v", took)
				}
				if d.Err == nil || !strings.Contains(d.Err.Error(), "within 1s") && !strings.Contains(d.Err.Error(), "timeout of 1s is used up") {
					t.Errorf("got %v", d.Err)
				}
				c.Add(Pod("other"))
				x.well.Store(true)
				c.NodeOf("other")
				c.NodeOf("g-9")
			})
		})
	}
}

// addGroup adds a group that wants ten pods, and nine of them.
func addGroup(c *Cluster) {
	c.Add(Node("a"), Node("b"), podGroup("g", 10))
	for i := range 9 {
		c.Add(member(fmt.Sprint("g-", i), "g"))
	}
}

// Unreserve is called for each pod of a group, also where the first call takes all the time
// that there is: after the try, and again for each pod that cannot be reserved for good.
func TestUnreserveOfAGroup(t *testing.T) {
	for name, take := range map[string]time.Duration{"hangs": 10 * attemptLimit, "is slow": attemptLimit / 2} {
		t.Run(name, func(t *testing.T) {
			x := newSlow("Unreserve", take)
			inSteps(t, x, func(t *testing.T, c *Cluster) {
				addGroup(c)
				began := time.Now()
				c.Add(member("g-9", "g"))
				c.Decision("g-9", 0)
				if took := time.Since(began); took > 2*10*100*time.Millisecond+stepLimit {
					t.Errorf("the group's cycle took %v", took)
				}
				if n := x.count("Unreserve", 0); n < 10 {
					t.Errorf("Unreserve was called %d times", n)
				}
			})
		})
	}
}
