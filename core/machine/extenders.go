package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// extenderCycles holds the attempts that wait for extenders or PostFilter: those with calls
// without a reply, and a line of those that have not begun because an extender has as many
// open calls as it may.
type extenderCycles struct {
	*step
	options  *Options
	profiles profiles

	cycles   underway[*extenderCycle] // all, those in line included
	line     []*extenderCycle         // the highest priority first
	busy     []int                    // calls without a reply, by extender
	freed    bool                     // a call ended in this step: admit is to be called
	lastCall uint64                   // the highest number of a call so far
}

// of returns the extenders to call about the pod before a node is chosen, as indices in
// Options.Extenders; nil: none. A pod that no extender manages comes without its API
// object.
func (l *extenderCycles) of(p *object.Pod) []int {
	if p.API == nil {
		return nil
	}
	var extenders []int
	for i := range l.options.Extenders {
		if x := &l.options.Extenders[i]; x.asks() && x.Interested(p.API) {
			extenders = append(extenders, i)
		}
	}
	return extenders
}

// enter adds a cycle that begins to call extenders. It returns false if one of its extenders has as
// many open calls as it may; the cycle then stands in line, behind those of equal priority.
func (l *extenderCycles) enter(c *extenderCycle) bool {
	l.await(c)
	if l.admits(c) {
		return true
	}
	at, _ := slices.BinarySearchFunc(l.line, c, func(o, c *extenderCycle) int {
		if o.pod.Priority >= c.pod.Priority {
			return -1
		}
		return 1
	})
	l.line = slices.Insert(l.line, at, c)
	return false
}

// await records that the attempt waits for extenders or PostFilter, in its pod's state too.
func (l *extenderCycles) await(c *extenderCycle) {
	c.state.extender = c
	l.cycles.add(c)
}

// admits reports whether every extender of the cycle can take another call.
func (l *extenderCycles) admits(c *extenderCycle) bool {
	return !slices.ContainsFunc(c.extenders, l.full)
}

// full reports whether the extender (by index) has as many calls without a reply as its
// Limit allows.
func (l *extenderCycles) full(extender int) bool {
	return l.busy[extender] >= l.options.Extenders[extender].Limit
}

// admit resumes the cycles in line whose extenders can take a call, the highest priority
// first, and removes them from the line.
func (l *extenderCycles) admit(resume func(*extenderCycle)) {
	l.freed = false
	for i := 0; i < len(l.line) && !l.allFull(); {
		c := l.line[i]
		if !l.admits(c) {
			i++
			continue
		}
		l.line = slices.Delete(l.line, i, i+1)
		resume(c)
	}
}

// allFull reports whether no extender can take another call.
func (l *extenderCycles) allFull() bool {
	for i := range l.busy {
		if !l.full(i) {
			return false
		}
	}
	return true
}

// callEnded frees the extender's slot of a call that was replied to or given up.
func (l *extenderCycles) callEnded(extender int) {
	l.busy[extender]--
	l.freed = true
}

// upcomingCall returns the number of the next call of an extender or of PostFilter, without
// using it up: a PostFilter plugin is told the number before it is known whether it will
// answer later.
func (l *extenderCycles) upcomingCall() uint64 { return l.lastCall + 1 }

// nextCall returns a new number for a call of an extender or of PostFilter.
func (l *extenderCycles) nextCall() uint64 {
	l.lastCall++
	return l.lastCall
}

// send emits a call of an extender about the cycle's pod and the named nodes, and
// records it as open.
func (l *extenderCycles) send(c *extenderCycle, e CallExtender, names []string) {
	e.Call = l.nextCall()
	c.open[e.Call], c.since = call{e.Extender, e.Verb, names}, l.now
	l.busy[e.Extender]++
	l.emit(e)
}

// reply ends the open call with the number and returns it; false if the cycle has none.
func (l *extenderCycles) reply(c *extenderCycle, number uint64) (sent call, open bool) {
	if sent, open = c.open[number]; open {
		delete(c.open, number)
		l.callEnded(sent.extender)
	}
	return sent, open
}

