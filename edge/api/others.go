package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/edge/records"
)

// otherPlace is where pods are that ask for other schedulers. It is no place of the queue.
const otherPlace = "other scheduler"

// otherPods lists the pods without a node that ask for other schedulers whose names have the part, the oldest
// pods first.
func (h *handler) otherPods(namespace, part string, limit int) *PendingList {
	pods := slices.DeleteFunc(h.Recorder.OtherPods(), func(p records.OtherPod) bool {
		return namespace != "" && p.Pod.Namespace != namespace || !strings.Contains(strings.ToLower(p.Scheduler), strings.ToLower(part))
	})
	slices.SortFunc(pods, func(a, b records.OtherPod) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Pod.String(), b.Pod.String()))
	})
	list := &PendingList{Head: head("PendingList"), Pods: []PendingPod{}, Total: len(pods)}
	for _, p := range pods[:min(limit, len(pods))] {
		since := p.Created
		if since.IsZero() {
			since = p.Seen
		}
		list.Pods = append(list.Pods, PendingPod{Pod: p.Pod.String(), UID: p.UID, Place: otherPlace, Since: since.UTC(), Created: utc(p.Created),
			Message: fmt.Sprintf("its schedulerName is %q", p.Scheduler)})
	}
	return list
}
