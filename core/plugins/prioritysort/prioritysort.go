package prioritysort

import (
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/plugins/names"
)

// New returns the plugin.
func New() framework.Plugin {
	return framework.Plugin{
		Name: names.PrioritySort,
		Less: less,
	}
}

// less reports whether pod or group a comes before b. Higher priority comes first. Among equals in
// priority half-bound gangs come first: while their rest waits, what is bound of them holds room in
// vain. Then the one that was queued first, or came back from an attempt first, comes first.
func less(a, b *framework.QueuedPodInfo) bool {
	if a.Priority() != b.Priority() {
		return a.Priority() > b.Priority()
	}
	if a.HalfBound != b.HalfBound {
		return a.HalfBound
	}
	return a.Timestamp.Before(b.Timestamp)
}
