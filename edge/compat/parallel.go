package compat

import (
	"sync"
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"
)

// leastShare is how many nodes one goroutine of the function each takes at a time. There are no
// more goroutines than full shares.
const leastShare = 64

// comparableNode is a NodeInfo that may be compared with nil.
type comparableNode interface {
	comparable
	fwk.NodeInfo
}

// each calls f with the index and value of each node that is not nil, on several goroutines if
// there are many nodes. After a panic of f no goroutine takes another share, and the panic is
// raised on the caller's goroutine.
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

// inParallel calls f for 0 to n-1, on up to Options.Parallelism goroutines. After a panic of f no
// other call begins, and the panic is raised on the caller's goroutine.
func (h *Hosts) inParallel(n int, f func(int)) { h.share(n, 1, func(i, _ int) { f(i) }) }

// readAhead reads what most plugins read of a node, of all nodes before a plugin is asked about the
// first. These reads wait for memory together; those of a plugin would wait one after the other,
// which takes longer than all else that is done for a question. The result only keeps the compiler
// from leaving out the reads.
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

// share calls f for all of [0, n) in pieces of length least, of which the last may be
// shorter. Up to Options.Parallelism goroutines share the pieces. A panic of f is
// raised here.
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
