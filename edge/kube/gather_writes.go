package kube

import (
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// writePause is how long written bytes wait for more before they are sent together.
	writePause = time.Millisecond
	// pendingLimit is how many bytes may wait. Write blocks while that many wait.
	pendingLimit = 64 << 10
	// heldUpLimit is how old waiting bytes may be when they are sent, if the process was
	// stopped or the server did not read. Older ones are not sent: a binding must not be
	// sent long after the lease was checked.
	heldUpLimit = time.Second
)

// errHeldUp ends a connection whose bytes waited for longer than heldUpLimit.
var errHeldUp = errors.New("not sent: it was held up for too long")

// burstWriter is a connection that sends in bursts. HTTP/2 writes the header and the
// body of each request by itself, and bindings and events come by the dozen; each
// would take a system call, which wakes the server.
type burstWriter struct {
	net.Conn
	mu      sync.Mutex
	room    sync.Cond // signalled when pending is sent or err is set
	pending []byte    // written and not sent
	spare   []byte    // the buffer that was sent before, for reuse
	since   time.Time // when the first of pending was written
	sending bool      // send runs, or a timer will start it
	err     error     // why nothing is sent any more; nil: bytes are sent
}

// newBurstWriter returns a connection that sends to c in bursts, and reads from c.
func newBurstWriter(c net.Conn) *burstWriter {
	w := &burstWriter{Conn: c}
	w.room.L = &w.mu
	return w
}

// Write queues a copy of b, to be sent within about a millisecond. It blocks while pendingLimit
// bytes wait. It returns an error only if an earlier send failed or the connection is closed.
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

// plan starts the timer that sends the pending bytes, unless it runs. The caller holds mu.
func (w *burstWriter) plan() {
	if !w.sending {
		w.sending = true
		time.AfterFunc(writePause, w.send)
	}
}

// send sends the pending bytes, and plans the next send if others were written meanwhile. It
// closes the connection if sending fails or the bytes are older than heldUpLimit, so that
// whoever waits for an answer gets an error.
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

// fail closes the connection because of err. Reads and writes from then on return the err of
// the first call. It returns the error of closing.
func (w *burstWriter) fail(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.room.Broadcast()
	return w.Conn.Close()
}

// Close closes the connection. Pending bytes are not sent. Reads and writes that wait return
// net.ErrClosed.
func (w *burstWriter) Close() error { return w.fail(net.ErrClosed) }

// Read reads from the connection. If the connection was closed because a send failed, Read
// returns the error of that send.
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
