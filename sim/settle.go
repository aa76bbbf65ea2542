package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Bounds of a world that moves on its own.
const (
	// mostRounds is how often a pod is evicted for the same pod until the two are taken
	// to go round without end.
	mostRounds = 10
	// mostSteps and mostStepsOfPod bound the steps until a world comes to rest.
	mostSteps      = 10_000
	mostStepsOfPod = 1_000
	// stopEvery is after how many steps it is asked whether to stop.
	stopEvery = 64
)

// Endless is a pod that was evicted for the same pod again and again. Both are
// namespace/name.
type Endless struct{ Victim, Preemptor string }

func (e Endless) String() string {
	return fmt.Sprintf("it goes round without end with %s: it was placed and evicted for that pod %d times, and not tried again", e.Preemptor, mostRounds)
}

// settling is what bounds how long a World moves on its own.
type settling struct {
	stop      func() bool
	steps     int
	decisions map[string]int // since the world moves, by pod
	rounds    map[Endless]int
	endless   []Endless
	cut       string
}

func newSettling() settling {
	return settling{decisions: map[string]int{}, rounds: map[Endless]int{}}
}

// restart begins to count steps.
func (s *settling) restart() {
	s.steps = 0
	clear(s.decisions)
}

// goesOn counts a step and reports whether there may be one.
func (w *World) goesOn() bool {
	if w.cut != "" {
		return false
	}
	w.steps++
	switch {
	case w.steps > mostSteps+mostStepsOfPod*len(w.Cluster.pods):
		w.cut = fmt.Sprintf("the cluster did not come to rest in %d steps; decided on most often: %s", w.steps-1, w.busiest())
	case w.stop != nil && w.steps%stopEvery == 0 && w.stop():
		w.cut = "the time was up before all pods were tried"
	}
	return w.cut == ""
}

// busiest names the pods that were decided on most often.
func (s *settling) busiest() string {
	pods := slices.SortedFunc(maps.Keys(s.decisions), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.decisions[b], s.decisions[a]), cmp.Compare(a, b))
	})
	pods = pods[:min(3, len(pods))]
	for i, p := range pods {
		pods[i] = fmt.Sprintf("%s (%d times)", p, s.decisions[p])
	}
	return strings.Join(pods, ", ")
}

// goesRound counts an eviction and reports whether the two pods go round without end.
func (s *settling) goesRound(victim, preemptor string) bool {
	e := Endless{victim, preemptor}
	s.rounds[e]++
	if s.rounds[e] < mostRounds {
		return false
	}
	s.endless = append(s.endless, e)
	return true
}