// overdue returns a reply with an error for each call whose reply is overdue. That is a
// safeguard: the edge should have reported a timeout long before.
func (l *extenderCycles) overdue() (replies []ExtenderReply) {
	for _, c := range l.cycles {
		for _, number := range c.numbers() {
			x := &l.options.Extenders[c.open[number].extender]
			if !l.now.Before(c.deadline(x)) {
				replies = append(replies, ExtenderReply{UID: c.pod.UID, Call: number,
					Err: fmt.Errorf("extender %q: %s: no answer in %v", x.Name, c.open[number].verb, l.now.Sub(c.since))})
			}
		}
	}
	return replies
}

// nextOverdue returns when the next reply will be overdue; false if no call is open.
func (l *extenderCycles) nextOverdue() (next time.Time, ok bool) {
	for _, c := range l.cycles {
		for _, call := range c.open { // any order: takes the earliest
			if due := c.deadline(&l.options.Extenders[call.extender]); !ok || due.Before(next) {
				next, ok = due, true
			}
		}
	}
	return next, ok
}

// finish removes the pod's cycle, if it has one, and frees the slots of its open calls, whose
// replies are ignored from now on. If the cycle waits for a PostFilter plugin, the host is told
// that the attempt is over.
func (l *extenderCycles) finish(ps *podState) {
	c := ps.extender
	if c == nil {
		return
	}
	ps.extender = nil
	l.cycles.remove(c)
	if c.postFilter != nil {
		l.profiles.endAttempt(c.pod)
	}
	for _, sent := range c.open { // any order: counts
		l.callEnded(sent.extender)
	}
	if at := slices.Index(l.line, c); at >= 0 {
		l.line = slices.Delete(l.line, at, at+1)
	}
}

// repair, after a panic, removes the cycles that neither wait nor stand in line, and counts
// the open calls of the others again.
func (l *extenderCycles) repair(states []*podState) {
	lined := map[*extenderCycle]bool{}
	kept := l.line[:0]
	for _, c := range l.line {
		if c.state.extender == c && !c.waits() && c.state.entry.Place() == queue.InFlight {
			kept = append(kept, c)
			lined[c] = true
		}
	}
	clear(l.line[len(kept):])
	l.line, l.cycles = kept, nil
	clear(l.busy)
	for _, ps := range states {
		c := ps.extender
		if c == nil {
			continue
		}
		if !c.waits() && !lined[c] || ps.entry.Place() != queue.InFlight {
			ps.extender = nil
			continue
		}
		l.cycles.add(c)
		for _, call := range c.open { // any order: counts
			l.busy[call.extender]++
		}
	}
	l.freed = true // the next step lets those in line start that may
}

// verify returns an error if a cycle does not do just one of waiting for a reply and
// standing in line, or open calls are counted wrongly.
func (l *extenderCycles) verify() error {
	busy := make([]int, len(l.busy))
	for _, c := range l.cycles {
		if c.state.extender != c {
			return fmt.Errorf("pod %s: its extender cycle is not in its record", c.pod.Key())
		}
		if lined := slices.Contains(l.line, c); lined == c.waits() {
			return fmt.Errorf("pod %s waits for %d replies of extenders and a PostFilter plugin %t, in line %t; exactly one should hold", c.pod.Key(), len(c.open), c.postFilter != nil, lined)
		}
		for _, call := range c.open { // any order: counts
			busy[call.extender]++
		}
	}
	if !slices.Equal(busy, l.busy) {
		return fmt.Errorf("extenders have %v calls to reply to, counted are %v", busy, l.busy)
	}
	if stranded := slices.IndexFunc(l.line, l.admits); stranded >= 0 {
		return fmt.Errorf("pod %s stands in line for extenders that have room", l.line[stranded].pod.Key())
	}
	return nil
}
