package kube

import (
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// outlet is a connection that notes what is sent, and when.
type outlet struct {
	net.Conn
	begun  time.Time
	bursts []burst
	takes  time.Duration // to send
	fails  error
	closed chan struct{}
}

type burst struct {
	at   time.Duration
	sent string
}

func (o *outlet) Write(b []byte) (int, error) {
	o.bursts = append(o.bursts, burst{time.Since(o.begun), string(b)})
	time.Sleep(o.takes)
	return len(b), o.fails
}

func (o *outlet) Read([]byte) (int, error) {
	<-o.closed
	return 0, io.EOF
}

func (o *outlet) Close() error {
	close(o.closed)
	return nil
}

func newOutlet() *outlet { return &outlet{begun: time.Now(), closed: make(chan struct{})} }

func write(t *testing.T, w io.Writer, s string) {
	t.Helper()
	if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
		t.Errorf("writing %q: %d, %v", s, n, err)
	}
}

// What is written within a moment is sent at once, in order, and so is what comes
// while that is on its way.
func TestWritesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutlet()
		o.takes = 10 * time.Millisecond
		w := newBurstWriter(o)
		write(t, w, "a")
		write(t, w, "b")
		time.Sleep(writePause / 2)
		write(t, w, "c")
		time.Sleep(writePause)
		write(t, w, "d")
		time.Sleep(writePause)
		write(t, w, "e")
		time.Sleep(time.Second)
		write(t, w, "f")
		time.Sleep(time.Second)
		synctest.Wait()
		want := []burst{{writePause, "abc"}, {writePause + o.takes + writePause, "de"}, {time.Second + 5*writePause/2 + writePause, "f"}}
		if !slices.Equal(o.bursts, want) {
			t.Errorf("sent %v, want %v", o.bursts, want)
		}
	})
}

// Who writes waits while much is pending, and the end of the connection ends the wait.
func TestPendingWritesAreBounded(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			o := newOutlet()
			o.takes = heldUpLimit / 2
			w := newBurstWriter(o)
			write(t, w, "first")
			time.Sleep(2 * writePause)
			write(t, w, string(make([]byte, pendingLimit)))
			wrote := make(chan error)
			go func() {
				_, err := w.Write([]byte("more"))
				wrote <- err
			}()
			synctest.Wait()
			select {
			case err := <-wrote:
				t.Errorf("more was taken than may be pending: %v", err)
			default:
			}
			if ends {
				w.Close()
			}
			if err := <-wrote; errors.Is(err, net.ErrClosed) != ends {
				t.Errorf("ended %t: %v", ends, err)
			}
			time.Sleep(time.Minute)
		})
	}
}

// What cannot be sent, or was held up, ends the connection, for readers and writers.
func TestUnsentWritesEndTheConnection(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		takes time.Duration
		fails error
		want  error
	}{
		{fails: broken, want: broken},
		{takes: 2 * heldUpLimit, want: errHeldUp},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := newOutlet()
			o.takes, o.fails = tt.takes, tt.fails
			w := newBurstWriter(o)
			write(t, w, "first")
			time.Sleep(writePause + tt.takes/4)
			if tt.takes > 0 {
				write(t, w, "late")
			}
			if _, err := w.Read(nil); err != tt.want {
				t.Errorf("read: %v, want %v", err, tt.want)
			}
			if _, err := w.Write([]byte("more")); err != tt.want {
				t.Errorf("write: %v, want %v", err, tt.want)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(o.bursts) != 1 {
				t.Errorf("sent %v", o.bursts)
			}
		})
	}
}
