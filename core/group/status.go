package group

import "github.com/berth-scheduler/berth/core/object"

// Census is how many pods of a group there are, by phase.
type Census struct {
	// Present are the pods that the API shows and that have not ended.
	Present, Running  int
	Succeeded, Failed int    // those that ended
	Owners            string // owners of the group's first pod; "" if OccupiedBy is known
}

// Status returns the status that follows was, the status that g, a PodGroup of scheduler-plugins,
// had before, now that it has these pods. A phase that is final stays; the numbers are always those
// of the pods. A group that has too few pods, or a Fault, is Pending. OccupiedBy is set to the
// Owners once there are enough pods, and then stays.
func Status(g *object.PodGroup, was object.GroupStatus, pods Census) object.GroupStatus {
	s := object.GroupStatus{Phase: was.Phase, OccupiedBy: was.OccupiedBy, Running: pods.Running, Succeeded: pods.Succeeded, Failed: pods.Failed}
	if s.Phase.Final() {
		return s
	}
	if ended := pods.Succeeded + pods.Failed; g.Fault != "" || pods.Present+ended < g.MinCount {
		s.Phase = object.GroupPending
		return s
	}
	if s.OccupiedBy == "" {
		s.OccupiedBy = pods.Owners
	}
	switch enough := g.MinCount; {
	case pods.Succeeded >= enough:
		s.Phase = object.GroupFinished
	case pods.Failed > 0 && pods.Failed+pods.Running+pods.Succeeded >= enough:
		s.Phase = object.GroupFailed
	case pods.Succeeded+pods.Running >= enough:
		s.Phase = object.GroupRunning
	default:
		s.Phase = object.GroupScheduling
	}
	return s
}
