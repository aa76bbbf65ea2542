package bounds

import (
	"errors"
	"net/http"
	"os"
	"time"
)

// Timed serves with h. All writes of one answer together wait at most as long for their
// reader as most says; then they fail. A handler that sets write deadlines itself is left
// alone.
func Timed(h http.Handler, most time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &timed{ResponseWriter: w, control: http.NewResponseController(w), left: most}
		defer t.arm() // for what the server still holds of the answer
		h.ServeHTTP(t, r)
	})
}

// timed is a ResponseWriter whose writes have deadlines. Between two writes there is none:
// a deadline that passes then would end a stream of HTTP/2.
type timed struct {
	http.ResponseWriter
	control *http.ResponseController
	left    time.Duration // that writes may still wait
	own     bool          // the handler sets deadlines
}

// Unwrap returns the writer below, for http.ResponseController.
func (t *timed) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// SetWriteDeadline leaves deadlines to the handler.
func (t *timed) SetWriteDeadline(at time.Time) error {
	t.own = true
	return t.control.SetWriteDeadline(at)
}

func (t *timed) Write(p []byte) (n int, err error) {
	err = t.within(func() (err error) {
		n, err = t.ResponseWriter.Write(p)
		return err
	})
	return n, err
}

// FlushError is what http.ResponseController calls.
func (t *timed) FlushError() error { return t.within(t.control.Flush) }

// Flush implements http.Flusher.
func (t *timed) Flush() { _ = t.FlushError() } // who asked is gone

// within writes in the time that is left.
func (t *timed) within(write func() error) error {
	if t.own {
		return write()
	}
	if t.left <= 0 {
		return os.ErrDeadlineExceeded
	}
	t.arm()
	began := time.Now()
	err := write()
	t.left -= time.Since(began)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.left = 0
	}
	if t.left > 0 {
		_ = t.control.SetWriteDeadline(time.Time{}) // what arm says holds here too
	}
	return err
}

// arm sets the deadline. A writer without deadlines, as in tests, has no reader to wait for.
func (t *timed) arm() {
	if !t.own {
		_ = t.control.SetWriteDeadline(time.Now().Add(t.left))
	}
}
