package queue

import "github.com/berth-scheduler/berth/core/object"

// Next appends the n pods that Pop would return next from the active queue, in
// order, as long as nothing changes; the queue stays as it is.
func (q *Queue) Next(pods []*object.Pod, n int) []*object.Pod {
	h := &q.heaps[Active]
	run, frontier := h.run[h.front:], q.frontier[:0]
	if len(h.entries) > 0 {
		frontier = append(frontier, h.entries[0])
	}
	for ; n > 0; n-- {
		for len(run) > 0 && run[0] == nil {
			run = run[1:]
		}
		at := -1 // of the binary heap the next one is in the frontier
		for i, e := range frontier {
			if at < 0 || h.less(e, frontier[at]) {
				at = i
			}
		}
		switch {
		case len(run) > 0 && (at < 0 || !h.less(frontier[at], run[0])):
			pods, run = append(pods, run[0].Pod), run[1:]
			continue
		case at < 0:
			return pods
		}
		e := frontier[at]
		pods = append(pods, e.Pod)
		frontier[at] = frontier[len(frontier)-1]
		frontier = frontier[:len(frontier)-1]
		for child := 2*e.index + 1; child <= 2*e.index+2 && child < len(h.entries); child++ {
			frontier = append(frontier, h.entries[child])
		}
	}
	clear(frontier)
	q.frontier = frontier[:0]
	return pods
}
