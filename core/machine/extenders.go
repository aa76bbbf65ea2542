package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// extenderCycles are the attempts that wait for extenders: those with calls that have no
// reply yet, and the line of those that no extender was asked about yet.
type extenderCycles struct {
	*step
	options  *Options
	profiles profiles

	cycles   underway[*extenderCycle]
	line     []*extenderCycle // the most important first
	busy     []int            // by extender: calls without a reply
	freed    bool             // an extender has fewer than before
	lastCall uint64
}

// of lists the extenders that may be asked about the pod, by their
// position. Pods that no extender manages come without their API object.
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

// enter adds a cycle. It returns false if the cycle has to stand in line.
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

// await adds a cycle that waits for a reply.
func (l *extenderCycles) await(c *extenderCycle) {
	c.state.extender = c
	l.cycles.add(c)
}

// admits reports whether every extender of the pod can take another call.
func (l *extenderCycles) admits(c *extenderCycle) bool {
	return !slices.ContainsFunc(c.extenders, l.full)
}

func (l *extenderCycles) full(extender int) bool {
	return l.busy[extender] >= l.options.Extenders[extender].Limit
}

// admit takes the cycles out of the line whose extenders can take a call, the most
// important first, and resumes each.
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

// callEnded frees the extender's slot of a call that was replied to, or is not waited for
// any more.
func (l *extenderCycles) callEnded(extender int) {
	l.busy[extender]--
	l.freed = true
}

// upcomingCall returns what nextCall would.
func (l *extenderCycles) upcomingCall() uint64 { return l.lastCall + 1 }

// nextCall returns a number for a call that is answered later.
func (l *extenderCycles) nextCall() uint64 {
	l.lastCall++
	return l.lastCall
}

// send calls an extender about the cycle's pod.
func (l *extenderCycles) send(c *extenderCycle, e CallExtender, names []string) {
	e.Call = l.nextCall()
	c.open[e.Call], c.since = call{e.Extender, e.Verb, names}, l.now
	l.busy[e.Extender]++
	l.emit(e)
}

// reply ends the call of the number. It returns false if the cycle has no such call.
func (l *extenderCycles) reply(c *extenderCycle, number uint64) (sent call, open bool) {
	if sent, open = c.open[number]; open {
		delete(c.open, number)
		l.callEnded(sent.extender)
	}
	return sent, open
}

// overdue returns a reply with an error for each call whose reply is overdue. The edge
// should have reported a timeout long before.
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

// nextOverdue returns when the next reply is overdue; false if none is awaited.
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

// finish ends the pod's cycle, if it has one, and takes the pod out of the line. The calls that
// have no reply yet leave their slots at once; their replies are ignored.
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

// repair ends those that wait for no reply and do not stand in line,
// and counts the others.
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

// verify checks that pods that wait for extenders wait for a reply
// or stand in line, and are counted right.
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
