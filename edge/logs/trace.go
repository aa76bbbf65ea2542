package logs

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/loop"
)

// step is when an attempt had done a step.
type step struct {
	name string
	at   time.Time
}

// StepDone notes that an attempt has done a step, for machine.Options.
func (l *Logger) StepDone(name string) {
	if l.level >= 2 {
		l.steps = append(l.steps, step{name, time.Now()})
	}
}

// clock is how k8s.io/utils/trace prints the time of a step.
const clock = "15:04:05.000"

// trace logs a slow attempt in the form of k8s.io/utils/trace, with those of its
// steps that took a share of the time.
func (l *Logger) trace(s loop.Step) {
	for _, e := range s.Effects {
		done, ok := e.(machine.AttemptDone)
		if !ok {
			continue
		}
		id := rand.Int32() // #nosec G404 -- it groups lines, as kube-scheduler's does
		pod := named(done.Decision.Pod)
		var b strings.Builder
		fmt.Fprintf(&b, "Trace[%d]: %q namespace:%s,name:%s (%s) (total time: %dms):", id, "Scheduling", pod.Namespace, pod.Name,
			s.Now.Format("02-Jan-2006 "+clock), s.Took.Milliseconds())
		share, last := slow/time.Duration(len(l.steps)+1), s.Now
		for _, st := range l.steps {
			if took := st.at.Sub(last); took >= share || l.level >= 4 {
				fmt.Fprintf(&b, "\nTrace[%d]: ---%q %dms (%s)", id, st.name, took.Milliseconds(), st.at.Format(clock))
			}
			last = st.at
		}
		l.logger.V(2).Info(b.String())
		return
	}
}
