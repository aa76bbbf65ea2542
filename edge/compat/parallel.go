package compat

import (
	"sync"
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"
)

// leastShare is how many nodes are worth a goroutine.
const leastShare = 64

// comparableNode is a NodeInfo that may be compared with nil.
type comparableNode interface {
	comparable
	fwk.NodeInfo
}

// each runs f for the nodes but nil ones, several at a time where they are many. A panic
// ends all, on the goroutine of the caller.
func each[N comparableNode](h *Hosts, nodes []N, f func(int, N)) {
	var none N
	h.share(len(nodes), leastShare, func(from, to int) {
		readAhead(nodes[from:to])
		for i := from; i < to; i++ {
			if nodes[i] != none {
				f(i, nodes[i])
			}
		}
	})
}

// inParallel runs f for 0..n-1, each of which is worth a goroutine. A panic ends all, on
// the goroutine of the caller.
func (h *Hosts) inParallel(n int, f func(int)) { h.share(n, 1, func(i, _ int) { f(i) }) }

// readAhead reads what most plugins read of a node, of all nodes before a plugin is asked
// about the first. These reads wait for memory together; those of a plugin would wait one
// after the other, which takes longer than all else that is done for a question.
//
//go:noinline
func readAhead[N comparableNode](nodes []N) (read byte) {
	var none N
	for _, n := range nodes {
		if n == none {
			continue
		}
		if node := n.Node(); node != nil && node.Name != "" {
			read += node.Name[0]
		}
	}
	return read
}

// share calls f for pieces of [0, n), each of size least except for the last, which may
// be smaller. Several goroutines share the pieces if there are enough.
func (h *Hosts) share(n, least int, f func(from, to int)) {
	workers := min(h.options.Parallelism, n/least)
	if workers < 2 {
		for from := 0; from < n; from += least {
			f(from, min(from+least, n))
		}
		return
	}
	var next atomic.Int64
	var group sync.WaitGroup
	var failed atomic.Pointer[error]
	for range workers {
		group.Go(func() {
			err := errExited // until proven otherwise: f may end the goroutine
			defer func() {
				if err != nil {
					failed.Store(&err)
				}
			}()
			err = contain(func() {
				for failed.Load() == nil {
					from := int(next.Add(int64(least))) - least
					if from >= n {
						return
					}
					f(from, min(from+least, n))
				}
			})
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		panic(*err)
	}
}
