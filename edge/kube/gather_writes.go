package kube

import (
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// writePause is how long what is written waits for more.
	writePause = time.Millisecond
	// pendingLimit is how much may wait, in bytes, before who writes waits, too.
	pendingLimit = 64 << 10
	// heldUpLimit is how long it may wait where the process stood still or the server did
	// not read: a binding is not to be sent long after it was found that the lease is held.
	heldUpLimit = time.Second
)

var errHeldUp = errors.New("not sent: it was held up for too long")

// burstWriter is a connection that sends in bursts. HTTP/2 writes the header and the
// body of each request by itself, and bindings and events come by the dozen; each
// would take a system call, which wakes the server.
type burstWriter struct {
	net.Conn
	mu      sync.Mutex
	room    sync.Cond // in pending, or err is set
	pending []byte
	spare   []byte    // the buffer that was sent before
	since   time.Time // when the first of pending was written
	sending bool      // send is at work, or will be
	err     error     // why nothing is sent any more
}

func newBurstWriter(c net.Conn) *burstWriter {
	w := &burstWriter{Conn: c}
	w.room.L = &w.mu
	return w
}

// Write queues b, to be sent within a moment. It returns the error of an earlier write.
func (w *burstWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.pending) >= pendingLimit && w.err == nil {
		w.room.Wait()
	}
	if w.err != nil {
		return 0, w.err
	}
	if len(w.pending) == 0 {
		w.since = time.Now()
	}
	w.pending = append(w.pending, b...)
	w.plan()
	return len(b), nil
}

// plan has what is pending sent. The caller holds mu.
func (w *burstWriter) plan() {
	if !w.sending {
		w.sending = true
		time.AfterFunc(writePause, w.send)
	}
}

// send sends what is pending. It closes the connection if that fails, so that whoever
// waits for an answer gets an error.
func (w *burstWriter) send() {
	w.mu.Lock()
	burst, since := w.pending, w.since
	w.pending, w.spare = w.spare[:0], nil
	w.mu.Unlock()
	err := errHeldUp
	if time.Since(since) < heldUpLimit {
		_, err = w.Conn.Write(burst)
	}
	if err != nil {
		_ = w.fail(err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spare, w.sending = burst, false
	if len(w.pending) > 0 {
		w.plan()
	}
	w.room.Broadcast()
}

// fail ends the connection. Nothing more is sent.
func (w *burstWriter) fail(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.room.Broadcast()
	return w.Conn.Close()
}

// Close closes the connection. What is pending is not sent.
func (w *burstWriter) Close() error { return w.fail(net.ErrClosed) }

// Read reads. Where the connection was closed because nothing could be sent, that is
// the error.
func (w *burstWriter) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err != nil {
			err = w.err
		}
	}
	return n, err
}
