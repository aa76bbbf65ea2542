package why

import "fmt"

// unplaced is the cause of pods that would be placed.
const unplaced = "fitting now, and not placed yet"

// causeKey is equal for answers with one cause: what blocks the pods where they
// come nearest, and the labels of nodes that they ask for.
func causeKey(a *Answer) string {
	switch a.Verdict {
	case Waiting, Misconfigured:
		if len(a.Groups) > 0 {
			spec := &a.facts.api.Spec
			return fmt.Sprintf("%s %t %q %v", a.Verdict, a.outrun, a.nearestGroup().Blockers, spec.NodeSelector)
		}
	case WouldBePlaced:
		return fmt.Sprintf("%s %t %s", a.Verdict, a.PodGroup != "", a.refused())
	case Preempting, InProgress:
		return string(a.Verdict)
	}
	return string(a.Verdict) + " " + a.Message
}

// cause is what the answer says, without the pod's name.
func (a *Answer) cause() string {
	switch a.Verdict {
	case WouldBePlaced:
		if refused := a.refused(); refused != "" {
			return "fitting by what is known here, but the cluster said last: " + refused
		}
		if a.PodGroup != "" {
			return "fitting now each by itself, but placed together with their pod groups, which this answer does not try"
		}
		return unplaced
	case Preempting:
		return "waiting for pods that leave for them"
	case InProgress:
		return "on their way"
	case Waiting:
		switch {
		case len(a.Groups) == 0:
			return "waiting: there is no node"
		case a.outrun:
			return "waiting for room, which pods that are tried before them take: " + a.nearest()
		}
		return "waiting for room: " + a.nearest()
	case Misconfigured:
		if beside := a.beside(); beside != "" {
			return "having to be beside " + beside + ", where there is no room: " + a.nearest()
		}
		return "fitting nowhere, however empty the nodes are: " + a.nearest()
	case Gated:
		return "not tried: " + a.Message
	}
	return "not scheduled: " + a.Message
}
